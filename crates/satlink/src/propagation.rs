//! Propagation: delay, jitter and reordering.

use crate::config::Jitter;
use crate::{DirectionConfig, Frame};
use alloc::collections::VecDeque;
use alloc::format;
use units::{Instant, RngStream, Span};

/// A frame in propagation, or due.
#[derive(Debug)]
pub(crate) struct Flight<F> {
    pub(crate) at: Instant,
    pub(crate) frame: F,
    pub(crate) offered_at: Instant,
    pub(crate) sent_at: Instant,
}

/// The transmitted frames of one direction.
#[derive(Debug)]
pub(crate) struct Propagation<F> {
    /// By time of delivery; of equal times the one transmitted first.
    flights: VecDeque<Flight<F>>,
    /// No frame in order is delivered before this time.
    latest: Instant,
    /// Frames delayed since the last that skipped the delay.
    delayed: u32,
    jitter: RngStream,
    reorder: RngStream,
}

impl<F: Frame> Propagation<F> {
    pub(crate) fn new(seed: u64, run: u64, name: &str) -> Self {
        let stream = |part: &str| RngStream::new(seed, run, &format!("satlink/{name}/{part}"));
        Self {
            flights: VecDeque::new(),
            latest: Instant::ZERO,
            delayed: 0,
            jitter: stream("jitter"),
            reorder: stream("reorder"),
        }
    }

    /// Starts the propagation of a frame transmitted at `sent_at`; `extra` is added to the
    /// configured delay. Returns whether it skipped the delay.
    pub(crate) fn launch(
        &mut self,
        config: &DirectionConfig,
        frame: F,
        offered_at: Instant,
        sent_at: Instant,
        extra: Span,
    ) -> bool {
        let ahead = self.skips(config);
        let mut at = sent_at;
        if !ahead {
            at += self.delay(config) + extra;
            if config.keep_order {
                at = at.max(self.latest);
                self.latest = at;
            }
        }
        let flight = Flight { at, frame, offered_at, sent_at };
        if self.flights.back().is_none_or(|last| last.at <= at) {
            self.flights.push_back(flight);
        } else {
            let place = self.flights.partition_point(|flight| flight.at <= at);
            self.flights.insert(place, flight);
        }
        ahead
    }

    /// Minimum delay of any frame; `configured` is the delay where a trace has none.
    pub(crate) fn least_delay(config: &DirectionConfig, configured: Span) -> Span {
        if config.reorder.is_some() {
            return Span::ZERO;
        }
        let trace = config.trace.as_ref();
        let delay = trace.map_or(configured, |trace| trace.least_delay(configured));
        match config.jitter {
            Jitter::None => delay,
            // 1 ns for rounding.
            Jitter::Uniform(width) => delay - width - Span::from_nanos(1),
            Jitter::Normal(_) => Span::ZERO,
        }
    }

    /// When the next frame is due.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.flights.front().map(|flight| flight.at)
    }

    /// The next frame, if due by `now`.
    pub(crate) fn land(&mut self, now: Instant) -> Option<Flight<F>> {
        if self.next_at()? <= now { self.flights.pop_front() } else { None }
    }

    /// All frames in propagation, for audits.
    pub(crate) fn frames(&self) -> impl Iterator<Item = &F> {
        self.flights.iter().map(|flight| &flight.frame)
    }

    fn delay(&mut self, config: &DirectionConfig) -> Span {
        let delay = config.delay.as_secs_f64();
        match config.jitter {
            Jitter::None => config.delay,
            Jitter::Uniform(width) => {
                let width = width.as_secs_f64();
                Span::from_secs_f64(delay - width + 2.0 * width * self.jitter.uniform())
            }
            Jitter::Normal(deviation) => {
                Span::from_secs_f64(self.jitter.normal(delay, deviation.as_secs_f64()))
            }
        }
    }

    fn skips(&mut self, config: &DirectionConfig) -> bool {
        let Some(reorder) = &config.reorder else { return false };
        let turn = self.delayed + 1 >= reorder.gap;
        if turn && self.reorder.chance(reorder.probability) {
            self.delayed = 0;
            return true;
        }
        self.delayed = self.delayed.saturating_add(1);
        false
    }
}
