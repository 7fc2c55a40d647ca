//! The bounds of rate and volume by losses and marks (section 5.5.10 of the draft).

use super::{Bbr3, FULL_LOSSES, FULL_MARKED_ROUNDS, LEAST, MARK_THRESHOLD, Mode};
use crate::log::{Flight, HEAVY_LOSS};
use crate::window::Sample;

/// Share that a loss leaves (BBR.Beta), and headroom below inflight_hi.
const KEPT: f64 = 0.7;
const HEADROOM: f64 = 0.15;
/// Share of alpha by which a round with marks reduces inflight_lo.
const MARK_FACTOR: f64 = 1.0 / 3.0;

impl Bbr3 {
    pub(super) fn note_losses(&mut self, sample: &Sample) {
        if sample.lost == 0 && sample.heavy_loss.is_none() {
            return;
        }
        if !self.loss_in_round {
            // The round of the loss lasts for a whole round trip.
            self.loss_round_delivered = sample.delivered;
        }
        self.loss_in_round = true;
        self.losses_in_round = self.losses_in_round.saturating_add(1);
        if let Some(flight) = sample.heavy_loss.filter(|_| self.feedback.is_of_probe) {
            self.too_high(sample, at_threshold(&flight), flight.limited);
        }
    }

    pub(super) fn update_latest(&mut self, sample: &Sample) {
        self.loss_round_begins = false;
        let (Some(rate), Some(flight)) = (sample.rate, sample.flight) else { return };
        self.bw_latest = self.bw_latest.max(rate.bytes_per_second);
        self.inflight_latest = self.inflight_latest.max(flight.delivered);
        if rate.prior_delivered >= self.loss_round_delivered {
            self.loss_round_delivered = sample.delivered;
            self.loss_round_begins = true;
        }
    }

    pub(super) fn advance_latest(&mut self, sample: &Sample) {
        if !self.loss_round_begins {
            return;
        }
        if let (Some(rate), Some(flight)) = (sample.rate, sample.flight) {
            (self.bw_latest, self.inflight_latest) = (rate.bytes_per_second, flight.delivered);
        }
    }

    /// Takes the rate, and once per round adapts the lower bounds (section 5.5.10.3).
    pub(super) fn update_bounds(&mut self, sample: &Sample) {
        let Some(rate) = sample.rate else { return };
        if !rate.limited || rate.bytes_per_second >= self.max_bandwidth() {
            self.bandwidths[1] = self.bandwidths[1].max(rate.bytes_per_second);
        }
        if !self.loss_round_begins {
            return;
        }
        if !self.is_probing() {
            self.adapt_lower_bounds();
        }
        (self.loss_in_round, self.marks_in_round) = (false, false);
    }

    fn adapt_lower_bounds(&mut self) {
        let window = self.levels.window();
        let mut by_marks = u64::MAX;
        if self.marks_in_round {
            self.inflight_lo = self.inflight_lo.min(window);
            let kept = 1.0 - self.alpha * MARK_FACTOR;
            by_marks = (self.inflight_lo as f64 * kept) as u64;
        }
        if self.loss_in_round {
            if self.bw_lo.is_infinite() {
                self.bw_lo = self.max_bandwidth();
            }
            if self.inflight_lo == u64::MAX {
                self.inflight_lo = window;
            }
            self.bw_lo = self.bw_latest.max(self.bw_lo * KEPT).max(1.0);
            let kept = (self.inflight_lo as f64 * KEPT) as u64;
            self.inflight_lo = self.inflight_latest.max(kept);
        }
        self.inflight_lo = self.inflight_lo.min(by_marks);
    }

    pub(super) fn reset_lower_bounds(&mut self) {
        (self.bw_lo, self.inflight_lo) = (f64::INFINITY, u64::MAX);
    }

    pub(super) fn reset_signals(&mut self) {
        (self.loss_in_round, self.marks_in_round) = (false, false);
        (self.bw_latest, self.inflight_latest) = (0.0, 0);
    }

    /// Section 5.3.1.3.
    pub(super) fn check_startup_losses(&mut self, sample: &Sample) {
        if self.full {
            return;
        }
        let heavy = sample.flight.is_some_and(|flight| flight.lost * HEAVY_LOSS > flight.in_flight);
        let many = self.losses_in_round >= FULL_LOSSES;
        if self.loss_round_begins && sample.repairing && many && heavy {
            self.end_startup();
        } else if self.loss_round_begins {
            self.losses_in_round = 0;
        }
    }

    pub(super) fn check_startup_marks(&mut self) {
        let many = self.marked_share >= MARK_THRESHOLD;
        self.marked_rounds = if many { self.marked_rounds + 1 } else { 0 };
        if !self.full && self.marked_rounds >= FULL_MARKED_ROUNDS {
            self.end_startup();
        }
    }

    fn end_startup(&mut self) {
        self.full = true;
        self.inflight_hi = self.product(self.max_bandwidth(), 1.0).max(self.inflight_latest);
    }

    /// Whether the losses or marks of a flight are too many.
    pub(super) fn is_too_high(&self, sample: &Sample) -> bool {
        let lost = sample.flight.is_some_and(|flight| flight.lost * HEAVY_LOSS > flight.in_flight);
        lost || (self.round_begins && self.marked_share > MARK_THRESHOLD)
    }

    /// Reduces inflight_hi, once per probe (section 5.5.10.2).
    pub(super) fn too_high(&mut self, sample: &Sample, in_flight: u64, limited: bool) {
        self.feedback.was_too_high = true;
        self.feedback.is_of_probe = false;
        if !limited {
            let target = self.product(self.bandwidth(), 1.0).min(self.levels.window());
            self.inflight_hi = in_flight.max((target as f64 * KEPT) as u64);
        }
        if self.mode == Mode::Up {
            self.start_down(sample);
        }
    }

    pub(super) fn with_headroom(&self) -> u64 {
        if self.inflight_hi == u64::MAX {
            return u64::MAX;
        }
        let headroom = ((self.inflight_hi as f64 * HEADROOM) as u64).max(self.levels.segment());
        self.inflight_hi.saturating_sub(headroom).max(LEAST * self.levels.segment())
    }

    /// The bound of the window (section 5.6.4.6).
    pub(super) fn cap(&self) -> u64 {
        let cap = match self.mode {
            Mode::Down | Mode::Refill | Mode::Up => self.inflight_hi,
            Mode::Cruise | Mode::ProbeRoundTrip => self.with_headroom(),
            Mode::Startup | Mode::Drain => u64::MAX,
        };
        cap.min(self.inflight_lo)
    }
}

/// The volume in flight at which the loss rate reached the threshold (BBRInflightAtLoss): of
/// `lost_before + x = (in_flight_before + x) / 50`.
fn at_threshold(flight: &Flight) -> u64 {
    let before = flight.in_flight.saturating_sub(flight.len);
    let lost_before = flight.lost.saturating_sub(flight.len);
    let budget = before.div_ceil(HEAVY_LOSS);
    let prefix = budget.saturating_sub(lost_before) * HEAVY_LOSS / (HEAVY_LOSS - 1);
    before + prefix
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volume_at_the_threshold_of_a_lost_segment() {
        // Of 100,000 octets before it none was lost: 2,000 of this segment are 2 % of 102,040.
        let flight = Flight { in_flight: 105_000, lost: 5_000, len: 5_000, ..Flight::default() };
        assert_eq!(at_threshold(&flight), 102_040);
        // The budget was spent before.
        let spent = Flight { lost: 9_000, ..flight };
        assert_eq!(at_threshold(&spent), 100_000);
    }
}
