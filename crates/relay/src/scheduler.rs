//! Whose turn it is.

use crate::target::{Priority, StreamId};
use std::collections::VecDeque;
use units::{Instant, Span};

/// Bytes that a stream may send in one turn: about a packet.
pub(crate) const QUANTUM: i64 = 1_500;
/// Turns that a class may have while a lower one waits: nothing starves.
const TURNS: u32 = 7;
/// Bytes that a stream may have sent lately and still go before bulk.
const LITTLE: u64 = 64 << 10;
/// Bytes a second that are forgotten.
const FORGOTTEN: u64 = 32 << 10;

/// How much a stream has sent lately.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lately {
    level: u64,
    at: Instant,
}

impl Lately {
    pub(crate) fn add(&mut self, now: Instant, bytes: u64) {
        self.forget(now);
        self.level += bytes;
    }

    fn forget(&mut self, now: Instant) {
        let second = u128::from(Span::from_secs(1).as_nanos());
        let span = u128::from(now.since(self.at).as_nanos());
        let gone = (u128::from(FORGOTTEN) * span / second) as u64;
        if gone >= self.level {
            self.level = 0;
            self.at = self.at.max(now);
        } else {
            self.level -= gone;
            // What a rounding left over is forgotten next time.
            let accounted = u128::from(gone) * second / u128::from(FORGOTTEN);
            self.at += Span::from_nanos(accounted as u64);
        }
    }

    pub(crate) fn is_little(&mut self, now: Instant) -> bool {
        self.forget(now);
        self.level < LITTLE
    }
}

/// The class that a stream of `priority` is served in now.
pub(crate) fn class(priority: Priority, little: bool) -> Class {
    match (priority, little) {
        (Priority::Interactive, _) | (Priority::Normal, true) => Class::Interactive,
        (Priority::Normal, false) => Class::Bulk,
        (Priority::Background, _) => Class::Background,
    }
}

/// Which queue a stream or a flow waits in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Flows that ask for it and send little.
    Urgent,
    Interactive,
    Bulk,
    Background,
}

/// Who waits for a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    Stream(StreamId),
    /// Packets that are carried as they are, of one flow.
    Flow(usize),
}

/// Streams and flows that have something to send, each in one queue, once.
///
/// Within a class they take turns (deficit round robin: a turn is a quantum of bytes, and what a
/// stream took too much it waits for). A higher class goes first, but for one turn in eight.
#[derive(Debug, Default)]
pub(crate) struct Scheduler {
    queues: [VecDeque<Entry>; 4],
    /// Turns that each class has had since a lower one that waited had one.
    turns: [u32; 4],
}

impl Scheduler {
    pub(crate) fn is_empty(&self) -> bool {
        self.queues.iter().all(VecDeque::is_empty)
    }

    pub(crate) fn len(&self) -> usize {
        self.queues.iter().map(VecDeque::len).sum()
    }

    pub(crate) fn push(&mut self, class: Class, entry: Entry) {
        self.queues[class as usize].push_back(entry);
    }

    /// Whose turn it is; it stays at the front until [`finish_turn`](Self::finish_turn).
    pub(crate) fn front(&self) -> Option<(Class, Entry)> {
        let mut chosen = None;
        for class in [Class::Urgent, Class::Interactive, Class::Bulk, Class::Background] {
            let Some(&entry) = self.queues[class as usize].front() else { continue };
            if chosen.is_none() || self.turns[class as usize] >= TURNS {
                chosen = Some((class, entry));
            }
        }
        chosen
    }

    /// Takes the first off the front of its class; its turn is over.
    pub(crate) fn finish_turn(&mut self, class: Class) -> Option<Entry> {
        // `turns[c]` counts turns of higher classes that `c` waited through.
        for lower in class as usize + 1..self.queues.len() {
            if !self.queues[lower].is_empty() {
                self.turns[lower] += 1;
            }
        }
        self.turns[class as usize] = 0;
        self.queues[class as usize].pop_front()
    }

    /// Takes a stream out, wherever it is.
    pub(crate) fn remove(&mut self, id: StreamId) {
        for queue in &mut self.queues {
            queue.retain(|&other| other != Entry::Stream(id));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u32) -> StreamId {
        StreamId::new(number, false)
    }

    fn stream(number: u32) -> Entry {
        Entry::Stream(id(number))
    }

    /// RLY-3.2
    #[test]
    fn interactive_goes_first_but_for_one_turn_in_eight() {
        let mut scheduler = Scheduler::default();
        scheduler.push(Class::Bulk, stream(1));
        scheduler.push(Class::Interactive, stream(2));
        let mut turns = Vec::new();
        for _ in 0..16 {
            let (class, who) = scheduler.front().expect("both wait");
            assert_eq!(scheduler.finish_turn(class), Some(who));
            scheduler.push(class, who);
            turns.push(if who == stream(1) { 1 } else { 2 });
        }
        assert_eq!(turns, [2, 2, 2, 2, 2, 2, 2, 1, 2, 2, 2, 2, 2, 2, 2, 1]);
        scheduler.remove(id(2));
        assert_eq!(scheduler.front(), Some((Class::Bulk, stream(1))));
        scheduler.remove(id(1));
        assert!(scheduler.is_empty());
    }

    /// RLY-3.2
    #[test]
    fn sending_little_is_forgotten_at_32_kilobytes_a_second() {
        let mut lately = Lately::default();
        let at = |secs| Instant::ZERO + Span::from_secs(secs);
        lately.add(at(1), LITTLE + FORGOTTEN);
        assert!(!lately.is_little(at(1)));
        assert!(!lately.is_little(at(2)));
        assert!(lately.is_little(at(3)));
        // Looking often forgets no more than looking once.
        lately.add(at(10), LITTLE + FORGOTTEN);
        for step in 0..20_000 {
            assert!(!lately.is_little(at(10) + Span::from_micros(step * 50)));
        }
        assert!(lately.is_little(at(12)));
    }

    #[test]
    fn classes_follow_priority_and_what_was_sent() {
        assert_eq!(class(Priority::Interactive, false), Class::Interactive);
        assert_eq!(class(Priority::Normal, true), Class::Interactive);
        assert_eq!(class(Priority::Normal, false), Class::Bulk);
        assert_eq!(class(Priority::Background, true), Class::Background);
    }
}
