//! Padding: packets without data complete the first train while the application is idle.
//!
//! ```text
//!   CHECK     four packets of 160 octets back to back, each with a POLL
//!     their service rate is below 256 kbit/s      no padding: a train would delay data
//!     otherwise                                   padding takes the place of data in trains
//! ```
//!
//! So the rate is known before the first response. On a path of 256 kbit/s a train takes 0.4 s,
//! and the check on one of 9.6 kbit/s takes 0.5 s.

use super::estimator::{PACKET_BITS, PathEstimator, mul};
use super::startup::{MAX_UNCERTAINTY_PPM, Train, TrainEstimate};
use units::{Instant, Span};

/// Packets of the check, and their payload octets.
const CHECK_PACKETS: u32 = 4;
const CHECK_OCTETS: usize = 64;
/// Minimum service rate, in bits per second, at which a train of padding is sent.
const MIN_PADDING_BPS: u64 = 256_000;
/// Maximum duration of the transmission of the check.
const MAX_CHECK_TIME: Span = Span::from_millis(2);
/// Number of trains of padding that have an estimate, and of all of them.
const MAX_ESTIMATES: usize = 3;
const MAX_TRAINS: u32 = 6;
/// Distance of two estimates, in millionths, at which they confirm each other.
const MAX_DISTANCE_PPM: u64 = 125_000;
/// Time that a train takes at the bottleneck, once its rate was estimated. Packets between two of
/// its four POLLs.
const TRAIN_TIME: Span = Span::from_millis(5);
pub(super) const MIN_POLL_SPACING: u32 = 3;
const MAX_POLL_SPACING: u32 = 21;
/// Maximum number of checks.
const MAX_CHECKS: u32 = 3;

/// Whether packets without data are sent.
#[derive(Clone, Copy, Debug)]
pub(super) enum Padding {
    /// The check was begun at a time, so many packets of it were sent, and so many checks were
    /// without a result.
    Check {
        since: Instant,
        sent: u32,
        failed: u32,
    },
    /// The path is fast enough. Trains of padding had these estimates, of which the first two are
    /// stored.
    Enabled(IdleTrains),
    Disabled,
}

/// Trains of padding.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct IdleTrains {
    /// Number of trains that were sent, and of those that had an estimate.
    sent: u32,
    count: usize,
    rates: [u64; MAX_ESTIMATES],
    /// Uncertainty of the last one, in millionths.
    uncertainty_ppm: u64,
}

impl IdleTrains {
    fn add(&mut self, estimate: TrainEstimate) {
        if let Some(slot) = self.rates.get_mut(self.count) {
            *slot = estimate.rate;
            self.count += 1;
            self.uncertainty_ppm = estimate.uncertainty_ppm;
        }
    }

    /// The median of the estimates. Its uncertainty is the distance of the nearest other one.
    fn estimate(&self) -> Option<IdleEstimate> {
        let mut rates = self.rates;
        let rates = rates.get_mut(..self.count)?;
        rates.sort_unstable();
        let middle = self.count.checked_sub(1)? / 2;
        let rate = rates[middle];
        let others = rates.iter().enumerate().filter(|(index, _)| *index != middle);
        let distance = others.map(|(_, other)| other.abs_diff(rate)).min();
        let distance_ppm = distance.map(|distance| mul(distance, 1_000_000, rate));
        let uncertainty_ppm = distance_ppm.unwrap_or(self.uncertainty_ppm);
        let uncertainty_ppm = uncertainty_ppm.min(MAX_UNCERTAINTY_PPM);
        let is_confirmed = distance_ppm.is_some_and(|ppm| ppm <= MAX_DISTANCE_PPM);
        Some(IdleEstimate { train: TrainEstimate { rate, uncertainty_ppm }, is_confirmed })
    }
}

/// Estimate of trains of padding.
#[derive(Clone, Copy, Debug)]
pub(super) struct IdleEstimate {
    pub(super) train: TrainEstimate,
    /// Two trains had nearly the same estimate.
    pub(super) is_confirmed: bool,
}

impl Padding {
    pub(super) fn new() -> Self {
        Self::Check { since: Instant::ZERO, sent: 0, failed: 0 }
    }

    /// Maximum payload octets of the next padding packet in the state TRAIN; `None` if none is
    /// sent.
    pub(super) fn octets(&self, train: &Train) -> Option<usize> {
        match self {
            Self::Check { sent, .. } => {
                (*sent < CHECK_PACKETS && train.is_unsent()).then_some(CHECK_OCTETS)
            }
            Self::Enabled(_) => train.may_send().then_some(usize::MAX),
            Self::Disabled => None,
        }
    }

    /// A padding packet is sent; returns whether it is part of the check, and carries a POLL.
    pub(super) fn on_sent(&mut self, now: Instant) -> bool {
        let Self::Check { since, sent, .. } = self else { return false };
        if *sent == 0 {
            *since = now;
        }
        *sent += 1;
        true
    }

    /// The estimate of the trains so far.
    pub(super) fn estimate(&self) -> Option<IdleEstimate> {
        if let Self::Enabled(trains) = self { trains.estimate() } else { None }
    }

    /// Number of packets between two POLLs of the next train.
    pub(super) fn poll_spacing(&self) -> u32 {
        let packets = |estimate: IdleEstimate| {
            mul(estimate.train.rate, TRAIN_TIME.as_micros(), PACKET_BITS * 1_000_000)
        };
        let spacing = self.estimate().map_or(0, packets) / 3;
        u32::try_from(spacing).unwrap_or(u32::MAX).clamp(MIN_POLL_SPACING, MAX_POLL_SPACING)
    }

    /// A train of padding was sent, and answered with or without an estimate; returns whether it
    /// was the last one.
    pub(super) fn on_train(&mut self, estimate: Option<TrainEstimate>) -> bool {
        let Self::Enabled(trains) = self else { return true };
        trains.sent += 1;
        if let Some(estimate) = estimate {
            trains.add(estimate);
        }
        trains.count == MAX_ESTIMATES || trains.sent >= MAX_TRAINS
    }

    /// A POLL is answered.
    pub(super) fn update(&mut self, path: &PathEstimator) {
        let Self::Check { since, sent: CHECK_PACKETS, failed } = *self else { return };
        let Some(interval) = path.interval(since, None) else { return };
        *self = if interval.send_interval_us > MAX_CHECK_TIME.as_micros() {
            // All but one of its POLLs were lost.
            let failed = failed + 1;
            if failed < MAX_CHECKS {
                Self::Check { since: Instant::ZERO, sent: 0, failed }
            } else {
                Self::Disabled
            }
        } else if interval.service_rate_bps() < MIN_PADDING_BPS {
            Self::Disabled
        } else {
            Self::Enabled(IdleTrains::default())
        };
    }
}
