//! Padding: packets without data complete the first train while the application is idle.
//!
//! ```text
//!   CHECK     four packets of 160 octets back to back, each with a POLL
//!     their service rate is below 500 kbit/s      no padding: a train would delay data
//!     their STATs take more than 20 ms each       no padding: STATs would delay requests
//!     otherwise                                   padding takes the place of data in trains
//! ```
//!
//! So the rate is known before the first response. On a path of 500 kbit/s a train takes 0.24 s,
//! and the check on one of 9.6 kbit/s takes 0.5 s.

use super::estimator::{PACKET_BITS, PathEstimator, SampleInterval, mul};
use super::startup::{MAX_UNCERTAINTY_PPM, Train, TrainEstimate};
use units::{Instant, Span};

/// Packets of the check, and their payload octets.
const CHECK_PACKETS: u32 = 4;
const CHECK_OCTETS: usize = 64;
/// Minimum service rate, in bits per second, at which a train of padding is sent: data that arrives
/// right after a train of ten packets waits for 0.24 s.
const MIN_PADDING_BPS: u64 = 500_000;
/// Maximum increase of the reverse delay, in microseconds, from the first STAT of the check to the
/// last one: 5 ms for the interval between STATs, and 20 ms for the transmission of a STAT, which a
/// reverse path below 32 kbit/s exceeds.
const MAX_REVERSE_INCREASE_US: i64 = 25_000;
/// Maximum duration of the transmission of the check.
const MAX_CHECK_TIME: Span = Span::from_millis(2);
/// Minimum number of trains of padding that have an estimate; maximum number of all of them.
const MIN_ESTIMATES: usize = 3;
const MAX_TRAINS: usize = 6;
/// Distance of two estimates, in millionths, at which they confirm each other.
const MAX_DISTANCE_PPM: u64 = 125_000;
/// RTT below which estimates are used without confirmation: a rate that is too high by a half then
/// causes a queue of at most 50 ms.
const SHORT_RTT: Span = Span::from_millis(100);
/// Time that a train takes at the bottleneck, once its rate was estimated. It is doubled after the
/// third estimate, and for a short RTT, where jitter is large compared to it.
const TRAIN_TIME: Span = Span::from_millis(5);
/// Packets between two of the four POLLs of a train; the maximum is doubled with its time.
pub(super) const MIN_POLL_SPACING: u32 = 3;
const MAX_POLL_SPACING: u32 = 21;
/// Maximum number of checks.
const MAX_CHECKS: u32 = 3;

/// Whether packets without data are sent.
#[derive(Clone, Copy, Debug)]
pub(super) enum Padding {
    /// The check was begun at a time, so many packets of it were sent, the last one after so many
    /// octets of the session, and so many checks were without a result.
    Check {
        since: Instant,
        sent: u32,
        octets: u64,
        failed: u32,
    },
    /// The path is fast enough. Trains of padding had these estimates.
    Enabled(IdleTrains),
    Disabled,
}

/// Trains of padding.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct IdleTrains {
    /// Number of trains that were sent, and of those that had an estimate.
    sent: usize,
    count: usize,
    rates: [u64; MAX_TRAINS],
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

    /// The median of the last three estimates, of which the later ones are from longer trains. Its
    /// uncertainty is the distance of the nearest other one.
    fn estimate(&self) -> Option<IdleEstimate> {
        let mut rates = self.rates;
        let rates = rates.get_mut(self.count.saturating_sub(MIN_ESTIMATES)..self.count)?;
        rates.sort_unstable();
        let middle = rates.len().checked_sub(1)? / 2;
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

impl IdleEstimate {
    /// Whether a ramp may start at the estimate, where the RTT is `rtt`.
    pub(super) fn is_usable(&self, rtt: Span) -> bool {
        self.is_confirmed || rtt <= SHORT_RTT
    }
}

impl Padding {
    /// Padding of a session that starts, if it `is_needed`: nothing is known of the path.
    pub(super) fn new(is_needed: bool) -> Self {
        if is_needed { Self::check(0) } else { Self::Disabled }
    }

    fn check(failed: u32) -> Self {
        Self::Check { since: Instant::ZERO, sent: 0, octets: 0, failed }
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

    /// A padding packet is sent after `total` octets, or a retransmission of one, which is empty;
    /// returns whether it is part of the check, and carries a POLL.
    pub(super) fn on_sent(&mut self, now: Instant, total: u64) -> bool {
        let Self::Check { since, sent, octets, .. } = self else { return false };
        if *sent == 0 {
            *since = now;
        }
        if *sent < CHECK_PACKETS {
            (*sent, *octets) = (*sent + 1, total);
        }
        true
    }

    /// The estimate of the trains so far.
    pub(super) fn estimate(&self) -> Option<IdleEstimate> {
        if let Self::Enabled(trains) = self { trains.estimate() } else { None }
    }

    /// Number of packets between two POLLs of the next train, where the RTT is `rtt`.
    pub(super) fn poll_spacing(&self, rtt: Span) -> u32 {
        let Self::Enabled(trains) = self else { return MIN_POLL_SPACING };
        let is_long = rtt <= SHORT_RTT || trains.count >= MIN_ESTIMATES;
        let factor = if is_long { 2 } else { 1 };
        let train_us = TRAIN_TIME.as_micros() * factor;
        let packets =
            |estimate: IdleEstimate| mul(estimate.train.rate, train_us, PACKET_BITS * 1_000_000);
        let spacing = u32::try_from(trains.estimate().map_or(0, packets) / 3).unwrap_or(u32::MAX);
        spacing.clamp(MIN_POLL_SPACING, MAX_POLL_SPACING * factor as u32)
    }

    /// A train of padding was sent, and answered with or without an estimate; returns whether it
    /// was the last one.
    pub(super) fn on_train(&mut self, estimate: Option<TrainEstimate>) -> bool {
        let Self::Enabled(trains) = self else { return true };
        trains.sent += 1;
        if let Some(estimate) = estimate {
            trains.add(estimate);
        }
        let is_confirmed = trains.estimate().is_some_and(|estimate| estimate.is_confirmed);
        trains.sent >= MAX_TRAINS || is_confirmed && trains.count >= MIN_ESTIMATES
    }

    /// A POLL is answered.
    pub(super) fn update(&mut self, path: &PathEstimator) {
        let Self::Check { since, sent: CHECK_PACKETS, octets, failed } = *self else { return };
        let interval = path.interval(since, None);
        if interval.is_none() && path.last().is_none_or(|last| last.sent <= octets) {
            return;
        }
        // Where jitter lets all packets arrive at once, only the last POLL is answered.
        let is_check = |one: &SampleInterval| one.send_interval_us <= MAX_CHECK_TIME.as_micros();
        *self = match interval.filter(is_check) {
            None if failed + 1 < MAX_CHECKS => Self::check(failed + 1),
            None => Self::Disabled,
            Some(interval)
                if interval.service_rate_bps() < MIN_PADDING_BPS
                    || interval.reverse_delay_increase_us > MAX_REVERSE_INCREASE_US =>
            {
                Self::Disabled
            }
            Some(_) => Self::Enabled(IdleTrains::default()),
        };
    }
}
