//! Measurements of a running emulator: per second, per packet if requested, and shared with other
//! threads.

use super::carried::Carried;
use super::lateness::LatenessRecord;
use super::summary::{self, Interval, Waits};
use super::{Lateness, LogEntry, LogEvent};
use crate::Clock;
use satlink::{Counters, Direction, Link};
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use units::{Instant, Span};

/// Maximum age of the counters shared with other threads.
const PUBLISH: Span = Span::from_millis(20);

/// The counters of both directions, for other threads.
pub(super) type Published = Arc<Mutex<[Counters; 2]>>;

/// Collects the measurements.
pub(super) struct Observer {
    clock: Clock,
    lateness: LatenessRecord,
    waits: [Waits; 2],
    every: Span,
    next: Instant,
    begun: Instant,
    before: [Counters; 2],
    done: Vec<Interval>,
    printer: Option<Printer>,
    published: Published,
    next_publish: Instant,
    log: Vec<LogEntry>,
    log_room: usize,
    log_omitted: u64,
}

/// All measurements, at the end.
pub(super) struct Observed {
    pub(super) intervals: Vec<Interval>,
    pub(super) lateness: Lateness,
    pub(super) log: Vec<LogEntry>,
    pub(super) log_omitted: u64,
}

impl Observer {
    pub(super) fn new(
        report_every: Option<Span>,
        log: Option<usize>,
        clock: Clock,
        published: Published,
    ) -> Self {
        let every = report_every.unwrap_or(Span::from_secs(1)).max(Span::from_millis(10));
        Self {
            clock,
            lateness: LatenessRecord::new(),
            waits: Default::default(),
            every,
            next: Instant::ZERO + every,
            begun: Instant::ZERO,
            before: Default::default(),
            done: Vec::new(),
            printer: report_every.and_then(|_| printer()),
            published,
            next_publish: Instant::ZERO,
            log: Vec::new(),
            log_room: log.unwrap_or(0),
            log_omitted: 0,
        }
    }

    /// Records an event of a packet of `bytes` at `at`.
    pub(super) fn log(&mut self, at: Instant, direction: Direction, bytes: usize, event: LogEvent) {
        if self.log_room == 0 {
            return;
        }
        if self.log.len() == self.log_room {
            self.log_omitted += 1;
            return;
        }
        let at = self.clock.machine_time(at);
        self.log.push(LogEntry { at, direction, bytes, event });
    }

    /// Records a delivery at `at`, with the packet's time in the queue and in transmission.
    pub(super) fn delivered(
        &mut self,
        at: Instant,
        direction: Direction,
        bytes: usize,
        waited: Span,
    ) {
        self.waits[direction as usize].note(waited);
        self.log(at, direction, bytes, LogEvent::Delivered { waited });
    }

    /// Records the lateness of a departure.
    pub(super) fn left(&mut self, late: Span) {
        self.lateness.note(late);
    }

    /// Completes the interval if it has ended by `now`; returns whether it has.
    pub(super) fn tick(&mut self, now: Instant, link: &Link<Carried>) -> bool {
        if now >= self.next_publish {
            self.publish(link);
            self.next_publish = now + PUBLISH;
        }
        if now < self.next {
            return false;
        }
        while self.next <= now {
            self.next += self.every;
        }
        self.close(now, link);
        true
    }

    pub(super) fn finish(&mut self, now: Instant, link: &Link<Carried>) -> Observed {
        if now > self.begun {
            self.close(now, link);
        }
        self.publish(link);
        if let Some(printer) = self.printer.take() {
            printer.end();
        }
        Observed {
            intervals: std::mem::take(&mut self.done),
            lateness: self.lateness.summary(),
            log: std::mem::take(&mut self.log),
            log_omitted: self.log_omitted,
        }
    }

    fn publish(&self, link: &Link<Carried>) {
        // A reader that holds the lock sees the previous values; the emulator does not wait.
        if let Ok(mut published) = self.published.try_lock() {
            *published = Direction::BOTH.map(|direction| link.counters(direction).clone());
        }
    }

    fn close(&mut self, now: Instant, link: &Link<Carried>) {
        let length = now.since(self.begun);
        let [forward, back] = Direction::BOTH.map(|direction| {
            let before = &mut self.before[direction as usize];
            let after = link.counters(direction).clone();
            let waits = std::mem::take(&mut self.waits[direction as usize]);
            let queue = link.backlog(direction).bytes;
            let flow = summary::flow(before, &after, length, queue, waits);
            *before = after;
            flow
        });
        let interval = Interval {
            start: self.begun.as_secs_f64(),
            end: now.as_secs_f64(),
            forward,
            r#return: back,
            max_lateness_seconds: self.lateness.take_recent().as_secs_f64(),
        };
        self.begun = now;
        if let Some(printer) = &self.printer {
            printer.print(interval.to_string());
        }
        summary::push_interval(&mut self.done, interval);
    }
}

/// A thread that prints, so that a slow terminal does not delay the emulator.
pub(super) struct Printer {
    lines: SyncSender<String>,
    thread: JoinHandle<()>,
}

impl Printer {
    /// Prints a line, or drops it if the terminal does not keep up.
    pub(super) fn print(&self, line: String) {
        let _ = self.lines.try_send(line);
    }

    /// Prints the remaining lines.
    pub(super) fn end(self) {
        drop(self.lines);
        // A panicked printer has nothing left to print.
        let _ = self.thread.join();
    }
}

pub(super) fn printer() -> Option<Printer> {
    let (sender, lines) = mpsc::sync_channel::<String>(4);
    let print = move || lines.iter().for_each(|line| eprintln!("{line}"));
    let thread = std::thread::Builder::new().name("report".into()).spawn(print).ok()?;
    Some(Printer { lines: sender, thread })
}
