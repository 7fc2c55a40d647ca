//! Packet trains within a session: the bottleneck rate may be far above the current rate.
//!
//! ```text
//!   the rate has collapsed to 1/16 of its maximum      ──▶ TRAIN, earlier estimates are discarded
//!   a probe found capacity, and the rate dropped in    ──▶ TRAIN ── D is higher ──▶ RAMP
//!   the last 30 min, or it added 1/4 or more                └─ otherwise ────────▶ CRUISE
//!   without cross traffic
//! ```
//!
//! A fade ends within seconds. From a third of the rate to all of it, probes take four steps of
//! two or three RTTs; a train and a ramp take as long as at the start.

use super::estimator::PACKET_BITS;
use super::padding::Padding;
use super::probe::{Probe, ProbeOutcome};
use super::startup::{MAX_DISPERSION_BPS, Ramp, Train, TrainEstimate};
use super::{State, Steady};
use units::{Instant, Span};

/// Time after a drop of the rate in which probes are frequent.
const FREQUENT_PROBES: Span = Span::from_secs(60);
/// Time for which the rate before a drop is stored.
const DROP_MEMORY: Span = Span::from_secs(1_800);
/// Maximum ratio of the estimate of a train to the current rate.
const MAX_INCREASE: u64 = 16;
/// A rate below 1/16 of its maximum has collapsed.
pub(super) const COLLAPSE: u64 = 16;

/// A drop of the rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct RateDrop {
    from: u64,
    at: Instant,
}

impl Steady {
    /// The bottleneck rate is `bottleneck_bps`: stores the rate before, if it was confirmed and
    /// twice as high.
    pub(super) fn note_rate_drop(&mut self, now: Instant, bottleneck_bps: u64) {
        let from = match self.rate_drop {
            Some(drop) if now < drop.at + DROP_MEMORY => self.base_rate_bps.max(drop.from),
            Some(_) | None => self.base_rate_bps,
        };
        if self.rate_confirmed && bottleneck_bps < self.base_rate_bps / 2 {
            self.rate_drop = Some(RateDrop { from, at: now });
        }
    }

    /// The last drop, while the rate is below 3/4 of the one before it.
    fn unrecovered_drop(&self, now: Instant) -> Option<RateDrop> {
        let is_below = |from: u64| self.base_rate_bps < from / 4 * 3;
        self.rate_drop.filter(|drop| now < drop.at + DROP_MEMORY && is_below(drop.from))
    }

    /// Whether the rate dropped in the last 60 s and has not recovered.
    pub(super) fn dropped_recently(&self, now: Instant) -> bool {
        self.unrecovered_drop(now).is_some_and(|drop| now < drop.at + FREQUENT_PROBES)
    }

    /// Whether a train determines the capacity that a probe has found.
    pub(super) fn may_send_train(&self, now: Instant, probe: &Probe) -> bool {
        // The jitter must be below a quarter of the time that a train takes at twice the rate.
        let train_us = (PACKET_BITS * 10_000_000) / probe.rate.saturating_mul(2).max(1);
        let is_precise = self.path.jitter_us().unsigned_abs() < train_us / 4;
        let is_large =
            !self.cross_traffic_seen && probe.rate >= probe.base.saturating_add(probe.base / 4);
        // Near the rate cap a train is sent at the rate at which it is received.
        let is_below_cap = self.max_rate() / 4 >= probe.rate;
        is_precise && is_below_cap && (is_large || self.unrecovered_drop(now).is_some())
    }

    /// Enters TRAIN at a known rate, after a probe that found capacity.
    pub(super) fn recover_with_train(&mut self) {
        self.recovering_rate = true;
        self.path.clear_samples();
        self.state = State::Train(Train::new());
    }

    /// Whether the rate has collapsed. At such a rate few packets are sent and little is measured,
    /// and a wrong estimate would persist for minutes.
    pub(super) fn has_collapsed(&self) -> bool {
        self.base_rate_bps < self.best_rate_bps / COLLAPSE
    }

    /// Enters TRAIN as at the start of a session.
    pub(super) fn restart_with_train(&mut self, now: Instant) {
        self.best_rate_bps /= 2;
        self.probes.on_outcome(now, ProbeOutcome::Loss, self.min_rtt);
        self.recovering_rate = false;
        self.path.clear_samples();
        self.state = State::Train(Train::new());
    }

    /// TRAIN: a POLL is answered.
    pub(super) fn on_train(&mut self, now: Instant, mut train: Train) {
        self.padding.update(&self.path);
        if train.is_padding() && train.is_answered(&self.path) {
            self.on_padding_train(now, train.current_estimate(&self.path));
            return;
        }
        let estimate = if train.is_padding() { None } else { train.estimate(now, &self.path) };
        if self.recovering_rate && (estimate.is_some() || train.has_failed()) {
            self.on_recovery_train(now, train, estimate);
        } else if let Some(estimate) = estimate {
            let ramp = Ramp::after_train(now, train, estimate, 0..self.max_rate());
            self.base_rate_bps = ramp.cap.max(self.min_rate_bps);
            self.enter_ramp(ramp);
        } else if let Some(rate) = train.fallback_bps(self.min_rtt, self.min_poll_interval) {
            self.base_rate_bps = rate.min(self.max_rate()).max(self.min_rate_bps);
            let cap = self.max_rate().min(MAX_DISPERSION_BPS);
            self.enter_ramp(Ramp::new(now, self.base_rate_bps, cap));
        } else {
            self.state = State::Train(train);
        }
    }

    /// All POLLs of a train of padding are answered, or a later one.
    fn on_padding_train(&mut self, now: Instant, estimate: Option<TrainEstimate>) {
        let is_last = self.padding.on_train(estimate);
        let spacing = self.padding.poll_spacing(self.min_rtt);
        self.state = State::Train(Train::with_spacing(spacing));
        if is_last && self.padding.estimate().is_some() {
            self.enter_idle_ramp(now);
        } else if is_last {
            self.padding = Padding::Disabled;
        }
    }

    /// Data is sent, and does not wait for a train of padding: enters RAMP with the estimates so
    /// far, or begins a train of data.
    pub(super) fn end_padding(&mut self, now: Instant) {
        let State::Train(train) = &self.state else { return };
        if self.padding.estimate().is_some() {
            self.enter_idle_ramp(now);
        } else if train.is_padding() {
            self.padding = Padding::Disabled;
            self.state = State::Train(Train::new());
        }
    }

    /// Enters RAMP with the estimate of trains that were sent without data.
    fn enter_idle_ramp(&mut self, now: Instant) {
        let Some(estimate) = self.padding.estimate() else { return };
        let ramp = Ramp::after_padding(now, estimate, self.min_rtt, self.max_rate());
        self.base_rate_bps = ramp.cap.max(self.min_rate_bps);
        self.enter_ramp(ramp);
    }

    /// The train of [`Self::recover_with_train`] has an estimate, or failed.
    fn on_recovery_train(&mut self, now: Instant, train: Train, estimate: Option<TrainEstimate>) {
        self.recovering_rate = false;
        let max_rate = match self.unrecovered_drop(now) {
            Some(drop) => drop.from.saturating_add(drop.from / 4),
            None => self.base_rate_bps.saturating_mul(MAX_INCREASE),
        };
        let base = self.base_rate_bps;
        let range = base..max_rate.min(self.max_rate());
        let ramp = estimate.map(|estimate| Ramp::after_train(now, train, estimate, range));
        if let Some(ramp) = ramp.filter(|ramp| ramp.cap > base.saturating_add(base / 8)) {
            self.enter_ramp(ramp);
        } else {
            self.state = State::Cruise;
            self.probes.on_outcome(now, ProbeOutcome::Loss, self.min_rtt);
        }
    }

    /// Enters RAMP at the rate of `ramp`.
    pub(super) fn enter_ramp(&mut self, ramp: Ramp) {
        self.padding = Padding::Disabled;
        self.state = State::Ramp(ramp);
        self.poll_requested = true;
    }
}
