//! The network between the ends: what it does to each datagram.
//!
//! ```text
//!   offer ─ dark? ─ burst? ─ lost? ─ queue, rate ─ delay, jitter ─ twice? ─ damaged? ─▶ take
//!                                                    replay, old incarnations ─────┘
//! ```
//!
//! Nothing is lost, doubled or damaged without being counted: `offered + made = lost + taken +
//! held` holds at any time.

use super::fault::{Fault, Strikes};
use crate::Agenda;
use units::{BitRate, Instant, RngStream, Serializer, Span};
use xstp::wire::{Profile, Segment};

/// Datagrams that are remembered, so that they can come again.
const REMEMBERED: usize = 48;
/// Bytes of IP and UDP around each datagram.
const HEADERS: u64 = 28;

/// What one direction does. Shares from 0 to 1.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Conditions {
    pub(crate) rate: Option<BitRate>,
    /// How long the queue before the link may be.
    pub(crate) queue: Span,
    pub(crate) delay: Span,
    pub(crate) jitter: Span,
    pub(crate) loss: f64,
    /// Share of the datagrams that begin a burst of losses, and how many it takes on average.
    pub(crate) burst: f64,
    pub(crate) burst_length: f64,
    pub(crate) duplicate: f64,
    /// Share that is held back, and for how long at most.
    pub(crate) reorder: f64,
    pub(crate) held_back: Span,
    pub(crate) corrupt: f64,
    pub(crate) truncate: f64,
    pub(crate) replay: f64,
    pub(crate) old: f64,
}

/// What finds out that a datagram was damaged.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Guard {
    /// Something below: a damaged datagram is lost.
    Below,
    /// The segment's checksum, as the receiver with this profile sees it. One that fits by luck
    /// is lost: nobody could have known.
    Checksum(Profile),
    /// The ends themselves: they get it as it is.
    Above,
}

/// A datagram on its way.
#[derive(Debug)]
pub(crate) struct Flying {
    pub(crate) bytes: Vec<u8>,
    /// The sender's incarnation.
    pub(crate) incarnation: u64,
}

/// One direction.
#[derive(Debug)]
pub(crate) struct Lane {
    now: Conditions,
    guard: Guard,
    rng: RngStream,
    serializer: Serializer,
    dark_until: Instant,
    burst_left: u64,
    flying: Agenda<Flying>,
    past: Vec<Flying>,
    old: Vec<Flying>,
    spare: Vec<Vec<u8>>,
    counts: Counts,
}

/// The accounts of one direction, in datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) offered: u64,
    /// Copies that the network made.
    pub(crate) made: u64,
    pub(crate) lost: u64,
    pub(crate) taken: u64,
    pub(crate) held: u64,
}

impl Lane {
    pub(crate) fn new(conditions: Conditions, guard: Guard, rng: RngStream) -> Self {
        Self {
            now: conditions,
            guard,
            rng,
            serializer: Serializer::new(conditions.rate.unwrap_or(FAST)),
            dark_until: Instant::ZERO,
            burst_left: 0,
            flying: Agenda::new(),
            past: Vec::new(),
            old: Vec::new(),
            spare: Vec::new(),
            counts: Counts::default(),
        }
    }

    pub(crate) fn conditions(&mut self) -> &mut Conditions {
        &mut self.now
    }

    pub(crate) fn darken(&mut self, until: Instant) {
        self.dark_until = self.dark_until.max(until);
    }

    pub(crate) fn lighten(&mut self) {
        self.dark_until = Instant::ZERO;
        self.burst_left = 0;
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }

    /// Whether every datagram is accounted for.
    pub(crate) fn balances(&self) -> bool {
        let Counts { offered, made, lost, taken, held } = self.counts;
        offered + made == lost + taken + held
    }

    /// What was sent so far is of an old incarnation from now on.
    pub(crate) fn bury(&mut self) {
        self.old.append(&mut self.past);
        let excess = self.old.len().saturating_sub(REMEMBERED);
        self.old.drain(..excess);
    }

    /// What was sent before is gone for good, in flight or not.
    pub(crate) fn forget(&mut self) {
        self.past.clear();
        self.old.clear();
        while self.flying.take_due(Instant::FAR_FUTURE).is_some() {
            self.counts.held -= 1;
            self.counts.lost += 1;
        }
    }

    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.flying.next_at()
    }

    /// The next datagram that arrives by `now`.
    pub(crate) fn take(&mut self, now: Instant) -> Option<Flying> {
        let (_, flying) = self.flying.take_due(now)?;
        self.counts.held -= 1;
        self.counts.taken += 1;
        Some(flying)
    }

    /// Gives a buffer back.
    pub(crate) fn recycle(&mut self, bytes: Vec<u8>) {
        if self.spare.len() < REMEMBERED {
            self.spare.push(bytes);
        }
    }

    /// Takes a datagram at `now`.
    pub(crate) fn offer(
        &mut self,
        now: Instant,
        bytes: &[u8],
        incarnation: u64,
        strikes: &mut Strikes,
    ) {
        self.counts.offered += 1;
        self.remember(bytes, incarnation);
        self.haunt(now, strikes);
        if let Some(fault) = self.swallows(now) {
            strikes.count(fault);
            self.counts.lost += 1;
            return;
        }
        let Some(out) = self.queue(now, bytes.len() as u64) else {
            strikes.count(Fault::Overflow);
            self.counts.lost += 1;
            return;
        };
        let copies = if self.now.duplicate > 0.0 && self.rng.chance(self.now.duplicate) {
            strikes.count(Fault::Duplicate);
            self.counts.made += 1;
            2
        } else {
            1
        };
        for _ in 0..copies {
            let at = self.arrival(out, strikes);
            let mut copy = self.spare.pop().unwrap_or_default();
            copy.clear();
            copy.extend_from_slice(bytes);
            match self.damage(&mut copy, strikes) {
                Some(()) => self.fly(at, Flying { bytes: copy, incarnation }),
                None => self.counts.lost += 1,
            }
        }
    }

    fn fly(&mut self, at: Instant, flying: Flying) {
        self.counts.held += 1;
        self.flying.put(at, flying);
    }

    /// Why a datagram gets nowhere, if it does not.
    fn swallows(&mut self, now: Instant) -> Option<Fault> {
        if now < self.dark_until {
            return Some(Fault::Blackout);
        }
        if self.burst_left > 0 {
            self.burst_left -= 1;
            return Some(Fault::Burst);
        }
        if self.now.burst > 0.0 && self.rng.chance(self.now.burst) {
            self.burst_left = self.rng.exponential(self.now.burst_length) as u64;
            return Some(Fault::Burst);
        }
        (self.now.loss > 0.0 && self.rng.chance(self.now.loss)).then_some(Fault::Loss)
    }

    /// When the datagram has left the link's queue, if there was room.
    fn queue(&mut self, now: Instant, bytes: u64) -> Option<Instant> {
        let Some(rate) = self.now.rate else { return Some(now) };
        if self.serializer.rate() != rate {
            self.serializer.set_rate(rate);
        }
        if self.serializer.free_at().since(now) > self.now.queue {
            return None;
        }
        Some(self.serializer.send(now, bytes + HEADERS))
    }

    fn arrival(&mut self, out: Instant, strikes: &mut Strikes) -> Instant {
        let mut at = out + self.now.delay;
        if !self.now.jitter.is_zero() {
            strikes.count(Fault::Jitter);
            at += Span::from_nanos(self.rng.below(self.now.jitter.as_nanos()));
        }
        if self.now.reorder > 0.0 && self.rng.chance(self.now.reorder) {
            strikes.count(Fault::Reorder);
            at += Span::from_nanos(self.rng.below(self.now.held_back.as_nanos().max(1)));
        }
        at
    }

    /// Flips a bit or cuts the end off; `None` when nothing may come of it.
    fn damage(&mut self, bytes: &mut Vec<u8>, strikes: &mut Strikes) -> Option<()> {
        let mut damaged = false;
        if self.now.truncate > 0.0 && self.rng.chance(self.now.truncate) && !bytes.is_empty() {
            bytes.truncate(self.rng.below(bytes.len() as u64) as usize);
            strikes.count(Fault::Truncate);
            damaged = true;
        }
        if self.now.corrupt > 0.0 && self.rng.chance(self.now.corrupt) && !bytes.is_empty() {
            let bit = self.rng.below(bytes.len() as u64 * 8);
            bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
            strikes.count(Fault::Corrupt);
            damaged = true;
        }
        match self.guard {
            _ if !damaged => Some(()),
            Guard::Above => Some(()),
            Guard::Below => None,
            Guard::Checksum(profile) => Segment::decode(&profile, bytes).is_err().then_some(()),
        }
    }

    fn remember(&mut self, bytes: &[u8], incarnation: u64) {
        if self.now.replay <= 0.0 && self.now.old <= 0.0 {
            return;
        }
        if self.past.len() < REMEMBERED {
            self.past.push(Flying { bytes: bytes.to_vec(), incarnation });
        } else {
            let place = &mut self.past[self.rng.below(REMEMBERED as u64) as usize];
            place.bytes.clear();
            place.bytes.extend_from_slice(bytes);
            place.incarnation = incarnation;
        }
    }

    /// What was sent long ago comes once more.
    fn haunt(&mut self, now: Instant, strikes: &mut Strikes) {
        let sources = [
            (self.now.replay, &self.past, Fault::Replay),
            (self.now.old, &self.old, Fault::OldIncarnation),
        ];
        let mut again = Vec::new();
        for (share, source, fault) in sources {
            if share > 0.0 && self.rng.chance(share) && !source.is_empty() {
                let ghost = &source[self.rng.below(source.len() as u64) as usize];
                again.push(Flying { bytes: ghost.bytes.clone(), incarnation: ghost.incarnation });
                strikes.count(fault);
            }
        }
        for ghost in again {
            self.counts.made += 1;
            self.fly(now + self.now.delay, ghost);
        }
    }
}

/// Stands for no limit.
const FAST: BitRate = BitRate::from_mbps(100_000);

#[cfg(test)]
mod tests {
    use super::*;

    fn storm(conditions: Conditions) -> (Lane, Strikes) {
        let rng = RngStream::new(1, 0, "weather");
        let mut lane = Lane::new(conditions, Guard::Below, rng);
        let mut strikes = Strikes::default();
        for n in 0..2_000_u64 {
            let now = Instant::ZERO + Span::from_millis(n);
            lane.offer(now, &[n as u8; 100], 1, &mut strikes);
            if n == 1_000 {
                lane.bury();
            }
            while lane.take(now).is_some() {}
            assert!(lane.balances(), "{:?}", lane.counts());
        }
        (lane, strikes)
    }

    #[test]
    fn every_datagram_is_accounted_for_whatever_happens() {
        let conditions = Conditions {
            rate: Some(BitRate::from_kbps(600)),
            queue: Span::from_millis(50),
            delay: Span::from_millis(20),
            jitter: Span::from_millis(9),
            loss: 0.1,
            burst: 0.01,
            burst_length: 5.0,
            duplicate: 0.1,
            reorder: 0.1,
            held_back: Span::from_millis(90),
            corrupt: 0.1,
            truncate: 0.1,
            replay: 0.1,
            old: 0.1,
        };
        let (mut lane, strikes) = storm(conditions);
        use Fault as F;
        for fault in [F::Loss, F::Burst, F::Duplicate, F::Reorder, F::Jitter, F::Corrupt] {
            assert!(strikes.of(fault) > 10, "{fault}");
        }
        for fault in [F::Truncate, F::Replay, F::OldIncarnation, F::Overflow] {
            assert!(strikes.of(fault) > 10, "{fault}");
        }
        lane.forget();
        assert!(lane.balances() && lane.next_at().is_none());
    }

    #[test]
    fn fair_weather_delivers_all_in_order() {
        let conditions = Conditions { delay: Span::from_millis(5), ..Conditions::default() };
        let (lane, strikes) = storm(conditions);
        assert_eq!((lane.counts().taken, lane.counts().lost), (1_995, 0));
        assert_eq!(strikes, Strikes::default());
    }
}
