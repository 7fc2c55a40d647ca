//! The once-a-second accounts of a running emulator, and the thread that prints them.

use super::carried::Carried;
use super::lateness::LatenessRecord;
use super::summary::{self, Interval};
use crate::pcap::Capture;
use satlink::{Counters, Direction, Link};
use std::sync::mpsc::{self, SyncSender};
use std::thread::JoinHandle;
use units::{Instant, Span};

/// The once-a-second accounts, and the thread that prints them.
pub(super) struct Intervals {
    every: Span,
    next: Instant,
    begun: Instant,
    before: [Counters; 2],
    done: Vec<Interval>,
    printer: Option<(SyncSender<String>, JoinHandle<()>)>,
}

impl Intervals {
    pub(super) fn new(report_every: Option<Span>) -> Self {
        let every = report_every.unwrap_or(Span::from_secs(1)).max(Span::from_millis(10));
        Self {
            every,
            next: Instant::ZERO + every,
            begun: Instant::ZERO,
            before: Default::default(),
            done: Vec::new(),
            printer: report_every.and_then(|_| printer()),
        }
    }

    /// Closes the interval if it is over.
    pub(super) fn at(
        &mut self,
        now: Instant,
        link: &Link<Carried>,
        lateness: &mut LatenessRecord,
        captures: &mut [Option<Capture>; 2],
    ) {
        if now < self.next {
            return;
        }
        while self.next <= now {
            self.next += self.every;
        }
        self.close(now, link, lateness);
        captures.iter_mut().flatten().for_each(Capture::hand_over);
    }

    fn close(&mut self, now: Instant, link: &Link<Carried>, lateness: &mut LatenessRecord) {
        let length = now.since(self.begun);
        let [forward, back] = Direction::BOTH.map(|direction| {
            let before = &mut self.before[direction as usize];
            let after = link.counters(direction).clone();
            let queue = link.backlog(direction).bytes;
            let flow = summary::flow(before, &after, length, queue);
            *before = after;
            flow
        });
        let interval = Interval {
            start: self.begun.as_secs_f64(),
            end: now.as_secs_f64(),
            forward,
            r#return: back,
            max_lateness_seconds: lateness.take_recent().as_secs_f64(),
        };
        self.begun = now;
        if let Some((lines, _)) = &self.printer {
            // A terminal that does not keep up misses a line.
            let _ = lines.try_send(interval.to_string());
        }
        summary::push_interval(&mut self.done, interval);
    }

    pub(super) fn finish(
        &mut self,
        now: Instant,
        link: &Link<Carried>,
        lateness: &mut LatenessRecord,
    ) -> Vec<Interval> {
        if now > self.begun {
            self.close(now, link, lateness);
        }
        if let Some((lines, thread)) = self.printer.take() {
            drop(lines);
            // A printer that panicked has nothing more to say.
            let _ = thread.join();
        }
        std::mem::take(&mut self.done)
    }
}

/// A thread that prints, so that a slow terminal holds up nothing else.
fn printer() -> Option<(SyncSender<String>, JoinHandle<()>)> {
    let (sender, lines) = mpsc::sync_channel::<String>(4);
    let print = move || lines.iter().for_each(|line| eprintln!("{line}"));
    let thread = std::thread::Builder::new().name("report".into()).spawn(print).ok()?;
    Some((sender, thread))
}
