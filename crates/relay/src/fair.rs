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
mod tests;
