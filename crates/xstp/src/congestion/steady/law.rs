//! The law by which a rate grows where others send too: CUBIC's (RFC 9438), by time alone.
//!
//! ```text
//!   W(t)   = 0.4 (t − K)³ + W_max      packets of 1500 octets, t seconds since the last event
//!   K      = ³√(W_max (1 − β) / 0.4)
//!   rate   = W / T
//!
//!   SHARING      β = 0.9    T = 600 ms for everybody    an event is a queue
//!   COMPETING    β = 0.7    T = round trip + q          an event is a loss while the queue is full
//! ```
//!
//! The growth does not depend on the rate and the decrease does, so that of two rates the larger
//! one loses more at each event that both see, and they become equal (Chiu and Jain 1989). Where
//! somebody keeps the queue full whatever we do, the law is his, driven by what drives him.

use super::samples::{Window, mul};
use units::{Instant, Span};

/// Bits of a packet, headers included.
const PACKET_BITS: u64 = 12_000;
/// What a rate is the window of when only our own kind shares.
const NOMINAL: Span = Span::from_millis(600);

/// Between which kinds of senders the way is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Company {
    /// Senders that make way for a queue.
    Polite,
    /// Somebody who fills the queue.
    Greedy,
}

/// A rate that grows by time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Law {
    pub(super) company: Company,
    /// Thousandths of packets.
    most: u64,
    /// Where the curve is flat, milliseconds after the beginning.
    flat_ms: u64,
    began: Instant,
    /// What the last event found the way to take, bits per second.
    pub(super) found: u64,
    /// Events in a row that found what the one before had found.
    pub(super) same: u32,
    /// Events in a row after which the queue was gone.
    pub(super) gone: u32,
    /// Events in a row after which what was left of it stood still.
    pub(super) flat: u32,
    /// The longest queue of the last events, microseconds.
    pub(super) top: i64,
}

impl Law {
    /// After an event at `rate`, where the way took `found`; begun anew by [`Law::begin`].
    pub(super) fn new(company: Company, found: u64) -> Self {
        Self {
            company,
            most: 0,
            flat_ms: 0,
            began: Instant::ZERO,
            found,
            same: 0,
            gone: 0,
            flat: 0,
            top: 0,
        }
    }

    /// Share that is left after an event, in tenths.
    fn kept(&self) -> u64 {
        match self.company {
            Company::Polite => 9,
            Company::Greedy => 7,
        }
    }

    fn time(&self, round_trip: Span, queue: Span) -> Span {
        match self.company {
            Company::Polite => NOMINAL,
            Company::Greedy => round_trip + queue,
        }
    }

    /// An event at `rate`; what is left of it.
    pub(super) fn event(&mut self, rate: u64, round_trip: Span, queue: Span) -> u64 {
        let window = window(rate, self.time(round_trip, queue));
        self.most = match self.company {
            // No way back that is in proportion to the rate: all gain the same.
            Company::Polite => window * self.kept() / 10,
            // Who was overtaken since the last event leaves room for who comes (RFC 9438, 4.7).
            Company::Greedy if window < self.most => window * (10 + self.kept()) / 20,
            Company::Greedy => window,
        };
        // From β of the window to the flat: 0.4 K³ = W_max − β W.
        let rise = self.most.saturating_sub(window * self.kept() / 10);
        self.flat_ms = cube_root(mul(rise, 5_000_000, 2));
        mul(rate, self.kept(), 10)
    }

    /// Goes on from `rate` without an event, at the flat.
    pub(super) fn join(&mut self, now: Instant, rate: u64, round_trip: Span, queue: Span) {
        self.most = window(rate, self.time(round_trip, queue));
        self.flat_ms = 0;
        self.began = now;
    }

    /// Growth begins.
    pub(super) fn begin(&mut self, now: Instant) {
        self.began = now;
    }

    /// The time that passed is not to count: there was not enough to send.
    pub(super) fn pause(&mut self, span: Span) {
        self.began += span;
    }

    /// The rate at `now`.
    pub(super) fn rate(&self, now: Instant, round_trip: Span, queue: Span) -> u64 {
        let since = now.since(self.began).as_millis().min(1 << 20);
        let from_flat = i128::from(since) - i128::from(self.flat_ms);
        let rise = from_flat * from_flat * from_flat * 2 / 5_000_000;
        let packets = (i128::from(self.most) + rise).clamp(2_000, 1 << 40);
        let packets = u64::try_from(packets).unwrap_or(2_000);
        let time = self.time(round_trip, queue).as_nanos();
        mul(packets * PACKET_BITS, 1_000_000, time)
    }
}

/// Thousandths of packets under way at `rate` in `time`.
fn window(rate: u64, time: Span) -> u64 {
    mul(rate, time.as_micros(), PACKET_BITS * 1_000)
}

/// Whether more packets were lost in `window` than errors that lose `error_ppm` explain: by one,
/// and by three times the root of what they do.
pub(super) fn is_congested(window: &Window, error_ppm: u64) -> bool {
    let lost = window.sent.saturating_sub(window.arrived) / (PACKET_BITS / 8 - 100);
    let expected = mul(window.sent, error_ppm, 1_000_000) / (PACKET_BITS / 8);
    lost > expected + 3 * expected.isqrt()
}

/// The largest number whose cube is not above `value`.
fn cube_root(value: u64) -> u64 {
    let (mut low, mut high) = (0_u64, 1_u64 << 21);
    while low < high {
        let middle = (low + high).div_ceil(2);
        if middle * middle * middle <= value { low = middle } else { high = middle - 1 }
    }
    low
}
