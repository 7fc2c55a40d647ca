//! Slots of a table by owner, and the choice of a slot to reclaim for an owner with fewer.
//!
//! ```text
//!   table ──▶ groups (a hub's terminals) ──▶ clients ──▶ slots, the idlest first
//! ```
//!
//! Slots are shared max-min fairly: by group first, then by client within the group. While slots
//! are free, those that hold most have a share that shrinks as the table fills (the dynamic
//! threshold of Choudhury and Hahne, IEEE/ACM Transactions on Networking 6(2), 1998), so some stay
//! free for new clients. When none is free, a client that holds less than its max-min share takes
//! the slot of the idlest connection of the largest holder; one that holds its share is refused.
//! `docs/decisions/slots.md` has the reasons.
//!
//! Every operation takes logarithmic time in the number of slots.

mod pool;
pub(crate) mod reserve;

pub(crate) use pool::{SlotPool, descriptors_for};

use crate::engine::defect::{self, Defect};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use units::{Instant, Span};

/// The largest holder may hold this many times the slots that are free.
pub(crate) const SHARE_OF_FREE: usize = 8;
/// Cause of the end of a connection whose slot was reclaimed, for the log.
pub(crate) const RECLAIMED: &str = "slot reclaimed for a client with fewer connections";
/// Cause of the end of a connection that moves no bytes.
pub(crate) const IDLE: &str = "idle for limits.idle";
/// How exactly it is known when a connection last moved bytes.
const RESOLUTION: Span = Span::from_millis(100);

/// Owner of a slot: a client, within a group where there are several.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Owner<G> {
    pub(crate) group: G,
    /// The network by which the client is counted.
    pub(crate) client: IpAddr,
}

/// How many slots there are, in all and at most for one group and one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) total: usize,
    pub(crate) group: usize,
    pub(crate) client: usize,
}

impl Bounds {
    /// No bounds.
    pub(crate) const NONE: Self = Self { total: usize::MAX, group: usize::MAX, client: usize::MAX };
}

/// Which bound has been reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// The table, or the share of it that the client has.
    Table,
    /// The bound of the client's group.
    Group,
    /// The bound of the client.
    Client,
}

/// Whether there is a slot for one more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlotDecision {
    /// There is.
    Free,
    /// There is, once the slot of this connection has been released.
    Reclaim(usize),
    /// There is none.
    Refused(Full),
}

/// The slots of a table that are held, by the numbers of the connections that hold them.
#[derive(Debug)]
pub(crate) struct SlotTable<G> {
    slots: BTreeMap<usize, Slot<G>>,
    groups: BTreeMap<G, Group>,
    /// The groups by the number of slots that they hold.
    by_size: BTreeSet<(usize, G)>,
    /// Of the last slot that was taken or whose connection has moved bytes.
    order: u64,
    changed: bool,
}

#[derive(Debug)]
struct Slot<G> {
    owner: Owner<G>,
    place: Place,
}

/// A connection among those of its client: the idlest first, and in the order in which they were
/// active where the time is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    /// When it began, or last moved bytes.
    active: Instant,
    order: u64,
    index: usize,
}

#[derive(Debug, Default)]
struct Group {
    held: usize,
    /// The slots of each client, the idlest first.
    clients: BTreeMap<IpAddr, BTreeSet<Place>>,
    /// The clients by the number of slots that they hold.
    by_size: BTreeSet<(usize, IpAddr)>,
}

impl<G> Default for SlotTable<G> {
    fn default() -> Self {
        let (slots, groups, by_size) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        Self { slots, groups, by_size, order: 0, changed: false }
    }
}

impl<G: Ord + Clone> SlotTable<G> {
    /// Slots that are held.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Slots that the client holds.
    pub(crate) fn held_by(&self, owner: &Owner<G>) -> usize {
        self.group(&owner.group).map_or(0, |group| group.held_by(owner.client))
    }

    /// The groups that hold slots, and how many.
    pub(crate) fn groups(&self) -> impl Iterator<Item = (&G, usize)> {
        self.groups.iter().map(|(name, group)| (name, group.held))
    }

    /// The owner of a connection's slot, and since when the connection is idle.
    pub(crate) fn get(&self, index: usize) -> Option<(&Owner<G>, Instant)> {
        self.slots.get(&index).map(|slot| (&slot.owner, slot.place.active))
    }

    /// Whether `owner` may have one more slot; changes nothing.
    pub(crate) fn decide(&self, owner: &Owner<G>, bounds: Bounds) -> SlotDecision {
        let own = self.group(&owner.group);
        let (in_group, held) = own.map_or((0, 0), |own| (own.held, own.held_by(owner.client)));
        if held >= bounds.client {
            return SlotDecision::Refused(Full::Client);
        }
        // Moving one slot helps where the difference is two: the other then holds no less.
        let larger_group =
            self.by_size.last().filter(|(size, _)| *size >= in_group + 2).map(|(_, name)| name);
        let has_larger_client = own.is_some_and(|own| own.largest() >= held + 2);
        let group_is_full = in_group >= bounds.group;
        let free = bounds.total.saturating_sub(self.len());
        if free > 0 && !group_is_full {
            let is_small = larger_group.is_some() || has_larger_client;
            return match is_small || held < SHARE_OF_FREE * free {
                true => SlotDecision::Free,
                false => SlotDecision::Refused(Full::Table),
            };
        }
        let from = larger_group.filter(|_| !group_is_full).and_then(|name| self.group(name));
        let from = from.or(own.filter(|_| has_larger_client));
        match from.and_then(Group::idlest_of_largest) {
            Some(index) if !defect::has(Defect::NoReclaim) => SlotDecision::Reclaim(index),
            Some(_) | None if group_is_full => SlotDecision::Refused(Full::Group),
            Some(_) | None => SlotDecision::Refused(Full::Table),
        }
    }

    /// The idlest connection of the client, if it has one.
    pub(crate) fn idlest_of(&self, owner: &Owner<G>) -> Option<usize> {
        let slots = self.group(&owner.group)?.clients.get(&owner.client)?;
        slots.first().map(|place| place.index)
    }

    /// The connection `index` holds a slot from here on.
    pub(crate) fn occupy(&mut self, now: Instant, owner: Owner<G>, index: usize) {
        debug_assert!(!self.slots.contains_key(&index), "one slot for each connection");
        let group = self.groups.entry(owner.group.clone()).or_default();
        self.by_size.remove(&(group.held, owner.group.clone()));
        self.order += 1;
        let place = Place { active: now, order: self.order, index };
        group.add(owner.client, place);
        self.by_size.insert((group.held, owner.group.clone()));
        self.slots.insert(index, Slot { owner, place });
        self.changed = true;
    }

    /// The connection has moved bytes.
    pub(crate) fn touch(&mut self, now: Instant, index: usize) {
        let Some(slot) = self.slots.get_mut(&index) else { return };
        if now < slot.place.active + RESOLUTION {
            return;
        }
        self.order += 1;
        let place = Place { active: now, order: self.order, index };
        let before = std::mem::replace(&mut slot.place, place);
        let clients = self.groups.get_mut(&slot.owner.group).map(|group| &mut group.clients);
        if let Some(slots) = clients.and_then(|all| all.get_mut(&slot.owner.client)) {
            slots.remove(&before);
            slots.insert(place);
        }
    }

    /// The connection holds no slot any more; whose it was, if it held one.
    pub(crate) fn release(&mut self, index: usize) -> Option<Owner<G>> {
        let Slot { owner, place } = self.slots.remove(&index)?;
        if let Some(group) = self.groups.get_mut(&owner.group) {
            self.by_size.remove(&(group.held, owner.group.clone()));
            group.remove(owner.client, place);
            if group.held > 0 {
                self.by_size.insert((group.held, owner.group.clone()));
            } else {
                self.groups.remove(&owner.group);
            }
        }
        self.changed = true;
        Some(owner)
    }

    /// Whether a group has more slots, or fewer, than at the last [`SlotTable::take_changed`].
    pub(crate) fn has_changed(&self) -> bool {
        self.changed
    }

    /// The same, and from here on none has.
    pub(crate) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    fn group(&self, name: &G) -> Option<&Group> {
        self.groups.get(name)
    }
}

impl Group {
    fn held_by(&self, client: IpAddr) -> usize {
        self.clients.get(&client).map_or(0, BTreeSet::len)
    }

    /// Slots of the client that holds most.
    fn largest(&self) -> usize {
        self.by_size.last().map_or(0, |(size, _)| *size)
    }

    fn idlest_of_largest(&self) -> Option<usize> {
        let (_, client) = self.by_size.last()?;
        self.clients.get(client)?.first().map(|place| place.index)
    }

    fn add(&mut self, client: IpAddr, slot: Place) {
        let slots = self.clients.entry(client).or_default();
        self.by_size.remove(&(slots.len(), client));
        slots.insert(slot);
        self.by_size.insert((slots.len(), client));
        self.held += 1;
    }

    fn remove(&mut self, client: IpAddr, slot: Place) {
        let Some(slots) = self.clients.get_mut(&client) else { return };
        self.by_size.remove(&(slots.len(), client));
        slots.remove(&slot);
        self.held -= 1;
        if slots.is_empty() {
            self.clients.remove(&client);
        } else {
            self.by_size.insert((slots.len(), client));
        }
    }
}

#[cfg(test)]
mod tests;
