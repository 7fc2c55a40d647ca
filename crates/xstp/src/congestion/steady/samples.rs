//! What answered POLLs tell of the way to the peer.
//!
//! ```text
//!   sample       when a POLL was sent and after how many octets; when it arrived, on the
//!                receiver's clock, and after how many octets
//!   delay        arrival − sending: off by the difference of the clocks, always the same
//!   q            delay − least delay: what waits on the way
//!   trip         from the sending of a POLL to its answer, on our clock alone
//!
//!   window       two samples:   sent    = octets sent    / time between the sendings
//!                               passed  = octets sent    / time between the arrivals
//!                               arrived = octets arrived / time between the arrivals
//!                               growth  = of the delay
//! ```
//!
//! While a queue stands at both ends of a window and none of it is dropped, `passed` is what
//! the bottleneck takes, whatever errors lose behind it. When the queue itself drops, `arrived`
//! is, once it is freed from the share that errors take. So the smaller of the two is believed.
//!
//! Clocks that run apart, or leap, look like a queue. But what waits on the way there makes the
//! round trip as much longer, so that q cannot be more than the trip is above the least one.

use crate::congestion::filters::{JitterFilter, WindowedMin};
use crate::congestion::{PollAnswered, PollSent};
use alloc::collections::VecDeque;
use units::{Instant, Span};

/// POLLs whose sending is remembered.
const MARKS: usize = 256;
/// Answers that are looked back over.
const SAMPLES: usize = 96;
/// Errors do not rise by as much, in millionths, but queues that overflow drop as much.
pub(super) const TOO_MANY_PPM: u64 = 250_000;
/// More are never taken for errors, in millionths.
const MOST_ERRORS_PPM: u64 = 400_000;
/// Nothing arrives for as long in a train, in microseconds, unless something stands still.
const STILL_US: i64 = 3_000_000;
/// What is assumed of two POLLs between which there is none, in millionths.
const UNEVEN: u64 = 125_000;
/// Where clocks run apart by a ten-thousandth, in so long they do by a tenth of a millisecond.
const NEAR: Span = Span::from_secs(1);
/// By how much q may seem longer than the round trip allows, microseconds: the least delays of
/// both directions are seldom met in one round trip.
const APART_US: i64 = 25_000;
/// Octets that say something about a share of losses.
const TELLING: u64 = 40_000;

/// One POLL with what is known of it at both ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) sent_at: Instant,
    /// Octets sent by then.
    pub(super) sent: u64,
    /// Microseconds of the receiver's clock since the first sample.
    pub(super) arrived_at: i64,
    /// Octets that had arrived, since the first sample.
    pub(super) arrived: u64,
    /// Microseconds against the first sample's.
    pub(super) delay: i64,
    /// Until its answer came, microseconds of our clock; below zero where that was set back.
    pub(super) trip: i64,
}

impl Sample {
    /// The delay of the way back, microseconds against the first sample's.
    fn back(&self) -> i64 {
        self.trip - self.delay
    }
}

/// What lies between two samples.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) sending_us: u64,
    passing_us: u64,
    pub(super) sent: u64,
    pub(super) arrived: u64,
    /// Microseconds.
    pub(super) growth: i64,
}

impl Window {
    pub(super) fn between(first: &Sample, last: &Sample) -> Self {
        Self {
            sending_us: last.sent_at.since(first.sent_at).as_micros(),
            passing_us: u64::try_from(last.arrived_at - first.arrived_at).unwrap_or(0),
            sent: last.sent - first.sent,
            arrived: last.arrived.saturating_sub(first.arrived),
            growth: last.delay - first.delay,
        }
    }

    pub(super) fn sent_bps(&self) -> u64 {
        rate(self.sent, self.sending_us)
    }

    pub(super) fn passed_bps(&self) -> u64 {
        rate(self.sent, self.passing_us)
    }

    pub(super) fn arrived_bps(&self) -> u64 {
        rate(self.arrived, self.passing_us)
    }

    /// The share that did not arrive, in millionths.
    pub(super) fn lost_ppm(&self) -> u64 {
        self.sent.saturating_sub(self.arrived).saturating_mul(1_000_000) / self.sent.max(1)
    }

    /// Whether more was lost than the errors that lose `error_ppm` explain: chance loses a few
    /// more or less, a queue that drops loses many.
    pub(super) fn drops(&self, error_ppm: u64) -> bool {
        let kept = 1_000_000_u64.saturating_sub(error_ppm);
        self.arrived.saturating_mul(1_020_000) < self.sent.saturating_mul(kept)
    }

    /// What the way takes, where errors lose `error_ppm` of what they meet; believed only while
    /// something waits.
    pub(super) fn link_bps(&self, error_ppm: u64) -> u64 {
        let kept = 1_000_000_u64.saturating_sub(error_ppm).max(1);
        if self.drops(error_ppm) {
            mul(self.arrived_bps(), 1_000_000, kept)
        } else {
            self.passed_bps()
        }
    }
}

/// The samples of a session.
#[derive(Clone, Debug)]
pub(super) struct Samples {
    marks: VecDeque<PollSent>,
    samples: VecDeque<Sample>,
    /// The difference of the clocks, and the two counters, at the first sample.
    origin: Option<(u32, u32, u32)>,
    /// The last arrival and octets, since the first sample's.
    unwrapped: (i64, u64),
    least: WindowedMin,
    least_trip: WindowedMin,
    error_ppm: Option<u64>,
    /// By how much delays differ by chance.
    jitter: JitterFilter,
    back_jitter: JitterFilter,
    /// Samples before this do not count towards the errors.
    errors_from: Instant,
}

impl Samples {
    pub(super) fn new() -> Self {
        Self {
            marks: VecDeque::new(),
            samples: VecDeque::new(),
            origin: None,
            unwrapped: (0, 0),
            least: WindowedMin::default(),
            least_trip: WindowedMin::default(),
            error_ppm: None,
            jitter: JitterFilter::default(),
            back_jitter: JitterFilter::default(),
            errors_from: Instant::ZERO,
        }
    }

    /// A POLL goes out.
    pub(super) fn on_poll(&mut self, poll: &PollSent) {
        if self.marks.len() == MARKS {
            self.marks.pop_front();
        }
        self.marks.push_back(*poll);
    }

    /// A POLL is answered; what it tells, if its sending is remembered.
    pub(super) fn on_answer(&mut self, answered: &PollAnswered) -> Option<Sample> {
        // Of many POLLs under way the oldest may be forgotten: their answers say nothing, and are
        // not to drop the newer ones.
        let ahead = |mark: &PollSent| answered.seq.wrapping_sub(mark.seq) as i32;
        while self.marks.front().is_some_and(|mark| ahead(mark) > 0) {
            self.marks.pop_front();
        }
        let mark = self.marks.front().copied().filter(|mark| ahead(mark) == 0)?;
        self.marks.pop_front();
        let difference = answered.arrived_at.wrapping_sub(answered.timestamp);
        let (clocks, arrived_at, arrived) =
            *self.origin.get_or_insert((difference, answered.arrived_at, answered.arrived));
        // Clocks that run apart by up to 35 minutes are still told from each other.
        let delay = i64::from(difference.wrapping_sub(clocks) as i32);
        let (at, octets) = self.unwrapped;
        let passed = answered.arrived_at.wrapping_sub(arrived_at).wrapping_sub(at as u32);
        let come = answered.arrived.wrapping_sub(arrived).wrapping_sub(octets as u32);
        self.unwrapped = (at + i64::from(passed as i32), octets + u64::from(come));
        let here = answered.now.since(Instant::ZERO).as_micros() as u32;
        let sample = Sample {
            sent_at: mark.now,
            sent: mark.octets,
            arrived_at: self.unwrapped.0,
            arrived: self.unwrapped.1,
            delay,
            trip: i64::from(here.wrapping_sub(answered.timestamp) as i32),
        };
        if self.samples.len() == SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
        self.learn_least(answered.now, &sample);
        Some(sample)
    }

    /// The least delays, and where a queue would be longer than the round trip allows the clocks
    /// have run apart: then the least delay is what it must be now.
    fn learn_least(&mut self, now: Instant, sample: &Sample) {
        self.least.update(now, sample.delay);
        if sample.trip < 0 {
            return;
        }
        self.least_trip.update(now, sample.trip);
        let newest = self.samples.iter().rev().map(Sample::back);
        self.back_jitter.update(newest);
        let most = sample.trip - self.least_trip.value();
        if self.queue(sample) > most + APART_US.max(self.back_jitter.value() * 4) {
            self.least.reset(now, sample.delay - most);
        }
    }

    /// Forgets what was sent and answered so far, but not the delays and the errors.
    pub(super) fn restart(&mut self) {
        self.samples.clear();
    }

    pub(super) fn last(&self) -> Option<&Sample> {
        self.samples.back()
    }

    /// What waited when this sample's POLL passed, microseconds.
    pub(super) fn queue(&self, sample: &Sample) -> i64 {
        sample.delay - self.least.value()
    }

    /// What waited when the newest sample's POLL passed, microseconds.
    pub(super) fn last_queue(&self) -> i64 {
        self.samples.back().map_or(0, |last| self.queue(last))
    }

    /// The newest window that spans at least `span` of sending and `samples` samples.
    pub(super) fn latest(&self, span: Span, samples: usize) -> Option<Window> {
        let last = self.samples.back()?;
        let first = self
            .samples
            .iter()
            .rev()
            .skip(samples - 1)
            .find(|sample| last.sent_at.since(sample.sent_at) >= span)?;
        Some(Window::between(first, last))
    }

    /// The least that waited during [`Samples::latest`].
    pub(super) fn standing(&self, span: Span, samples: usize) -> Option<i64> {
        let last = self.samples.back()?;
        let mut standing = i64::MAX;
        for (index, sample) in self.samples.iter().rev().enumerate() {
            standing = standing.min(self.queue(sample));
            if index + 1 >= samples && last.sent_at.since(sample.sent_at) >= span {
                return Some(standing);
            }
        }
        None
    }

    /// Whether of what was sent before each of the last three POLLs far more was lost than errors
    /// lose: a queue overflows that is not seen. (Of what is sent during a blackout no POLL comes
    /// through, and it ends at once.)
    pub(super) fn overflows(&self) -> bool {
        let newest = || self.samples.iter().rev();
        let limit = self.error_ppm() + TOO_MANY_PPM;
        newest()
            .skip(1)
            .zip(newest())
            .take(3)
            .filter(|(first, last)| {
                let window = Window::between(first, last);
                window.sent >= 3_000 && window.lost_ppm() > limit
            })
            .count()
            == 3
    }

    /// How many samples' POLLs were sent at or after `from`, and by how much their delays differ.
    pub(super) fn range(&self, from: Instant) -> (usize, i64) {
        let since = || self.samples.iter().filter(|sample| sample.sent_at >= from);
        let delays = || since().map(|sample| sample.delay);
        let range = delays().max().unwrap_or(0) - delays().min().unwrap_or(0);
        (since().count(), range)
    }

    /// From the first POLL sent at or after `from` to the newest sample, or to the first one sent
    /// at or after `to`; `None` where no answered POLL was sent between the two.
    pub(super) fn window(&self, from: Instant, to: Option<Instant>) -> Option<Window> {
        let mut since = self.samples.iter().skip_while(|sample| sample.sent_at < from);
        let first = since.next()?;
        let last = match to {
            Some(to) if first.sent_at >= to => return None,
            Some(to) => since.find(|sample| sample.sent_at >= to)?,
            None => since.last()?,
        };
        Some(Window::between(first, last))
    }

    /// From the last POLL sent before `from` to the first one at or after `to`.
    pub(super) fn around(&self, from: Instant, to: Instant) -> Option<Window> {
        let first = self.samples.iter().rev().find(|sample| sample.sent_at < from)?;
        let last = self.samples.iter().find(|sample| sample.sent_at >= to)?;
        Some(Window::between(first, last))
    }

    /// From `from`, when `octets` had been sent and nothing had left for a while, to the newest
    /// sample: what was sent then was under way for as long as the last POLL before it.
    pub(super) fn after_pause(&self, from: Instant, octets: u64) -> Option<Window> {
        let last =
            self.samples.back().filter(|last| last.sent_at >= from && last.sent >= octets)?;
        let before = self.samples.iter().rev().find(|sample| sample.sent_at < from)?;
        // Clocks run apart.
        if from.since(before.sent_at) > NEAR {
            return None;
        }
        let first = Sample {
            sent_at: from,
            sent: octets,
            arrived_at: before.arrived_at + as_micros(from.since(before.sent_at)),
            arrived: before.arrived + octets.saturating_sub(before.sent),
            delay: before.delay,
            trip: before.trip,
        };
        (first.arrived_at < last.arrived_at).then(|| Window::between(&first, last))
    }

    /// By which part of the time in which POLLs sent from `from` on arrived, in millionths, one of
    /// them came earlier or later than its place in what was sent says; twice that, since the
    /// first and the last may have come so as well.
    pub(super) fn unevenness(&self, from: Instant) -> u64 {
        let since = || self.samples.iter().skip_while(|sample| sample.sent_at < from);
        let (Some(first), Some(last)) = (since().next(), since().last()) else { return UNEVEN };
        let (octets, time) = (last.sent - first.sent, last.arrived_at - first.arrived_at);
        let off = |sample: &Sample| {
            let part = mul(sample.sent - first.sent, time.unsigned_abs(), octets);
            (sample.arrived_at - first.arrived_at).unsigned_abs().abs_diff(part)
        };
        let worst = since().skip(1).filter(|one| one.sent < last.sent).map(off).max();
        worst.map_or(UNEVEN, |off| mul(off, 2_000_000, time.unsigned_abs()))
    }

    /// Whether of the time in which POLLs sent from `from` on arrived three quarters, and more than
    /// any but the slowest ways need, passed between two that follow each other.
    pub(super) fn stood_still(&self, from: Instant) -> bool {
        let since = || self.samples.iter().skip_while(|sample| sample.sent_at < from);
        let gaps = since().zip(since().skip(1)).map(|(one, next)| next.arrived_at - one.arrived_at);
        let longest = gaps.max().unwrap_or(0);
        let whole = since().next().zip(since().last());
        let whole = whole.map_or(0, |(first, last)| last.arrived_at - first.arrived_at);
        longest >= STILL_US && longest >= whole / 4 * 3
    }

    /// The time since more than `waiting` microseconds began to stand in a queue.
    pub(super) fn busy(&self, waiting: i64) -> Option<Window> {
        let busy = || self.samples.iter().rev().take_while(|one| self.queue(one) > waiting);
        let (last, first) = (busy().next()?, busy().last()?);
        let window = Window::between(first, last);
        (window.passing_us > 0).then_some(window)
    }

    /// What the way has taken in that time.
    pub(super) fn busy_link(&self, waiting: i64) -> Option<u64> {
        self.busy(waiting).map(|window| window.link_bps(self.error_ppm()))
    }

    /// Where the newest sample saw less than `waiting` microseconds in the queue, and so did the
    /// one a `span` before it: what was lost between was lost to errors.
    pub(super) fn learn_errors(&mut self, waiting: i64, span: Span) {
        let Some(last) = self.samples.back().copied() else { return };
        let calm = |sample: &Sample| self.queue(sample) <= waiting;
        let first = self
            .samples
            .iter()
            .rev()
            .skip(1)
            .take_while(|one| one.sent_at >= self.errors_from && calm(one))
            .find(|one| last.sent_at.since(one.sent_at) >= span && last.sent - one.sent >= TELLING);
        let (Some(first), true) = (first, calm(&last)) else { return };
        let lost = Window::between(first, &last).lost_ppm().min(MOST_ERRORS_PPM);
        if self.error_ppm.is_some_and(|known| lost > known + TOO_MANY_PPM) {
            return;
        }
        self.error_ppm = Some(match self.error_ppm {
            None => lost,
            Some(known) => (known * 7 + lost) / 8,
        });
        self.errors_from = last.sent_at;
    }

    /// Nothing waited while less was sent since `from` than the way takes: what was lost all the
    /// same was lost to errors. Whether these are far more than was known.
    pub(super) fn learn_lost(&mut self, from: Instant) -> bool {
        let Some(window) = self.window(from, None) else { return false };
        let lost = window.lost_ppm().min(MOST_ERRORS_PPM);
        let more = window.sent >= TELLING && lost > self.error_ppm() + TOO_MANY_PPM / 2;
        if more {
            self.error_ppm = Some(lost);
        }
        more
    }

    /// By how much the delay of the sample before the newest is off the line between its
    /// neighbours: chance, whether a queue grows or not.
    pub(super) fn learn_jitter(&mut self) {
        self.jitter.update(self.samples.iter().rev().map(|sample| sample.delay));
    }

    /// By how much delays differ by chance, microseconds.
    pub(super) fn jitter(&self) -> i64 {
        self.jitter.value()
    }

    /// The share that errors lose, in millionths, as far as it is known.
    pub(super) fn error_ppm(&self) -> u64 {
        self.error_ppm.unwrap_or(0)
    }

    /// The delay of the newest sample is the way's own from now on.
    pub(super) fn forget_least(&mut self, now: Instant) {
        if let Some(last) = self.samples.back() {
            self.least.reset(now, last.delay);
            self.least_trip.reset(now, last.trip);
        }
    }
}

/// `value` × `numerator` / `denominator` without overflow on the way.
pub(super) fn mul(value: u64, numerator: u64, denominator: u64) -> u64 {
    let product = u128::from(value) * u128::from(numerator) / u128::from(denominator.max(1));
    u64::try_from(product).unwrap_or(u64::MAX)
}

/// `count` microseconds, none when below zero.
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
