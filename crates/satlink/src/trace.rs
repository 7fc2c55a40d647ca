//! The course of a direction over time: recorded or computed rates, delays and losses.
//!
//! ```text
//!   steps          time_s,delay_ms,rate_bit_s,loss      from each time on; CSV
//!   opportunities  one time in ms a line                Mahimahi: 1,500 octets each
//! ```
//!
//! Both are relative to the link's epoch and repeat when they have ended. A frame is sent at the
//! rate at the start of its transmission, and its loss and delay are those at the end.

use alloc::vec::Vec;
use core::fmt;
use units::{BitRate, Span};

/// Octets that one delivery opportunity of Mahimahi carries (mm-link(1)).
const OPPORTUNITY: u64 = 1_500;
/// Maximum number of steps or opportunities.
const MOST: usize = 10_000_000;

/// The course of a direction.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    course: Course,
    /// Length, after which it repeats.
    period: Span,
}

#[derive(Clone, Debug, PartialEq)]
enum Course {
    Steps(Vec<Step>),
    Opportunities(Vec<Span>),
}

/// Values from a time on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The time, from the beginning.
    pub at: Span,
    /// One-way propagation delay; `None`: as configured.
    pub delay: Option<Span>,
    /// Rate; `Some(None)`: nothing is sent, `None`: as configured.
    pub rate: Option<Option<BitRate>>,
    /// Probability of loss; `None`: as configured.
    pub loss: Option<f64>,
}

/// Why a trace is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// Number of the line, or of the step, from 1; 0 for the whole.
    pub line: usize,
    /// What was expected.
    pub expected: &'static str,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: expected {}", self.line, self.expected)
    }
}

impl core::error::Error for TraceError {}

impl Trace {
    /// A course of steps that repeats after `period`.
    ///
    /// # Errors
    /// If there is no step at time zero, times do not increase, the last is not before `period`, a
    /// loss is no probability, or nothing is ever sent.
    pub fn steps(steps: Vec<Step>, period: Span) -> Result<Self, TraceError> {
        let wrong = |line, expected| Err(TraceError { line, expected });
        if steps.first().is_none_or(|first| !first.at.is_zero()) {
            return wrong(1, "a first step at time 0");
        }
        if let Some(place) = steps.windows(2).position(|two| two[0].at >= two[1].at) {
            return wrong(place + 2, "a later time than the one before");
        }
        let fits = |step: &Step| step.loss.is_none_or(|loss| (0.0..=1.0).contains(&loss));
        if let Some(place) = steps.iter().position(|step| !fits(step)) {
            return wrong(place + 1, "a loss from 0 to 1");
        }
        if steps.iter().all(|step| step.rate == Some(None)) {
            return wrong(0, "a rate above 0 at some time");
        }
        if steps.len() > MOST || steps.last().is_none_or(|last| last.at >= period) {
            return wrong(0, "at most 10,000,000 steps, the last before the end of the course");
        }
        Ok(Self { course: Course::Steps(steps), period })
    }

    /// Parses the text of a file: CSV if its name ends in `.csv`, otherwise a trace of Mahimahi.
    ///
    /// # Errors
    /// The first invalid line.
    pub fn parse(file: &str, text: &str) -> Result<Self, TraceError> {
        if file.ends_with(".csv") { Self::parse_csv(text) } else { Self::parse_mahimahi(text) }
    }

    /// Parses CSV with the columns `time_s`, `delay_ms`, `rate_bit_s` and `loss` in any order, all
    /// but the first optional; empty fields are as configured. The last step is as long as the one
    /// before it.
    ///
    /// # Errors
    /// The first invalid line.
    pub fn parse_csv(text: &str) -> Result<Self, TraceError> {
        let mut lines = text.lines().enumerate().filter(|(_, line)| !is_blank(line));
        let (_, head) = lines.next().unwrap_or((0, ""));
        let names: Vec<&str> = head.split(',').map(str::trim).collect();
        const HEAD: &str = "a header of time_s, and any of delay_ms, rate_bit_s and loss";
        let known = ["time_s", "delay_ms", "rate_bit_s", "loss"];
        if !names.contains(&"time_s") || names.iter().any(|name| !known.contains(name)) {
            return Err(TraceError { line: 1, expected: HEAD });
        }
        let (mut steps, mut numbers) = (Vec::new(), Vec::new());
        for (number, line) in lines {
            let step = csv_step(&names, line).ok_or(TraceError {
                line: number + 1,
                expected: "non-negative numbers, as many as in the header",
            })?;
            steps.push(step);
            numbers.push(number + 1);
        }
        let period = match steps.as_slice() {
            [.., before, last] => last.at + last.at.saturating_sub(before.at),
            _ => Span::from_secs(1),
        };
        // The error has the number of the step.
        let line = |step: usize| numbers.get(step.wrapping_sub(1)).copied().unwrap_or(0);
        Self::steps(steps, period).map_err(|TraceError { line: step, expected }| TraceError {
            line: line(step),
            expected,
        })
    }

    /// Parses a trace of Mahimahi: a line for each delivery opportunity with its time in
    /// milliseconds. The last one is the length.
    ///
    /// # Errors
    /// The first invalid line.
    pub fn parse_mahimahi(text: &str) -> Result<Self, TraceError> {
        let mut times: Vec<Span> = Vec::new();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !is_blank(line)) {
            let ms: Option<u64> = line.trim().parse().ok().filter(|ms| *ms < 1 << 40);
            let at = ms.map(Span::from_millis);
            let Some(at) = at.filter(|at| times.last().is_none_or(|last| last <= at)) else {
                let expected = "a whole number of milliseconds, not below the one before";
                return Err(TraceError { line: number + 1, expected });
            };
            times.push(at);
        }
        match times.last() {
            Some(&period) if !period.is_zero() && times.len() <= MOST => {
                Ok(Self { course: Course::Opportunities(times), period })
            }
            Some(_) | None => {
                let expected = "1 to 10,000,000 opportunities, the last after 0 ms";
                Err(TraceError { line: 0, expected })
            }
        }
    }

    /// Length, after which the course repeats.
    pub fn period(&self) -> Span {
        self.period
    }

    /// Number of steps or opportunities.
    pub fn len(&self) -> usize {
        match &self.course {
            Course::Steps(steps) => steps.len(),
            Course::Opportunities(times) => times.len(),
        }
    }

    /// False: a course has at least one step or opportunity.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The step at `time` from the beginning; `None` with opportunities.
    pub(crate) fn step_at(&self, time: Span) -> Option<&Step> {
        let Course::Steps(steps) = &self.course else { return None };
        let within = Span::from_nanos(time.as_nanos() % self.period.as_nanos());
        steps[..steps.partition_point(|step| step.at <= within)].last()
    }

    /// The earliest time from `time` on at which frames are sent.
    pub(crate) fn open_from(&self, time: Span) -> Span {
        let Course::Steps(steps) = &self.course else { return time };
        let within = time.as_nanos() % self.period.as_nanos();
        let round = Span::from_nanos(time.as_nanos() - within);
        let place = steps.partition_point(|step| step.at.as_nanos() <= within);
        let is_open = |step: &&Step| step.rate != Some(None);
        if steps[..place].last().as_ref().is_some_and(is_open) {
            return time;
        }
        let next = steps[place..].iter().find(is_open).map(|step| round + step.at);
        let first = || steps.iter().find(is_open).map(|step| round + self.period + step.at);
        next.or_else(first).unwrap_or(time)
    }

    /// The minimum delay, if `configured` holds where the course has none.
    pub(crate) fn least_delay(&self, configured: Span) -> Span {
        match &self.course {
            Course::Steps(steps) => {
                let delays = steps.iter().map(|step| step.delay.unwrap_or(configured));
                delays.min().unwrap_or(configured)
            }
            Course::Opportunities(_) => configured,
        }
    }

    /// The transmitter of opportunities, if the course has these.
    pub(crate) fn opportunities(&self) -> Option<Opportunities> {
        matches!(self.course, Course::Opportunities(_)).then(Opportunities::default)
    }
}

/// A transmitter that sends at the opportunities of a trace. What an opportunity has left is for
/// the next frame, if there is one; it is lost otherwise.
#[derive(Clone, Debug, Default)]
pub(crate) struct Opportunities {
    /// The current one, counted over all rounds, and its octets that are left.
    current: u64,
    left: u64,
    begun: bool,
}

impl Opportunities {
    /// Sends a frame of `bytes` that is ready at `ready`, from the epoch; returns when it is out.
    pub(crate) fn send(&mut self, trace: &Trace, ready: Span, bytes: u64) -> Span {
        let Course::Opportunities(times) = &trace.course else { return ready };
        let at = |number: u64| {
            let count = times.len() as u64;
            trace.period * (number / count) + times[(number % count) as usize]
        };
        if !self.begun || at(self.current) < ready {
            // The end of a round counts to it: times are above zero, up to the period.
            let round = ready.as_nanos().saturating_sub(1) / trace.period.as_nanos();
            let within = ready.saturating_sub(trace.period * round);
            let place = times.partition_point(|time| *time < within) as u64;
            let next = round * times.len() as u64 + place;
            self.current = if self.begun { next.max(self.current + 1) } else { next };
            (self.begun, self.left) = (true, OPPORTUNITY);
        }
        let mut rest = bytes;
        while rest > self.left {
            rest -= self.left;
            self.current += 1;
            self.left = OPPORTUNITY;
        }
        self.left -= rest;
        at(self.current)
    }
}

fn is_blank(line: &str) -> bool {
    line.trim().is_empty() || line.starts_with('#')
}

fn csv_step(names: &[&str], line: &str) -> Option<Step> {
    let mut step = Step { at: Span::ZERO, delay: None, rate: None, loss: None };
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    if fields.len() != names.len() {
        return None;
    }
    for (name, field) in names.iter().zip(fields) {
        if field.is_empty() && *name != "time_s" {
            continue;
        }
        let number: f64 = field.parse().ok().filter(|number| (0.0..1e15).contains(number))?;
        match *name {
            "time_s" => step.at = Span::from_secs_f64(number),
            "delay_ms" => step.delay = Some(Span::from_secs_f64(number / 1e3)),
            "rate_bit_s" => step.rate = Some(BitRate::new(number as u64)),
            _ => step.loss = Some(number),
        }
    }
    Some(step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Direction, DirectionConfig, Link, LinkConfig};
    use alloc::sync::Arc;
    use alloc::vec;
    use std::string::ToString;
    use units::Instant;

    fn link(trace: Trace) -> Link<Vec<u8>> {
        let rate = Some(BitRate::from_mbps(8));
        let trace = Some(Arc::new(trace));
        let forward = DirectionConfig { rate, trace, ..DirectionConfig::default() };
        Link::new(&LinkConfig { forward, ..LinkConfig::default() }, 1, 0).unwrap()
    }

    /// Offers frames of 1,000 octets at these times in ms; returns the times of delivery in µs.
    fn carry(link: &mut Link<Vec<u8>>, offers: &[u64]) -> Vec<u64> {
        let mut times = Vec::new();
        for ms in offers {
            let now = Instant::ZERO + Span::from_millis(*ms);
            let _ = link.offer(now, Direction::Forward, vec![0; 1_000]);
        }
        while let Some(at) = link.poll_timeout() {
            while let Some(delivery) = link.poll_delivery(at) {
                times.push(delivery.at.since(Instant::ZERO).as_micros());
            }
        }
        times
    }

    #[test]
    fn rate_and_delay_follow_the_steps_and_repeat() {
        let text = "time_s,rate_bit_s,delay_ms\n0,8e6,10\n0.1,0,10\n0.2,4000000,\n0.3,,20\n";
        let mut link = link(Trace::parse_csv(text).unwrap());
        // 1 ms at 8 Mbit/s; nothing from 100 ms; 2 ms at 4 Mbit/s without delay; the configured
        // rate with 20 ms; the second round from 400 ms.
        let times = carry(&mut link, &[0, 50, 110, 250, 350, 400, 510]);
        assert_eq!(times, [11_000, 61_000, 202_000, 252_000, 371_000, 411_000, 602_000]);
        assert!(link.audit());
    }

    #[test]
    fn loss_follows_the_steps() {
        let text = "time_s,loss\n0,0\n1,1\n";
        let mut link = link(Trace::parse_csv(text).unwrap());
        assert_eq!(carry(&mut link, &[0, 1_500, 2_100]), [1_000, 2_101_000]);
    }

    #[test]
    fn opportunities_carry_whole_frames_in_order() {
        // 1,500 octets at 10 ms and twice at 20 ms; repeats after 20 ms.
        let trace = Trace::parse_mahimahi("10\n20\n20\n").unwrap();
        let mut link = link(trace);
        // The first takes 1,000 of the first opportunity, the second its rest and 500 of the next;
        // two more fit into those at 20 ms, the fifth waits until 30 ms; at 100 ms, the end of the
        // fifth round, one that is ready is sent.
        let times = carry(&mut link, &[0, 0, 0, 0, 0, 95]);
        assert_eq!(times, [10_000, 20_000, 20_000, 20_000, 30_000, 100_000]);
        assert!(link.audit());
    }

    #[test]
    fn invalid_traces_name_the_line() {
        let error = |text: &str| Trace::parse_csv(text).unwrap_err().to_string();
        assert!(error("time,rate\n").starts_with("line 1: expected a header of time_s"));
        assert!(error("time_s,loss\n0,0.1\n1,x\n").starts_with("line 3: expected non-negative"));
        assert!(error("time_s\n1\n").contains("a first step at time 0"));
        assert!(error("# rain\ntime_s,loss\n0,2\n").starts_with("line 3: expected a loss"));
        assert!(error("time_s,rate_bit_s\n0,0\n").contains("a rate above 0 at some time"));
        let error = Trace::parse_mahimahi("5\n4\n").unwrap_err().to_string();
        assert!(error.starts_with("line 2: expected a whole number of milliseconds"), "{error}");
        assert!(Trace::parse_mahimahi("").is_err() && Trace::parse_mahimahi("0\n").is_err());
    }
}
