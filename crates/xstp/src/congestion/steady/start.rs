//! The start: a train whose dispersion shows the rate, and a ramp that makes sure of it.
//!
//! ```text
//!   TRAIN   ten packets at once, POLLs on the 1st, 4th, 7th, 10th; then nothing until an answer
//!              D = octets between two of these POLLs / time between their arrivals
//!              (of the POLLs answered so far: two to begin with, and better with each)
//!   RAMP    at D/2 until it is seen what arrives: all of it, and nothing waits ──▶ at D, probing
//!              something waits ──▶ drain, and cruise at what arrived
//!
//!   after two trains that showed nothing: no D, and the ramp doubles what arrives
//!   with a rate that is remembered: no train, and the ramp is at that rate
//! ```
//!
//! D is off where a link hands packets on in groups. So only half of it is used before it is
//! confirmed by a thousand packets instead of ten: if D is up to twice too high, no queue grows
//! in the round trip until that is known.

use super::queue::Then;
use super::samples::{Sample, Samples, TOO_MANY_PPM, Window, as_micros, mul};
use super::{LEAST_BPS, LEAST_PACKETS, Phase, Steady, UNSURE};
use core::ops::Range;
use units::{Instant, Span};

/// Packets of a train.
const TRAIN: u32 = 10;
/// The first packets may be the few that an answer begins with: where nothing follows for so long,
const PAUSE: Span = Span::from_micros(200);
/// after no more packets than this,
const FEW: u32 = 3;
/// what follows is the train, but no more often than this.
const BEGINNINGS: u32 = 3;
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
/// A ramp that shows a cap but for one part of this has shown it: the rest is chance.
const NEARLY: u64 = 16;
/// A train that may be wrong by more, in millionths, is not probed at once.
const MOST_DOUBT: u64 = 250_000;
/// Octets that make a rate sure, at least.
const BULK: u64 = 15_000;

/// The packets that may leave before anything is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Train {
    sent: u32,
    began: Option<Instant>,
    /// Octets sent before it.
    before: u64,
    /// When the last packet left, and how often a pause came after the first few.
    last: Instant,
    pauses: u32,
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
        let (began, last, ended) = (None, Instant::ZERO, None);
        Self { sent: 0, began, before: 0, last, pauses: 0, ended, failed: 0 }
    }

    pub(super) fn may_send(&self) -> bool {
        self.sent < TRAIN
    }

    /// A packet leaves after `octets` in all; whether it is to carry a POLL. What is sent again
    /// after the last one is no part of it.
    pub(super) fn on_data(&mut self, now: Instant, octets: u64) -> bool {
        if !self.may_send() {
            return false;
        }
        let paused = now.since(self.last) >= PAUSE;
        if (1..=FEW).contains(&self.sent) && paused && self.pauses < BEGINNINGS {
            // The line was idle meanwhile, and what came before counts for nothing.
            *self = Self { pauses: self.pauses + 1, failed: self.failed, ..Self::new() };
        }
        if self.began.is_none() {
            (self.began, self.before) = (Some(now), octets);
        }
        self.last = now;
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

    /// The newest sample is of this train or later: what it shows.
    pub(super) fn dispersion(&mut self, samples: &Samples) -> Option<Dispersion> {
        let last = samples.last()?;
        let seen = self.seen(samples);
        if seen.is_none() && self.is_over(last.sent) {
            // Its POLLs were lost, or there was not enough to send: another one.
            *self = Self { failed: self.failed + u32::from(self.sent == TRAIN), ..Self::new() };
        }
        seen
    }

    /// What the POLLs show that were answered so far; two are enough, and more are better.
    pub(super) fn seen(&self, samples: &Samples) -> Option<Dispersion> {
        let began = self.began?;
        // The line was idle during a pause: a POLL before it tells when the train began to pass.
        // Its own first one may have been answered together with a later one.
        let paused = samples.after_pause(began, self.before).filter(|_| self.pauses > 0);
        let window = paused.or_else(|| samples.window(began, None)).filter(is_train)?;
        // Or a clock leapt.
        let still = samples.stood_still(began);
        let doubt = samples.unevenness(began);
        (!still).then(|| Dispersion { rate: shown(&window).min(MOST_BPS), doubt })
    }
}

/// What a train shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dispersion {
    /// Bits per second.
    pub(super) rate: u64,
    /// By which part of it, in millionths, it may be wrong.
    pub(super) doubt: u64,
}

/// The rate that a train shows. What a full queue dropped has not passed; but such a queue drops
/// most of a train, and a single packet was lost to an error.
fn shown(window: &Window) -> u64 {
    let one = window.sent.saturating_sub(window.arrived) <= ONE;
    if one { window.passed_bps() } else { window.link_bps(0) }
}

impl Steady {
    pub(super) fn on_ramp(&mut self, now: Instant, mut up: Ramp, sample: &Sample) {
        if sample.sent_at < up.since {
            if up.refine(&self.samples) {
                up.since = now;
                self.ask = true;
            }
            self.phase = Phase::Ramp(up);
            return;
        }
        self.samples.learn_jitter();
        match up.judge(&self.samples, self.round_trip, self.limit() / 2) {
            Verdict::Open => {}
            Verdict::Again => self.phase = Phase::Ramp(Ramp { since: now, ..up }),
            Verdict::Full(link) => {
                self.note_found();
                self.drain(now, link, Then::Own);
            }
            Verdict::Higher(rate) if rate >= up.cap - up.cap / NEARLY => {
                self.note_found();
                self.confirmed(now, &up);
            }
            Verdict::Higher(rate) => {
                self.base = rate;
                self.phase = Phase::Ramp(Ramp { rate, since: now, shown: None, ..up });
                self.ask = true;
            }
        }
    }

    /// All of the ramp arrives: on to what it was to make sure of. That may be too low as well,
    /// which is found out at once, unless there is no telling as yet.
    fn confirmed(&mut self, now: Instant, up: &Ramp) {
        let cap = up.cap.max(self.floor);
        self.base = cap - cap / 64;
        self.phase = Phase::Cruise;
        self.ask = true;
        let packet = Span::from_nanos(mul(12_000, 1_000_000_000, self.base));
        let unsure = self.samples.jitter() > UNSURE + as_micros(packet) * 2;
        if unsure || up.doubt > MOST_DOUBT {
            self.schedule.first(now + self.round_trip, 1_000_000);
        } else if packet * LEAST_PACKETS > self.round_trip / 8 {
            self.schedule.first(now + self.round_trip, up.doubt);
        } else {
            self.schedule.first(now, up.doubt);
            if self.base < self.most() {
                self.probe(now);
            }
        }
    }

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
        self.phase = Phase::Ramp(Ramp::new(now, best / 2, best));
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
    /// By which part of it, in millionths, the cap may be wrong.
    pub(super) doubt: u64,
    /// The train that showed it.
    pub(super) shown: Option<Shown>,
}

/// A train of which some POLLs may not have been answered yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shown {
    train: Train,
    /// The ramp is at no less than this.
    least: u64,
    /// What the train is believed up to.
    most: u64,
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
    /// At a rate from somewhere else than a train; from the first packet on when `since` is zero.
    pub(super) fn new(since: Instant, rate: u64, cap: u64) -> Self {
        Self { rate, cap, since, doubt: 0, shown: None }
    }

    /// At half of what a train shows, within `least` and `most`.
    pub(super) fn after(now: Instant, train: Train, seen: Dispersion, range: Range<u64>) -> Self {
        let shown = Shown { train, least: range.start, most: range.end };
        let mut ramp = Self { shown: Some(shown), ..Self::new(now, 0, 0) };
        ramp.take(seen, shown);
        ramp
    }

    fn take(&mut self, seen: Dispersion, shown: Shown) {
        self.cap = seen.rate.min(shown.most);
        self.rate = (self.cap / 2).max(shown.least);
        self.doubt = seen.doubt;
    }

    /// Another POLL of the train was answered: more packets tell better. True when they tell
    /// something else altogether.
    pub(super) fn refine(&mut self, samples: &Samples) -> bool {
        let before = self.cap;
        if let Some(shown) = self.shown
            && let Some(seen) = shown.train.seen(samples)
        {
            self.take(seen, shown);
        }
        self.cap.abs_diff(before) > before / 8
    }

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
