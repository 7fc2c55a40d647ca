//! The phases of ProbeBW (section 5.3.3 of the draft).

use super::{Bbr3, Mode};
use crate::window::Sample;
use units::{Instant, Span};

/// Maximum rounds between probes, as a Reno flow would probe (25 Mbit/s and 30 ms).
const MAX_ROUNDS: u64 = 63;
/// Minimum time between probes, and the range of what is added.
const WAIT: Span = Span::from_secs(2);
const WAIT_RANGE_MICROS: u64 = 1_000_000;
/// Maximum doublings of the growth of inflight_hi.
const MAX_DOUBLINGS: u32 = 30;

/// What acknowledgements show of a probe (ack_phase).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Acks {
    #[default]
    Init,
    Refilling,
    Starting,
    Feedback,
    Stopping,
}

/// The state of probing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Feedback {
    acks: Acks,
    /// Samples show data sent while probing (bw_probe_samples).
    pub(super) is_of_probe: bool,
    /// The last probe found too much (prev_probe_too_high).
    pub(super) was_too_high: bool,
    /// Probing stopped at inflight_hi (stopped_risky_probe).
    stopped: bool,
    /// Rounds since the last probe.
    pub(super) rounds: u64,
    since: Instant,
    pub(super) wait: Span,
    /// Growth of inflight_hi: octets acknowledged per segment of growth, and the doublings.
    up_bytes: u64,
    up_acked: u64,
    doublings: u32,
}

impl Feedback {
    /// Probing has stopped (ACKS_PROBE_STOPPING).
    pub(super) fn stop(&mut self) {
        self.acks = Acks::Stopping;
    }
}

impl Bbr3 {
    pub(super) fn start_down(&mut self, sample: &Sample) {
        self.reset_signals();
        let micros = sample.now.as_nanos() / 1_000;
        let feedback = &mut self.feedback;
        feedback.up_bytes = u64::MAX;
        feedback.rounds = micros % 2;
        feedback.wait = WAIT + Span::from_micros(micros % WAIT_RANGE_MICROS);
        feedback.since = sample.now;
        feedback.acks = Acks::Stopping;
        self.round_delivered = sample.delivered;
        self.mode = Mode::Down;
    }

    pub(super) fn start_cruise(&mut self) {
        if self.inflight_lo != u64::MAX {
            self.inflight_lo = self.inflight_lo.min(self.inflight_hi);
        }
        self.mode = Mode::Cruise;
    }

    fn start_refill(&mut self, sample: &Sample) {
        self.reset_lower_bounds();
        let feedback = &mut self.feedback;
        (feedback.doublings, feedback.up_acked, feedback.stopped) = (0, 0, false);
        feedback.acks = Acks::Refilling;
        self.round_delivered = sample.delivered;
        self.mode = Mode::Refill;
    }

    fn start_up(&mut self, sample: &Sample) {
        self.feedback.acks = Acks::Starting;
        self.feedback.is_of_probe = true;
        self.feedback.since = sample.now;
        self.round_delivered = sample.delivered;
        self.reset_full();
        self.full_bandwidth = sample.rate.map_or(0.0, |rate| rate.bytes_per_second);
        self.mode = Mode::Up;
        self.raise_slope();
    }

    pub(super) fn update_cycle(&mut self, sample: &Sample) {
        if !self.full || self.adapt_upper_bounds(sample) {
            return;
        }
        let in_network = self.in_network(sample.prior_in_flight, sample);
        match self.mode {
            Mode::Down => {
                if !self.probes_if_due(sample)
                    && in_network <= self.with_headroom()
                    && in_network <= self.product(self.max_bandwidth(), 1.0)
                {
                    self.start_cruise();
                }
            }
            Mode::Cruise => {
                self.probes_if_due(sample);
            }
            Mode::Refill if self.round_begins => self.start_up(sample),
            Mode::Up => self.check_up(sample, in_network),
            Mode::Refill | Mode::Startup | Mode::Drain | Mode::ProbeRoundTrip => {}
        }
    }

    fn check_up(&mut self, sample: &Sample, in_network: u64) {
        let is_over = if self.feedback.was_too_high && in_network >= self.inflight_hi {
            self.feedback.stopped = true;
            true
        } else if sample.held && self.levels.window() >= self.inflight_hi {
            // inflight_hi limits the growth of the rate.
            self.reset_full();
            self.full_bandwidth = sample.rate.map_or(0.0, |rate| rate.bytes_per_second);
            false
        } else {
            self.full_now
        };
        if is_over {
            self.feedback.was_too_high = false;
            self.start_down(sample);
        }
    }

    /// Starts a probe when it is time (section 5.3.3.5.3); returns whether it does.
    fn probes_if_due(&mut self, sample: &Sample) -> bool {
        let target = self.product(self.bandwidth(), 1.0).min(self.levels.window());
        let rounds = MAX_ROUNDS.min(target / self.levels.segment());
        let due = sample.now.since(self.feedback.since) > self.feedback.wait
            || self.feedback.rounds >= rounds;
        if due {
            self.start_refill(sample);
        }
        due
    }

    /// Adapts inflight_hi (section 5.5.10.2); returns whether that decided the phase.
    fn adapt_upper_bounds(&mut self, sample: &Sample) -> bool {
        if self.feedback.acks == Acks::Starting && self.round_begins {
            self.feedback.acks = Acks::Feedback;
        }
        if self.feedback.acks == Acks::Stopping && self.round_begins {
            self.feedback.acks = Acks::Init;
            self.feedback.is_of_probe = false;
            let limited = sample.rate.is_some_and(|rate| rate.limited);
            if self.is_in_cycle() && !limited && self.bandwidths[1] > 0.0 {
                self.bandwidths = [self.bandwidths[1], 0.0];
            }
            if self.is_in_cycle() && self.feedback.stopped && !self.feedback.was_too_high {
                self.start_refill(sample);
                return true;
            }
        }
        let Some(flight) = sample.flight else { return false };
        if self.is_too_high(sample) {
            if self.feedback.is_of_probe {
                self.too_high(sample, flight.in_flight, flight.limited);
            }
        } else if self.inflight_hi != u64::MAX {
            self.inflight_hi = self.inflight_hi.max(flight.in_flight);
            if self.mode == Mode::Up {
                self.raise_upper_bound(sample);
            }
        }
        false
    }

    fn raise_upper_bound(&mut self, sample: &Sample) {
        if !sample.held || self.levels.window() < self.inflight_hi {
            return;
        }
        let feedback = &mut self.feedback;
        feedback.up_acked += sample.newly;
        let steps = feedback.up_acked / feedback.up_bytes.max(1);
        feedback.up_acked -= steps * feedback.up_bytes;
        self.inflight_hi += steps * self.levels.segment();
        if self.round_begins {
            self.raise_slope();
        }
    }

    /// inflight_hi grows by 1, 2, 4, ... segments per round.
    fn raise_slope(&mut self) {
        let growth = 1_u64 << self.feedback.doublings;
        self.feedback.doublings = (self.feedback.doublings + 1).min(MAX_DOUBLINGS);
        self.feedback.up_bytes = (self.levels.window() / growth).max(self.levels.segment());
    }
}
