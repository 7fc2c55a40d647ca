//! Measurements of a running star per interval.

use super::super::carried::Carried;
use super::super::lateness::LatenessRecord;
use super::super::observe::{Printer, printer};
use super::super::summary::{self, MOST_INTERVALS, Waits};
use super::summary::{Slots, StarInterval, return_flow};
use satlink::mac::mf_tdma::{MfTdma, MfTdmaCounters};
use satlink::{Counters, Direction, Link};
use std::collections::VecDeque;
use units::{Instant, Span};

pub(super) struct Observer {
    pub(super) lateness: LatenessRecord,
    /// Forward link, and return link.
    waits: [Waits; 2],
    every: Span,
    next: Instant,
    begun: Instant,
    forward: Counters,
    back: MfTdmaCounters,
    slots: Slots,
    done: VecDeque<StarInterval>,
    printer: Option<Printer>,
}

impl Observer {
    pub(super) fn new(report_every: Option<Span>) -> Self {
        let every = report_every.unwrap_or(Span::from_secs(1)).max(Span::from_millis(10));
        Self {
            lateness: LatenessRecord::new(),
            waits: Default::default(),
            every,
            next: Instant::ZERO + every,
            begun: Instant::ZERO,
            forward: Counters::default(),
            back: MfTdmaCounters::default(),
            slots: Slots::default(),
            done: VecDeque::new(),
            printer: report_every.and_then(|_| printer()),
        }
    }

    /// Records a delivery, with the packet's time in the queue or waiting for slots, and in
    /// transmission.
    pub(super) fn delivered(&mut self, direction: Direction, waited: Span) {
        self.waits[direction as usize].note(waited);
    }

    /// Completes the interval if it has ended.
    pub(super) fn tick(&mut self, now: Instant, down: &Link<Carried>, up: &MfTdma<Carried>) {
        if now < self.next {
            return;
        }
        while self.next <= now {
            self.next += self.every;
        }
        self.close(now, down, up);
    }

    /// All intervals.
    pub(super) fn finish(
        &mut self,
        now: Instant,
        down: &Link<Carried>,
        up: &MfTdma<Carried>,
    ) -> VecDeque<StarInterval> {
        if now > self.begun {
            self.close(now, down, up);
        }
        if let Some(printer) = self.printer.take() {
            printer.end();
        }
        std::mem::take(&mut self.done)
    }

    fn close(&mut self, now: Instant, down: &Link<Carried>, up: &MfTdma<Carried>) {
        let length = now.since(self.begun);
        let [waits_down, waits_up] = std::mem::take(&mut self.waits);
        let forward = down.counters(Direction::Forward).clone();
        let queue = down.backlog(Direction::Forward).bytes;
        let slots = Slots::of(up);
        let interval = StarInterval {
            start: self.begun.as_secs_f64(),
            end: now.as_secs_f64(),
            forward: summary::flow(&self.forward, &forward, length, queue, waits_down),
            r#return: return_flow(&self.back, up.counters(), length, waits_up.mean_and_max()),
            slots: slots.since(self.slots),
            max_lateness_seconds: self.lateness.take_recent().as_secs_f64(),
        };
        (self.begun, self.forward, self.back, self.slots) = (now, forward, *up.counters(), slots);
        if let Some(printer) = &self.printer {
            printer.print(interval.to_string());
        }
        if self.done.len() == MOST_INTERVALS {
            self.done.pop_front();
        }
        self.done.push_back(interval);
    }
}
