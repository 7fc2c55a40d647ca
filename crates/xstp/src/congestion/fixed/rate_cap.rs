//! Rate cap below a configured rate that exceeds the rate of the link.
//!
//! ```text
//!   send rate, delivery rate   octets between two POLLs, at the sender and at the receiver
//!   delay                      arrival of the POLL on the receiver's clock − its timestamp
//!   q                          delay − base delay (minimum of 60 s to 120 s): queuing delay
//!   C                          rate of the link. While q grows: octets sent between two POLLs ÷
//!                              interval of their arrivals (corruption occurs behind the
//!                              bottleneck). At constant q the queue overflows: delivery rate
//!
//!   FREE       on entry: the configured rate, and a rate cap if there is one
//!     │ exit:  q > max(min_rtt / 4, 50 ms) in four samples of 200 ms or more, the send rate is at
//!     ▼        least 9/10 of the pace, and the delivery rate is at most 99/100 of the send rate
//!   DRAINING   on entry: q and C; sends at 3/4 C for 4 q', q' = q grown since its POLL was sent
//!     │ exit:  at that time
//!     ▼
//!   SETTLING   rate cap = 199/200 C
//!     │ exit:  the first POLL sent in this state is answered
//!     ├─ q has halved: the queue was caused by this sender ──▶ FREE with the rate cap
//!     └─ otherwise: the path delay has increased           ──▶ FREE without, new base delay
//! ```
//!
//! A rate cap is raised after a hold time by 1/128, four RTTs later by 1/64, and so on, up to 1/8.
//! The hold time is four RTTs at first, and doubles each time that the queue returns, up to 60 s.
//!
//! Loss is no signal: a link loses packets at any rate. Nor is delay alone: an orbit changes it.
//! Only a delay that decreases with the send rate is a queue. The reverse path is not involved.

use crate::congestion::controller::{PollAnswered, PollSent};
use crate::congestion::filters::WindowedMin;
use alloc::collections::VecDeque;
use units::{BitRate, Instant, Span};

/// Maximum number of sent POLLs that are stored.
const MAX_SENT_POLLS: usize = 256;
/// Maximum number of samples that are stored.
const MAX_SAMPLES: usize = 64;
/// Minimum number of samples that show a queue, and the minimum time that they span.
const MIN_SAMPLES: usize = 4;
const MIN_INTERVAL: Span = Span::from_millis(200);
/// Minimum of the queue-detection threshold.
const MIN_THRESHOLD: Span = Span::from_millis(50);
/// Growth of the queue over an interval, in microseconds, above which it does not overflow.
const GROWING_US: i64 = 10_000;
/// Maximum hold time of a rate cap.
const MAX_HOLD: Span = Span::from_secs(60);

/// A POLL that was answered.
#[derive(Clone, Copy, Debug)]
struct Sample {
    sent_at: Instant,
    sent: u64,
    /// Microseconds of the receiver's clock, modulo 2³².
    arrived_at: u32,
    /// Octets, modulo 2³².
    arrived: u32,
    /// Microseconds, relative to the first sample.
    delay: i64,
}

/// A rate that was measured while the configured rate was `of_bps`. When a grant changes that, it
/// keeps its ratio; what was measured is stored, so that no change of the grant rounds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Share {
    bps: u64,
    of_bps: u64,
}

impl Share {
    /// The rate, with a configured rate of `rate`.
    fn at(self, rate: BitRate) -> u64 {
        let bps = u128::from(self.bps) * u128::from(rate.as_bps()) / u128::from(self.of_bps);
        u64::try_from(bps).unwrap_or(u64::MAX)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Free,
    Draining { until: Instant, queue: i64, link: Share },
    Settling { since: Instant, queue: i64 },
}

/// Detects by the forward delay that the link cannot carry the rate, and caps the rate.
#[derive(Clone, Debug)]
pub(crate) struct RateCap {
    sent_polls: VecDeque<PollSent>,
    samples: VecDeque<Sample>,
    /// Difference of the two clocks in the first sample.
    clock_offset: Option<u32>,
    base_delay: WindowedMin,
    cap: Option<Share>,
    phase: Phase,
    hold: Span,
    /// Number of times that the rate cap was raised.
    raises: u32,
    /// Time before which the rate cap is not raised and no queue is detected.
    wait_until: Instant,
}

impl RateCap {
    pub(crate) fn new() -> Self {
        Self {
            sent_polls: VecDeque::new(),
            samples: VecDeque::new(),
            clock_offset: None,
            base_delay: WindowedMin::default(),
            cap: None,
            phase: Phase::Free,
            hold: Span::ZERO,
            raises: 0,
            wait_until: Instant::ZERO,
        }
    }

    /// Minimum of `rate` and the rate cap; at least an eighth of `rate`.
    pub(crate) fn apply(&self, now: Instant, rate: BitRate) -> BitRate {
        let cap = match self.phase {
            Phase::Draining { until, link, .. } if now < until => Some(link.at(rate) / 4 * 3),
            Phase::Draining { link, .. } => Some(below(link.at(rate))),
            Phase::Free | Phase::Settling { .. } => self.cap.map(|cap| cap.at(rate)),
        };
        cap.map_or(rate, |bps| {
            BitRate::from_bps(bps.clamp(rate.as_bps() / 8, rate.as_bps()).max(1))
        })
    }

    /// Name of the phase.
    pub(crate) fn mode(&self, now: Instant) -> &'static str {
        match self.phase {
            Phase::Draining { until, .. } if now < until => "draining",
            Phase::Draining { .. } | Phase::Settling { .. } => "settling",
            Phase::Free if self.cap.is_some() => "capped",
            Phase::Free => "configured",
        }
    }

    /// Queuing delay of the last sample.
    pub(crate) fn queue(&self) -> Option<Span> {
        self.samples.back().map(|last| micros(last.delay - self.base_delay.value()))
    }

    /// A POLL is sent.
    pub(crate) fn on_poll(&mut self, poll: &PollSent) {
        if self.sent_polls.len() == MAX_SENT_POLLS {
            self.sent_polls.pop_front();
        }
        self.sent_polls.push_back(*poll);
    }

    /// The first STAT for a POLL is received, while the configured rate is `rate`.
    pub(crate) fn on_poll_answered(&mut self, answered: &PollAnswered, rate: BitRate) {
        let now = answered.now;
        while self.sent_polls.front().is_some_and(|poll| poll.seq != answered.seq) {
            self.sent_polls.pop_front();
        }
        let Some(poll) = self.sent_polls.pop_front() else { return };
        let difference = answered.arrived_at.wrapping_sub(answered.timestamp);
        let offset = *self.clock_offset.get_or_insert(difference);
        // The clocks may drift apart by up to 35 minutes.
        let delay = i64::from(difference.wrapping_sub(offset) as i32);
        self.base_delay.update(now, delay);
        if self.samples.len() == MAX_SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(Sample {
            sent_at: poll.now,
            sent: poll.octets,
            arrived_at: answered.arrived_at,
            arrived: answered.arrived,
            delay,
        });
        self.advance(now, rate, answered.min_rtt);
    }

    fn advance(&mut self, now: Instant, rate: BitRate, min_rtt: Span) {
        match self.phase {
            Phase::Free => {
                if let Some(recent) = self.recent_interval()
                    && now >= self.wait_until
                    && self.is_queue(now, &recent, rate, min_rtt)
                {
                    let queue = recent.queue_at(now);
                    let until = now + micros(queue) * 4;
                    let link = Share { bps: recent.link_bps(), of_bps: rate.as_bps().max(1) };
                    self.phase = Phase::Draining { until, queue, link };
                } else {
                    self.raise(now, min_rtt);
                }
            }
            Phase::Draining { until, queue, link } => {
                if now >= until {
                    let bps = below(link.bps).max(link.of_bps / 8);
                    self.cap = Some(Share { bps, ..link });
                    self.phase = Phase::Settling { since: until, queue };
                }
            }
            Phase::Settling { since, queue } => {
                if self.samples.back().is_some_and(|last| last.sent_at >= since) {
                    self.settle(now, queue, min_rtt);
                }
            }
        }
    }

    /// Decides whether the drained queue was caused by this sender.
    fn settle(&mut self, now: Instant, queue: i64, min_rtt: Span) {
        self.phase = Phase::Free;
        self.raises = 0;
        let Some(last) = self.samples.back() else { return };
        let is_drained = last.delay - self.base_delay.value() < queue / 2;
        if !is_drained {
            // The path delay has increased, or another sender fills the queue: only a longer
            // delay is a queue of this sender.
            self.cap = None;
            self.base_delay.reset(now, last.delay);
        }
        let first = min_rtt * 4;
        self.hold = if self.hold < first { first } else { (self.hold * 2).min(MAX_HOLD) };
        self.wait_until = now + if is_drained { min_rtt } else { self.hold };
        self.samples.clear();
    }

    fn raise(&mut self, now: Instant, min_rtt: Span) {
        let Some(Share { bps, of_bps }) = self.cap else { return };
        let hold = if self.raises == 0 { self.hold } else { min_rtt * 4 };
        if now < self.wait_until + hold {
            return;
        }
        let higher = bps + (bps >> 7_u32.saturating_sub(self.raises).max(3));
        self.raises += 1;
        self.cap = (higher < of_bps).then_some(Share { bps: higher, of_bps });
        self.wait_until = now;
    }

    fn is_queue(
        &self,
        now: Instant,
        recent: &RecentInterval,
        rate: BitRate,
        min_rtt: Span,
    ) -> bool {
        let pace = u128::from(self.apply(now, rate).as_bps());
        let threshold = (min_rtt / 4).max(MIN_THRESHOLD);
        let (send_rate, delivery_rate) =
            (u128::from(recent.send_rate_bps), u128::from(recent.delivery_rate_bps));
        micros(recent.min_queue) > threshold
            && send_rate * 10 >= pace * 9
            && delivery_rate * 100 <= send_rate * 99
    }

    /// Rates and queuing delay over the last samples; `None` if there are too few.
    fn recent_interval(&self) -> Option<RecentInterval> {
        let last = self.samples.back()?;
        let spans = |sample: &Sample| last.sent_at.since(sample.sent_at) >= MIN_INTERVAL;
        let start = (MIN_SAMPLES..=self.samples.len())
            .map(|count| self.samples.len() - count)
            .find(|&index| spans(&self.samples[index]))?;
        let recent = self.samples.range(start..);
        let first = &self.samples[start];
        let base = self.base_delay.value();
        let rate = |octets: u64, micros: u64| octets.saturating_mul(8_000_000) / micros.max(1);
        let (sent, send_interval) = (last.sent - first.sent, last.sent_at.since(first.sent_at));
        let arrival_us = u64::from(last.arrived_at.wrapping_sub(first.arrived_at));
        let arrived = u64::from(last.arrived.wrapping_sub(first.arrived));
        Some(RecentInterval {
            min_queue: recent.map(|sample| sample.delay - base).min()?,
            last_queue: last.delay - base,
            last_sent_at: last.sent_at,
            growth: last.delay - first.delay,
            send_rate_bps: rate(sent, send_interval.as_micros()),
            service_rate_bps: rate(sent, arrival_us),
            delivery_rate_bps: rate(arrived, arrival_us),
        })
    }
}

/// Rates and queue over a few POLLs.
#[derive(Clone, Copy, Debug)]
struct RecentInterval {
    /// Minimum queuing delay, microseconds.
    min_queue: i64,
    /// Queuing delay of the last POLL, and the time at which it was sent.
    last_queue: i64,
    last_sent_at: Instant,
    /// Growth of the queuing delay, microseconds.
    growth: i64,
    send_rate_bps: u64,
    /// Octets sent ÷ interval of the arrivals.
    service_rate_bps: u64,
    delivery_rate_bps: u64,
}

impl RecentInterval {
    /// Rate of the link.
    fn link_bps(&self) -> u64 {
        if self.growth > GROWING_US { self.service_rate_bps } else { self.delivery_rate_bps }
    }

    /// Queuing delay at `now`, if the queue continues to grow at its rate.
    fn queue_at(&self, now: Instant) -> i64 {
        let since = u128::from(now.since(self.last_sent_at).as_micros());
        let link = self.link_bps();
        let excess = u128::from(self.send_rate_bps.saturating_sub(link));
        let growth = since * excess / u128::from(link.max(1));
        self.last_queue.saturating_add(i64::try_from(growth).unwrap_or(i64::MAX))
    }
}

/// Rate slightly below that of the link, at which a queue drains.
fn below(link_bps: u64) -> u64 {
    link_bps - link_bps / 200
}

fn micros(count: i64) -> Span {
    Span::from_micros(u64::try_from(count).unwrap_or(0))
}

#[cfg(test)]
mod tests;
