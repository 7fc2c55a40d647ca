//! Trains in the midst of a session: what the way takes, when it may be far more than the rate.
//!
//! ```text
//!   the rate is next to nothing of what it was    ──▶ train, whatever was thought before
//!   a probe found room, and the rate fell at      ──▶ train ──D is more──▶ ramp, from the rate on
//!   once, or added a quarter where nobody was met           └─otherwise──▶ cruise as before
//! ```
//!
//! A fade ends as it began, within seconds. From a third of the rate back to all of it probes
//! take four steps of two or three round trips; a train and a ramp take as long as a start.

use super::probe::{Found, Probe};
use super::start::{self, Dispersion, Ramp, Train};
use super::{Phase, Steady};
use units::{Instant, Span};

/// How long after a fall of the rate its end is looked for as often as that.
const SOON: Span = Span::from_secs(60);
/// How long the rate before it is remembered.
const MEMORY: Span = Span::from_secs(1_800);
/// A train is not believed to show more than so many times the rate.
const MOST_TIMES: u64 = 16;

/// A rate below this part of what it was, one in so many, has collapsed.
pub(super) const COLLAPSE: u64 = 16;

/// A rate that was found, and is no more.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fall {
    from: u64,
    at: Instant,
}

impl Steady {
    /// The way takes `link` now.
    pub(super) fn note_fall(&mut self, now: Instant, link: u64) {
        let from = match self.fall {
            Some(fall) if now < fall.at + MEMORY => self.base.max(fall.from),
            Some(_) | None => self.base,
        };
        if self.found && link < self.base / 2 {
            self.fall = Some(Fall { from, at: now });
        }
    }

    /// What the rate was before it fell, as long as it is far below that.
    fn fallen_from(&self, now: Instant) -> Option<Fall> {
        self.fall.filter(|fall| now < fall.at + MEMORY && self.base < fall.from / 4 * 3)
    }

    /// Whether the rate fell a short time ago.
    pub(super) fn fell_just_now(&self, now: Instant) -> bool {
        self.fallen_from(now).is_some_and(|fall| now < fall.at + SOON)
    }

    /// A probe has found room: is a train to show how much?
    pub(super) fn may_regain(&self, now: Instant, probe: &Probe) -> bool {
        // Where delays differ by a part of what a train takes, it shows little.
        let train_us = 12_000_u64.saturating_mul(10_000_000) / probe.rate.saturating_mul(2).max(1);
        let sure = self.samples.jitter().unsigned_abs() < train_us / 4;
        let much = !self.met && probe.rate >= probe.base.saturating_add(probe.base / 4);
        // Under a ceiling near what passes, a train leaves no faster than it arrives.
        let tells = self.most() / 4 >= probe.rate;
        sure && tells && (much || self.fallen_from(now).is_some())
    }

    /// A train shows how much room there is.
    pub(super) fn regain(&mut self) {
        self.regaining = true;
        self.samples.restart();
        self.phase = Phase::Train(Train::new());
    }

    /// Whether the rate is a small part of what it was. From there little is learnt, as few
    /// packets go, and a way that was misjudged would stay so for minutes.
    pub(super) fn has_collapsed(&self) -> bool {
        self.base < self.best / COLLAPSE
    }

    /// A train shows what the way takes now, whatever has been thought of it.
    pub(super) fn look_again(&mut self, now: Instant) {
        self.best /= 2;
        self.schedule.found(now, Found::Loss, self.round_trip);
        self.regaining = false;
        self.samples.restart();
        self.phase = Phase::Train(Train::new());
    }

    pub(super) fn on_train(&mut self, now: Instant, mut train: Train) {
        let shown = train.dispersion(&self.samples);
        if self.regaining && (shown.is_some() || train.has_failed()) {
            self.on_regained(now, train, shown);
            return;
        }
        match shown {
            Some(seen) => {
                let up = Ramp::after(now, train, seen, 0..self.most());
                self.base = up.cap.max(self.floor);
                self.phase = Phase::Ramp(up);
                self.ask = true;
            }
            None => match train.fallback(self.round_trip, self.poll_least) {
                Some(rate) => {
                    self.base = rate.min(self.most()).max(self.floor);
                    let most = self.most().min(start::MOST_BPS);
                    self.phase = Phase::Ramp(Ramp::new(now, self.base, most));
                    self.ask = true;
                }
                None => self.phase = Phase::Train(train),
            },
        }
    }

    /// The train has shown how much room there is, or nothing.
    fn on_regained(&mut self, now: Instant, train: Train, shown: Option<Dispersion>) {
        self.regaining = false;
        let believed = match self.fallen_from(now) {
            Some(fall) => fall.from.saturating_add(fall.from / 4),
            None => self.base.saturating_mul(MOST_TIMES),
        };
        let range = self.base..believed.min(self.most());
        let up = shown.map(|seen| Ramp::after(now, train, seen, range));
        match up.filter(|up| up.cap > self.base.saturating_add(self.base / 8)) {
            Some(up) => {
                self.phase = Phase::Ramp(up);
                self.ask = true;
            }
            None => {
                self.phase = Phase::Cruise;
                self.schedule.found(now, Found::Loss, self.round_trip);
            }
        }
    }
}
