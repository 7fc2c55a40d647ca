//! Fair division of buffer and of turns among owners: the clients on whose behalf streams are.
//!
//! Buffer is divided by dynamic thresholds (Choudhury and Hahne, "Dynamic Queue Length Thresholds
//! for Shared-Memory Packet Switches", IEEE/ACM Transactions on Networking 6(2), 1998): an owner
//! may hold at most `alpha` times what is free. With `n` owners that hold all they may, the free
//! part is `1 / (1 + n × alpha)` of the pool, so another owner always finds some, whatever the
//! others never give back. Turns are divided by round robin over owners, and over each owner's
//! entries within its turns.

use std::collections::{BTreeMap, VecDeque};

/// The party on whose account a stream or flow is: an opaque key that the layer above chooses.
///
/// All streams for which none was set have the same one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner(pub u128);

/// Bytes of one pool, and the part of it that each owner holds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shares {
    total: u64,
    /// Owners that hold something.
    held: BTreeMap<Owner, u64>,
}

impl Shares {
    /// Bytes that all owners hold.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Bytes that `owner` holds.
    pub(crate) fn of(&self, owner: Owner) -> u64 {
        self.held.get(&owner).copied().unwrap_or(0)
    }

    /// Replaces `before` of what `owner` holds by `after`.
    pub(crate) fn replace(&mut self, owner: Owner, before: u64, after: u64) {
        if before == after {
            return;
        }
        let held = self.held.entry(owner).or_default();
        *held = *held + after - before;
        if *held == 0 {
            self.held.remove(&owner);
        }
        self.total = self.total + after - before;
    }

    pub(crate) fn add(&mut self, owner: Owner, bytes: u64) {
        self.replace(owner, 0, bytes);
    }

    pub(crate) fn sub(&mut self, owner: Owner, bytes: u64) {
        self.replace(owner, bytes, 0);
    }
}

/// Bytes by which an account that holds `held` may grow so that afterwards it holds at most
/// `alpha` times what is free, of which there are `free` bytes now.
pub(crate) fn headroom(held: u64, free: u64, alpha: u64) -> u64 {
    (free.saturating_mul(alpha)).saturating_sub(held) / (1 + alpha)
}

/// Turns that an owner's first entries have while others of its own wait.
const FIRST_TURNS: u32 = 7;

/// Bytes that an owner may take in one turn: about a packet.
pub(crate) const QUANTUM: u64 = 1_500;

/// What an owner has in a [`FairQueue`].
#[derive(Debug)]
struct Queue<T> {
    /// Entries that go before the rest, but for one turn in eight.
    first: VecDeque<T>,
    rest: VecDeque<T>,
    /// Turns that `first` has had since `rest` had one.
    turns: u32,
    /// Bytes that the owner may still take in this turn, or has taken too many.
    deficit: i64,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self { first: VecDeque::new(), rest: VecDeque::new(), turns: 0, deficit: 0 }
    }
}

impl<T: Copy + PartialEq> Queue<T> {
    fn is_first_next(&self) -> bool {
        self.rest.is_empty() || !self.first.is_empty() && self.turns < FIRST_TURNS
    }

    fn front(&self) -> Option<T> {
        if self.is_first_next() { &self.first } else { &self.rest }.front().copied()
    }

    fn pop(&mut self) -> Option<T> {
        if self.is_first_next() {
            self.turns += 1;
            self.first.pop_front()
        } else {
            self.turns = 0;
            self.rest.pop_front()
        }
    }

    fn is_empty(&self) -> bool {
        self.first.is_empty() && self.rest.is_empty()
    }

    fn remove(&mut self, entry: T) -> bool {
        [&mut self.first, &mut self.rest].into_iter().any(|queue| {
            let at = queue.iter().position(|&other| other == entry);
            at.and_then(|at| queue.remove(at)).is_some()
        })
    }
}

/// A FIFO queue for each owner, which are served in turn: by deficit round robin (Shreedhar and
/// Varghese, "Efficient Fair Queuing Using Deficit Round-Robin", IEEE/ACM Transactions on
/// Networking 4(3), 1996), where entries are charged with bytes, and else an entry a turn.
///
/// The debt of an owner whose last entry has left is kept until his next turn, so that nobody takes
/// more by leaving and coming back.
#[derive(Debug)]
pub(crate) struct FairQueue<T> {
    queues: BTreeMap<Owner, Queue<T>>,
    /// Owners that have entries, or had some since their last turn, the next one first.
    turns: VecDeque<Owner>,
    len: usize,
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        Self { queues: BTreeMap::new(), turns: VecDeque::new(), len: 0 }
    }
}

impl<T: Copy + PartialEq> FairQueue<T> {
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn push(&mut self, owner: Owner, entry: T) {
        self.queue(owner).rest.push_back(entry);
    }

    /// Queues an entry that goes before others of its owner.
    pub(crate) fn push_first(&mut self, owner: Owner, entry: T) {
        self.queue(owner).first.push_back(entry);
    }

    /// The owner's queue, to which one entry is about to be added.
    fn queue(&mut self, owner: Owner) -> &mut Queue<T> {
        self.len += 1;
        self.queues.entry(owner).or_insert_with(|| {
            self.turns.push_back(owner);
            Queue::default()
        })
    }

    /// The next entry; it stays the next until [`pop`](Self::pop).
    pub(crate) fn front(&self) -> Option<T> {
        self.turns.iter().find_map(|owner| self.queues.get(owner)?.front())
    }

    /// The owner whose turn it is. Those before him have nothing, and their turns are over.
    fn owner(&mut self) -> Option<Owner> {
        while let Some(&owner) = self.turns.front() {
            if self.queues.get(&owner).is_some_and(|queue| !queue.is_empty()) {
                return Some(owner);
            }
            self.queues.remove(&owner);
            self.turns.pop_front();
        }
        None
    }

    /// The next entry has taken `bytes` of its owner's turn.
    pub(crate) fn charge(&mut self, bytes: u64) {
        let Some(owner) = self.owner() else { return };
        let Some(queue) = self.queues.get_mut(&owner) else { return };
        if queue.deficit <= 0 {
            queue.deficit += QUANTUM as i64;
        }
        // What a packet larger than two turns takes is not all made up for.
        queue.deficit = queue.deficit.saturating_sub_unsigned(bytes).max(-(QUANTUM as i64));
    }

    /// Whether something is left of the turn in which the next entry is.
    pub(crate) fn goes_on(&self) -> bool {
        let queues = self.turns.iter().filter_map(|owner| self.queues.get(owner));
        let mut waiting = queues.filter(|queue| !queue.is_empty());
        waiting.next().is_some_and(|queue| queue.deficit > 0)
    }

    /// Takes the next entry off. When nothing is left of its owner's turn, or he has no other entry,
    /// his next one waits for all other owners.
    pub(crate) fn pop(&mut self) -> Option<(Owner, T)> {
        let owner = self.owner()?;
        let queue = self.queues.get_mut(&owner)?;
        let entry = queue.pop()?;
        self.len -= 1;
        if queue.deficit <= 0 || queue.is_empty() {
            queue.deficit = queue.deficit.min(0);
            self.turns.rotate_left(1);
        }
        if self.is_empty() {
            // Nobody has waited for any of them.
            self.turns.clear();
            self.queues.clear();
        }
        Some((owner, entry))
    }

    /// Takes `entry` out, wherever it is among its owner's; true when it was there.
    pub(crate) fn remove(&mut self, owner: Owner, entry: T) -> bool {
        let removed = self.queues.get_mut(&owner).is_some_and(|queue| queue.remove(entry));
        self.len -= usize::from(removed);
        removed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SIZE: u64 = 1_000_000;

    /// Takes all that the threshold allows `owner`, a little at a time.
    fn fill(shares: &mut Shares, owner: Owner) -> u64 {
        loop {
            let more = headroom(shares.of(owner), SIZE - shares.total(), 1).min(1_000);
            if more == 0 {
                return shares.of(owner);
            }
            shares.add(owner, more);
        }
    }

    #[test]
    fn another_owner_finds_its_part_free_whatever_others_hold() {
        let mut shares = Shares::default();
        for number in 1..=20_u64 {
            // Everybody takes all that is left to him, and gives nothing back.
            let free = SIZE - shares.total();
            let had = fill(&mut shares, Owner(u128::from(number)));
            assert!(had.abs_diff(free / 2) < 10, "{number}: {had} of {free}");
        }
        // Those that hold more than their part now get nothing until they are below it.
        assert_eq!(headroom(shares.of(Owner(1)), SIZE - shares.total(), 1), 0);
        for number in 1..=20_u64 {
            let owner = Owner(u128::from(number));
            shares.sub(owner, shares.of(owner));
        }
        assert_eq!((shares.total(), shares.held.len()), (0, 0));
    }

    #[test]
    fn owners_that_give_back_and_take_again_come_to_equal_parts() {
        let mut shares = Shares::default();
        let owners: Vec<Owner> = (1..=4).map(Owner).collect();
        for round in 0..2_000 {
            let owner = owners[round % 4];
            shares.sub(owner, shares.of(owner) / 10);
            fill(&mut shares, owner);
        }
        for owner in owners {
            // One of five equal parts each, and as much is free.
            assert!(shares.of(owner).abs_diff(SIZE / 5) < SIZE / 50, "{}", shares.of(owner));
        }
    }

    #[test]
    fn owners_take_turns_however_many_entries_they_have() {
        let mut queue = FairQueue::default();
        for entry in 0..50 {
            queue.push(Owner(1), entry);
        }
        queue.push(Owner(2), 100);
        queue.push_first(Owner(1), 200);
        let mut had = [0; 2];
        for _ in 0..40 {
            let next = queue.front();
            let (owner, entry) = queue.pop().expect("entries");
            assert_eq!(next, Some(entry));
            had[owner.0 as usize - 1] += 1;
            if entry == 200 { queue.push_first(owner, entry) } else { queue.push(owner, entry) }
        }
        assert_eq!(had, [20, 20]);
        assert!(queue.remove(Owner(2), 100) && !queue.remove(Owner(2), 100));
        // What goes first does so for seven turns of eight.
        let turns: Vec<i32> = (0..16)
            .map(|_| {
                let (owner, entry) = queue.pop().expect("entries");
                if entry == 200 {
                    queue.push_first(owner, entry)
                } else {
                    queue.push(owner, entry)
                }
                entry
            })
            .collect();
        assert_eq!(turns.iter().filter(|&&entry| entry != 200).count(), 2, "{turns:?}");
        assert_eq!(queue.len(), 51);
    }

    /// RLY-3.2
    #[test]
    fn owners_share_by_bytes_whatever_sizes_their_entries_have() {
        let mut queue = FairQueue::default();
        // One has many entries of a packet each; one a single entry that goes on; one has one of 60
        // bytes each time, and leaves in between.
        for entry in 0..400_u64 {
            queue.push(Owner(1), entry);
        }
        queue.push(Owner(2), 1_000);
        queue.push(Owner(3), 2_000);
        let mut had = [0; 3];
        for _ in 0..300 {
            let entry = queue.front().expect("entries");
            let (owner, bytes) = match entry {
                0..1_000 => (0, 1_436),
                1_000..2_000 => (1, 1_436),
                _ => (2, 60),
            };
            queue.charge(bytes);
            had[owner] += bytes;
            if owner == 1 && queue.goes_on() {
                continue;
            }
            queue.pop();
            if owner > 0 {
                queue.push(Owner(owner as u128 + 1), entry);
            }
        }
        assert!(had[0].abs_diff(had[1]) <= 2 * QUANTUM, "{had:?}");
        // It had a turn in each round.
        assert!(had[2] >= had[1] / QUANTUM * 60 - 60, "{had:?}");
    }

    /// RLY-3.2
    #[test]
    fn who_leaves_with_a_debt_and_comes_back_in_the_same_round_still_has_it() {
        let mut queue = FairQueue::default();
        queue.push(Owner(1), 1);
        queue.push(Owner(2), 2);
        queue.charge(2 * QUANTUM - 100);
        assert_eq!(queue.pop(), Some((Owner(1), 1)));
        queue.push(Owner(1), 3);
        assert_eq!(queue.front(), Some(2), "it waits for the other");
        queue.charge(QUANTUM);
        queue.pop();
        queue.push(Owner(2), 4);
        // The next turn makes up for what it took too much.
        queue.charge(100);
        assert!(!queue.goes_on(), "{queue:?}");
        queue.pop();
        // It has none for a round, and begins anew.
        queue.charge(QUANTUM);
        queue.pop();
        queue.push(Owner(2), 5);
        queue.charge(QUANTUM);
        queue.pop();
        queue.push(Owner(1), 6);
        queue.charge(100);
        assert!(queue.goes_on(), "{queue:?}");
    }

    proptest! {
        /// Against a list of what everybody holds.
        #[test]
        fn no_owner_grows_beyond_what_is_free_and_the_sum_is_kept(
            steps in prop::collection::vec((0u8..6, any::<bool>(), 0u64..SIZE), 1..200),
        ) {
            let mut shares = Shares::default();
            let mut model = BTreeMap::new();
            for (owner, takes, bytes) in steps {
                let key = Owner(u128::from(owner));
                let had = model.get(&owner).copied().unwrap_or(0);
                if takes {
                    let free = SIZE - shares.total();
                    let taken = bytes.min(headroom(had, free, 1));
                    shares.add(key, taken);
                    model.insert(owner, had + taken);
                    prop_assert!(taken == 0 || had + taken <= free - taken);
                } else {
                    shares.sub(key, bytes.min(had));
                    model.insert(owner, had - bytes.min(had));
                }
                prop_assert_eq!(shares.total(), model.values().sum::<u64>());
                prop_assert!(shares.total() <= SIZE);
                for (&owner, &held) in &model {
                    prop_assert_eq!(shares.of(Owner(u128::from(owner))), held);
                }
            }
        }
    }
}
