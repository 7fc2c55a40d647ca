//! Fair division of buffer and of turns among owners: the clients whose connections use the
//! streams.
//!
//! Buffer is divided by dynamic thresholds (Choudhury and Hahne, "Dynamic Queue Length Thresholds
//! for Shared-Memory Packet Switches", IEEE/ACM Transactions on Networking 6(2), 1998): an owner
//! may hold at most `alpha` times the free part. With `n` owners at this limit the free part is `1
//! / (1 + n × alpha)` of the pool, so another owner always finds some, even if the others never
//! release theirs. Turns are divided by round robin over owners, and over each owner's entries
//! within its turns.

use std::collections::{BTreeMap, VecDeque};

/// The owner of a stream or flow: an opaque key that the layer above chooses.
///
/// All streams without an explicit owner have the same one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner(pub u128);

/// Allocated bytes of one pool, in total and by owner.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shares {
    total: u64,
    /// Bytes by owner; owners without bytes have no entry.
    held: BTreeMap<Owner, u64>,
}

impl Shares {
    /// Returns the bytes of all owners.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Returns the bytes of `owner`.
    pub(crate) fn of(&self, owner: Owner) -> u64 {
        self.held.get(&owner).copied().unwrap_or(0)
    }

    /// Replaces an allocation of `before` bytes of `owner` by one of `after` bytes.
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

/// Returns the bytes by which an account that holds `held` may grow so that afterwards it holds at
/// most `alpha` times the free part, which is `free` bytes now.
pub(crate) fn headroom(held: u64, free: u64, alpha: u64) -> u64 {
    (free.saturating_mul(alpha)).saturating_sub(held) / (1 + alpha)
}

/// Number of turns of an owner's preferred entries for each turn of its other entries.
const FIRST_TURNS: u32 = 7;

/// Minimum bytes of one turn: about one packet.
pub(crate) const QUANTUM: u64 = 1_500;

/// The entries of one owner in a [`FairQueue`].
#[derive(Debug)]
struct Queue<T> {
    /// Entries that precede the rest in seven turns of eight.
    first: VecDeque<T>,
    rest: VecDeque<T>,
    /// Turns of `first` since the last turn of `rest`.
    turns: u32,
    /// Bytes that remain in this turn; negative if the last turn was exceeded.
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

/// A FIFO queue for each owner, served by deficit round robin (Shreedhar and Varghese, "Efficient
/// Fair Queuing Using Deficit Round-Robin", IEEE/ACM Transactions on Networking 4(3), 1996) if
/// entries are charged with bytes, and one entry per turn otherwise.
#[derive(Debug)]
pub(crate) struct FairQueue<T> {
    queues: BTreeMap<Owner, Queue<T>>,
    /// Owners with entries, or with a turn since they had some, the next one first.
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

    /// Queues an entry that precedes others of its owner.
    pub(crate) fn push_first(&mut self, owner: Owner, entry: T) {
        self.queue(owner).first.push_back(entry);
    }

    /// Returns the owner's queue, to which one entry is about to be added.
    fn queue(&mut self, owner: Owner) -> &mut Queue<T> {
        self.len += 1;
        self.queues.entry(owner).or_insert_with(|| {
            self.turns.push_back(owner);
            Queue::default()
        })
    }

    /// Returns the next entry, which stays the next until [`pop`](Self::pop).
    pub(crate) fn front(&self) -> Option<T> {
        self.turns.iter().find_map(|owner| self.queues.get(owner)?.front())
    }

    /// Returns the owner whose turn it is, and ends the turns of owners before it without entries.
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

    /// Charges the turn of the next entry's owner, which is one of `quantum` bytes, with `bytes`.
    pub(crate) fn charge(&mut self, bytes: u64, quantum: u64) {
        let Some(owner) = self.owner() else { return };
        let Some(queue) = self.queues.get_mut(&owner) else { return };
        if queue.deficit <= 0 {
            queue.deficit += quantum as i64;
        }
        // The deficit is limited to one turn, so a packet larger than two turns is not charged
        // completely.
        queue.deficit = queue.deficit.saturating_sub_unsigned(bytes).max(-(quantum as i64));
    }

    /// Returns whether bytes remain in the turn of the next entry's owner.
    pub(crate) fn goes_on(&self) -> bool {
        let queues = self.turns.iter().filter_map(|owner| self.queues.get(owner));
        let mut waiting = queues.filter(|queue| !queue.is_empty());
        waiting.next().is_some_and(|queue| queue.deficit > 0)
    }

    /// Removes the next entry. If its owner's turn is used up, or the owner has no other entry, its
    /// next entry follows those of all other owners.
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
            // No entry was queued while these owners had their turns.
            self.turns.clear();
            self.queues.clear();
        }
        Some((owner, entry))
    }

    /// Removes `entry` of `owner` at any position; returns whether it was queued.
    pub(crate) fn remove(&mut self, owner: Owner, entry: T) -> bool {
        let removed = self.queues.get_mut(&owner).is_some_and(|queue| queue.remove(entry));
        self.len -= usize::from(removed);
        removed
    }
}

#[cfg(test)]
mod tests;
