//! FQ-CoDel (RFC 8290): flow queues with CoDel, served by deficit round robin, flows that have
//! just begun first.

use super::codel::{CoDel, CoDelState};
use super::{Exit, Waiting};
use crate::Frame;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use units::Instant;

/// Binary logarithm of the number of flow queues: the RFC's 1,024.
const QUEUES_LOG2: u32 = 10;

/// The flow queues.
#[derive(Debug)]
pub(super) struct FairCoDel<F> {
    quantum: i64,
    /// Queues that have been used, by their number; a queue keeps CoDel's state while it is empty.
    queues: BTreeMap<u64, FlowQueue<F>>,
    new: VecDeque<u64>,
    old: VecDeque<u64>,
}

#[derive(Debug)]
struct FlowQueue<F> {
    frames: VecDeque<Waiting<F>>,
    bytes: u64,
    /// Octets that it may send; below zero after a longer frame.
    deficit: i64,
    /// Whether it is in one of the lists.
    listed: bool,
    codel: CoDelState,
}

impl<F: Frame> FairCoDel<F> {
    pub(super) fn new(quantum: u32) -> Self {
        let (queues, new, old) = (BTreeMap::new(), VecDeque::new(), VecDeque::new());
        Self { quantum: i64::from(quantum), queues, new, old }
    }

    pub(super) fn set_quantum(&mut self, quantum: u32) {
        self.quantum = i64::from(quantum);
    }

    pub(super) fn push(&mut self, waiting: Waiting<F>) {
        let number = number(&waiting.frame);
        let queue = self.queues.entry(number).or_insert_with(|| FlowQueue {
            frames: VecDeque::new(),
            bytes: 0,
            deficit: 0,
            listed: false,
            codel: CoDelState::default(),
        });
        if !queue.listed {
            (queue.listed, queue.deficit) = (true, self.quantum);
            self.new.push_back(number);
        }
        queue.bytes += waiting.on_air;
        queue.frames.push_back(waiting);
    }

    pub(super) fn pop(&mut self, codel: &CoDel, now: Instant) -> Option<Exit<F>> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let number = *list.front()?;
            let queue = self.queues.get_mut(&number)?;
            if queue.deficit <= 0 {
                queue.deficit += self.quantum;
                list.pop_front();
                self.old.push_back(number);
                continue;
            }
            let Some(waiting) = queue.frames.pop_front() else {
                queue.codel.empty();
                list.pop_front();
                // An emptied queue goes through the old ones, so that it does not return as new.
                queue.listed = is_new && !self.old.is_empty();
                if queue.listed {
                    self.old.push_back(number);
                }
                continue;
            };
            queue.bytes -= waiting.on_air;
            let exit = queue.codel.pass(codel, now, waiting, queue.bytes);
            if let Exit::Goes { waiting, .. } = &exit {
                queue.deficit -= i64::try_from(waiting.on_air).unwrap_or(i64::MAX);
            }
            return Some(exit);
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Waiting<F>> {
        self.queues.values().flat_map(|queue| queue.frames.iter())
    }

    /// Removes all frames, in order of arrival.
    pub(super) fn drain(&mut self) -> Vec<Waiting<F>> {
        let queues = core::mem::take(&mut self.queues).into_values();
        let mut all: Vec<_> = queues.flat_map(|queue| queue.frames).collect();
        all.sort_by_key(|waiting| waiting.offered_at);
        (self.new, self.old) = (VecDeque::new(), VecDeque::new());
        all
    }

    /// Whether the first frame of the longest queue is at least as large as `waiting`.
    pub(super) fn displaces(&self, waiting: &Waiting<F>) -> bool {
        let first = self.longest().and_then(|number| self.queues[&number].frames.front());
        first.is_some_and(|first| first.on_air >= waiting.on_air)
    }

    /// Removes the first frame of the longest queue (RFC 8290, section 4.1).
    pub(super) fn drop_from_longest(&mut self) -> Waiting<F> {
        let number = self.longest().expect("a full queue has flows");
        let queue = self.queues.get_mut(&number).expect("found just now");
        let victim = queue.frames.pop_front().expect("the longest queue has frames");
        queue.bytes -= victim.on_air;
        victim
    }

    /// The queue with most octets; of several the lowest number, so that runs are reproducible.
    fn longest(&self) -> Option<u64> {
        let full = self.queues.iter().filter(|(_, queue)| !queue.frames.is_empty());
        full.max_by(|(a_number, a), (b_number, b)| {
            a.bytes.cmp(&b.bytes).then(b_number.cmp(a_number))
        })
        .map(|(&number, _)| number)
    }
}

/// The number of a frame's queue.
fn number(frame: &impl Frame) -> u64 {
    // Multiplicative hashing (Knuth, volume 3, section 6.4): flow numbers follow each other.
    frame.flow().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - QUEUES_LOG2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Span;

    const CODEL: CoDel =
        CoDel { target: Span::from_millis(5), interval: Span::from_millis(100), mark: false };

    #[derive(Clone)]
    struct Of(u64, u64);

    impl Frame for Of {
        fn len(&self) -> usize {
            self.1 as usize
        }
        fn flow(&self) -> u64 {
            self.0
        }
    }

    fn push(queue: &mut FairCoDel<Of>, flow: u64, bytes: u64) {
        let frame = Of(flow, bytes);
        queue.push(Waiting { frame, offered_at: Instant::ZERO, on_air: bytes });
    }

    fn pop(queue: &mut FairCoDel<Of>, at_ms: u64) -> Option<Result<u64, u64>> {
        let exit = queue.pop(&CODEL, Instant::ZERO + Span::from_millis(at_ms))?;
        Some(match exit {
            Exit::Goes { waiting, .. } => Ok(waiting.frame.0),
            Exit::Shed(waiting) => Err(waiting.frame.0),
        })
    }

    #[test]
    fn flows_that_have_just_begun_are_served_first_and_once() {
        let mut queue = FairCoDel::new(1_500);
        (0..4).for_each(|_| push(&mut queue, 1, 1_500));
        assert_eq!(pop(&mut queue, 0), Some(Ok(1)));
        push(&mut queue, 2, 1_500);
        assert_eq!(pop(&mut queue, 0), Some(Ok(2)), "the new flow");
        push(&mut queue, 2, 1_500);
        // Its quantum is used up: it is at the end of the old flows.
        let order: [_; 4] = core::array::from_fn(|_| pop(&mut queue, 0));
        assert_eq!(order, [Some(Ok(1)), Some(Ok(2)), Some(Ok(1)), Some(Ok(1))]);
        assert_eq!(pop(&mut queue, 0), None);
    }

    #[test]
    fn only_the_flow_with_a_standing_queue_loses_frames() {
        let mut queue = FairCoDel::new(1_500);
        (0..100).for_each(|_| push(&mut queue, 1, 1_500));
        assert_eq!(pop(&mut queue, 10), Some(Ok(1)));
        push(&mut queue, 2, 1_500);
        let seen: [_; 3] = core::array::from_fn(|_| pop(&mut queue, 111));
        assert_eq!(seen, [Some(Ok(2)), Some(Err(1)), Some(Ok(1))]);
    }

    #[test]
    fn a_full_queue_drops_the_first_of_the_longest() {
        let mut queue = FairCoDel::new(1_500);
        push(&mut queue, 2, 1_500);
        (0..3).for_each(|_| push(&mut queue, 1, 1_500));
        let newcomer = Waiting { frame: Of(2, 1_500), offered_at: Instant::ZERO, on_air: 1_500 };
        assert!(queue.displaces(&newcomer));
        let large = Waiting { on_air: 1_501, ..newcomer };
        assert!(!queue.displaces(&large), "one frame would not make room");
        assert_eq!(queue.drop_from_longest().frame.0, 1);
        assert_eq!(queue.drain().len(), 3);
        assert_eq!(pop(&mut queue, 0), None);
    }
}
