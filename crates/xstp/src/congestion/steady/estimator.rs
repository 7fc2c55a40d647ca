//! Estimator of the path, from answered POLLs.
//!
//! ```text
//!   sample          time of a POLL and octets sent by then; time of its arrival, on the
//!                   receiver's clock, and octets received by then
//!   delay           arrival − transmission: the one-way delay plus a constant clock offset
//!   q               delay − base delay (minimum of 60 s to 120 s): queuing delay
//!   RTT             from the POLL to its STAT, on the sender's clock alone
//!
//!   interval        two samples:   send rate      = octets sent     ÷ send interval
//!                                  service rate   = octets sent     ÷ arrival interval
//!                                  delivery rate  = octets received ÷ arrival interval
//!   p_err           1 − received ÷ sent, while q ≤ Q/4: corruption
//!   C               service rate if received ≥ (1 − p_err) / 1.02 × sent,
//!                   else delivery rate ÷ (1 − p_err): the queue overflows
//!   jitter          distance of a delay from the line through its neighbours, smoothed
//! ```
//!
//! C is the bottleneck rate only while the queue is non-empty at both samples. The service rate
//! counts lost packets, because corruption occurs behind the bottleneck.
//!
//! Clock skew and clock steps look like a queue. A queue increases the RTT by the same time, so q
//! is limited by the RTT above its minimum.

use crate::congestion::controller::{PollAnswered, PollSent};
use crate::congestion::filters::{JitterFilter, WindowedMin};
use alloc::collections::VecDeque;
use units::{Instant, Span};

/// Maximum number of sent POLLs that are stored.
const MAX_SENT_POLLS: usize = 256;
/// Maximum number of samples that are stored.
const MAX_SAMPLES: usize = 96;
/// Increase of the loss ratio, in millionths, that is congestion and not corruption.
pub(super) const MAX_ERROR_INCREASE_PPM: u64 = 250_000;
/// Maximum of p_err, in millionths.
const MAX_ERROR_PPM: u64 = 400_000;
/// Minimum interval between two arrivals of a train, in microseconds, for a receiver stall.
const MIN_STALL_US: i64 = 3_000_000;
/// Spacing error that is assumed for two POLLs without one between them, in millionths.
const UNKNOWN_SPACING_PPM: u64 = 125_000;
/// Maximum age of a sample that dates the start of a train: a clock skew of 10⁻⁴ causes an error
/// of 0.1 ms.
const MAX_REFERENCE_AGE: Span = Span::from_secs(1);
/// Minimum amount by which q exceeds the RTT above its minimum for a clock error, in microseconds:
/// the base delays of both directions seldom occur in the same RTT.
const CLOCK_TOLERANCE_US: i64 = 25_000;
/// Minimum octets of an interval for an estimate of the loss ratio.
const MIN_LOSS_OCTETS: u64 = 40_000;
/// Octets and bits of a full packet.
const PACKET_OCTETS: u64 = 1_500;
pub(super) const PACKET_BITS: u64 = 12_000;

/// An answered POLL.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) sent_at: Instant,
    /// Octets sent by then.
    pub(super) sent: u64,
    /// Microseconds of the receiver's clock since the first sample.
    pub(super) arrived_at: i64,
    /// Octets received by then, since the first sample.
    pub(super) arrived: u64,
    /// Microseconds, relative to the first sample.
    pub(super) delay: i64,
    /// Microseconds of the sender's clock; below zero if it was set back.
    pub(super) rtt_us: i64,
}

impl Sample {
    /// Delay of the reverse path, microseconds relative to the first sample.
    fn reverse_delay_us(&self) -> i64 {
        self.rtt_us - self.delay
    }
}

/// Rates between two samples.
#[derive(Clone, Copy, Debug)]
pub(super) struct SampleInterval {
    pub(super) send_interval_us: u64,
    arrival_interval_us: u64,
    pub(super) sent: u64,
    pub(super) arrived: u64,
    pub(super) delay_increase_us: i64,
    pub(super) reverse_delay_increase_us: i64,
}

impl SampleInterval {
    pub(super) fn between(first: &Sample, last: &Sample) -> Self {
        Self {
            send_interval_us: last.sent_at.since(first.sent_at).as_micros(),
            arrival_interval_us: u64::try_from(last.arrived_at - first.arrived_at).unwrap_or(0),
            sent: last.sent - first.sent,
            arrived: last.arrived.saturating_sub(first.arrived),
            delay_increase_us: last.delay - first.delay,
            reverse_delay_increase_us: last.reverse_delay_us() - first.reverse_delay_us(),
        }
    }

    pub(super) fn send_rate_bps(&self) -> u64 {
        rate(self.sent, self.send_interval_us)
    }

    pub(super) fn service_rate_bps(&self) -> u64 {
        rate(self.sent, self.arrival_interval_us)
    }

    pub(super) fn delivery_rate_bps(&self) -> u64 {
        rate(self.arrived, self.arrival_interval_us)
    }

    /// Octets lost.
    pub(super) fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.arrived)
    }

    /// Loss ratio in millionths.
    pub(super) fn lost_ppm(&self) -> u64 {
        self.lost().saturating_mul(1_000_000) / self.sent.max(1)
    }

    /// Whether the queue overflows: the delivered fraction is less than 1/1.02 of the fraction
    /// without corruption. Random variations are smaller, and the losses of an overflow larger.
    pub(super) fn overflows(&self, error_ppm: u64) -> bool {
        let kept = 1_000_000_u64.saturating_sub(error_ppm);
        self.arrived.saturating_mul(1_020_000) < self.sent.saturating_mul(kept)
    }

    /// Whether the loss is significantly above p_err: by one packet and three standard deviations
    /// of the number of corrupted packets.
    pub(super) fn has_congestion_loss(&self, error_ppm: u64) -> bool {
        let lost = self.lost() / (PACKET_OCTETS - 100);
        let expected = mul(self.sent, error_ppm, 1_000_000) / PACKET_OCTETS;
        lost > expected + 3 * expected.isqrt()
    }

    /// The bottleneck rate C, if the queue is non-empty at both samples.
    pub(super) fn bottleneck_bps(&self, error_ppm: u64) -> u64 {
        let kept = 1_000_000_u64.saturating_sub(error_ppm).max(1);
        if self.overflows(error_ppm) {
            mul(self.delivery_rate_bps(), 1_000_000, kept)
        } else {
            self.service_rate_bps()
        }
    }
}

/// Samples of a session and the values derived from them.
#[derive(Clone, Debug, Default)]
pub(super) struct PathEstimator {
    sent_polls: VecDeque<PollSent>,
    samples: VecDeque<Sample>,
    /// Difference of the clocks, arrival time and octets of the first sample.
    origin: Option<(u32, u32, u32)>,
    /// Arrival time and octets of the last sample, since the first one.
    unwrapped: (i64, u64),
    base_delay: WindowedMin,
    min_rtt: WindowedMin,
    error_ppm: Option<u64>,
    jitter: JitterFilter,
    reverse_jitter: JitterFilter,
    /// Earlier samples are not used for p_err.
    errors_from: Instant,
}

/// Inputs.
impl PathEstimator {
    /// A POLL is sent.
    pub(super) fn on_poll(&mut self, poll: &PollSent) {
        if self.sent_polls.len() == MAX_SENT_POLLS {
            self.sent_polls.pop_front();
        }
        self.sent_polls.push_back(*poll);
    }

    /// A POLL is answered; returns the sample if its transmission is stored.
    pub(super) fn on_poll_answered(&mut self, answered: &PollAnswered) -> Option<Sample> {
        // A STAT for a POLL that is not stored any more must not discard newer POLLs.
        let ahead = |poll: &PollSent| answered.seq.wrapping_sub(poll.seq) as i32;
        while self.sent_polls.front().is_some_and(|poll| ahead(poll) > 0) {
            self.sent_polls.pop_front();
        }
        let poll = self.sent_polls.front().copied().filter(|poll| ahead(poll) == 0)?;
        self.sent_polls.pop_front();
        let difference = answered.arrived_at.wrapping_sub(answered.timestamp);
        let (clocks, arrived_at, arrived) =
            *self.origin.get_or_insert((difference, answered.arrived_at, answered.arrived));
        // The clocks may drift apart by up to 35 minutes.
        let delay = i64::from(difference.wrapping_sub(clocks) as i32);
        let (at, octets) = self.unwrapped;
        let time = answered.arrived_at.wrapping_sub(arrived_at).wrapping_sub(at as u32);
        let more = answered.arrived.wrapping_sub(arrived).wrapping_sub(octets as u32);
        self.unwrapped = (at + i64::from(time as i32), octets + u64::from(more));
        let now_us = answered.now.since(Instant::ZERO).as_micros() as u32;
        let sample = Sample {
            sent_at: poll.now,
            sent: poll.octets,
            arrived_at: self.unwrapped.0,
            arrived: self.unwrapped.1,
            delay,
            rtt_us: i64::from(now_us.wrapping_sub(answered.timestamp) as i32),
        };
        if self.samples.len() == MAX_SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
        self.update_base_delay(answered.now, &sample);
        Some(sample)
    }

    /// Updates the base delay. If q exceeds the RTT above its minimum, the clocks have drifted
    /// apart, and the base delay is the one for which it does not.
    fn update_base_delay(&mut self, now: Instant, sample: &Sample) {
        self.base_delay.update(now, sample.delay);
        if sample.rtt_us < 0 {
            return;
        }
        self.min_rtt.update(now, sample.rtt_us);
        self.reverse_jitter.update(self.samples.iter().rev().map(Sample::reverse_delay_us));
        let max_queue_us = sample.rtt_us - self.min_rtt.value();
        let tolerance = CLOCK_TOLERANCE_US.max(self.reverse_jitter.value() * 4);
        if self.queue_us(sample) > max_queue_us + tolerance {
            self.base_delay.reset(now, sample.delay - max_queue_us);
        }
    }

    /// Sets the base delay to the delay of the newest sample: the path delay has increased.
    pub(super) fn reset_base_delay(&mut self, now: Instant) {
        if let Some(last) = self.samples.back() {
            self.base_delay.reset(now, last.delay);
            self.min_rtt.reset(now, last.rtt_us);
        }
    }

    /// Discards the samples, but not the base delay and p_err.
    pub(super) fn clear_samples(&mut self) {
        self.samples.clear();
    }

    /// Updates the jitter with the newest samples.
    pub(super) fn update_jitter(&mut self) {
        self.jitter.update(self.samples.iter().rev().map(|sample| sample.delay));
    }

    /// Updates p_err if q is at most `max_queue_us` in the newest sample and in all samples back
    /// to one that is `span` older.
    pub(super) fn update_error_ratio(&mut self, max_queue_us: i64, span: Span) {
        let Some(last) = self.samples.back().copied() else { return };
        let has_no_queue = |sample: &Sample| self.queue_us(sample) <= max_queue_us;
        let is_long = |first: &Sample| {
            last.sent_at.since(first.sent_at) >= span && last.sent - first.sent >= MIN_LOSS_OCTETS
        };
        let earlier = self.samples.iter().rev().skip(1);
        let first = earlier
            .take_while(|one| one.sent_at >= self.errors_from && has_no_queue(one))
            .find(|one| is_long(one));
        let (Some(first), true) = (first, has_no_queue(&last)) else { return };
        let lost = SampleInterval::between(first, &last).lost_ppm().min(MAX_ERROR_PPM);
        if self.error_ppm.is_some_and(|known| lost > known + MAX_ERROR_INCREASE_PPM) {
            return;
        }
        self.error_ppm = Some(self.error_ppm.map_or(lost, |known| (known * 7 + lost) / 8));
        self.errors_from = last.sent_at;
    }

    /// Sets p_err if the loss ratio since `from`, at a rate below C and without a queue, is far
    /// above it; returns whether it is.
    pub(super) fn detect_error_increase(&mut self, from: Instant) -> bool {
        let Some(interval) = self.interval(from, None) else { return false };
        let lost = interval.lost_ppm().min(MAX_ERROR_PPM);
        let is_above = interval.sent >= MIN_LOSS_OCTETS
            && lost > self.error_ppm() + MAX_ERROR_INCREASE_PPM / 2;
        if is_above {
            self.error_ppm = Some(lost);
        }
        is_above
    }
}

/// Estimates.
impl PathEstimator {
    pub(super) fn last(&self) -> Option<&Sample> {
        self.samples.back()
    }

    /// Queuing delay q of a sample, microseconds.
    pub(super) fn queue_us(&self, sample: &Sample) -> i64 {
        sample.delay - self.base_delay.value()
    }

    /// Queuing delay of the newest sample, microseconds.
    pub(super) fn last_queue_us(&self) -> i64 {
        self.samples.back().map_or(0, |last| self.queue_us(last))
    }

    /// Jitter, microseconds.
    pub(super) fn jitter_us(&self) -> i64 {
        self.jitter.value()
    }

    /// p_err in millionths; zero while it is unknown.
    pub(super) fn error_ppm(&self) -> u64 {
        self.error_ppm.unwrap_or(0)
    }

    /// p_err in millionths, once it was measured.
    pub(super) fn measured_error_ppm(&self) -> Option<u64> {
        self.error_ppm
    }

    /// The newest interval of at least `span` and `samples` samples.
    pub(super) fn recent_interval(&self, span: Span, samples: usize) -> Option<SampleInterval> {
        let last = self.samples.back()?;
        let first = self
            .samples
            .iter()
            .rev()
            .skip(samples - 1)
            .find(|sample| last.sent_at.since(sample.sent_at) >= span)?;
        Some(SampleInterval::between(first, last))
    }

    /// Minimum queuing delay in [`Self::recent_interval`], microseconds: the standing queue.
    pub(super) fn standing_queue_us(&self, span: Span, samples: usize) -> Option<i64> {
        let last = self.samples.back()?;
        let mut standing = i64::MAX;
        for (index, sample) in self.samples.iter().rev().enumerate() {
            standing = standing.min(self.queue_us(sample));
            if index + 1 >= samples && last.sent_at.since(sample.sent_at) >= span {
                return Some(standing);
            }
        }
        None
    }

    /// Whether the loss ratio was far above p_err before each of the last three POLLs: a queue
    /// overflows that is too short for the threshold. (During a blackout no POLL arrives, and it
    /// ends within one interval.)
    pub(super) fn overflows(&self) -> bool {
        let newest = || self.samples.iter().rev();
        let limit = self.error_ppm() + MAX_ERROR_INCREASE_PPM;
        newest()
            .skip(1)
            .zip(newest())
            .take(3)
            .filter(|(first, last)| {
                let interval = SampleInterval::between(first, last);
                interval.sent >= 3_000 && interval.lost_ppm() > limit
            })
            .count()
            == 3
    }

    /// Number of samples whose POLLs were sent from `from` on, and the range of their delays.
    pub(super) fn delay_range(&self, from: Instant) -> (usize, i64) {
        let since = || self.samples.iter().filter(|sample| sample.sent_at >= from);
        let delays = || since().map(|sample| sample.delay);
        let range = delays().max().unwrap_or(0) - delays().min().unwrap_or(0);
        (since().count(), range)
    }

    /// Interval from the first POLL sent from `from` on to the newest sample, or to the first one
    /// sent from `to` on; `None` if no answered POLL was sent between the two.
    pub(super) fn interval(&self, from: Instant, to: Option<Instant>) -> Option<SampleInterval> {
        let mut since = self.samples.iter().skip_while(|sample| sample.sent_at < from);
        let first = since.next()?;
        let last = match to {
            Some(to) if first.sent_at >= to => return None,
            Some(to) => since.find(|sample| sample.sent_at >= to)?,
            None => since.last()?,
        };
        Some(SampleInterval::between(first, last))
    }

    /// Interval from the last POLL sent before `from` to the first one sent from `to` on.
    pub(super) fn interval_around(&self, from: Instant, to: Instant) -> Option<SampleInterval> {
        let first = self.samples.iter().rev().find(|sample| sample.sent_at < from)?;
        let last = self.samples.iter().find(|sample| sample.sent_at >= to)?;
        Some(SampleInterval::between(first, last))
    }

    /// Interval from `from`, when `octets` had been sent and the sender had paused, to the newest
    /// sample. The delay at `from` is that of the last POLL before it.
    pub(super) fn interval_after_pause(
        &self,
        from: Instant,
        octets: u64,
    ) -> Option<SampleInterval> {
        let last =
            self.samples.back().filter(|last| last.sent_at >= from && last.sent >= octets)?;
        let before = self.samples.iter().rev().find(|sample| sample.sent_at < from)?;
        let age = from.since(before.sent_at);
        if age > MAX_REFERENCE_AGE {
            return None;
        }
        let first = Sample {
            sent_at: from,
            sent: octets,
            arrived_at: before.arrived_at + as_micros(age),
            arrived: before.arrived + octets.saturating_sub(before.sent),
            ..*before
        };
        (first.arrived_at < last.arrived_at).then(|| SampleInterval::between(&first, last))
    }

    /// Maximum deviation of an arrival from its position in the sent octets, as a fraction of the
    /// arrival interval of the POLLs sent from `from` on, in millionths; doubled, because the
    /// first and the last arrival may deviate, too.
    pub(super) fn spacing_error_ppm(&self, from: Instant) -> u64 {
        let since = || self.samples.iter().skip_while(|sample| sample.sent_at < from);
        let (Some(first), Some(last)) = (since().next(), since().last()) else {
            return UNKNOWN_SPACING_PPM;
        };
        let (octets, time) = (last.sent - first.sent, last.arrived_at - first.arrived_at);
        let deviation = |sample: &Sample| {
            let expected = mul(sample.sent - first.sent, time.unsigned_abs(), octets);
            (sample.arrived_at - first.arrived_at).unsigned_abs().abs_diff(expected)
        };
        let worst = since().skip(1).filter(|one| one.sent < last.sent).map(deviation).max();
        worst.map_or(UNKNOWN_SPACING_PPM, |off| mul(off, 2_000_000, time.unsigned_abs()))
    }

    /// Whether 3/4 of the arrival interval of the POLLs sent from `from` on, and at least 3 s,
    /// passed between two consecutive arrivals: the receiver was not scheduled.
    pub(super) fn has_receiver_stall(&self, from: Instant) -> bool {
        let since = || self.samples.iter().skip_while(|sample| sample.sent_at < from);
        let gaps = since().zip(since().skip(1)).map(|(one, next)| next.arrived_at - one.arrived_at);
        let longest = gaps.max().unwrap_or(0);
        let whole = since().next().zip(since().last());
        let whole = whole.map_or(0, |(first, last)| last.arrived_at - first.arrived_at);
        longest >= MIN_STALL_US && longest >= whole / 4 * 3
    }

    /// The newest interval in which q was always above `queue_us`.
    pub(super) fn queued_interval(&self, queue_us: i64) -> Option<SampleInterval> {
        let queued = || self.samples.iter().rev().take_while(|one| self.queue_us(one) > queue_us);
        let (last, first) = (queued().next()?, queued().last()?);
        let interval = SampleInterval::between(first, last);
        (interval.arrival_interval_us > 0).then_some(interval)
    }
}

/// `value` × `numerator` / `denominator` without intermediate overflow.
pub(super) fn mul(value: u64, numerator: u64, denominator: u64) -> u64 {
    let product = u128::from(value) * u128::from(numerator) / u128::from(denominator.max(1));
    u64::try_from(product).unwrap_or(u64::MAX)
}

/// Time in which `packets` full packets are sent at `rate_bps`.
pub(super) fn time_for_packets(packets: u64, rate_bps: u64) -> Span {
    Span::from_nanos(mul(packets * PACKET_BITS, 1_000_000_000, rate_bps))
}

/// `count` microseconds, zero if negative.
pub(super) fn micros(count: i64) -> Span {
    Span::from_micros(u64::try_from(count).unwrap_or(0))
}

/// `span` in microseconds.
pub(super) fn as_micros(span: Span) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}

/// Bits per second.
fn rate(octets: u64, micros: u64) -> u64 {
    mul(octets, 8_000_000, micros.max(1))
}
