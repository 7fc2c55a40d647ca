//! Slots of a gateway's connections: the table, the number of available slots, and the log of
//! refusals.

use super::{Bounds, Full, Owner, SlotDecision, SlotTable};
use crate::Limits;
use crate::engine::host::{Descriptors, Reserve};
use crate::engine::limits::client_network::client_network;
use crate::engine::limits::log_budget::LogBudget;
use std::net::IpAddr;
use std::sync::Arc;
use units::{Instant, Span};

/// Number of descriptors for other use than connections.
const OTHER_DESCRIPTORS: u64 = 100;
/// Time for which the number of slots is reduced after descriptors ran out.
const SHORTAGE: Span = Span::from_secs(1);

/// The slots of connections. The group of a hub's client is its terminal; elsewhere there is one
/// group, without a name.
#[derive(Debug)]
pub(crate) struct SlotPool {
    pub(crate) table: SlotTable<Arc<str>>,
    connections: usize,
    /// Maximum number of connections by the limit on descriptors.
    most: usize,
    ipv6_prefix: u32,
    /// Reduced number of slots after descriptors ran out, and until when.
    shortage: Option<(Instant, usize)>,
    reserve: Box<dyn Reserve>,
    log_budget: LogBudget,
}

impl SlotPool {
    /// Slots as configured by `limits`, at most as many as there are descriptors, `each` for one.
    pub(crate) fn new(limits: &Limits, descriptors: Descriptors, each: u64) -> Self {
        let most = slots_for(descriptors.limit, each);
        let mut pool = Self {
            table: SlotTable::default(),
            connections: 0,
            most: usize::try_from(most).unwrap_or(usize::MAX),
            ipv6_prefix: 0,
            shortage: None,
            reserve: descriptors.reserve,
            log_budget: LogBudget::default(),
        };
        pool.set(limits);
        pool
    }

    /// Applies other limits. Running connections keep their slots.
    pub(crate) fn set(&mut self, limits: &Limits) {
        (self.connections, self.ipv6_prefix) = (limits.connections as usize, limits.ipv6_prefix);
    }

    /// Returns the slot owner for `client` of `group`.
    pub(crate) fn owner(&self, group: &Arc<str>, client: IpAddr) -> Owner<Arc<str>> {
        Owner { group: Arc::clone(group), client: client_network(client, self.ipv6_prefix) }
    }

    /// Returns the number of slots, used or free.
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

    /// Whether [`SlotPool::admit`] would return a slot for `owner`; changes nothing.
    pub(crate) fn may_have(
        &self,
        now: Instant,
        owner: &Owner<Arc<str>>,
        (group, client): (usize, usize),
    ) -> bool {
        let bounds = Bounds { total: self.total(now), group, client };
        !matches!(self.table.decide(owner, bounds), SlotDecision::Refused(_))
    }

    /// Checks whether `owner` may have one more slot within these bounds of its group and its own.
    /// The slot of the returned connection was reclaimed for it; that connection is to be reset.
    pub(crate) fn admit(
        &mut self,
        now: Instant,
        owner: &Owner<Arc<str>>,
        (group, client): (usize, usize),
    ) -> Result<Option<usize>, Full> {
        let bounds = Bounds { total: self.total(now), group, client };
        match self.table.decide(owner, bounds) {
            SlotDecision::Free => Ok(None),
            SlotDecision::Refused(full) => Err(full),
            SlotDecision::Reclaim(index) => {
                let since = self.table.get(index).map_or(now, |(_, since)| since);
                if let Some(from) = self.table.release(index)
                    && self.log_budget.allow(now)
                {
                    let held = self.table.held_by(&from) + 1;
                    let idle_seconds = now.since(since).as_secs_f64();
                    tracing::warn!(
                        terminal = &*from.group, client = %from.client, held, idle_seconds,
                        limit = "connections", "idle connection reset: its slot was reclaimed for a client with fewer"
                    );
                }
                Ok(Some(index))
            }
        }
    }

    /// Logs a refusal of `owner` because of `limit`, within the log budget.
    pub(crate) fn refused(&mut self, now: Instant, owner: &Owner<Arc<str>>, limit: &'static str) {
        if self.log_budget.allow(now) {
            let held = self.table.held_by(owner);
            tracing::warn!(terminal = &*owner.group, client = %owner.client, limit, held, "refused");
        }
    }

    /// Notes that descriptors have run out, so that the table counts as full for [`SHORTAGE`]. True
    /// if the reserved descriptor is free now.
    pub(crate) fn descriptors_ran_out(&mut self, now: Instant) -> bool {
        self.shortage = Some((now + SHORTAGE, self.table.len()));
        self.reserve.give_up()
    }

    /// Whether the number of slots is reduced.
    pub(crate) fn is_short(&self, now: Instant) -> bool {
        self.shortage(now).is_some()
    }

    /// Returns until when the number of slots is reduced.
    pub(crate) fn shortage(&self, now: Instant) -> Option<Instant> {
        self.shortage.map(|(until, _)| until).filter(|until| now < *until)
    }

    /// Reserves a descriptor for the next shortage, if one is available.
    pub(crate) fn restore_reserve(&mut self) {
        self.reserve.restore();
    }
}

/// Returns the number of connections for which `descriptors` suffice, `each` for one connection. A
/// fifth of them is left to proxy handshakes and other use.
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
        SlotPool::new(&limits, crate::driver::descriptors(1), 1)
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
