//! One direction: queue, transmitter, errors, propagation.

use crate::errors::{Air, Errors};
use crate::propagation::{Flight, Propagation};
use crate::queue::{Entry, Exit, InService, Queue, Waiting};
use crate::trace::Opportunities;
use crate::{Admission, Counters, Direction, DirectionConfig, DropCause, Frame, LinkConfig};
use alloc::format;
use units::{BitRate, Instant, RngStream, Serializer, Span};

/// The packet length in octets whose serialization delay is the unit of RED's idle time.
const TYPICAL_PACKET: u64 = 1_000;

/// One direction of a link.
#[derive(Debug)]
pub(crate) struct Pipeline<F> {
    direction: Direction,
    config: DirectionConfig,
    /// The configured values that a trace replaces.
    configured: Configured,
    queue: Queue<F>,
    line: Option<Serializer>,
    /// The transmitter, if a trace has opportunities in place of rates.
    opportunities: Option<Opportunities>,
    on_line: Option<OnLine<F>>,
    errors: Errors,
    way: Propagation<F>,
    early: RngStream,
    copies: RngStream,
    counters: Counters,
}

/// Values that a trace may replace.
#[derive(Clone, Copy, Debug)]
struct Configured {
    rate: Option<BitRate>,
    delay: Span,
    loss: f64,
}

impl Configured {
    fn of(config: &DirectionConfig) -> Self {
        Self { rate: config.rate, delay: config.delay, loss: config.loss }
    }
}

#[derive(Debug)]
struct OnLine<F> {
    waiting: Waiting<F>,
    from: Instant,
    until: Instant,
}

impl<F: Frame> Pipeline<F> {
    pub(crate) fn new(config: &LinkConfig, direction: Direction, seed: u64, run: u64) -> Self {
        let name = match direction {
            Direction::Forward => "forward",
            Direction::Return => "return",
        };
        let stream = |part: &str| RngStream::new(seed, run, &format!("satlink/{name}/{part}"));
        let own = config.direction(direction).clone();
        Self {
            direction,
            queue: Queue::new(config.queue(direction)),
            line: own.rate.map(Serializer::new),
            on_line: None,
            errors: Errors::new(seed, run, name),
            way: Propagation::new(seed, run, name),
            early: stream("red"),
            copies: stream("duplicate"),
            counters: Counters::default(),
            configured: Configured::of(&own),
            opportunities: own.trace.as_ref().and_then(|trace| trace.opportunities()),
            config: own,
        }
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Frames queued and in transmission, with octets on air.
    pub(crate) fn backlog(&self) -> InService {
        let (waiting, service) = (self.queue.backlog(), self.in_service());
        InService {
            packets: waiting.packets + service.packets,
            bytes: waiting.bytes + service.bytes,
        }
    }

    /// Applies new settings at a time to which this direction has been advanced.
    pub(crate) fn reconfigure(&mut self, config: &LinkConfig, now: Instant, air: &mut Air) {
        let new = config.direction(self.direction);
        self.queue.reconfigure(config.queue(self.direction));
        if new.rate != self.config.rate {
            self.line = new.rate.map(|rate| self.line_at(rate));
        }
        if new.trace != self.config.trace {
            self.opportunities = new.trace.as_ref().and_then(|trace| trace.opportunities());
        }
        self.configured = Configured::of(new);
        self.config = new.clone();
        if self.on_line.is_none() {
            // Without a rate queued frames are sent immediately.
            self.start_next(now, air);
        }
    }

    /// Enqueues a frame at `now`, to which this direction has been advanced.
    pub(crate) fn offer(&mut self, now: Instant, frame: F, air: &mut Air) -> Admission<F> {
        self.counters.offered.add(frame.len() as u64);
        let copy = (self.config.duplicate > 0.0 && self.copies.chance(self.config.duplicate))
            .then(|| frame.clone());
        let admission = self.admit(now, frame, air);
        if let Some(copy) = copy {
            self.counters.duplicated.add(copy.len() as u64);
            // The counters record its result, which the caller does not need.
            drop(self.admit(now, copy, air));
        }
        admission
    }

    /// Processes all events due by `now`.
    pub(crate) fn advance(&mut self, now: Instant, air: &mut Air) {
        while let Some(on_line) = self.on_line.take_if(|on_line| on_line.until <= now) {
            let free = on_line.until;
            self.finish(on_line, air);
            self.start_next(free, air);
        }
    }

    /// A frame that is due by `now`.
    pub(crate) fn deliver(&mut self, now: Instant) -> Option<Flight<F>> {
        let flight = self.way.land(now)?;
        let bytes = flight.frame.len() as u64;
        self.counters.delivered.add(bytes);
        self.counters.held.remove(bytes);
        Some(flight)
    }

    /// When the next frame is due.
    pub(crate) fn next_delivery(&self) -> Option<Instant> {
        self.way.next_at()
    }

    /// The time of the next delivery, or the earliest possible delivery of the frame in
    /// transmission if that is earlier.
    pub(crate) fn next_event(&self) -> Option<Instant> {
        let least = || Propagation::<F>::least_delay(&self.config, self.configured.delay);
        match (&self.on_line, self.way.next_at()) {
            (Some(_), Some(at)) if self.config.keep_order && self.config.reorder.is_none() => {
                Some(at)
            }
            (Some(on_line), Some(at)) => Some(at.min(on_line.until + least())),
            (Some(on_line), None) => Some(on_line.until + least()),
            (None, at) => at,
        }
    }

    /// Since when the current frame has been on air; `now` if there is none.
    pub(crate) fn on_air_since(&self, now: Instant) -> Instant {
        self.on_line.as_ref().map_or(now, |on_line| on_line.from)
    }

    /// The frames held, recounted: packets and layer-3 octets.
    pub(crate) fn audit(&self) -> (u64, u64) {
        let way = self.way.frames().map(|frame| (1, frame.len() as u64));
        let line = self.on_line.iter().map(|on_line| (1, on_line.waiting.frame.len() as u64));
        let waiting = self.queue.frames().map(|frame| (1, frame.len() as u64));
        way.chain(line)
            .chain(waiting)
            .fold((0, 0), |(packets, bytes), (one, len)| (packets + one, bytes + len))
    }

    fn admit(&mut self, now: Instant, frame: F, air: &mut Air) -> Admission<F> {
        let bytes = frame.len() as u64;
        let waiting = Waiting { offered_at: now, on_air: self.config.framing.on_air(bytes), frame };
        self.counters.held.add(bytes);
        let service = self.in_service();
        let typical = self.config.rate.map_or(Span::ZERO, |rate| rate.time_for(TYPICAL_PACKET));
        let admission = match self.queue.enter(now, waiting, service, typical, &mut self.early) {
            Entry::Waits { marked } => {
                self.counters.marked += u64::from(marked);
                Admission::Queued
            }
            Entry::Displaced(cause, victim) => {
                self.lose(cause, victim.len() as u64);
                Admission::Queued
            }
            Entry::Refused(cause, frame) => {
                self.lose(cause, bytes);
                Admission::Dropped(cause, frame)
            }
        };
        let backlog = self.backlog();
        self.counters.note_backlog(backlog.packets, backlog.bytes);
        if self.on_line.is_none() {
            self.start_next(now, air);
        }
        admission
    }

    /// Starts the transmission of the next frame; without a rate, of all frames.
    fn start_next(&mut self, now: Instant, air: &mut Air) {
        while let Some(exit) = self.queue.leave(now) {
            let waiting = match exit {
                Exit::Goes { waiting, marked } => {
                    self.counters.marked += u64::from(marked);
                    waiting
                }
                Exit::Shed(waiting) => {
                    self.lose(DropCause::Early, waiting.frame.len() as u64);
                    continue;
                }
            };
            let from = self.follow(now, air.epoch());
            let until = self.send(from, waiting.on_air, air.epoch());
            let on_line = OnLine { waiting, from, until };
            if until > now || self.line.is_some() || self.opportunities.is_some() {
                self.on_line = Some(on_line);
                return;
            }
            self.finish(on_line, air);
        }
    }

    /// Handles the end of a transmission: decides on errors.
    fn finish(&mut self, on_line: OnLine<F>, air: &mut Air) {
        let OnLine { waiting, from, until } = on_line;
        let Waiting { frame, offered_at, on_air } = waiting;
        self.follow(until, air.epoch());
        self.counters.sent.add(on_air);
        let passage = air.passage(self.direction, from, until);
        if let Some(cause) = self.errors.strike(&self.config, &passage, on_air) {
            self.lose(cause, frame.len() as u64);
            return;
        }
        let ahead = self.way.launch(&self.config, frame, offered_at, until, passage.delay);
        self.counters.reordered += u64::from(ahead);
    }

    /// Sends a frame of `on_air` octets from `from` on; returns when it is out.
    fn send(&mut self, from: Instant, on_air: u64, epoch: Instant) -> Instant {
        if let (Some(opportunities), Some(trace)) = (&mut self.opportunities, &self.config.trace) {
            return epoch + opportunities.send(trace, from.since(epoch), on_air);
        }
        match &mut self.line {
            Some(line) => line.send(from, on_air),
            None => from,
        }
    }

    /// Applies the trace at `now`; returns when a frame can be sent from then on.
    fn follow(&mut self, now: Instant, epoch: Instant) -> Instant {
        let Some(trace) = &self.config.trace else { return now };
        let open = trace.open_from(now.since(epoch));
        let Some(at_open) = trace.step_at(open) else { return now };
        let step = trace.step_at(now.since(epoch)).unwrap_or(at_open);
        self.config.delay = step.delay.unwrap_or(self.configured.delay);
        self.config.loss = step.loss.unwrap_or(self.configured.loss);
        let rate = at_open.rate.flatten().or(self.configured.rate);
        if rate != self.config.rate {
            self.config.rate = rate;
            self.line = rate.map(|rate| self.line_at(rate));
        }
        epoch + open
    }

    fn lose(&mut self, cause: DropCause, bytes: u64) {
        self.counters.drop_frame(cause, bytes);
        self.counters.held.remove(bytes);
    }

    fn in_service(&self) -> InService {
        self.on_line.as_ref().map_or(InService::default(), |on_line| InService {
            packets: 1,
            bytes: on_line.waiting.on_air,
        })
    }

    /// A transmitter of `rate` that is free when the current one is.
    fn line_at(&self, rate: BitRate) -> Serializer {
        let mut line = self.line.clone().unwrap_or_else(|| Serializer::new(rate));
        line.set_rate(rate);
        line
    }
}
