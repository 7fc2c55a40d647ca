//! PROBING: bandwidth probing at a higher rate for one RTT.
//!
//! ```text
//!   on entry   base rate R and p_err
//!   sends      at R' = R + R/2ⁿ, n = 4 at first
//!   exit       the first POLL sent after the probe is answered:
//!     all of the addition arrived, constant delay   base rate R'; n halves; the next probe follows
//!     service rate < (R + R') / 2                   C = service rate; the wait doubles
//!     less than half of the addition arrived        the queue overflows; the wait doubles
//! ```
//!
//! The first wait is 4 RTTs, and the maximum is 16 RTTs or 8 s.

use super::drain::AfterDrain;
use super::estimator::{
    PACKET_BITS, PathEstimator, Sample, SampleInterval, as_micros, mul, time_for_packets,
};
use super::{MIN_THRESHOLD, State, Steady};
use units::{Instant, Span};

/// n of the first probe.
const INITIAL_SHIFT: u32 = 4;
/// RTTs between two probes, at first and at most.
const INITIAL_WAIT: u64 = 4;
const MAX_WAIT: u64 = 16;
/// Maximum wait, unless the initial one is longer.
const MAX_WAIT_TIME: Span = Span::from_secs(8);
/// Minimum number of packets of a probe: its effect is larger than a packet.
const MIN_PACKETS: u64 = 36;
/// Minimum number of packets of a probe at twice the rate, which is used if fewer are sent per
/// RTT.
const MIN_DOUBLED_PACKETS: u64 = 4;
/// A base rate below 1/64 of the rate cap is doubled.
const MAX_CAP_RATIO: u64 = 64;

/// Time and size of the next probe.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProbeSchedule {
    due: Instant,
    /// RTTs to wait after a probe without success.
    waits: u64,
    /// n.
    shift: u32,
}

/// A running probe.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    /// R.
    pub(super) base: u64,
    /// R'.
    pub(super) rate: u64,
    pub(super) from: Instant,
    pub(super) until: Instant,
    /// The POLL at its end was requested.
    pub(super) ended: bool,
}

/// Result of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProbeOutcome {
    /// The bottleneck rate is higher.
    Capacity,
    /// The bottleneck rate is this, and the excess is queued.
    Queue(u64),
    /// The excess was lost.
    Loss,
}

impl ProbeSchedule {
    pub(super) fn new() -> Self {
        Self { due: Instant::ZERO, waits: INITIAL_WAIT, shift: INITIAL_SHIFT }
    }

    /// Schedules a probe of the initial size after the initial wait.
    pub(super) fn reset(&mut self, now: Instant, rtt: Span) {
        *self = Self { due: now + rtt * INITIAL_WAIT, ..Self::new() };
    }

    /// Schedules the first probe at a rate whose uncertainty is `uncertainty_ppm`: it adds at least
    /// as much.
    pub(super) fn set_first(&mut self, due: Instant, uncertainty_ppm: u64) {
        let suffices = |shift: &u32| 1_000_000 >> shift >= uncertainty_ppm;
        let shift = (0..=INITIAL_SHIFT).rev().find(suffices).unwrap_or(0);
        *self = Self { due, shift, ..Self::new() };
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        now >= self.due
    }

    /// Starts the probe that is due: it takes at least `time`, and stays below `max_rate`.
    pub(super) fn begin(
        &self,
        now: Instant,
        base: u64,
        max_rate: u64,
        rtt: Span,
        time: Span,
        error_ppm: u64,
    ) -> Probe {
        // Far below a configured rate the estimate is wrong; additions of 1/16 would take minutes.
        let is_far_below = max_rate < u64::MAX && base < max_rate / MAX_CAP_RATIO;
        // Doubling so few packets adds a handful to the queue. Not after a probe that found one.
        let few = mul(base, rtt.as_micros(), PACKET_BITS * 1_000_000) < MIN_DOUBLED_PACKETS;
        let doubles = is_far_below || (few && self.waits == INITIAL_WAIT);
        let (shift, min_packets) =
            if doubles { (0, MIN_DOUBLED_PACKETS) } else { (self.shift, MIN_PACKETS) };
        let rate = base.saturating_add(base >> shift).min(max_rate);
        // For n packets, half of the addition is two standard deviations of the corrupted ones:
        // n/32 = 2 √(n p_err).
        let packets = min_packets.max(mul(4_096, error_ppm, 1_000_000));
        let until = now + time.max(time_for_packets(packets, rate));
        Probe { base, rate, from: now, until, ended: false }
    }

    /// Schedules the next probe after one with this result.
    pub(super) fn on_outcome(&mut self, now: Instant, outcome: ProbeOutcome, rtt: Span) {
        if outcome == ProbeOutcome::Capacity {
            self.shift = self.shift.div_ceil(2).max(1);
            self.waits = INITIAL_WAIT;
            self.due = now;
        } else {
            let wait = (rtt * self.waits).min(MAX_WAIT_TIME.max(rtt * INITIAL_WAIT));
            self.due = now + wait;
            self.waits = (self.waits * 2).min(MAX_WAIT);
            self.shift = INITIAL_SHIFT;
        }
    }
}

impl Probe {
    /// The interval that shows the effect, and the rate intended for it: that of the POLLs sent in
    /// the probe, or the one around it if STATs are too rare. `None` if the session was
    /// application-limited in both.
    pub(super) fn measured_interval(&self, path: &PathEstimator) -> Option<(SampleInterval, u64)> {
        let inside = || path.interval(self.from, Some(self.until));
        let around = || path.interval_around(self.from, self.until);
        // A quarter of the addition is distinguishable.
        let min_rate = self.base + (self.rate - self.base) / 4;
        let suffices = |interval: &SampleInterval| interval.send_rate_bps() >= min_rate;
        let interval = inside().filter(suffices).or_else(|| around().filter(suffices))?;
        let sent = interval.send_rate_bps();
        let rate = if sent >= self.middle(self.rate) { self.rate } else { sent };
        Some((interval, rate))
    }

    fn middle(&self, rate: u64) -> u64 {
        self.base + (rate - self.base) / 2
    }

    /// Result of an interval in which `rate` was to be sent.
    pub(super) fn outcome(&self, interval: &SampleInterval, rate: u64, p_err: u64) -> ProbeOutcome {
        let middle = self.middle(rate);
        let service_rate = interval.service_rate_bps();
        if service_rate < middle {
            return ProbeOutcome::Queue(service_rate);
        }
        let kept = 1_000_000_u64.saturating_sub(p_err);
        let enough = mul(mul(interval.sent, kept, 1_000_000), middle, rate);
        if interval.arrived < enough { ProbeOutcome::Loss } else { ProbeOutcome::Capacity }
    }
}

impl Steady {
    /// PROBING: a POLL is answered.
    pub(super) fn on_probe(&mut self, now: Instant, probe: &Probe, sample: &Sample) {
        if let Some(recent) = self.path.recent_interval(self.rate_span(), 2)
            && self.is_choked(&recent)
        {
            self.probes.on_outcome(now, ProbeOutcome::Loss, self.min_rtt);
            let bottleneck_bps = recent.bottleneck_bps(self.path.error_ppm());
            self.drain(now, bottleneck_bps, AfterDrain::Cruise);
            return;
        }
        if sample.sent_at <= probe.from {
            self.path.update_jitter();
            self.path.update_error_ratio(self.queue_threshold_us() / 4, self.rate_span() * 2);
        }
        if sample.sent_at < probe.until {
            return;
        }
        self.state = State::Cruise;
        let Some((interval, rate)) = probe.measured_interval(&self.path) else {
            // Application-limited.
            self.probes.reset(now, self.min_rtt);
            return;
        };
        let outcome = probe.outcome(&interval, rate, self.path.error_ppm());
        self.probes.on_outcome(now, outcome, self.min_rtt);
        if outcome != ProbeOutcome::Capacity && self.dropped_recently(now) {
            self.probes.reset(now, self.min_rtt);
        }
        match outcome {
            ProbeOutcome::Capacity => self.on_capacity(now, probe, rate),
            ProbeOutcome::Queue(bottleneck_bps) => {
                let queue_us = self.path.queue_us(sample);
                // The uncertainty of a train is larger than its samples show.
                let sixteenths = if self.bottleneck_bps.is_some() { 15 } else { 12 };
                let bottleneck_bps = bottleneck_bps.max(probe.base / 16 * sixteenths);
                self.base_rate_bps = self.below(bottleneck_bps);
                self.bottleneck_bps = Some(bottleneck_bps);
                self.confirm_rate();
                if queue_us > as_micros(MIN_THRESHOLD) / 3 {
                    self.drain(now, bottleneck_bps, AfterDrain::OwnQueue);
                }
            }
            ProbeOutcome::Loss => {}
        }
    }

    /// A probe at `rate` has found capacity.
    fn on_capacity(&mut self, now: Instant, probe: &Probe, rate: u64) {
        self.confirm_rate();
        if self.may_send_train(now, probe) {
            self.base_rate_bps = rate;
            self.recover_with_train();
        } else if now < self.sharing_until {
            self.enter_sharing(now);
        } else {
            self.base_rate_bps = rate;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// XSTP-14.4.1, XSTP-14.4.4
    #[test]
    fn a_low_rate_is_doubled_until_a_queue_is_found() {
        let mut schedule = ProbeSchedule::new();
        let rtt = Span::from_millis(600);
        let begin = |schedule: &ProbeSchedule, base| {
            let probe = schedule.begin(Instant::ZERO, base, u64::MAX, rtt, rtt, 0);
            (probe.rate, probe.until.since(Instant::ZERO).as_millis())
        };
        assert_eq!(begin(&schedule, 1_000), (2_000, 24_000), "four packets");
        assert_eq!(begin(&schedule, 79_000), (158_000, 600), "fewer than four per RTT");
        assert_eq!(begin(&schedule, 80_000), (85_000, 5_082), "thirty-six packets");
        schedule.on_outcome(Instant::ZERO, ProbeOutcome::Queue(1_000), rtt);
        assert_eq!(begin(&schedule, 1_600).0, 1_700);
    }
}
