//! Random and dedicated access side by side: return channels of two kinds.
//!
//! ```text
//!   short packet, empty queue ───────▶ random carriers (slotted Aloha) ─────────▶ hub
//!   all others ──▶ queue ───────────▶ slots of the dedicated carriers (MF-TDMA) ▶ hub
//!                    └─ the first packet of an empty queue sends a request by random access ─▲
//! ```
//!
//! A request or an acknowledgement is sent without a plan; a transfer sends one capacity request
//! and then has slots. When the random carriers are overloaded, the hub announces once per frame
//! the probability with which packets, requests and retransmissions may use them; all others use
//! the dedicated carriers and send requests in sync bursts.
//!
//! Source: Recommendation ITU-R S.1711, section 4.1.2.2 and figure 41 (RA and DA channels); it
//! specifies neither which packets use which channel nor the behaviour under load.

mod control;

use super::aloha::{Aloha, AlohaConfig, Left};
use super::arrivals::{Arrivals, Arrived};
use super::mf_tdma::{Class, MfTdma, MfTdmaConfig};
use super::schedule::{Free, ScheduleError};
use crate::{Admission, Frame};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;
use control::Control;
use units::{Instant, RngStream};

/// Content of a random-access burst.
#[derive(Clone, Debug)]
enum Word<F> {
    Packet(F),
    /// A capacity request for so many slots, in a burst of its own.
    Ask(u32),
}

/// A request takes one cell.
const ASK_BYTES: usize = 8;

impl<F: Frame> Frame for Word<F> {
    fn len(&self) -> usize {
        match self {
            Self::Packet(frame) => frame.len(),
            Self::Ask(_) => ASK_BYTES,
        }
    }
}

/// A return link with both kinds of carriers.
#[derive(Debug)]
pub struct Mixed<F> {
    random: Aloha<Word<F>>,
    dedicated: MfTdma<F>,
    /// Slots of the longest packet sent by random access.
    short: u64,
    format: super::slots::SlotFormat,
    control: Control,
    /// By terminal.
    chance: Vec<RngStream>,
    /// Pending notifications to the dedicated carriers.
    due: BTreeMap<(Instant, u64), Due<F>>,
    next_due: u64,
    arrived: Arrivals<F>,
    /// Packets that moved to dedicated carriers and were dropped at a full queue there.
    crowded_out: u64,
}

/// A notification to the dedicated carriers.
#[derive(Debug)]
enum Due<F> {
    /// The hub has received a request.
    Ask(usize, u32),
    /// A packet has left the random carriers.
    Left(Left<Word<F>>),
}

impl<F: Frame> Mixed<F> {
    /// A link whose packets of up to `short` slots use random carriers.
    ///
    /// # Errors
    /// If a setting is invalid, or a terminal whose request expired could not send another one:
    /// dedicated carriers need `sync`, or free slots.
    pub fn new(
        random: &AlohaConfig,
        dedicated: &MfTdmaConfig,
        short: u64,
        seed: u64,
        run: u64,
    ) -> Result<Self, ScheduleError> {
        if dedicated.free == Free::None && dedicated.sync.is_none() {
            let expected = "a burst of its own for each terminal, or free slots";
            return Err(ScheduleError { setting: "sync", expected });
        }
        let terminals = dedicated.terminals.len();
        let chance = |place| RngStream::new(seed, run, &format!("satlink/mixed/{place}"));
        Ok(Self {
            random: Aloha::new(random, terminals, seed, run)?,
            dedicated: MfTdma::new(dedicated, seed, run)?,
            short,
            format: random.format,
            control: Control::new(random, dedicated.period),
            chance: (0..terminals).map(chance).collect(),
            due: BTreeMap::new(),
            next_due: 0,
            arrived: Arrivals::new(),
            crowded_out: 0,
        })
    }

    /// Queues a packet at `terminal`.
    ///
    /// # Panics
    /// If the terminal does not exist.
    pub fn offer(&mut self, now: Instant, terminal: usize, frame: F) -> Admission<F> {
        self.advance(now);
        let idle = self.dedicated.backlog(terminal) == 0;
        let slots = self.format.slots_for(frame.len() as u64);
        if idle && slots <= self.short && self.may(now, terminal) {
            return match self.random.offer(now, terminal, Word::Packet(frame)) {
                Admission::Queued => Admission::Queued,
                Admission::Dropped(cause, Word::Packet(frame)) => Admission::Dropped(cause, frame),
                Admission::Dropped(_, Word::Ask(_)) => Admission::Queued,
            };
        }
        let admission = self.dedicated.offer(now, terminal, Class::Data, frame);
        if idle && admission_is_queued(&admission) {
            self.ask(now, terminal);
        }
        admission
    }

    /// Whether `terminal` may use random carriers now.
    fn may(&mut self, now: Instant, terminal: usize) -> bool {
        let chance = self.control.at(now);
        chance >= 1.0 || self.chance[terminal].chance(chance)
    }

    /// Sends a capacity request for the queue of `terminal` by random access. If that is not
    /// allowed, or the queue there is full, sync bursts and traffic slots carry the request.
    fn ask(&mut self, now: Instant, terminal: usize) {
        if self.may(now, terminal) {
            let slots = u32::try_from(self.dedicated.backlog(terminal)).unwrap_or(u32::MAX);
            self.random.offer(now, terminal, Word::Ask(slots));
        }
    }

    /// Announces that `terminal` will need `slots`, in place of a request.
    ///
    /// # Panics
    /// If the terminal does not exist.
    pub fn expect(&mut self, now: Instant, terminal: usize, slots: u32) {
        self.advance(now);
        self.dedicated.expect(now, terminal, slots);
    }

    /// Returns when to call [`Mixed::poll_arrival`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        let due = self.due.keys().next().map(|&(at, _)| at);
        let next = [
            self.random.poll_timeout(),
            self.dedicated.poll_timeout(),
            self.arrived.next_at(),
            due,
        ];
        next.into_iter().flatten().min()
    }

    /// The next packet that arrived by `now`.
    pub fn poll_arrival(&mut self, now: Instant) -> Option<Arrived<F>> {
        self.advance(now);
        self.arrived.pop(now)
    }

    /// Counters of the random carriers.
    pub fn random(&self) -> &super::aloha::AlohaCounters {
        self.random.counters()
    }

    /// The dedicated carriers.
    pub fn dedicated(&self) -> &MfTdma<F> {
        &self.dedicated
    }

    /// The hub's current probability for the use of random carriers; 1 unless they are overloaded.
    pub fn permission(&self) -> f64 {
        self.control.latest()
    }

    /// Packets that left the random carriers after a collision and were dropped at a full queue for
    /// the dedicated ones.
    pub fn crowded_out(&self) -> u64 {
        self.crowded_out
    }

    /// Advances frame by frame, so that late calls change nothing.
    fn advance(&mut self, now: Instant) {
        while let Some(end) = self.control.frame_by(now) {
            self.step(end);
            let chance = self.control.measure(self.random.counters().busy);
            self.random.set_again(end, chance);
        }
        self.step(now);
    }

    /// Requests count from their arrival on, before the plan of that time.
    fn step(&mut self, now: Instant) {
        let mut came = Vec::new();
        while let Some(arrived) = self.random.poll_arrival(now) {
            let Arrived { at, terminal, frame, offered_at } = arrived;
            match frame {
                Word::Packet(frame) => came.push(Arrived { at, terminal, frame, offered_at }),
                Word::Ask(slots) => self.put(at, Due::Ask(terminal, slots)),
            }
        }
        while let Some(left) = self.random.poll_left() {
            self.put(left.at, Due::Left(left));
        }
        while let Some(entry) = self.due.first_entry().filter(|entry| entry.key().0 <= now) {
            let ((at, _), due) = entry.remove_entry();
            match due {
                Due::Ask(terminal, slots) => self.dedicated.expect(at, terminal, slots),
                Due::Left(left) => self.move_over(at, left),
            }
        }
        while let Some(arrived) = self.dedicated.poll_arrival(now) {
            came.push(arrived);
        }
        came.sort_by_key(|arrived| arrived.at);
        came.into_iter().for_each(|arrived| self.arrived.push(arrived));
    }

    /// Moves a packet from the random carriers to the queue for the dedicated ones.
    fn move_over(&mut self, at: Instant, left: Left<Word<F>>) {
        let Left { terminal, frame, offered_at, .. } = left;
        // A collided request is repeated in the terminal's sync burst.
        let Word::Packet(frame) = frame else { return };
        let admission = self.dedicated.offer_since(at, terminal, Class::Data, frame, offered_at);
        self.crowded_out += u64::from(!admission_is_queued(&admission));
    }

    fn put(&mut self, at: Instant, due: Due<F>) {
        self.due.insert((at, self.next_due), due);
        self.next_due += 1;
    }
}

fn admission_is_queued<F>(admission: &Admission<F>) -> bool {
    match admission {
        Admission::Queued => true,
        Admission::Dropped(..) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use units::{BitRate, Span};

    fn link() -> Mixed<Vec<u8>> {
        let random = AlohaConfig::new(BitRate::from_kbps(20), Span::from_millis(270));
        let mut dedicated = MfTdmaConfig::mhatre_rosenberg(20);
        dedicated.rate = BitRate::from_kbps(80);
        (dedicated.free, dedicated.sync) = (Free::None, Some(8));
        Mixed::new(&random, &dedicated, 2, 1, 0).unwrap()
    }

    fn arrival(link: &mut Mixed<Vec<u8>>, bytes: usize) -> f64 {
        let start = Instant::ZERO + Span::from_secs(5);
        link.offer(start, 4, vec![0; bytes]);
        let mut arrived = None;
        while let Some(at) = link.poll_timeout().filter(|_| arrived.is_none()) {
            arrived = link.poll_arrival(at);
        }
        arrived.unwrap().at.since(start).as_secs_f64()
    }

    #[test]
    fn short_packets_use_random_access_and_long_ones_one_request() {
        let mut link = link();
        let short = arrival(&mut link, 82);
        // Two cells of 21.2 ms, and up to one until the next slot.
        assert!((0.27..0.27 + 0.07).contains(&short), "{short}");
        assert_eq!(link.dedicated().counters().offered.packets, 0);
        let mut link = self::link();
        let long = arrival(&mut link, 1_000);
        // A burst, a plan, two hops, the frame, and one more.
        assert!((0.85..1.45).contains(&long), "{long}");
        assert_eq!(
            (link.random().delivered.packets, link.dedicated().counters().requests > 0),
            (1, true)
        );
    }

    #[test]
    fn everything_arrives_under_load() {
        let mut link = link();
        let mut rng = RngStream::new(2, 0, "load");
        let (mut now, mut got) = (Instant::ZERO, 0);
        for packet in 0..600 {
            now += Span::from_millis(rng.below(400));
            let bytes = if packet % 5 == 0 { 600 } else { 60 };
            assert_eq!(link.offer(now, rng.below(20) as usize, vec![0; bytes]), Admission::Queued);
            while link.poll_arrival(now).is_some() {
                got += 1;
            }
        }
        let end = now + Span::from_secs(120);
        while link.poll_arrival(end).is_some() {
            got += 1;
        }
        assert_eq!(got, 600);
    }

    /// Packets of two cells, `rate` per second for a minute; which arrived within another 30 s,
    /// polled at every event or only at the end; and the final probability of random access.
    fn loaded(rate: f64, often: bool) -> Loaded {
        let mut link = link();
        let mut rng = RngStream::new(4, 0, "load");
        let (mut at, mut offered, mut arrived) = (0.0, 0, Vec::new());
        while at < 60.0 {
            at += rng.exponential(1.0 / rate);
            let now = Instant::ZERO + Span::from_secs_f64(at);
            while let Some(next) = link.poll_timeout().filter(|&next| often && next <= now) {
                arrived.extend(link.poll_arrival(next));
            }
            link.offer(now, rng.below(20) as usize, vec![0; 82]);
            offered += 1;
        }
        let chance = link.permission();
        let end = Instant::ZERO + Span::from_secs(90);
        while let Some(one) = link.poll_arrival(end) {
            arrived.push(one);
        }
        Loaded { offered, chance, arrived, link }
    }

    struct Loaded {
        offered: u64,
        chance: f64,
        arrived: Vec<Arrived<Vec<u8>>>,
        link: Mixed<Vec<u8>>,
    }

    #[test]
    fn overload_of_random_carriers_moves_to_the_plan() {
        // Half of their capacity; then five times as much, most of it on dedicated carriers.
        let Loaded { offered, chance, arrived, link } = loaded(6.0, true);
        assert_eq!((arrived.len() as u64, chance), (offered, 1.0));
        let moved = link.dedicated().counters().offered.packets;
        assert!(moved * 10 < offered, "{moved} of {offered}");
        let Loaded { offered, chance, arrived, link } = loaded(60.0, true);
        assert_eq!((arrived.len() as u64, link.crowded_out()), (offered, 0));
        assert!(chance < 0.5, "{chance}");
        // The random carriers have 47 slots per second, of which at least 1/5 are successful.
        let through = link.random().through as f64 / (47.17 * 60.0);
        assert!((0.2..0.37).contains(&through), "{through}");
    }

    #[test]
    fn late_calls_change_nothing() {
        assert_eq!(loaded(60.0, true).arrived, loaded(60.0, false).arrived);
    }

    #[test]
    fn configuration_without_repeated_requests_is_rejected() {
        let random = AlohaConfig::new(BitRate::from_kbps(20), Span::ZERO);
        let mut dedicated = MfTdmaConfig::mhatre_rosenberg(2);
        dedicated.free = Free::None;
        let refused = Mixed::<Vec<u8>>::new(&random, &dedicated, 2, 1, 0);
        assert_eq!(refused.map(drop).unwrap_err().setting, "sync");
    }
}
