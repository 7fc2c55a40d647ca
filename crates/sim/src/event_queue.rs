//! An event queue.

use core::cmp::Reverse;
use std::collections::BinaryHeap;
use units::Instant;

/// Events in the order of their times; events at the same time are in insertion order.
#[derive(Debug)]
pub struct EventQueue<E> {
    heap: BinaryHeap<Reverse<Entry<E>>>,
    next: u64,
}

#[derive(Debug)]
struct Entry<E> {
    at: Instant,
    number: u64,
    event: E,
}

impl<E> EventQueue<E> {
    /// Creates an empty queue.
    pub fn new() -> Self {
        Self { heap: BinaryHeap::new(), next: 0 }
    }

    /// Schedules `event` for `at`.
    pub fn push(&mut self, at: Instant, event: E) {
        self.heap.push(Reverse(Entry { at, number: self.next, event }));
        self.next += 1;
    }

    /// The time of the next event.
    pub fn next_at(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse(entry)| entry.at)
    }

    /// Removes and returns the next event if it is due by `now`.
    pub fn pop_due(&mut self, now: Instant) -> Option<(Instant, E)> {
        if self.next_at()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| (entry.at, entry.event))
    }
}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E> Entry<E> {
    fn key(&self) -> (Instant, u64) {
        (self.at, self.number)
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_ordered_by_time_and_then_by_insertion() {
        let mut queue = EventQueue::new();
        let at = |ns| Instant::from_nanos(ns);
        for (time, event) in [(5, 'c'), (3, 'a'), (5, 'd'), (3, 'b')] {
            queue.push(at(time), event);
        }
        assert_eq!(queue.pop_due(at(2)), None);
        let order: String =
            core::iter::from_fn(|| queue.pop_due(at(9)).map(|(_, event)| event)).collect();
        assert_eq!(order, "abcd");
        assert_eq!(queue.next_at(), None);
    }
}
