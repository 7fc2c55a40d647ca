//! Random and dedicated access side by side: reverse channels of two kinds.
//!
//! ```text
//!   short packet, nothing waits ─────▶ random carriers (slotted Aloha) ─────────▶ hub
//!   everything else ──▶ queue ──────▶ slots of the dedicated carriers (MF-TDMA) ─▶ hub
//!                         └─ an empty queue's first packet asks on a random carrier ─▲
//! ```
//!
//! A request or an acknowledgement goes at once and needs no plan; a transfer asks with one burst
//! and then has slots. Source: Recommendation ITU-R S.1711, section 4.1.2.2 and figure 41 (RA and
//! DA channels); which packet takes which is not said there.

use super::aloha::{Aloha, AlohaConfig};
use super::mf_tdma::{Arrived, Class, MfTdma, MfTdmaConfig};
use super::schedule::{Free, ScheduleError};
use crate::{Admission, Frame};
use alloc::collections::VecDeque;
use units::Instant;

/// What goes over random carriers.
#[derive(Clone, Debug)]
enum Word<F> {
    Packet(F),
    /// A request for so many slots, in a burst of its own.
    Ask(u32),
}

/// A request is one cell.
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
    /// Slots of the longest packet that goes over random carriers.
    short: u64,
    format: super::slots::SlotFormat,
    arrived: VecDeque<Arrived<F>>,
}

impl<F: Frame> Mixed<F> {
    /// A link whose packets of up to `short` slots go over random carriers.
    ///
    /// # Errors
    /// When a setting makes no sense, or a terminal whose request was served too late would have
    /// nothing to ask again with: dedicated carriers need `sync`, or free slots.
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
        Ok(Self {
            random: Aloha::new(random, dedicated.terminals.len(), seed, run)?,
            dedicated: MfTdma::new(dedicated, seed, run)?,
            short,
            format: random.format,
            arrived: VecDeque::new(),
        })
    }

    /// Gives `terminal` a packet for the hub.
    ///
    /// # Panics
    /// When there is no such terminal.
    pub fn offer(&mut self, now: Instant, terminal: usize, frame: F) -> Admission<F> {
        self.advance(now);
        let idle = self.dedicated.backlog(terminal) == 0;
        let slots = self.format.slots_for(frame.len() as u64);
        if idle && slots <= self.short {
            return match self.random.offer(now, terminal, Word::Packet(frame)) {
                Admission::Queued => Admission::Queued,
                Admission::Dropped(cause, Word::Packet(frame)) => Admission::Dropped(cause, frame),
                Admission::Dropped(_, Word::Ask(_)) => Admission::Queued,
            };
        }
        let admission = self.dedicated.offer(now, terminal, Class::Data, frame);
        if idle && admission_is_queued(&admission) {
            let slots = u32::try_from(self.dedicated.backlog(terminal)).unwrap_or(u32::MAX);
            // Where a request is lost for want of room, sync bursts ask again.
            self.random.offer(now, terminal, Word::Ask(slots));
        }
        admission
    }

    /// The hub counts on `slots` for what `terminal` is about to send, in place of being asked.
    ///
    /// # Panics
    /// When there is no such terminal.
    pub fn expect(&mut self, now: Instant, terminal: usize, slots: u32) {
        self.advance(now);
        self.dedicated.expect(now, terminal, slots);
    }

    /// When to call [`Mixed::poll_arrival`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        let arrived = self.arrived.front().map(|arrived| arrived.at);
        let next = [self.random.poll_timeout(), self.dedicated.poll_timeout(), arrived];
        next.into_iter().flatten().min()
    }

    /// The next packet that arrived by `now`.
    pub fn poll_arrival(&mut self, now: Instant) -> Option<Arrived<F>> {
        self.advance(now);
        self.arrived.pop_front()
    }

    /// The random carriers.
    pub fn random(&self) -> &super::aloha::AlohaCounters {
        self.random.counters()
    }

    /// The dedicated carriers.
    pub fn dedicated(&self) -> &MfTdma<F> {
        &self.dedicated
    }

    /// Requests count from when they arrive, before the plan that is made then.
    fn advance(&mut self, now: Instant) {
        while let Some(arrived) = self.random.poll_arrival(now) {
            let Arrived { at, terminal, frame, offered_at } = arrived;
            match frame {
                Word::Packet(frame) => {
                    self.arrived.push_back(Arrived { at, terminal, frame, offered_at });
                }
                Word::Ask(slots) => self.dedicated.expect(at, terminal, slots),
            }
        }
        while let Some(arrived) = self.dedicated.poll_arrival(now) {
            self.arrived.push_back(arrived);
        }
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

    fn link() -> Mixed<vec::Vec<u8>> {
        let random = AlohaConfig::new(BitRate::from_kbps(20), Span::from_millis(270));
        let mut dedicated = MfTdmaConfig::mhatre_rosenberg(20);
        dedicated.rate = BitRate::from_kbps(80);
        (dedicated.free, dedicated.sync) = (Free::None, Some(8));
        Mixed::new(&random, &dedicated, 2, 1, 0).unwrap()
    }

    fn arrival(link: &mut Mixed<vec::Vec<u8>>, bytes: usize) -> f64 {
        let start = Instant::ZERO + Span::from_secs(5);
        link.offer(start, 4, vec![0; bytes]);
        let mut arrived = None;
        while let Some(at) = link.poll_timeout().filter(|_| arrived.is_none()) {
            arrived = link.poll_arrival(at);
        }
        arrived.unwrap().at.since(start).as_secs_f64()
    }

    #[test]
    fn short_packets_go_at_once_and_long_ones_ask_with_one_burst() {
        let mut link = link();
        let short = arrival(&mut link, 82);
        // Two cells of 21.2 ms, and up to one to the next slot.
        assert!((0.27..0.27 + 0.07).contains(&short), "{short}");
        assert_eq!(link.dedicated().counters().offered.packets, 0);
        let mut link = self::link();
        let long = arrival(&mut link, 1_000);
        // A burst, a plan, two crossings, the frame, and one more.
        assert!((0.85..1.45).contains(&long), "{long}");
        assert_eq!(
            (link.random().delivered.packets, link.dedicated().counters().requests > 0),
            (1, true)
        );
    }

    #[test]
    fn everything_arrives_under_load() {
        let mut link = link();
        let mut rng = units::RngStream::new(2, 0, "load");
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

    #[test]
    fn who_could_never_ask_again_is_refused() {
        let random = AlohaConfig::new(BitRate::from_kbps(20), Span::ZERO);
        let mut dedicated = MfTdmaConfig::mhatre_rosenberg(2);
        dedicated.free = Free::None;
        let refused = Mixed::<vec::Vec<u8>>::new(&random, &dedicated, 2, 1, 0);
        assert_eq!(refused.map(drop).unwrap_err().setting, "sync");
    }
}
