//! TRAIN and RAMP: a packet train estimates the bottleneck rate, and a ramp validates it.
//!
//! ```text
//!   TRAIN   on entry   nothing is known of the path
//!           sends      ten packets back to back, with POLLs on the 1st, 4th, 7th and 10th; then no
//!                      new data
//!           exit       two of these POLLs are answered:
//!                        D = octets between two POLLs ÷ interval of their arrivals   (dispersion)
//!                      two trains had no estimate: RAMP without D, doubling the delivery rate
//!   RAMP    on entry   D, refined as further POLLs of the train are answered; or a cached rate
//!           sends      at D/2, or at the cached rate
//!           exit       1/8 RTT and 15,000 octets were sent at that rate and answered:
//!                        all arrived, constant delay     CRUISE at 63/64 D, and PROBING
//!                        the delay grew, or loss         DRAINING, C = bottleneck rate
//! ```
//!
//! D is too high if the link forwards packets in groups. Therefore only half of it is used until a
//! thousand packets instead of ten have confirmed it: up to twice the rate no queue grows in that
//! RTT.

use super::drain::AfterDrain;
use super::estimator::{
    MAX_ERROR_INCREASE_PPM, PACKET_BITS, PathEstimator, Sample, SampleInterval, as_micros, mul,
    time_for_packets,
};
use super::padding::{IdleEstimate, MIN_POLL_SPACING};
use super::{LOW_JITTER_US, MIN_RATE_BPS, MIN_THRESHOLD_PACKETS, State, Steady};
use core::ops::Range;
use units::{Instant, Span};

/// Packets of a train.
const TRAIN_PACKETS: u32 = 3 * MIN_POLL_SPACING + 1;
/// A session may start with the first packets of a response. After a pause of this length,
const RESPONSE_PAUSE: Span = Span::from_micros(200);
/// after at most so many packets,
const MAX_RESPONSE_PACKETS: u32 = 3;
/// the train restarts, up to so many times.
const MAX_RESTARTS: u32 = 3;
/// Rate at which a train is sent.
pub(super) const TRAIN_BPS: u64 = 10_000_000_000;
/// Maximum of D.
pub(super) const MAX_DISPERSION_BPS: u64 = 2_000_000_000;
/// Minimum octets between two POLLs of a train.
const MIN_TRAIN_OCTETS: u64 = 3_500;
/// A train was sent back to back if its send interval is at most this, or a quarter of its arrival
/// interval.
const MAX_TRAIN_INTERVAL_US: u64 = 2_000;
/// Maximum octets of one packet.
const MAX_PACKET_OCTETS: u64 = 1_600;
/// A ramp that delivers all but 1/16 of its cap has confirmed it.
const CONFIRMED_DIVISOR: u64 = 16;
/// Maximum uncertainty of a train, in millionths, that is probed without waiting.
pub(super) const MAX_UNCERTAINTY_PPM: u64 = 250_000;
/// Minimum octets that confirm a rate.
const MIN_RAMP_OCTETS: u64 = 15_000;

/// Packets that are sent before the rate is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Train {
    sent: u32,
    began: Option<Instant>,
    /// Octets sent before it.
    before: u64,
    /// Time of the last packet, and the number of restarts.
    last: Instant,
    restarts: u32,
    /// Octets sent by the first POLL after its last packet. (The clock may be set back.)
    ended: Option<u64>,
    /// Number of trains before it without an estimate, and the time from the first packet of the last
    /// of them to the answer that ended it.
    failed: u32,
    failed_in: Span,
    /// It contains no data.
    is_padding: bool,
    /// Packets between two of its four POLLs.
    poll_spacing: u32,
}

/// Rate of one train per RTT, in bits per second.
pub(super) fn trains_bps(rtt: Span) -> u64 {
    mul(u64::from(TRAIN_PACKETS) * PACKET_BITS, 1_000_000_000, rtt.as_nanos())
}

impl Train {
    pub(super) fn new() -> Self {
        let (began, last, ended) = (None, Instant::ZERO, None);
        Self {
            sent: 0,
            began,
            before: 0,
            last,
            restarts: 0,
            ended,
            failed: 0,
            failed_in: Span::ZERO,
            is_padding: false,
            poll_spacing: MIN_POLL_SPACING,
        }
    }

    /// A train whose POLLs are sent with every `poll_spacing`-th packet.
    pub(super) fn with_spacing(poll_spacing: u32) -> Self {
        Self { poll_spacing, ..Self::new() }
    }

    pub(super) fn may_send(&self) -> bool {
        self.sent <= self.poll_spacing * 3
    }

    /// A packet is sent after `octets` in total; returns whether it carries a POLL.
    /// Retransmissions after the last packet are not part of the train.
    pub(super) fn on_data(&mut self, now: Instant, octets: u64) -> bool {
        if !self.may_send() {
            return false;
        }
        let has_paused = now.since(self.last) >= RESPONSE_PAUSE;
        let is_response = (1..=MAX_RESPONSE_PACKETS).contains(&self.sent);
        if is_response && has_paused && self.restarts < MAX_RESTARTS {
            let (failed, failed_in) = (self.failed, self.failed_in);
            *self = Self { restarts: self.restarts + 1, failed, failed_in, ..Self::new() };
        }
        if self.began.is_none() {
            (self.began, self.before) = (Some(now), octets);
        }
        self.last = now;
        self.sent += 1;
        self.sent % self.poll_spacing == 1
    }

    /// A POLL is sent after `octets` in total.
    pub(super) fn on_poll(&mut self, octets: u64) {
        if !self.may_send() {
            self.ended.get_or_insert(octets);
        }
    }

    /// A packet without data is sent.
    pub(super) fn on_padding(&mut self) {
        self.is_padding |= self.sent == 0;
    }

    /// Whether its first packet contains no data.
    pub(super) fn is_padding(&self) -> bool {
        self.is_padding
    }

    /// Whether its last POLL or a later one is answered.
    pub(super) fn is_answered(&self, path: &PathEstimator) -> bool {
        path.last().is_some_and(|last| self.is_over(last.sent))
    }

    /// Whether no packet of it was sent.
    pub(super) fn is_unsent(&self) -> bool {
        self.sent == 0
    }

    /// Whether a packet that is sent after `octets` in total is not part of the train.
    fn is_over(&self, octets: u64) -> bool {
        self.may_send() || self.ended.is_some_and(|ended| ended <= octets)
    }

    /// Whether a train before it had no estimate.
    pub(super) fn has_failed(&self) -> bool {
        self.failed > 0
    }

    /// Initial rate after trains without an estimate: two of them per RTT, or in the time that the
    /// last one took beyond an RTT if that is longer. A train that takes this time at the
    /// bottleneck is served at half of that rate or faster.
    pub(super) fn fallback_bps(&self, rtt: Span, min_poll_interval: Span) -> Option<u64> {
        // If two POLLs take more than an RTT, a train has one sample only.
        let trains = if min_poll_interval * 2 > rtt { 1 } else { 2 };
        let bits = u64::from(TRAIN_PACKETS) * 2 * PACKET_BITS;
        let time = rtt.max(self.failed_in.saturating_sub(rtt));
        (self.failed >= trains).then(|| mul(bits, 1_000_000_000, time.as_nanos()))
    }

    /// The estimate of this train, after a sample at `now` of it or of a later packet. Restarts a
    /// train whose POLLs were lost, or for which there was not enough data.
    pub(super) fn estimate(&mut self, now: Instant, path: &PathEstimator) -> Option<TrainEstimate> {
        let last = path.last()?;
        let estimate = self.current_estimate(path);
        if estimate.is_none() && self.is_over(last.sent) {
            let failed = self.failed + u32::from(!self.may_send());
            let failed_in = self.began.map_or(self.failed_in, |began| now.since(began));
            *self = Self { failed, failed_in, ..Self::new() };
        }
        estimate
    }

    /// The estimate of the POLLs that are answered so far, at least two.
    pub(super) fn current_estimate(&self, path: &PathEstimator) -> Option<TrainEstimate> {
        let began = self.began?;
        // A POLL before a pause dates the start of the train: its own first POLL may have been
        // answered together with a later one.
        let after_pause = path.interval_after_pause(began, self.before);
        let after_pause = after_pause.filter(|_| self.restarts > 0);
        let interval = after_pause.or_else(|| path.interval(began, None)).filter(is_train)?;
        // Also true after a clock step.
        let has_stall = path.has_receiver_stall(began);
        let rate = dispersion_bps(&interval).min(MAX_DISPERSION_BPS);
        let uncertainty_ppm = path.spacing_error_ppm(began);
        (!has_stall).then_some(TrainEstimate { rate, uncertainty_ppm })
    }
}

/// Estimate of a train.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TrainEstimate {
    /// D, bits per second.
    pub(super) rate: u64,
    /// Relative uncertainty of D, in millionths.
    pub(super) uncertainty_ppm: u64,
}

/// D. A single lost packet is a corruption loss; a full queue drops most of a train, and dropped
/// packets were not serviced.
fn dispersion_bps(interval: &SampleInterval) -> u64 {
    let is_corruption = interval.lost() <= MAX_PACKET_OCTETS;
    if is_corruption { interval.service_rate_bps() } else { interval.bottleneck_bps(0) }
}

/// Whether the packets of an interval were sent back to back and are enough.
fn is_train(interval: &SampleInterval) -> bool {
    let is_back_to_back = interval.send_interval_us <= MAX_TRAIN_INTERVAL_US
        || interval.send_rate_bps() / 4 >= interval.service_rate_bps();
    let is_complete = interval.sent >= MIN_TRAIN_OCTETS && interval.arrived >= interval.sent / 2;
    is_complete && is_back_to_back
}

/// A rate that is validated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ramp {
    pub(super) rate: u64,
    /// Maximum of the validated rate.
    pub(super) cap: u64,
    /// Start of the validation; zero before the first packet.
    pub(super) since: Instant,
    /// Relative uncertainty of the cap, in millionths.
    uncertainty_ppm: u64,
    /// The cap is the estimate of several trains.
    is_confirmed: bool,
    /// The train that the cap is from.
    train: Option<TrainReference>,
}

/// A train of which some POLLs may not be answered yet.
#[derive(Clone, Copy, Debug)]
struct TrainReference {
    train: Train,
    /// Minimum rate of the ramp.
    min_rate: u64,
    /// Maximum of D.
    max_rate: u64,
}

/// Result of a ramp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RampResult {
    /// There are too few samples.
    Pending,
    /// The session was application-limited.
    Restart,
    /// All packets arrived: the next rate.
    Higher(u64),
    /// The bottleneck rate is this, below the send rate.
    Full(u64),
}

impl Ramp {
    /// A ramp without a train; it starts with the first packet if `since` is zero.
    pub(super) fn new(since: Instant, rate: u64, cap: u64) -> Self {
        Self { rate, cap, since, uncertainty_ppm: 0, is_confirmed: false, train: None }
    }

    /// A ramp at the estimate of trains of padding if they confirm each other or `rtt` is short, or
    /// else at half of it; below `max_rate`.
    pub(super) fn after_padding(
        now: Instant,
        estimate: IdleEstimate,
        rtt: Span,
        max_rate: u64,
    ) -> Self {
        let IdleEstimate { train, is_confirmed } = estimate;
        let cap = train.rate.min(max_rate);
        let rate = if estimate.is_usable(rtt) { cap } else { cap / 2 };
        let uncertainty_ppm = train.uncertainty_ppm;
        Self { uncertainty_ppm, is_confirmed, ..Self::new(now, rate, cap) }
    }

    /// A ramp at D/2, within `range`.
    pub(super) fn after_train(
        now: Instant,
        train: Train,
        estimate: TrainEstimate,
        range: Range<u64>,
    ) -> Self {
        let train = TrainReference { train, min_rate: range.start, max_rate: range.end };
        let mut ramp = Self { train: Some(train), ..Self::new(now, 0, 0) };
        ramp.apply(estimate, train);
        ramp
    }

    fn apply(&mut self, estimate: TrainEstimate, train: TrainReference) {
        self.cap = estimate.rate.min(train.max_rate);
        self.rate = (self.cap / 2).max(train.min_rate);
        self.uncertainty_ppm = estimate.uncertainty_ppm;
    }

    /// A further POLL of the train is answered: updates D. Returns whether the cap changes by more
    /// than 1/8.
    fn refine(&mut self, path: &PathEstimator) -> bool {
        let before = self.cap;
        if let Some(train) = self.train
            && let Some(estimate) = train.train.current_estimate(path)
        {
            self.apply(estimate, train);
        }
        self.cap.abs_diff(before) > before / 8
    }

    /// Interval between POLLs: short at first, so that some arrive before the queue is full.
    pub(super) fn poll_interval(&self, now: Instant, rtt: Span) -> Span {
        (now.since(self.since) / 2).min(rtt / 8).max(Span::from_millis(5))
    }

    /// Result of the samples since the start, where `threshold_us` is a queue.
    pub(super) fn result(&self, path: &PathEstimator, rtt: Span, threshold_us: i64) -> RampResult {
        let Some(interval) = path.interval(self.since, None) else { return RampResult::Pending };
        let (send_rate, service_rate) = (interval.send_rate_bps(), interval.service_rate_bps());
        let is_queued =
            interval.delay_increase_us > threshold_us && service_rate < send_rate / 8 * 7;
        let has_overflow = interval.sent >= MIN_RAMP_OCTETS * 6
            && interval.lost_ppm() > path.error_ppm() + MAX_ERROR_INCREASE_PPM / 4 * 5;
        if interval.sent >= MIN_RAMP_OCTETS / 2 && (is_queued || has_overflow) {
            return RampResult::Full(interval.bottleneck_bps(path.error_ppm()));
        }
        let is_long = |time: Span| interval.send_interval_us >= time.as_micros();
        if interval.sent < MIN_RAMP_OCTETS || !is_long(rtt / 8) {
            return RampResult::Pending;
        }
        if send_rate < self.rate / 8 * 7 {
            // Application-limited.
            return if is_long(rtt * 4) { RampResult::Restart } else { RampResult::Pending };
        }
        let confirmed = service_rate.min(send_rate).min(interval.delivery_rate_bps());
        RampResult::Higher(self.cap.min(confirmed.saturating_mul(2)))
    }
}

impl Steady {
    /// RAMP: a POLL is answered.
    pub(super) fn on_ramp(&mut self, now: Instant, mut ramp: Ramp, sample: &Sample) {
        if sample.sent_at < ramp.since {
            if ramp.refine(&self.path) {
                ramp.since = now;
                self.poll_requested = true;
            }
            self.state = State::Ramp(ramp);
            return;
        }
        self.path.update_jitter();
        match ramp.result(&self.path, self.min_rtt, self.queue_threshold_us() / 2) {
            RampResult::Pending => {}
            RampResult::Restart => self.state = State::Ramp(Ramp { since: now, ..ramp }),
            RampResult::Full(bottleneck_bps) => {
                self.confirm_rate();
                self.drain(now, bottleneck_bps, AfterDrain::OwnQueue);
            }
            RampResult::Higher(rate) if rate >= ramp.cap - ramp.cap / CONFIRMED_DIVISOR => {
                self.confirm_rate();
                self.finish_ramp(now, &ramp);
            }
            RampResult::Higher(rate) => {
                self.base_rate_bps = rate;
                self.enter_ramp(Ramp { rate, since: now, train: None, ..ramp });
            }
        }
    }

    /// The cap is confirmed: enters CRUISE. D may be too low as well, so a probe follows, unless
    /// the jitter does not permit one yet.
    fn finish_ramp(&mut self, now: Instant, ramp: &Ramp) {
        let cap = ramp.cap.max(self.min_rate_bps);
        self.base_rate_bps = cap - cap / 64;
        self.state = State::Cruise;
        self.poll_requested = true;
        if ramp.is_confirmed {
            self.probes.reset(now, self.min_rtt);
            return;
        }
        let packet = time_for_packets(1, self.base_rate_bps);
        let is_imprecise = self.path.jitter_us() > LOW_JITTER_US + as_micros(packet) * 2;
        if is_imprecise || ramp.uncertainty_ppm > MAX_UNCERTAINTY_PPM {
            self.probes.set_first(now + self.min_rtt, 1_000_000);
        } else if packet * MIN_THRESHOLD_PACKETS > self.min_rtt / 8 {
            self.probes.set_first(now + self.min_rtt, ramp.uncertainty_ppm);
        } else {
            self.probes.set_first(now, ramp.uncertainty_ppm);
            if self.base_rate_bps < self.max_rate() {
                self.begin_probe(now);
            }
        }
    }

    /// Losses were caused by the path MTU: enters RAMP at half of the best rate, or TRAIN.
    pub(super) fn restart_after_mtu_losses(&mut self, now: Instant) {
        self.path.clear_samples();
        self.undrained_queues = 0;
        if self.best_rate_bps <= MIN_RATE_BPS {
            self.state = State::Train(Train::new());
            return;
        }
        let best = self.best_rate_bps.min(self.max_rate()).max(self.min_rate_bps);
        self.base_rate_bps = best;
        self.enter_ramp(Ramp::new(now, best / 2, best));
    }
}

#[cfg(test)]
mod tests;
