//! A ceiling below a configured rate that is too high for the link.
//!
//! ```text
//!   sent, arrived   octets between two POLLs, at the sender and at the receiver
//!   delay           arrival of the POLL on the receiver's clock - its stamp
//!   q               delay - least delay of the last minutes: what waits on the way
//!
//!   FREE  ── q stays above max(RTT/4, 50 ms) for four POLLs,       ──▶ DRAINING
//!            while we send at our rate and less arrives                rate = 3/4 arrived,
//!     ▲                                                               for 4 q'
//!     │                                                                   │
//!     │  q has fallen below half: ceiling = 0.995 arrived                 ▼
//!     └─ it has not: no queue of ours; no ceiling, new least ◀────── SETTLING: until a POLL
//!                                                                    sent after it is answered
//!
//!   "arrived" is the link's rate: what was sent between two POLLs over the time between their
//!   arrivals while q grows (what errors lose has passed the bottleneck too); what came, once q
//!   is level and the queue itself drops
//!
//!   RTT is the least round trip; q' is q and what has come to it since its POLL was sent
//!
//!   a ceiling that has held for long enough rises by 1/128, four round trips later by 1/64,
//!   and so on to 1/8; "long enough" starts at four round trips and doubles with each time that
//!   the queue came back, up to a minute
//! ```
//!
//! Loss is no sign: a link loses packets without being too slow. Delay alone is none either:
//! an orbit changes it. Only a delay that goes away when less is sent is taken for a queue. The
//! way back plays no part, so its jitter does none.

use crate::congestion::Answered;
use alloc::collections::VecDeque;
use units::{BitRate, Instant, Span};

/// POLLs whose sending is remembered.
const MARKS: usize = 256;
/// Answers that are looked back over.
const SAMPLES: usize = 64;
/// Answers in a row, at least, that must show a queue, and the time that they span, at least.
const ENOUGH: usize = 4;
const LONG_ENOUGH: Span = Span::from_millis(200);
/// Delays above the least that are never taken for a queue.
const LEAST_QUEUE: Span = Span::from_millis(50);
/// By so many microseconds a queue grows over a few POLLs that is not full.
const GROWING: i64 = 10_000;
/// Time over which the least delay holds, at least; at most twice that.
const MEMORY: Span = Span::from_secs(60);
/// The longest that a ceiling is held before it rises.
const LONGEST_HOLD: Span = Span::from_secs(60);

/// What was sent before a POLL.
#[derive(Clone, Copy, Debug)]
struct Mark {
    count: u32,
    at: Instant,
    octets: u64,
}

/// One POLL with what is known of it at both ends.
#[derive(Clone, Copy, Debug)]
struct Sample {
    sent_at: Instant,
    sent: u64,
    /// The receiver's clock, microseconds, modulo 2³².
    arrived_at: u32,
    /// Octets, modulo 2³².
    arrived: u32,
    /// Microseconds against the first sample's.
    delay: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Free,
    Draining { until: Instant, queue: i64, link_bps: u64 },
    Settling { since: Instant, queue: i64 },
}

/// Watches the forward delay, and sets a ceiling when the link cannot take the rate.
#[derive(Clone, Debug)]
pub(crate) struct Ceiling {
    marks: VecDeque<Mark>,
    samples: VecDeque<Sample>,
    /// The first difference of the two clocks; all others are counted from it.
    origin: Option<u32>,
    least: Least,
    limit_bps: Option<u64>,
    phase: Phase,
    hold: Span,
    /// How often the ceiling has risen since it was set.
    rises: u32,
    /// When the ceiling may rise, or a delay be taken for a queue again.
    wait_until: Instant,
}

impl Ceiling {
    pub(crate) fn new() -> Self {
        Self {
            marks: VecDeque::new(),
            samples: VecDeque::new(),
            origin: None,
            least: Least::default(),
            limit_bps: None,
            phase: Phase::Free,
            hold: Span::ZERO,
            rises: 0,
            wait_until: Instant::ZERO,
        }
    }

    /// `rate`, or the ceiling where that is lower; never below an eighth of `rate`.
    pub(crate) fn apply(&self, now: Instant, rate: BitRate) -> BitRate {
        let limit = match self.phase {
            Phase::Draining { until, link_bps, .. } if now < until => Some(link_bps / 4 * 3),
            Phase::Draining { link_bps, .. } => Some(below(link_bps)),
            Phase::Free | Phase::Settling { .. } => self.limit_bps,
        };
        limit.map_or(rate, |bps| {
            BitRate::from_bps(bps.clamp(rate.as_bps() / 8, rate.as_bps()).max(1))
        })
    }

    /// What it is doing.
    pub(crate) fn mode(&self, now: Instant) -> &'static str {
        match self.phase {
            Phase::Draining { until, .. } if now < until => "draining",
            Phase::Draining { .. } | Phase::Settling { .. } => "settling",
            Phase::Free if self.limit_bps.is_some() => "ceiling",
            Phase::Free => "free",
        }
    }

    /// The delay of the POLL that was answered last, above the least.
    pub(crate) fn queue(&self) -> Option<Span> {
        self.samples.back().map(|last| micros(last.delay - self.least.value()))
    }

    /// A POLL goes out after `octets` octets, headers below XSTP included.
    pub(crate) fn on_poll(&mut self, now: Instant, count: u32, octets: u64) {
        if self.marks.len() == MARKS {
            self.marks.pop_front();
        }
        self.marks.push_back(Mark { count, at: now, octets });
    }

    /// The first STAT for a POLL, while `rate` is what the configuration allows.
    pub(crate) fn on_answer(&mut self, answered: &Answered, rate: BitRate) {
        let now = answered.now;
        while self.marks.front().is_some_and(|mark| mark.count != answered.count) {
            self.marks.pop_front();
        }
        let Some(mark) = self.marks.pop_front() else { return };
        let difference = answered.arrived_at.wrapping_sub(answered.stamp);
        let origin = *self.origin.get_or_insert(difference);
        // Clocks that run apart by up to 35 minutes are still told from each other.
        let delay = i64::from(difference.wrapping_sub(origin) as i32);
        self.least.take(now, delay);
        if self.samples.len() == SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(Sample {
            sent_at: mark.at,
            sent: mark.octets,
            arrived_at: answered.arrived_at,
            arrived: answered.arrived,
            delay,
        });
        self.advance(now, rate, answered.least_round_trip);
    }

    fn advance(&mut self, now: Instant, rate: BitRate, round_trip: Span) {
        match self.phase {
            Phase::Free => {
                if let Some(seen) = self.look_back()
                    && now >= self.wait_until
                    && self.is_queue(now, &seen, rate, round_trip)
                {
                    let queue = seen.queue_at(now);
                    let until = now + micros(queue) * 4;
                    self.phase = Phase::Draining { until, queue, link_bps: seen.link_bps() };
                } else {
                    self.rise(now, rate, round_trip);
                }
            }
            Phase::Draining { until, queue, link_bps } => {
                if now >= until {
                    self.limit_bps = Some(below(link_bps));
                    self.phase = Phase::Settling { since: until, queue };
                }
            }
            Phase::Settling { since, queue } => {
                if self.samples.back().is_some_and(|last| last.sent_at >= since) {
                    self.settle(now, queue, round_trip);
                }
            }
        }
    }

    /// The queue has had time to go away: has it?
    fn settle(&mut self, now: Instant, queue: i64, round_trip: Span) {
        self.phase = Phase::Free;
        self.rises = 0;
        let Some(last) = self.samples.back() else { return };
        let gone = last.delay - self.least.value() < queue / 2;
        if !gone {
            // The way is longer now, or somebody else fills it: back to what we are told, and
            // only a delay above this one is a queue.
            self.limit_bps = None;
            self.least.forget(now, last.delay);
        }
        let first = round_trip * 4;
        self.hold = if self.hold < first { first } else { (self.hold * 2).min(LONGEST_HOLD) };
        self.wait_until = now + if gone { round_trip } else { self.hold };
        self.samples.clear();
    }

    fn rise(&mut self, now: Instant, rate: BitRate, round_trip: Span) {
        let Some(limit) = self.limit_bps else { return };
        let hold = if self.rises == 0 { self.hold } else { round_trip * 4 };
        if now < self.wait_until + hold {
            return;
        }
        let higher = limit + (limit >> 7_u32.saturating_sub(self.rises).max(3));
        self.rises += 1;
        self.limit_bps = (higher < rate.as_bps()).then_some(higher);
        self.wait_until = now;
    }

    fn is_queue(&self, now: Instant, seen: &Seen, rate: BitRate, round_trip: Span) -> bool {
        let pace = u128::from(self.apply(now, rate).as_bps());
        let limit = (round_trip / 4).max(LEAST_QUEUE);
        micros(seen.standing) > limit
            && u128::from(seen.sent_bps) * 10 >= pace * 9
            && u128::from(seen.arrived_bps) * 100 <= u128::from(seen.sent_bps) * 99
    }

    /// What the last POLLs showed; `None` while there were too few.
    fn look_back(&self) -> Option<Seen> {
        let last = self.samples.back()?;
        let spans = |sample: &Sample| last.sent_at.since(sample.sent_at) >= LONG_ENOUGH;
        let latest = (ENOUGH..=self.samples.len())
            .map(|count| self.samples.len() - count)
            .find(|&index| spans(&self.samples[index]))?;
        let recent = self.samples.range(latest..);
        let first = &self.samples[latest];
        let least = self.least.value();
        let rate = |octets: u64, micros: u64| octets.saturating_mul(8_000_000) / micros.max(1);
        let passing = u64::from(last.arrived_at.wrapping_sub(first.arrived_at));
        Some(Seen {
            standing: recent.map(|sample| sample.delay - least).min()?,
            latest: last.delay - least,
            latest_at: last.sent_at,
            growth: last.delay - first.delay,
            sent_bps: rate(last.sent - first.sent, last.sent_at.since(first.sent_at).as_micros()),
            passed_bps: rate(last.sent - first.sent, passing),
            arrived_bps: rate(u64::from(last.arrived.wrapping_sub(first.arrived)), passing),
        })
    }
}

/// What a round trip of POLLs showed.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// The least that waited, microseconds.
    standing: i64,
    /// What waited when the last POLL was sent, and when that was.
    latest: i64,
    latest_at: Instant,
    /// By how much it grew, microseconds.
    growth: i64,
    sent_bps: u64,
    /// What was sent over the time that its POLLs took to arrive.
    passed_bps: u64,
    arrived_bps: u64,
}

impl Seen {
    /// What the link takes.
    fn link_bps(&self) -> u64 {
        if self.growth > GROWING { self.passed_bps } else { self.arrived_bps }
    }

    /// What waits now, if it has gone on as it did.
    fn queue_at(&self, now: Instant) -> i64 {
        let since = u128::from(now.since(self.latest_at).as_micros());
        let link = self.link_bps();
        let more = u128::from(self.sent_bps.saturating_sub(link));
        let come = since * more / u128::from(link.max(1));
        self.latest.saturating_add(i64::try_from(come).unwrap_or(i64::MAX))
    }
}

/// The least delay over one to two times [`MEMORY`].
#[derive(Clone, Copy, Debug, Default)]
struct Least {
    before: Option<i64>,
    now: Option<i64>,
    since: Instant,
}

impl Least {
    fn take(&mut self, at: Instant, delay: i64) {
        if at.since(self.since) >= MEMORY {
            (self.before, self.now, self.since) = (self.now, None, at);
        }
        self.now = Some(self.now.map_or(delay, |least| least.min(delay)));
    }

    fn forget(&mut self, at: Instant, delay: i64) {
        *self = Self { before: None, now: Some(delay), since: at };
    }

    fn value(&self) -> i64 {
        self.before.into_iter().chain(self.now).min().unwrap_or(0)
    }
}

/// A little less than what the link takes, so that a queue cannot grow.
fn below(link_bps: u64) -> u64 {
    link_bps - link_bps / 200
}

fn micros(count: i64) -> Span {
    Span::from_micros(u64::try_from(count).unwrap_or(0))
}

#[cfg(test)]
mod tests;
