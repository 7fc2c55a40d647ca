//! One direction of the simulated network, with its faults.
//!
//! ```text
//!   offer ─ blackout ─ burst ─ loss ─ queue, rate ─ delay, jitter ─ duplicate ─ damage ─▶ take
//!                                               replays, old incarnations ─────┘
//! ```
//!
//! Packet conservation holds at any time: `offered + made = lost + taken + held`.

use super::fault::{Fault, FaultCounts};
use crate::EventQueue;
use units::{BitRate, Instant, RngStream, Serializer, Span};
use xstp::wire::{Profile, Segment};

/// Number of datagrams kept for replay.
const HISTORY: usize = 48;
/// Octets of IP and UDP headers of each datagram.
const HEADERS: u64 = 28;

/// The impairments of one direction. Probabilities are from 0 to 1.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Conditions {
    pub(crate) rate: Option<BitRate>,
    /// Maximum queuing delay before the link.
    pub(crate) queue: Span,
    pub(crate) delay: Span,
    pub(crate) jitter: Span,
    pub(crate) loss: f64,
    /// Probability that a datagram starts a burst of losses, and the mean length of a burst.
    pub(crate) burst: f64,
    pub(crate) burst_length: f64,
    pub(crate) duplicate: f64,
    /// Probability that a datagram is delayed for reordering, and the maximum delay.
    pub(crate) reorder: f64,
    pub(crate) max_reorder_delay: Span,
    pub(crate) corrupt: f64,
    pub(crate) truncate: f64,
    pub(crate) replay: f64,
    pub(crate) old: f64,
}

/// What detects a damaged datagram.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Detection {
    /// A lower layer, which discards it.
    DiscardBelow,
    /// The segment's checksum, under the receiver's profile. A damaged datagram with a valid
    /// checksum is lost: the receiver could not detect it.
    Checksum(Profile),
    /// The endpoints, which receive it as it is.
    PassToEndpoint,
}

/// A datagram in flight.
#[derive(Debug)]
pub(crate) struct Datagram {
    pub(crate) bytes: Vec<u8>,
    /// The sender's incarnation.
    pub(crate) incarnation: u64,
}

/// One direction of the network.
#[derive(Debug)]
pub(crate) struct Channel {
    now: Conditions,
    guard: Detection,
    rng: RngStream,
    serializer: Serializer,
    blackout_until: Instant,
    burst_left: u64,
    in_flight: EventQueue<Datagram>,
    past: Vec<Datagram>,
    old: Vec<Datagram>,
    spare: Vec<Vec<u8>>,
    counts: Counts,
}

/// Datagram counters of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) offered: u64,
    /// Copies made by the network.
    pub(crate) made: u64,
    pub(crate) lost: u64,
    pub(crate) taken: u64,
    pub(crate) held: u64,
}

impl Channel {
    pub(crate) fn new(conditions: Conditions, guard: Detection, rng: RngStream) -> Self {
        Self {
            now: conditions,
            guard,
            rng,
            serializer: Serializer::new(conditions.rate.unwrap_or(UNLIMITED)),
            blackout_until: Instant::ZERO,
            burst_left: 0,
            in_flight: EventQueue::new(),
            past: Vec::new(),
            old: Vec::new(),
            spare: Vec::new(),
            counts: Counts::default(),
        }
    }

    pub(crate) fn conditions(&mut self) -> &mut Conditions {
        &mut self.now
    }

    pub(crate) fn begin_blackout(&mut self, until: Instant) {
        self.blackout_until = self.blackout_until.max(until);
    }

    pub(crate) fn end_blackout(&mut self) {
        self.blackout_until = Instant::ZERO;
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

    /// Marks everything sent so far as of an old incarnation.
    pub(crate) fn mark_old(&mut self) {
        self.old.append(&mut self.past);
        let excess = self.old.len().saturating_sub(HISTORY);
        self.old.drain(..excess);
    }

    /// Discards everything sent so far, in flight or not.
    pub(crate) fn discard_all(&mut self) {
        self.past.clear();
        self.old.clear();
        while self.in_flight.pop_due(Instant::FAR_FUTURE).is_some() {
            self.counts.held -= 1;
            self.counts.lost += 1;
        }
    }

    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.in_flight.next_at()
    }

    /// The next datagram that arrives by `now`.
    pub(crate) fn take(&mut self, now: Instant) -> Option<Datagram> {
        let (_, in_flight) = self.in_flight.pop_due(now)?;
        self.counts.held -= 1;
        self.counts.taken += 1;
        Some(in_flight)
    }

    /// Returns a buffer for reuse.
    pub(crate) fn recycle(&mut self, bytes: Vec<u8>) {
        if self.spare.len() < HISTORY {
            self.spare.push(bytes);
        }
    }

    /// Enqueues a datagram at `now`.
    pub(crate) fn offer(
        &mut self,
        now: Instant,
        bytes: &[u8],
        incarnation: u64,
        fault_counts: &mut FaultCounts,
    ) {
        self.counts.offered += 1;
        self.remember(bytes, incarnation);
        self.replay_old(now, fault_counts);
        if let Some(fault) = self.loss_cause(now) {
            fault_counts.count(fault);
            self.counts.lost += 1;
            return;
        }
        let Some(out) = self.queue(now, bytes.len() as u64) else {
            fault_counts.count(Fault::Overflow);
            self.counts.lost += 1;
            return;
        };
        let copies = if self.now.duplicate > 0.0 && self.rng.chance(self.now.duplicate) {
            fault_counts.count(Fault::Duplicate);
            self.counts.made += 1;
            2
        } else {
            1
        };
        for _ in 0..copies {
            let at = self.arrival(out, fault_counts);
            let mut copy = self.spare.pop().unwrap_or_default();
            copy.clear();
            copy.extend_from_slice(bytes);
            match self.damage(&mut copy, fault_counts) {
                Some(()) => self.enqueue(at, Datagram { bytes: copy, incarnation }),
                None => self.counts.lost += 1,
            }
        }
    }

    fn enqueue(&mut self, at: Instant, in_flight: Datagram) {
        self.counts.held += 1;
        self.in_flight.push(at, in_flight);
    }

    /// The fault that loses the datagram, if any.
    fn loss_cause(&mut self, now: Instant) -> Option<Fault> {
        if now < self.blackout_until {
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

    /// When the datagram has left the link's queue; `None` if the queue is full.
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

    fn arrival(&mut self, out: Instant, fault_counts: &mut FaultCounts) -> Instant {
        let mut at = out + self.now.delay;
        if !self.now.jitter.is_zero() {
            fault_counts.count(Fault::Jitter);
            at += Span::from_nanos(self.rng.below(self.now.jitter.as_nanos()));
        }
        if self.now.reorder > 0.0 && self.rng.chance(self.now.reorder) {
            fault_counts.count(Fault::Reorder);
            at += Span::from_nanos(self.rng.below(self.now.max_reorder_delay.as_nanos().max(1)));
        }
        at
    }

    /// Flips a bit or truncates the datagram; `None` when it must not be delivered.
    fn damage(&mut self, bytes: &mut Vec<u8>, fault_counts: &mut FaultCounts) -> Option<()> {
        let mut damaged = false;
        if self.now.truncate > 0.0 && self.rng.chance(self.now.truncate) && !bytes.is_empty() {
            bytes.truncate(self.rng.below(bytes.len() as u64) as usize);
            fault_counts.count(Fault::Truncate);
            damaged = true;
        }
        if self.now.corrupt > 0.0 && self.rng.chance(self.now.corrupt) && !bytes.is_empty() {
            let bit = self.rng.below(bytes.len() as u64 * 8);
            bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
            fault_counts.count(Fault::Corrupt);
            damaged = true;
        }
        match self.guard {
            _ if !damaged => Some(()),
            Detection::PassToEndpoint => Some(()),
            Detection::DiscardBelow => None,
            Detection::Checksum(profile) => Segment::decode(&profile, bytes).is_err().then_some(()),
        }
    }

    fn remember(&mut self, bytes: &[u8], incarnation: u64) {
        if self.now.replay <= 0.0 && self.now.old <= 0.0 {
            return;
        }
        if self.past.len() < HISTORY {
            self.past.push(Datagram { bytes: bytes.to_vec(), incarnation });
        } else {
            let place = &mut self.past[self.rng.below(HISTORY as u64) as usize];
            place.bytes.clear();
            place.bytes.extend_from_slice(bytes);
            place.incarnation = incarnation;
        }
    }

    /// Replays earlier datagrams.
    fn replay_old(&mut self, now: Instant, fault_counts: &mut FaultCounts) {
        let sources = [
            (self.now.replay, &self.past, Fault::Replay),
            (self.now.old, &self.old, Fault::OldIncarnation),
        ];
        let mut replayed = Vec::new();
        for (share, source, fault) in sources {
            if share > 0.0 && self.rng.chance(share) && !source.is_empty() {
                let datagram = &source[self.rng.below(source.len() as u64) as usize];
                replayed.push(Datagram {
                    bytes: datagram.bytes.clone(),
                    incarnation: datagram.incarnation,
                });
                fault_counts.count(fault);
            }
        }
        for datagram in replayed {
            self.counts.made += 1;
            self.enqueue(now + self.now.delay, datagram);
        }
    }
}

/// The rate of a link without a rate limit.
const UNLIMITED: BitRate = BitRate::from_mbps(100_000);

#[cfg(test)]
mod tests {
    use super::*;

    fn send_2_000(conditions: Conditions) -> (Channel, FaultCounts) {
        let rng = RngStream::new(1, 0, "weather");
        let mut channel = Channel::new(conditions, Detection::DiscardBelow, rng);
        let mut fault_counts = FaultCounts::default();
        for n in 0..2_000_u64 {
            let now = Instant::ZERO + Span::from_millis(n);
            channel.offer(now, &[n as u8; 100], 1, &mut fault_counts);
            if n == 1_000 {
                channel.mark_old();
            }
            while channel.take(now).is_some() {}
            assert!(channel.balances(), "{:?}", channel.counts());
        }
        (channel, fault_counts)
    }

    #[test]
    fn every_datagram_is_accounted_for() {
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
            max_reorder_delay: Span::from_millis(90),
            corrupt: 0.1,
            truncate: 0.1,
            replay: 0.1,
            old: 0.1,
        };
        let (mut channel, fault_counts) = send_2_000(conditions);
        use Fault as F;
        for fault in [F::Loss, F::Burst, F::Duplicate, F::Reorder, F::Jitter, F::Corrupt] {
            assert!(fault_counts.of(fault) > 10, "{fault}");
        }
        for fault in [F::Truncate, F::Replay, F::OldIncarnation, F::Overflow] {
            assert!(fault_counts.of(fault) > 10, "{fault}");
        }
        channel.discard_all();
        assert!(channel.balances() && channel.next_at().is_none());
    }

    #[test]
    fn without_faults_all_datagrams_arrive_in_order() {
        let conditions = Conditions { delay: Span::from_millis(5), ..Conditions::default() };
        let (channel, fault_counts) = send_2_000(conditions);
        assert_eq!((channel.counts().taken, channel.counts().lost), (1_995, 0));
        assert_eq!(fault_counts, FaultCounts::default());
    }
}
