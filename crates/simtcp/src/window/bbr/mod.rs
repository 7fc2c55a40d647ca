//! BBR, version 1 (draft-cardwell-iccrg-bbr-congestion-control-00; Cardwell et al., ACM Queue
//! 14(5), 2016), with the values of Linux.
//!
//! ```text
//!   model        BtlBw = the largest delivery rate of 10 rounds         section 4.1.1
//!                RTprop = the shortest round trip of 10 s               section 4.1.2
//!   control      pacing at gain × BtlBw, less 1 %                       section 4.2.1
//!                cwnd up to gain × BtlBw × RTprop + a little            section 4.2.3
//!   Startup      both gains 2.89, until three rounds bring less than a
//!                quarter more                                           section 4.3.2
//!   Drain        paced at 1 / 2.89 until one product is in flight       section 4.3.3
//!   ProbeBW      1.25, 0.75, and six times 1, each for RTprop; cwnd 2   section 4.3.4
//!   ProbeRTT     four segments for 200 ms and a round, when RTprop is
//!                10 s old                                               section 4.3.5
//! ```
//!
//! Losses do not reduce the window, except for packet conservation in the first round of a
//! recovery. After a timeout the window is one segment, and is restored when recovery ends. The
//! detection of policers is not implemented.

mod cycle;
mod filter;

use super::{Levels, Sample};
use cycle::Cycle;
use filter::MaxFilter;
use units::{Instant, Span};

/// 2 / ln 2.
const HIGH_GAIN: f64 = 2.885;
const DRAIN_GAIN: f64 = 1.0 / HIGH_GAIN;
const WINDOW_GAIN: f64 = 2.0;
const BANDWIDTH_ROUNDS: u64 = 10;
const ROUND_TRIP_AGE: Span = Span::from_secs(10);
const PROBE_TIME: Span = Span::from_millis(200);
/// Minimum number of segments in flight.
const LEAST: u64 = 4;
const PACING_MARGIN: f64 = 0.99;
const FULL_GROWTH: f64 = 1.25;
const FULL_ROUNDS: u32 = 3;
/// Rounds of one half of the filter for ACK aggregation, and the maximum that it adds.
const EXTRA_ROUNDS: u32 = 5;
const EXTRA_SECONDS: f64 = 0.1;
/// Below this rate a burst is one segment, above it two or the data of 1 ms.
const BURST_RATE: f64 = 1_200_000.0 / 8.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBandwidth,
    ProbeRoundTrip,
}

/// BBR's state. Rates are bytes per second.
#[derive(Clone, Debug)]
pub(crate) struct Bbr {
    levels: Levels,
    mode: Mode,
    bandwidth: MaxFilter,
    /// Rounds: one ends when the data delivered at its start is acknowledged.
    round: u64,
    round_delivered: u64,
    round_begins: bool,
    round_trip: Option<Span>,
    round_trip_at: Instant,
    probe_ends: Option<Instant>,
    probe_round_done: bool,
    full_bandwidth: f64,
    full_rounds: u32,
    full: bool,
    cycle: Cycle,
    /// The window before a recovery or ProbeRTT.
    prior: u64,
    conserving: bool,
    was_repairing: bool,
    pacing_rate: f64,
    pacing_known: bool,
    idle_restart: bool,
    /// Data acknowledged in excess of the rate: two halves of a windowed maximum.
    extra: [u64; 2],
    extra_half: usize,
    extra_rounds: u32,
    epoch: Instant,
    epoch_bytes: u64,
}

impl Bbr {
    pub(crate) fn new(levels: Levels) -> Self {
        Self {
            levels,
            mode: Mode::Startup,
            bandwidth: MaxFilter::new(BANDWIDTH_ROUNDS),
            round: 0,
            round_delivered: 0,
            round_begins: false,
            round_trip: None,
            round_trip_at: Instant::ZERO,
            probe_ends: None,
            probe_round_done: false,
            full_bandwidth: 0.0,
            full_rounds: 0,
            full: false,
            cycle: Cycle::default(),
            prior: 0,
            conserving: false,
            was_repairing: false,
            // Without a sample the round trip is assumed as 1 ms.
            pacing_rate: HIGH_GAIN * levels.window() as f64 / 0.001,
            pacing_known: false,
            idle_restart: false,
            extra: [0; 2],
            extra_half: 0,
            extra_rounds: 0,
            epoch: Instant::ZERO,
            epoch_bytes: 0,
        }
    }

    pub(crate) fn levels(&self) -> &Levels {
        &self.levels
    }

    pub(crate) fn levels_mut(&mut self) -> &mut Levels {
        &mut self.levels
    }

    pub(crate) fn pacing_rate(&self) -> f64 {
        self.pacing_rate
    }

    /// RTprop.
    pub(crate) fn least_round_trip(&self) -> Option<Span> {
        self.round_trip
    }

    /// The window is small by design: rate samples are not valid.
    pub(crate) fn drains(&self) -> bool {
        self.mode == Mode::ProbeRoundTrip
    }

    /// Handles the start of a recovery, after which the window is restored.
    pub(crate) fn on_loss(&mut self) {
        self.save();
    }

    pub(crate) fn on_timeout(&mut self) {
        self.save();
        self.was_repairing = true;
        self.full_bandwidth = 0.0;
        self.round_begins = true;
        self.levels.set_window(self.levels.segment());
    }

    /// After an idle time data is paced at the known rate.
    pub(crate) fn on_idle(&mut self, now_unused: Span) {
        if now_unused.is_zero() {
            return;
        }
        self.idle_restart = true;
        self.epoch_bytes = 0;
        if self.mode == Mode::ProbeBandwidth {
            self.pace(1.0);
        }
    }

    pub(crate) fn on_sample(&mut self, sample: &Sample) {
        self.update_bandwidth(sample);
        self.update_extra(sample);
        if self.mode == Mode::ProbeBandwidth {
            let reaches = |gain| self.in_flight_for(gain);
            let target = [reaches(1.0), reaches(self.cycle.gain())];
            let in_network = self.in_network(sample.prior_in_flight, sample);
            self.cycle.update(sample, self.round_trip, in_network, target);
        }
        self.check_full(sample);
        self.check_drained(sample);
        self.update_round_trip(sample);
        let (pacing_gain, window_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBandwidth => (self.cycle.gain(), WINDOW_GAIN),
            Mode::ProbeRoundTrip => (1.0, 1.0),
        };
        if !self.pacing_known
            && let Some(smoothed) = sample.smoothed
        {
            self.pacing_known = true;
            let window = self.levels.window() as f64;
            self.pacing_rate =
                HIGH_GAIN * PACING_MARGIN * window / smoothed.as_secs_f64().max(1e-6);
        }
        self.pace(pacing_gain);
        self.set_window(sample, window_gain);
    }

    fn pace(&mut self, gain: f64) {
        let rate = gain * self.bandwidth.max() * PACING_MARGIN;
        if self.full || rate > self.pacing_rate {
            self.pacing_rate = rate.max(1.0);
        }
    }

    fn update_bandwidth(&mut self, sample: &Sample) {
        self.round_begins = false;
        let Some(rate) = sample.rate else { return };
        if rate.prior_delivered >= self.round_delivered {
            self.round_delivered = sample.delivered;
            self.round += 1;
            self.round_begins = true;
            self.conserving = false;
        }
        if !rate.limited || rate.bytes_per_second >= self.bandwidth.max() {
            self.bandwidth.update(self.round, rate.bytes_per_second);
        }
    }

    /// Estimates the data acknowledged in excess of the rate: links that aggregate acknowledgements
    /// need a larger window.
    fn update_extra(&mut self, sample: &Sample) {
        if sample.rate.is_none() || sample.newly == 0 {
            return;
        }
        if self.round_begins {
            self.extra_rounds += 1;
            if self.extra_rounds >= EXTRA_ROUNDS {
                self.extra_rounds = 0;
                self.extra_half ^= 1;
                self.extra[self.extra_half] = 0;
            }
        }
        let passed = sample.now.since(self.epoch).as_secs_f64();
        let mut expected = (self.bandwidth.max() * passed) as u64;
        if self.epoch_bytes <= expected {
            (self.epoch_bytes, self.epoch, expected) = (0, sample.now, 0);
        }
        self.epoch_bytes += sample.newly;
        let extra = self.epoch_bytes.saturating_sub(expected).min(self.levels.window());
        let half = &mut self.extra[self.extra_half];
        *half = extra.max(*half);
    }

    fn check_full(&mut self, sample: &Sample) {
        let limited = sample.rate.is_some_and(|rate| rate.limited);
        if self.full || !self.round_begins || limited {
            return;
        }
        if self.bandwidth.max() >= self.full_bandwidth * FULL_GROWTH {
            self.full_bandwidth = self.bandwidth.max();
            self.full_rounds = 0;
            return;
        }
        self.full_rounds += 1;
        self.full = self.full_rounds >= FULL_ROUNDS;
    }

    fn check_drained(&mut self, sample: &Sample) {
        if self.mode == Mode::Startup && self.full {
            self.mode = Mode::Drain;
            self.levels.set_threshold(self.in_flight_for(1.0));
        }
        if self.mode == Mode::Drain
            && self.in_network(sample.in_flight, sample) <= self.in_flight_for(1.0)
        {
            self.probe_bandwidth(sample.now);
        }
    }

    fn probe_bandwidth(&mut self, now: Instant) {
        self.mode = Mode::ProbeBandwidth;
        self.cycle = Cycle::begin(now);
    }

    fn update_round_trip(&mut self, sample: &Sample) {
        // Without a sample nothing has expired, however late the connection opens.
        let known = self.round_trip.is_some();
        let expired = known && sample.now.since(self.round_trip_at) > ROUND_TRIP_AGE;
        // The handshake's counts (Linux, `bbr_init`); it is shorter than that of a whole segment by
        // the time on air, so that data confirms it only where the rate is high.
        let handshake = sample.smoothed.filter(|_| !known);
        if let Some(round_trip) = sample.round_trip.or(handshake)
            && (expired || self.round_trip.is_none_or(|old| round_trip <= old))
        {
            (self.round_trip, self.round_trip_at) = (Some(round_trip), sample.now);
        }
        if expired && !self.idle_restart && self.mode != Mode::ProbeRoundTrip {
            self.save();
            self.mode = Mode::ProbeRoundTrip;
            self.probe_ends = None;
        }
        if self.mode == Mode::ProbeRoundTrip {
            self.probe_round_trip(sample);
        }
        if sample.newly > 0 {
            self.idle_restart = false;
        }
    }

    fn probe_round_trip(&mut self, sample: &Sample) {
        match self.probe_ends {
            None if sample.in_flight <= LEAST * self.levels.segment() => {
                self.probe_ends = Some(sample.now + PROBE_TIME);
                self.probe_round_done = false;
                self.round_delivered = sample.delivered;
            }
            None => {}
            Some(ends) => {
                self.probe_round_done |= self.round_begins;
                if self.probe_round_done && sample.now >= ends {
                    self.round_trip_at = sample.now;
                    self.levels.set_window(self.levels.window().max(self.prior));
                    if self.full {
                        self.probe_bandwidth(sample.now);
                    } else {
                        self.mode = Mode::Startup;
                    }
                }
            }
        }
    }

    fn set_window(&mut self, sample: &Sample, gain: f64) {
        let segment = self.levels.segment();
        let mut window = self.levels.window();
        if sample.newly > 0 {
            window = window.saturating_sub(sample.lost).max(segment);
            if sample.repairing && !self.was_repairing {
                self.conserving = true;
                self.round_delivered = sample.delivered;
                window = sample.in_flight + sample.newly;
            } else if self.was_repairing && !sample.repairing {
                window = window.max(self.prior);
                self.conserving = false;
            }
            self.was_repairing = sample.repairing;
            if self.conserving {
                window = window.max(sample.in_flight + sample.newly);
            } else {
                let target = self.target(gain);
                if self.full {
                    window = (window + sample.newly).min(target);
                } else if window < target || sample.delivered < 10 * segment {
                    window += sample.newly;
                }
                window = window.max(LEAST * segment);
            }
        }
        if self.mode == Mode::ProbeRoundTrip {
            window = window.min(LEAST * segment);
        }
        self.levels.set_window(window);
    }

    fn target(&self, gain: f64) -> u64 {
        let most = (self.bandwidth.max() * EXTRA_SECONDS) as u64;
        let extra = if self.full { self.extra[0].max(self.extra[1]).min(most) } else { 0 };
        self.with_bursts(self.product(gain) + extra)
    }

    /// gain × BtlBw × RTprop, rounded up to segments.
    fn product(&self, gain: f64) -> u64 {
        let segment = self.levels.segment();
        let Some(round_trip) = self.round_trip else { return 10 * segment };
        let bytes = gain * self.bandwidth.max() * round_trip.as_secs_f64();
        (bytes as u64).div_ceil(segment) * segment
    }

    /// Allowance for bursts queued at both ends.
    fn with_bursts(&self, bytes: u64) -> u64 {
        let segment = self.levels.segment();
        let segments = bytes.div_ceil(segment) + 3 * self.burst();
        let even = segments.next_multiple_of(2);
        let probing = self.mode == Mode::ProbeBandwidth && self.cycle.is_probing();
        (even + if probing { 2 } else { 0 }) * segment
    }

    /// Segments per burst: the data of 1 ms.
    fn burst(&self) -> u64 {
        let least = if self.pacing_rate < BURST_RATE { 1 } else { 2 };
        ((self.pacing_rate / 1_024.0) as u64 / self.levels.segment()).clamp(least, 43)
    }

    fn in_flight_for(&self, gain: f64) -> u64 {
        self.with_bursts(self.product(gain))
    }

    /// The part of `in_flight` that will be in the network when the next segment is sent.
    fn in_network(&self, in_flight: u64, sample: &Sample) -> u64 {
        let rises = match self.mode {
            Mode::Startup => true,
            Mode::ProbeBandwidth => self.cycle.is_probing(),
            Mode::Drain | Mode::ProbeRoundTrip => false,
        };
        let burst = if rises { self.burst() * self.levels.segment() } else { 0 };
        let leaves = (self.bandwidth.max() * sample.ahead.as_secs_f64()) as u64;
        (in_flight + burst).saturating_sub(leaves)
    }

    fn save(&mut self) {
        self.prior = if self.was_repairing || self.mode == Mode::ProbeRoundTrip {
            self.prior.max(self.levels.window())
        } else {
            self.levels.window()
        };
    }
}

#[cfg(test)]
mod tests;
