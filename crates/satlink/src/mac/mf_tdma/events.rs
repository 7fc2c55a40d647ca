//! Timed events: plans, slots, and arrivals at the scheduler.

use super::terminal::{Cell, Waiting};
use super::{Arrived, MfTdma, Site};
use crate::Frame;
use crate::mac::schedule::Request;
use crate::mac::slots::Place;
use units::{Instant, Span};

#[derive(Debug)]
pub(super) enum Event<F> {
    /// The scheduler plans the next frame.
    Plan,
    /// A terminal's slot starts, at the terminal.
    Slot { terminal: u32, frame: u64, place: Place },
    /// A terminal's sync burst, at the terminal.
    Sync { terminal: u32, frame: u64 },
    /// A traffic burst arrives at the scheduler.
    Burst { terminal: u32, frame: u64, place: Place, sent: Sent<F> },
    /// A log-on slot has ended at the scheduler.
    Called { slot: u64 },
    /// A terminal detects that its log-on burst was not received.
    Unheard { terminal: u32, slot: u64 },
    /// A terminal detects that it has lost its slots.
    Dropped { terminal: u32 },
    /// A message outside of traffic slots arrives at the scheduler.
    Word { terminal: u32, word: Word },
}

#[derive(Debug)]
pub(super) struct Sent<F> {
    pub(super) cell: Cell<F>,
    pub(super) request: Option<Request>,
    pub(super) lost: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Word {
    LogOn,
    LogOff,
    Here(Option<Request>),
}

/// Why a packet will not arrive completely.
#[derive(Clone, Copy, Debug)]
pub(super) enum Damage {
    Lost,
    Collided,
}

/// Timed events.
impl<F: Frame> MfTdma<F> {
    pub(super) fn put(&mut self, at: Instant, event: Event<F>) {
        self.agenda.insert((at, self.next_event), event);
        self.next_event += 1;
    }

    pub(super) fn say(&mut self, terminal: usize, word: Word) {
        let at = self.now + self.terminals[terminal].way;
        self.put(at, Event::Word { terminal: terminal as u32, word });
    }

    pub(super) fn advance(&mut self, now: Instant) {
        while let Some(entry) = self.agenda.first_entry().filter(|entry| entry.key().0 <= now) {
            let ((at, _), event) = entry.remove_entry();
            self.now = self.now.max(at);
            match event {
                Event::Plan => self.plan(at),
                Event::Slot { terminal, frame, place } => self.slot(at, terminal, frame, place),
                Event::Sync { terminal, frame } => self.sync(at, terminal, frame),
                Event::Burst { terminal, frame, place, sent } => {
                    self.arrive(at, terminal, (frame, place), sent);
                }
                Event::Called { slot } => self.called(at, slot),
                Event::Unheard { terminal, slot } => self.unheard(at, terminal, slot),
                Event::Dropped { terminal } => self.on_dropped(at, terminal),
                Event::Word { terminal, word } => self.hear(terminal as usize, word),
            }
        }
        self.now = self.now.max(now);
    }

    /// Plans the next frame and sends the plan to the terminals.
    fn plan(&mut self, at: Instant) {
        let (frame, start) = (self.frame, at + self.ahead);
        self.frame += 1;
        self.next_plan = at + self.config.period;
        self.put(self.next_plan, Event::Plan);
        // Frames before this one have arrived, except for those in flight.
        let under_way = self.ahead.as_nanos() / self.config.period.as_nanos() + 2;
        let oldest = frame.saturating_sub(under_way);
        self.noise = self.noise.split_off(&(oldest, Place { carrier: 0, position: 0 }));
        let slot = self.config.slot();
        // Each frame starts at another position, so that no terminal is always first.
        let mut index = self.layout.start_of(frame);
        for grant in self.scheduler.plan() {
            let (first, terminal) = (index, grant.terminal);
            index += grant.slots;
            self.counters.granted += u64::from(grant.slots);
            self.each[terminal].granted += u64::from(grant.slots);
            if self.rng.chance(self.config.plan_loss) {
                self.counters.plans_missed += 1;
                continue;
            }
            let way = self.terminals[terminal].way;
            self.terminals[terminal].on_plan(frame, at + way, grant.slots);
            for index in first..index {
                let place = self.layout.place(index);
                let sent_at = start + slot * u64::from(place.position) - way;
                let terminal = terminal as u32;
                self.put(sent_at, Event::Slot { terminal, frame, place });
            }
        }
        if self.scheduler.dropped() > self.dropped_before {
            self.dropped_before = self.scheduler.dropped();
            self.call_back(at);
        }
        let Some(every) = self.config.sync else { return };
        let (every, count) = (u64::from(every), self.terminals.len());
        for terminal in (0..count).filter(|&k| (frame + k as u64).is_multiple_of(every)) {
            // Each terminal has its own time in the frame.
            let offset = self.config.period.mul_ratio(terminal as u64, count as u64);
            let sent_at = start + offset - self.terminals[terminal].way;
            self.put(sent_at, Event::Sync { terminal: terminal as u32, frame });
        }
    }

    /// A terminal's slot begins.
    fn slot(&mut self, at: Instant, number: u32, frame: u64, place: Place) {
        let index = number as usize;
        let terminal = &mut self.terminals[index];
        terminal.use_slot(frame);
        if !terminal.online {
            return;
        }
        let Some(cell) = terminal.next_cell(self.config.order) else { return };
        let request = terminal.ask(&self.config, at, frame);
        self.counters.used += 1;
        self.each[index].used += 1;
        let (way, late) = (terminal.way, terminal.late);
        let lost = self.rng.chance(self.config.burst_loss) || late;
        if late {
            self.counters.late += 1;
            let behind = Place { position: place.position + 1, ..place };
            self.noise.insert((frame, behind));
        }
        let request = request.filter(|_| self.passes_request(lost));
        let on_air = self.config.rate.time_for(self.config.format.on_air());
        let sent = Sent { cell, request, lost };
        self.put(at + way + on_air, Event::Burst { terminal: number, frame, place, sent });
    }

    /// Counts a request; returns whether it is received if its burst is.
    fn passes_request(&mut self, burst_lost: bool) -> bool {
        let lost = self.rng.chance(self.config.request_loss) || burst_lost;
        self.counters.requests += 1;
        self.counters.requests_lost += u64::from(lost);
        !lost
    }

    fn sync(&mut self, at: Instant, number: u32, frame: u64) {
        let terminal = &mut self.terminals[number as usize];
        if !terminal.online || !terminal.admitted {
            return;
        }
        let request = terminal.ask(&self.config, at, frame);
        let lost = self.rng.chance(self.config.burst_loss);
        let request = request.filter(|_| self.passes_request(lost));
        if !lost {
            self.say(number as usize, Word::Here(request));
        }
    }

    fn hear(&mut self, terminal: usize, word: Word) {
        match word {
            Word::LogOn => self.admit(terminal),
            Word::LogOff => {
                self.terminals[terminal].admitted = false;
                self.scheduler.log_off(terminal);
            }
            Word::Here(request) => {
                self.scheduler.heard(terminal);
                if let Some(request) = request {
                    self.scheduler.handle_request(terminal, request);
                }
            }
        }
    }

    /// Handles the arrival of a traffic burst.
    fn arrive(&mut self, at: Instant, number: u32, slot: (u64, Place), sent: Sent<F>) {
        let terminal = number as usize;
        let Sent { cell, request, lost } = sent;
        let collided = self.noise.contains(&slot);
        let damage = &mut self.damage[terminal][cell.class as usize];
        if cell.first {
            *damage = None;
        }
        if lost {
            damage.get_or_insert(Damage::Lost);
        } else if collided {
            damage.get_or_insert(Damage::Collided);
            self.counters.requests_lost += u64::from(request.is_some());
        } else {
            self.scheduler.heard(terminal);
            if let Some(request) = request {
                self.scheduler.handle_request(terminal, request);
            }
        }
        let Some(waiting) = cell.last else { return };
        let bytes = waiting.frame.len() as u64;
        match self.damage[terminal][cell.class as usize].take() {
            None => {
                let rest = match self.config.site {
                    Site::Hub => Span::ZERO,
                    Site::OnBoard => self.config.hub_leg,
                };
                let Waiting { frame, offered_at, .. } = waiting;
                self.arrived.push(Arrived { at: at + rest, terminal, frame, offered_at });
            }
            Some(Damage::Lost) => {
                self.counters.held.remove(bytes);
                self.counters.lost.add(bytes);
            }
            Some(Damage::Collided) => {
                self.counters.held.remove(bytes);
                self.counters.collided.add(bytes);
            }
        }
    }
}
