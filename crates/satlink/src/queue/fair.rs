//! Per-flow queues served by deficit round robin.

use super::Waiting;
use crate::Frame;
use alloc::collections::{BTreeMap, VecDeque};

/// Backlogged flows in rotation; each may send its quantum, and keeps an unused deficit while it is
/// backlogged.
#[derive(Debug)]
pub(super) struct FairQueue<F> {
    quantum: u64,
    flows: BTreeMap<u64, Flow<F>>,
    /// Backlogged flows, the one being served first.
    turns: VecDeque<u64>,
    /// Whether the first of `turns` has its quantum for this round.
    begun: bool,
}

#[derive(Debug)]
struct Flow<F> {
    frames: VecDeque<Waiting<F>>,
    bytes: u64,
    deficit: u64,
}

impl<F: Frame> FairQueue<F> {
    pub(super) fn new(quantum: u32) -> Self {
        Self {
            quantum: u64::from(quantum),
            flows: BTreeMap::new(),
            turns: VecDeque::new(),
            begun: false,
        }
    }

    pub(super) fn set_quantum(&mut self, quantum: u32) {
        self.quantum = u64::from(quantum);
    }

    pub(super) fn push(&mut self, waiting: Waiting<F>) {
        let id = waiting.frame.flow();
        let turns = &mut self.turns;
        let flow = self.flows.entry(id).or_insert_with(|| {
            turns.push_back(id);
            Flow { frames: VecDeque::new(), bytes: 0, deficit: 0 }
        });
        flow.bytes += waiting.on_air;
        flow.frames.push_back(waiting);
    }

    pub(super) fn pop(&mut self) -> Option<Waiting<F>> {
        let mut passed = 0;
        loop {
            if passed == self.turns.len() {
                self.save_up();
            }
            passed += 1;
            let id = *self.turns.front()?;
            let flow = self.flows.get_mut(&id)?;
            if !self.begun {
                flow.deficit += self.quantum;
                self.begun = true;
            }
            match flow.frames.front() {
                Some(next) if next.on_air <= flow.deficit => {
                    flow.deficit -= next.on_air;
                    flow.bytes -= next.on_air;
                    let next = flow.frames.pop_front();
                    if flow.frames.is_empty() {
                        self.flows.remove(&id);
                        self.end_turn(false);
                    }
                    return next;
                }
                Some(_) => self.end_turn(true),
                None => unreachable!("a flow without frames is not in the rotation"),
            }
        }
    }

    /// Adds the quanta of all rounds in which no flow could send: a frame may be many quanta long.
    /// Called before the first flow has its quantum.
    fn save_up(&mut self) {
        let rounds = |flow: &Flow<F>| {
            let next = flow.frames.front()?;
            Some(next.on_air.saturating_sub(flow.deficit).div_ceil(self.quantum))
        };
        let idle = self.flows.values().filter_map(rounds).min().unwrap_or(0).saturating_sub(1);
        for flow in self.flows.values_mut() {
            flow.deficit += idle * self.quantum;
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Waiting<F>> {
        self.flows.values().flat_map(|flow| flow.frames.iter())
    }

    /// Whether another flow has more octets queued than the flow of `waiting` would have, and drops
    /// a frame that is at least as large.
    pub(super) fn displaces(&self, waiting: &Waiting<F>) -> bool {
        let own = self.flows.get(&waiting.frame.flow()).map_or(0, |flow| flow.bytes);
        self.longest().is_some_and(|(_, flow)| {
            flow.bytes > own + waiting.on_air
                && flow.frames.back().is_some_and(|last| last.on_air >= waiting.on_air)
        })
    }

    /// Removes the last frame of the flow with most octets queued.
    pub(super) fn drop_from_longest(&mut self) -> Waiting<F> {
        let (id, _) = self.longest().expect("a full queue has flows");
        let flow = self.flows.get_mut(&id).expect("found just now");
        let victim = flow.frames.pop_back().expect("a flow in the queue has frames");
        flow.bytes -= victim.on_air;
        if flow.frames.is_empty() {
            self.flows.remove(&id);
            if self.turns.front() == Some(&id) {
                self.end_turn(false);
            } else {
                self.turns.retain(|&turn| turn != id);
            }
        }
        victim
    }

    /// The flow with most octets; of several the lowest number, so that runs are reproducible.
    fn longest(&self) -> Option<(u64, &Flow<F>)> {
        self.flows
            .iter()
            .max_by(|(a_id, a), (b_id, b)| a.bytes.cmp(&b.bytes).then(b_id.cmp(a_id)))
            .map(|(&id, flow)| (id, flow))
    }

    fn end_turn(&mut self, again: bool) {
        self.begun = false;
        if let Some(id) = self.turns.pop_front()
            && again
        {
            self.turns.push_back(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::vec::Vec;
    use units::Instant;

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

    fn push(queue: &mut FairQueue<Of>, flow: u64, bytes: u64) {
        let frame = Of(flow, bytes);
        queue.push(Waiting { frame, offered_at: Instant::ZERO, on_air: bytes });
    }

    #[test]
    fn flows_get_equal_bytes_whatever_their_packets() {
        let mut queue = FairQueue::new(1500);
        for _ in 0..100 {
            push(&mut queue, 1, 1500);
        }
        for _ in 0..1_000 {
            push(&mut queue, 2, 100);
        }
        let mut sent = [0u64; 3];
        while sent[1] < 60_000 {
            let next = queue.pop().expect("both have frames");
            sent[next.frame.0 as usize] += next.on_air;
        }
        assert!(sent[2].abs_diff(sent[1]) <= 1500, "{sent:?}");
    }

    #[test]
    fn quantum_below_a_frame_accumulates() {
        let mut queue = FairQueue::new(500);
        for _ in 0..3 {
            push(&mut queue, 1, 1500);
            push(&mut queue, 2, 500);
        }
        let order: Vec<_> =
            core::iter::from_fn(|| queue.pop()).map(|waiting| waiting.frame.0).collect();
        // Flow 1 has 1,500 in its third round; flow 2 sends one frame in each round.
        assert_eq!(order, [2, 2, 1, 2, 1, 1]);
    }

    /// Deficit round robin as published: round by round.
    fn pop_by_turns(queue: &mut FairQueue<Of>) -> Option<Waiting<Of>> {
        loop {
            let id = *queue.turns.front()?;
            let flow = queue.flows.get_mut(&id)?;
            flow.deficit += if queue.begun { 0 } else { queue.quantum };
            queue.begun = true;
            let next = flow.frames.front()?.on_air;
            if next > flow.deficit {
                queue.end_turn(true);
                continue;
            }
            flow.deficit -= next;
            flow.bytes -= next;
            let next = flow.frames.pop_front();
            if flow.frames.is_empty() {
                queue.flows.remove(&id);
                queue.end_turn(false);
            }
            return next;
        }
    }

    proptest! {
        #[test]
        fn accumulated_rounds_equal_single_rounds(
            quantum in 1..200u32,
            steps in vec((0..5u64, 1..3000u64, 0..3usize), 1..60),
        ) {
            let mut queues = [FairQueue::new(quantum), FairQueue::new(quantum)];
            let what = |waiting: Option<Waiting<Of>>| waiting.map(|it| (it.frame.0, it.on_air));
            for (flow, bytes, pops) in steps {
                queues.iter_mut().for_each(|queue| push(queue, flow, bytes));
                for _ in 0..pops {
                    let [fast, slow] = &mut queues;
                    prop_assert_eq!(what(fast.pop()), what(pop_by_turns(slow)));
                }
            }
        }
    }

    #[test]
    fn longest_flow_drops_its_last_frame() {
        let mut queue = FairQueue::new(1500);
        for _ in 0..5 {
            push(&mut queue, 1, 1500);
        }
        let newcomer = Waiting { frame: Of(2, 1500), offered_at: Instant::ZERO, on_air: 1500 };
        assert!(queue.displaces(&newcomer));
        queue.push(newcomer);
        assert_eq!(queue.drop_from_longest().frame.0, 1);
        let own = Waiting { frame: Of(1, 1500), offered_at: Instant::ZERO, on_air: 1500 };
        assert!(!queue.displaces(&own));
    }
}
