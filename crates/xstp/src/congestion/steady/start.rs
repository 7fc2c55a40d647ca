//! The start: a train whose dispersion shows the rate, and a ramp that makes sure of it.
//!
//! ```text
//!   TRAIN   ten packets at once, POLLs on the 1st, 4th, 7th, 10th; then nothing until an answer
//!              D = octets between two of these POLLs / time between their arrivals
//!   RAMP    at D/2 until it is seen what arrives: all of it, and nothing waits ──▶ cruise at D
//!              something waits ──▶ drain, and cruise at what arrived
//!
//!   after two trains that showed nothing: no D, and the ramp doubles what arrives
//!   with a rate that is remembered: no train, and the ramp is at that rate
//! ```
//!
//! D is off where a link hands packets on in groups. So only half of it is used before it is
//! confirmed by a thousand packets instead of ten: if D is up to twice too high, no queue grows
//! in the round trip until that is known.

use super::samples::{Samples, TOO_MANY_PPM, Window, mul};
use super::{LEAST_BPS, Phase, Steady};
use units::{Instant, Span};

/// Packets of a train.
const TRAIN: u32 = 10;
/// At which these leave.
pub(super) const TRAIN_BPS: u64 = 10_000_000_000;
/// What dispersion is believed up to.
pub(super) const MOST_BPS: u64 = 2_000_000_000;
/// Octets between two POLLs of a train, at least.
const APART: u64 = 3_500;
/// A train's packets follow each other within this time, or four times as fast as they arrive.
const AT_ONCE_US: u64 = 2_000;
/// Octets of one packet, at most.
const ONE: u64 = 1_600;
/// Octets that make a rate sure, at least.
const BULK: u64 = 15_000;

/// The packets that may leave before anything is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Train {
    sent: u32,
    began: Option<Instant>,
    /// Octets sent by the first POLL after its last packet. (Not a time: clocks may be set back.)
    ended: Option<u64>,
    /// Trains before it that showed nothing.
    failed: u32,
}

/// A train each round trip, in bits per second.
pub(super) fn trains_bps(round_trip: Span) -> u64 {
    mul(u64::from(TRAIN) * 12_000, 1_000_000_000, round_trip.as_nanos())
}

impl Train {
    pub(super) fn new() -> Self {
        Self { sent: 0, began: None, ended: None, failed: 0 }
    }

    pub(super) fn may_send(&self) -> bool {
        self.sent < TRAIN
    }

    /// A packet leaves; whether it is to carry a POLL.
    pub(super) fn on_data(&mut self, now: Instant) -> bool {
        self.began.get_or_insert(now);
        self.sent += 1;
        self.sent % 3 == 1
    }

    /// A POLL left after `octets` in all.
    pub(super) fn on_poll(&mut self, octets: u64) {
        if !self.may_send() {
            self.ended.get_or_insert(octets);
        }
    }

    /// Whether what comes after `octets` in all is not part of it any more.
    fn is_over(&self, octets: u64) -> bool {
        self.may_send() || self.ended.is_some_and(|ended| ended <= octets)
    }

    /// Whether a train before it has shown nothing.
    pub(super) fn has_failed(&self) -> bool {
        self.failed > 0
    }

    /// The rate to begin with when trains show nothing: two of them in a round trip.
    pub(super) fn fallback(&self, round_trip: Span, poll_least: Span) -> Option<u64> {
        let bits = u64::from(TRAIN) * 2 * 12_000;
        // Where answers are further apart than that, two to one train are not to be had.
        let enough = if poll_least * 2 > round_trip { 1 } else { 2 };
        (self.failed >= enough).then(|| mul(bits, 1_000_000_000, round_trip.as_nanos()))
    }

    /// The newest sample is of this train or later: the rate that it shows, in bits per second.
    pub(super) fn dispersion(&mut self, samples: &Samples) -> Option<u64> {
        let last = samples.last()?;
        let window = |began| samples.window(began, None);
        let mut seen = self.began.and_then(window).filter(is_train);
        if self.began.is_some_and(|began| samples.stood_still(began)) {
            // Or a clock leapt.
            seen = None;
        }
        if seen.is_none() && self.is_over(last.sent) {
            // Its POLLs were lost, or there was not enough to send: another one.
            *self = Self { failed: self.failed + u32::from(self.sent == TRAIN), ..Self::new() };
        }
        seen.map(|window| shown(&window).min(MOST_BPS))
    }
}

/// The rate that a train shows. What a full queue dropped has not passed; but such a queue drops
/// most of a train, and a single packet was lost to an error.
fn shown(window: &Window) -> u64 {
    let one = window.sent.saturating_sub(window.arrived) <= ONE;
    if one { window.passed_bps() } else { window.link_bps(0) }
}

impl Steady {
    /// What was lost was too large for the way and says nothing of its rate: half of the best one
    /// that was had, and from there as after a train.
    pub(in crate::congestion) fn on_resized(&mut self, now: Instant) {
        self.samples.restart();
        self.stays = 0;
        if self.best <= LEAST_BPS {
            self.phase = Phase::Train(Train::new());
            return;
        }
        let best = self.best.min(self.most()).max(self.floor);
        self.base = best;
        self.phase = super::ramp(now, best / 2, best);
        self.ask = true;
    }
}

fn is_train(window: &Window) -> bool {
    let close = window.sending_us <= AT_ONCE_US || window.sent_bps() / 4 >= window.passed_bps();
    window.sent >= APART && window.arrived >= window.sent / 2 && close
}

/// A rate that is being made sure of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ramp {
    pub(super) rate: u64,
    /// What it may become.
    pub(super) cap: u64,
    pub(super) since: Instant,
}

/// What a ramp has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Too little as yet.
    Open,
    /// There was not enough to send.
    Again,
    /// All of it arrives: on to this rate.
    Higher(u64),
    /// More is sent than this, which the link takes.
    Full(u64),
}

impl Ramp {
    /// The time from one POLL to the next: short at first, so that some get through before a
    /// queue is full.
    pub(super) fn poll_every(&self, now: Instant, round_trip: Span) -> Span {
        (now.since(self.since) / 2).min(round_trip / 8).max(Span::from_millis(5))
    }

    /// What the samples since its beginning show; `limit` microseconds are a queue.
    pub(super) fn judge(&self, samples: &Samples, round_trip: Span, limit: i64) -> Verdict {
        let Some(window) = samples.window(self.since, None) else { return Verdict::Open };
        let (sent, passed) = (window.sent_bps(), window.passed_bps());
        let waits = window.growth > limit && passed < sent / 8 * 7;
        // No link that is good for anything loses as much.
        let dropped = window.sent >= BULK * 6
            && window.lost_ppm() > samples.error_ppm() + TOO_MANY_PPM / 4 * 5;
        if window.sent >= BULK / 2 && (waits || dropped) {
            return Verdict::Full(window.link_bps(samples.error_ppm()));
        }
        let long = window.sent >= BULK && window.sending_us >= (round_trip / 8).as_micros();
        if !long {
            return Verdict::Open;
        }
        if sent < self.rate / 8 * 7 {
            // Whoever has not enough to send shows nothing.
            let old = window.sending_us >= (round_trip * 4).as_micros();
            return if old { Verdict::Again } else { Verdict::Open };
        }
        Verdict::Higher(self.cap.min(passed.min(sent).min(window.arrived_bps()).saturating_mul(2)))
    }
}

#[cfg(test)]
mod tests;
