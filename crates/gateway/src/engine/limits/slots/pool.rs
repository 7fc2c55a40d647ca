//! The slots of a gateway's connections: the table, how many slots there are now, and what is said
//! of clients that want more.

use super::{Bounds, Full, Owner, SlotTable, Verdict};
use crate::Limits;
use crate::engine::host::{Descriptors, Reserve};
use crate::engine::limits::client_network::client_network;
use crate::engine::limits::log_budget::Complaints;
use std::net::IpAddr;
use std::sync::Arc;
use units::{Instant, Span};

/// Descriptors that a gateway needs beside those of connections.
const OTHER_DESCRIPTORS: u64 = 100;
/// For how long no more connections are taken than there were when descriptors ran out.
const SHORTAGE: Span = Span::from_secs(1);

/// The slots of connections. The group of a hub's client is its terminal; elsewhere there is one
/// group, without a name.
#[derive(Debug)]
pub(crate) struct SlotPool {
    pub(crate) table: SlotTable<Arc<str>>,
    connections: usize,
    /// As many connections as the process may have descriptors for.
    most: usize,
    ipv6_prefix: u32,
    /// Until when there are only so many slots, because descriptors have run out.
    shortage: Option<(Instant, usize)>,
    reserve: Box<dyn Reserve>,
    complaints: Complaints,
}

impl SlotPool {
    /// The slots that `limits` ask for, if there are `each` descriptors for every one of them.
    pub(crate) fn new(limits: &Limits, descriptors: Descriptors, each: u64) -> Self {
        let most = slots_for(descriptors.limit, each);
        let mut pool = Self {
            table: SlotTable::default(),
            connections: 0,
            most: usize::try_from(most).unwrap_or(usize::MAX),
            ipv6_prefix: 0,
            shortage: None,
            reserve: descriptors.reserve,
            complaints: Complaints::default(),
        };
        pool.set(limits);
        pool
    }

    /// Takes other limits; connections that run keep their slots.
    pub(crate) fn set(&mut self, limits: &Limits) {
        (self.connections, self.ipv6_prefix) = (limits.connections as usize, limits.ipv6_prefix);
    }

    /// Who `client` of `group` is when slots are counted.
    pub(crate) fn owner(&self, group: &Arc<str>, client: IpAddr) -> Owner<Arc<str>> {
        Owner { group: Arc::clone(group), client: client_network(client, self.ipv6_prefix) }
    }

    /// Slots that there are.
    pub(crate) fn total(&self, now: Instant) -> usize {
        let usual = self.connections.min(self.most);
        match self.shortage {
            Some((until, slots)) if now < until => usual.min(slots),
            Some(_) | None => usual,
        }
    }

    /// Whether a slot is free.
    pub(crate) fn has_room(&self, now: Instant) -> bool {
        self.table.len() < self.total(now)
    }

    /// Whether [`SlotPool::admit`] would find a slot for `owner`; takes none.
    pub(crate) fn may_have(
        &self,
        now: Instant,
        owner: &Owner<Arc<str>>,
        (group, client): (usize, usize),
    ) -> bool {
        let bounds = Bounds { total: self.total(now), group, client };
        !matches!(self.table.judge(owner, bounds), Verdict::Refused(_))
    }

    /// Whether `owner` may have one more slot within these bounds of its group and its own. The
    /// connection that is returned has lost its slot to it, and is to be reset.
    pub(crate) fn admit(
        &mut self,
        now: Instant,
        owner: &Owner<Arc<str>>,
        (group, client): (usize, usize),
    ) -> Result<Option<usize>, Full> {
        let bounds = Bounds { total: self.total(now), group, client };
        match self.table.judge(owner, bounds) {
            Verdict::Free => Ok(None),
            Verdict::Refused(full) => Err(full),
            Verdict::Reclaim(index) => {
                let since = self.table.get(index).map_or(now, |(_, since)| since);
                if let Some(from) = self.table.release(index)
                    && self.complaints.may_say(now)
                {
                    let held = self.table.held_by(&from) + 1;
                    let idle_seconds = now.since(since).as_secs_f64();
                    tracing::warn!(
                        terminal = &*from.group, client = %from.client, held, idle_seconds,
                        limit = "connections", "lost an idle connection: another has fewer"
                    );
                }
                Ok(Some(index))
            }
        }
    }

    /// Says that `owner` was refused because of `limit`, now and then.
    pub(crate) fn refused(&mut self, now: Instant, owner: &Owner<Arc<str>>, limit: &'static str) {
        if self.complaints.may_say(now) {
            let held = self.table.held_by(owner);
            tracing::warn!(terminal = &*owner.group, client = %owner.client, limit, held, "refused");
        }
    }

    /// Descriptors have run out: for a while the table is full. True when one is free now, for a
    /// client that is to be judged by that.
    pub(crate) fn descriptors_ran_out(&mut self, now: Instant) -> bool {
        self.shortage = Some((now + SHORTAGE, self.table.len()));
        self.reserve.give_up()
    }

    /// Whether descriptors have run out a moment ago.
    pub(crate) fn is_short(&self, now: Instant) -> bool {
        self.shortage(now).is_some()
    }

    /// Until when there are fewer slots because descriptors have run out.
    pub(crate) fn shortage(&self, now: Instant) -> Option<Instant> {
        self.shortage.map(|(until, _)| until).filter(|until| now < *until)
    }

    /// Keeps a descriptor for the next time, if there is one.
    pub(crate) fn restore_reserve(&mut self) {
        self.reserve.restore();
    }
}

/// Connections for which `descriptors` suffice, `each` for one connection: a fifth of them is left
/// to clients that still tell a proxy what they want, and to other use.
fn slots_for(descriptors: u64, each: u64) -> u64 {
    (descriptors.saturating_sub(OTHER_DESCRIPTORS) / 5 * 4 / each).max(1)
}

/// Descriptors that a gateway needs for so many connections, `each` for one connection.
pub(crate) fn descriptors_for(connections: u32, each: u64) -> u64 {
    (u64::from(connections) * each).div_ceil(4) * 5 + OTHER_DESCRIPTORS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(connections: u32) -> SlotPool {
        let limits = Limits { connections, ..Limits::default() };
        SlotPool::new(&limits, crate::driver::descriptors(), 1)
    }

    #[test]
    fn descriptors_suffice_for_the_slots_that_they_are_counted_for() {
        for (connections, each) in [(1, 1), (4_096, 1), (4_096, 2), (1_000_000, 2)] {
            let slots = slots_for(descriptors_for(connections, each), each);
            assert!(slots >= u64::from(connections), "{connections}: {slots}");
        }
    }

    #[test]
    fn the_addresses_of_an_ipv6_network_are_one_client() {
        let (mut pool, group): (_, Arc<str>) = (pool(50), "".into());
        let who = |pool: &SlotPool, address: &str| pool.owner(&group, address.parse().unwrap());
        let (one, other) = (who(&pool, "2001:db8:0:1::1"), who(&pool, "2001:db8:0:1:ffff::9"));
        assert_eq!(one, other);
        assert_ne!(one, who(&pool, "2001:db8:0:2::1"));
        pool.set(&Limits { ipv6_prefix: 48, ..Limits::default() });
        assert_eq!(who(&pool, "2001:db8:0:1::1"), who(&pool, "2001:db8:0:2::1"));
    }

    #[test]
    fn without_descriptors_the_table_is_full_for_a_while() {
        let (mut pool, now) = (pool(50), Instant::ZERO + Span::from_secs(1));
        let group: Arc<str> = "".into();
        let [many, new] = [1, 2].map(|host| pool.owner(&group, [10, 1, 0, host].into()));
        for index in 0..10 {
            assert_eq!(pool.admit(now, &many, (50, 50)), Ok(None));
            pool.table.occupy(now, many.clone(), index);
        }
        assert!(pool.descriptors_ran_out(now), "the reserve");
        assert!(!pool.descriptors_ran_out(now), "is one descriptor");
        assert_eq!(pool.admit(now, &many, (50, 50)), Err(Full::Table));
        assert_eq!(pool.admit(now, &new, (50, 50)), Ok(Some(0)), "the idlest of the other");
        pool.restore_reserve();
        assert!(pool.descriptors_ran_out(now));
        assert_eq!(pool.admit(now + SHORTAGE, &many, (50, 50)), Ok(None));
    }
}
