//! BBR, version 3 (draft-ietf-ccwg-bbr-04; section numbers are its own), with the values of
//! Google's implementation for Linux (`tcp_bbr.c`, branch v3).
//!
//! ```text
//!   model        max_bw = the largest delivery rate of two probing cycles         section 5.5.5
//!                min_rtt = the shortest round trip of 10 s                        section 5.5.7
//!                inflight_hi: the volume at which loss or marks were too high     section 5.5.10.2
//!                bw_lo, inflight_lo: bounds since the last probe, cut by 30 % in
//!                a round with a loss, and by alpha / 3 in one with marks          section 5.5.10.3
//!   Startup      paced at 2.77, cwnd 2, until three rounds bring less than a
//!                quarter more, or six losses in a round are above 2 %             section 5.3.1
//!   Drain        paced at 0.35 until one product is in flight                     section 5.3.2
//!   ProbeBW      DOWN 0.91, CRUISE 1, REFILL 1, UP 1.25                           section 5.3.3
//!   ProbeRTT     half a product for 200 ms and a round, every 5 s without a
//!                shorter round trip                                               section 5.3.4
//! ```
//!
//! Version 1 ([`Bbr`](super::Bbr)) has no bounds by loss, eight phases of fixed length in ProbeBW,
//! and four segments in ProbeRTT, every 10 s. The response to marks is Google's, with no limit of
//! the round trip (5 ms there); the draft has none. The undo of spurious recoveries and the fast
//! path are left out. Waits that are random there are taken from the clock here.

mod bounds;
mod cycle;

use super::{Levels, Marks, Sample};
use cycle::Feedback;
use units::{Instant, Span};

const STARTUP_GAIN: f64 = 2.77;
const DRAIN_GAIN: f64 = 1_000.0 / 2_885.0;
const WINDOW_GAIN: f64 = 2.0;
const UP_WINDOW_GAIN: f64 = 2.25;
const PACING_MARGIN: f64 = 0.99;
const FULL_GROWTH: f64 = 1.25;
const FULL_ROUNDS: u32 = 3;
/// Losses in a round of recovery that can end Startup.
const FULL_LOSSES: u32 = 6;
/// Rounds with more marks than [`MARK_THRESHOLD`] that end Startup.
const FULL_MARKED_ROUNDS: u32 = 2;
const MARK_THRESHOLD: f64 = 0.5;
const MARK_GAIN: f64 = 1.0 / 16.0;
const ROUND_TRIP_AGE: Span = Span::from_secs(10);
const PROBE_INTERVAL: Span = Span::from_secs(5);
const PROBE_TIME: Span = Span::from_millis(200);
const PROBE_GAIN: f64 = 0.5;
/// Minimum number of segments in flight.
const LEAST: u64 = 4;
/// Rounds of one half of the filter for ACK aggregation, and the maximum that it adds.
const EXTRA_ROUNDS: u32 = 5;
const EXTRA_SECONDS: f64 = 0.1;

/// The states of section 5.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRoundTrip,
}

/// BBRv3's state. Rates are bytes per second, volumes bytes; no bound is `MAX` or infinite.
#[derive(Clone, Debug)]
pub(crate) struct Bbr3 {
    levels: Levels,
    mode: Mode,
    /// max_bw of the last cycle and of this one.
    bandwidths: [f64; 2],
    bw_lo: f64,
    inflight_hi: u64,
    inflight_lo: u64,
    bw_latest: f64,
    inflight_latest: u64,
    round_delivered: u64,
    round_begins: bool,
    loss_round_delivered: u64,
    loss_round_begins: bool,
    loss_in_round: bool,
    losses_in_round: u32,
    marks_in_round: bool,
    /// Octets marked and delivered in this round; alpha, and the share of the last round.
    marked: u64,
    counted: u64,
    alpha: f64,
    marked_share: f64,
    marked_rounds: u32,
    full_bandwidth: f64,
    full_rounds: u32,
    full_now: bool,
    full: bool,
    feedback: Feedback,
    round_trip: Option<Span>,
    round_trip_at: Instant,
    recent_round_trip: Option<Span>,
    recent_at: Instant,
    probe_ends: Option<Instant>,
    probe_round_done: bool,
    /// The window before a recovery or ProbeRTT.
    prior: u64,
    timed_out: bool,
    was_repairing: bool,
    pacing_rate: f64,
    pacing_known: bool,
    idle_restart: bool,
    extra: [u64; 2],
    extra_half: usize,
    extra_rounds: u32,
    epoch: Instant,
    epoch_bytes: u64,
}

impl Bbr3 {
    pub(crate) fn new(levels: Levels) -> Self {
        Self {
            levels,
            mode: Mode::Startup,
            bandwidths: [0.0; 2],
            bw_lo: f64::INFINITY,
            inflight_hi: u64::MAX,
            inflight_lo: u64::MAX,
            bw_latest: 0.0,
            inflight_latest: 0,
            round_delivered: 0,
            round_begins: false,
            loss_round_delivered: 1,
            loss_round_begins: false,
            loss_in_round: false,
            losses_in_round: 0,
            marks_in_round: false,
            marked: 0,
            counted: 0,
            alpha: 1.0,
            marked_share: 0.0,
            marked_rounds: 0,
            full_bandwidth: 0.0,
            full_rounds: 0,
            full_now: false,
            full: false,
            feedback: Feedback::default(),
            round_trip: None,
            round_trip_at: Instant::ZERO,
            recent_round_trip: None,
            recent_at: Instant::ZERO,
            probe_ends: None,
            probe_round_done: false,
            prior: 0,
            timed_out: false,
            was_repairing: false,
            // Without a sample the round trip is assumed as 1 ms.
            pacing_rate: STARTUP_GAIN * levels.window() as f64 / 0.001,
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

    pub(crate) fn least_round_trip(&self) -> Option<Span> {
        self.round_trip
    }

    /// The window is small by design: rate samples are not valid.
    pub(crate) fn drains(&self) -> bool {
        self.mode == Mode::ProbeRoundTrip
    }

    pub(crate) fn on_loss(&mut self) {
        self.save();
    }

    pub(crate) fn on_timeout(&mut self) {
        self.save();
        self.reset_full();
        if !self.is_probing() && self.inflight_lo == u64::MAX {
            self.inflight_lo = self.levels.window().max(self.prior);
        }
        self.timed_out = true;
        self.was_repairing = true;
        self.levels.set_window(self.levels.segment());
    }

    /// After an idle time data is paced at the known rate.
    pub(crate) fn on_idle(&mut self, unused: Span) {
        if unused.is_zero() {
            return;
        }
        self.idle_restart = true;
        self.epoch_bytes = 0;
        if self.is_in_cycle() {
            self.pace(1.0);
        }
    }

    /// Handles the marks of an acknowledgement, before its sample.
    pub(crate) fn on_marks(&mut self, marks: &Marks) {
        self.marked += marks.bytes;
        self.counted += marks.delivered;
        self.marks_in_round |= marks.bytes > 0;
    }

    pub(crate) fn on_sample(&mut self, sample: &Sample) {
        self.note_losses(sample);
        self.update_round(sample);
        self.update_latest(sample);
        self.update_bounds(sample);
        self.update_extra(sample);
        self.check_startup_losses(sample);
        self.check_full(sample);
        self.check_drained(sample);
        self.update_cycle(sample);
        self.update_round_trip(sample);
        if !self.pacing_known
            && let Some(smoothed) = sample.smoothed
        {
            self.pacing_known = true;
            let window = self.levels.window() as f64;
            self.pacing_rate =
                STARTUP_GAIN * PACING_MARGIN * window / smoothed.as_secs_f64().max(1e-6);
        }
        let (pacing_gain, window_gain) = match self.mode {
            Mode::Startup => (STARTUP_GAIN, WINDOW_GAIN),
            Mode::Drain => (DRAIN_GAIN, WINDOW_GAIN),
            Mode::Down => (0.91, WINDOW_GAIN),
            Mode::Cruise | Mode::Refill => (1.0, WINDOW_GAIN),
            Mode::Up => (1.25, UP_WINDOW_GAIN),
            Mode::ProbeRoundTrip => (1.0, 1.0),
        };
        self.pace(pacing_gain);
        self.set_window(sample, window_gain);
        self.advance_latest(sample);
        self.was_repairing = sample.repairing;
    }

    fn max_bandwidth(&self) -> f64 {
        self.bandwidths[0].max(self.bandwidths[1])
    }

    fn bandwidth(&self) -> f64 {
        self.max_bandwidth().min(self.bw_lo)
    }

    fn is_in_cycle(&self) -> bool {
        matches!(self.mode, Mode::Down | Mode::Cruise | Mode::Refill | Mode::Up)
    }

    /// Lower bounds are not adapted while the flow probes for bandwidth.
    fn is_probing(&self) -> bool {
        matches!(self.mode, Mode::Startup | Mode::Refill | Mode::Up)
    }

    fn pace(&mut self, gain: f64) {
        let rate = gain * self.bandwidth() * PACING_MARGIN;
        if self.full || rate > self.pacing_rate {
            self.pacing_rate = rate.max(1.0);
        }
    }

    fn update_round(&mut self, sample: &Sample) {
        self.round_begins = false;
        let Some(rate) = sample.rate else { return };
        if rate.prior_delivered < self.round_delivered {
            return;
        }
        self.round_delivered = sample.delivered;
        self.round_begins = true;
        self.feedback.rounds += 1;
        if self.counted > 0 {
            self.marked_share = (self.marked as f64 / self.counted as f64).min(1.0);
            self.alpha += (self.marked_share - self.alpha) * MARK_GAIN;
            (self.marked, self.counted) = (0, 0);
            self.check_startup_marks();
        }
    }

    fn reset_full(&mut self) {
        (self.full_bandwidth, self.full_rounds, self.full_now) = (0.0, 0, false);
    }

    /// Section 5.3.1.2.
    fn check_full(&mut self, sample: &Sample) {
        let Some(rate) = sample.rate.filter(|rate| !rate.limited && !self.full_now) else { return };
        if rate.bytes_per_second >= self.full_bandwidth * FULL_GROWTH {
            self.reset_full();
            self.full_bandwidth = rate.bytes_per_second;
            return;
        }
        if self.round_begins {
            self.full_rounds += 1;
            self.full_now = self.full_rounds >= FULL_ROUNDS;
            self.full |= self.full_now;
        }
    }

    fn check_drained(&mut self, sample: &Sample) {
        if self.mode == Mode::Startup && self.full {
            self.mode = Mode::Drain;
            self.levels.set_threshold(self.product(self.max_bandwidth(), 1.0));
            self.reset_signals();
        }
        if self.mode == Mode::Drain
            && self.in_network(sample.in_flight, sample) <= self.product(self.max_bandwidth(), 1.0)
        {
            self.start_down(sample);
        }
    }

    /// Sections 5.3.4 and 5.5.7.
    fn update_round_trip(&mut self, sample: &Sample) {
        let known = self.round_trip.is_some();
        // The handshake's counts, as in Linux.
        let found = sample.round_trip.or(sample.smoothed.filter(|_| !known));
        let probe_is_due = known && sample.now.since(self.recent_at) > PROBE_INTERVAL;
        if let Some(found) = found
            && (probe_is_due || self.recent_round_trip.is_none_or(|old| found < old))
        {
            (self.recent_round_trip, self.recent_at) = (Some(found), sample.now);
        }
        let expired = known && sample.now.since(self.round_trip_at) > ROUND_TRIP_AGE;
        if let Some(recent) = self.recent_round_trip
            && (expired || self.round_trip.is_none_or(|old| recent <= old))
        {
            (self.round_trip, self.round_trip_at) = (Some(recent), self.recent_at);
        }
        if probe_is_due && !self.idle_restart && self.mode != Mode::ProbeRoundTrip {
            self.save();
            self.mode = Mode::ProbeRoundTrip;
            self.probe_ends = None;
            self.feedback.stop();
            self.round_delivered = sample.delivered;
        }
        if self.mode == Mode::ProbeRoundTrip {
            self.probe_round_trip(sample);
        }
        if sample.newly > 0 {
            self.idle_restart = false;
        }
    }

    fn probe_round_trip(&mut self, sample: &Sample) {
        let Some(ends) = self.probe_ends else {
            if sample.in_flight <= self.probe_window() {
                self.probe_ends = Some(sample.now + PROBE_TIME);
                self.probe_round_done = false;
                self.round_delivered = sample.delivered;
            }
            return;
        };
        self.probe_round_done |= self.round_begins;
        if !self.probe_round_done || sample.now < ends {
            return;
        }
        self.recent_at = sample.now;
        self.levels.set_window(self.levels.window().max(self.prior));
        self.reset_lower_bounds();
        if self.full {
            self.start_down(sample);
            self.start_cruise();
        } else {
            self.mode = Mode::Startup;
        }
    }

    /// Half of a product (section 5.6.4.5).
    fn probe_window(&self) -> u64 {
        self.product(self.bandwidth(), PROBE_GAIN).max(LEAST * self.levels.segment())
    }

    fn set_window(&mut self, sample: &Sample, gain: f64) {
        let segment = self.levels.segment();
        let mut window = self.levels.window();
        if self.timed_out && !sample.repairing {
            self.timed_out = false;
            window = window.max(self.prior);
        }
        if sample.newly > 0 {
            let target = self.target(gain);
            if self.full {
                window = (window + sample.newly).min(target);
            } else if window < target || sample.delivered < 20 * segment {
                window += sample.newly;
            }
            window = window.max(LEAST * segment);
        }
        if self.mode == Mode::ProbeRoundTrip {
            window = window.min(self.probe_window());
        }
        let cap = self.cap().max(LEAST * segment);
        self.levels.set_window(window.min(cap));
    }

    fn target(&self, gain: f64) -> u64 {
        let segment = self.levels.segment();
        let most = (self.bandwidth() * EXTRA_SECONDS) as u64;
        let extra = self.extra[0].max(self.extra[1]).min(most);
        let bytes = self.product(self.bandwidth(), gain) + extra;
        let bytes = bytes.max(3 * self.burst() * segment).max(LEAST * segment);
        bytes + if self.mode == Mode::Up { 2 * segment } else { 0 }
    }

    /// gain × `bandwidth` × min_rtt, rounded up to segments.
    fn product(&self, bandwidth: f64, gain: f64) -> u64 {
        let segment = self.levels.segment();
        let Some(round_trip) = self.round_trip else { return 10 * segment };
        let bytes = gain * bandwidth * round_trip.as_secs_f64();
        (bytes as u64).div_ceil(segment) * segment
    }

    /// Segments per burst: the data of 1 ms, two at least (section 5.6.3).
    fn burst(&self) -> u64 {
        ((self.pacing_rate / 1_024.0) as u64 / self.levels.segment()).clamp(2, 43)
    }

    /// The part of `in_flight` that will be in the network when the next segment is sent.
    fn in_network(&self, in_flight: u64, sample: &Sample) -> u64 {
        let rises = matches!(self.mode, Mode::Startup | Mode::Up);
        let burst = if rises { self.burst() * self.levels.segment() } else { 0 };
        let leaves = (self.bandwidth() * sample.ahead.as_secs_f64()) as u64;
        (in_flight + burst).saturating_sub(leaves)
    }

    /// Data acknowledged in excess of the rate (section 5.5.9), as in version 1; in Startup of the
    /// last two rounds.
    fn update_extra(&mut self, sample: &Sample) {
        if sample.rate.is_none() || sample.newly == 0 {
            return;
        }
        if self.round_begins {
            self.extra_rounds += 1;
            if self.extra_rounds >= if self.full { EXTRA_ROUNDS } else { 1 } {
                self.extra_rounds = 0;
                self.extra_half ^= 1;
                self.extra[self.extra_half] = 0;
            }
        }
        let passed = sample.now.since(self.epoch).as_secs_f64();
        let mut expected = (self.bandwidth() * passed) as u64;
        if self.epoch_bytes <= expected {
            (self.epoch_bytes, self.epoch, expected) = (0, sample.now, 0);
        }
        self.epoch_bytes += sample.newly;
        let extra = self.epoch_bytes.saturating_sub(expected).min(self.levels.window());
        let half = &mut self.extra[self.extra_half];
        *half = extra.max(*half);
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
