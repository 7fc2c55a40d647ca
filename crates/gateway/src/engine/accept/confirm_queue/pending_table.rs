//! The table of held SYNs. Its [`slots`](crate::engine::limits::slots) are shared by link-layer
//! neighbour, so that a host that forges addresses does not prevent deferred accept for others, and
//! among the clients of a neighbour by address, so that a client of unreachable servers does not
//! either.
//!
//! A host that forges MAC addresses as well circumvents this; only a switch bounds those. A router
//! is one neighbour, and all its clients together have the share of one neighbour.

use crate::engine::limits::rates::{GLOBAL, QuotaOwner, Quotas};
use crate::engine::limits::slots::{self, Bounds, Owner, SlotTable};
use crate::intercept::Neighbour;
use crate::{ConfirmSection, Terms};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use units::Instant;

/// Addresses of client and server, without the scope of an interface.
pub(crate) type Ends = (SocketAddr, SocketAddr);

/// Divisor of the rate of new SYNs that one client may have.
const PART: u32 = 2;
/// Divisor of the rate that one neighbour, which may be a router with many clients, leaves to
/// others.
const LEFT: u32 = 4;

/// Clients with held SYNs.
#[derive(Debug, Default)]
pub(crate) struct PendingTable {
    /// Index of each in the table of connections.
    waiting: BTreeMap<Ends, usize>,
    /// Those whose SYNs were reinjected.
    reinjected: BTreeSet<Ends>,
    /// Slots by link-layer neighbour and client.
    slots: SlotTable<Option<Neighbour>>,
    /// Rates of new SYNs of each client, of each neighbour and of all together.
    rates: Quotas,
}

/// Decision about a new SYN.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AdmitDecision {
    /// The SYN is held. Has the owner of its connection, and the connection whose slot was
    /// reclaimed for it, which is to be reset.
    Hold(Owner<Arc<str>>, Option<usize>),
    /// The table is full: `when_full` decides what follows.
    Full,
    /// The quota of the client is used up.
    OverQuota,
}

impl PendingTable {
    /// Decides about one more client, by the network by which it is counted and the MAC address of
    /// its neighbour. `may_enter` returns the owner if the client may have a connection; it is
    /// called only if a slot is available.
    pub(crate) fn decide(
        &mut self,
        now: Instant,
        (client, neighbour): (IpAddr, Option<Neighbour>),
        bounds: ConfirmSection,
        may_enter: impl FnOnce() -> Option<Owner<Arc<str>>>,
    ) -> AdmitDecision {
        let ConfirmSection { max_pending, rate, when_full: _ } = bounds;
        let terms = |rate, burst| Terms { connections: u32::MAX, rate: Some(rate), burst };
        let part = |whole: u32| whole.div_ceil(PART);
        let share = |whole: u32| (whole - whole / LEFT).max(1);
        let neighbours = neighbour.map(QuotaOwner::Neighbour);
        let quotas = [
            (Some(&GLOBAL), terms(rate, max_pending)),
            (Some(&QuotaOwner::Client(client)), terms(part(rate), part(max_pending))),
            (neighbours.as_ref(), terms(share(rate), share(max_pending))),
        ];
        let quotas =
            || quotas.iter().filter_map(|(quota_owner, terms)| Some(((*quota_owner)?, terms)));
        if !quotas().all(|(quota_owner, terms)| self.rates.has_token(now, quota_owner, terms)) {
            return AdmitDecision::Full;
        }
        let owner = Owner { group: neighbour, client };
        let bounds = Bounds { total: max_pending as usize, ..Bounds::NONE };
        let reclaimed = match self.slots.decide(&owner, bounds) {
            slots::SlotDecision::Free => None,
            slots::SlotDecision::Reclaim(index) => Some(index),
            slots::SlotDecision::Refused(_) => return AdmitDecision::Full,
        };
        let Some(owner) = may_enter() else { return AdmitDecision::OverQuota };
        for (quota_owner, terms) in quotas() {
            self.rates.take(now, quota_owner, terms);
        }
        if let Some(index) = reclaimed {
            self.slots.release(index);
        }
        AdmitDecision::Hold(owner, reclaimed)
    }

    /// Whether reinjected SYNs have not led to accepted connections yet.
    pub(crate) fn expects(&self) -> bool {
        !self.reinjected.is_empty()
    }

    /// Notes that the SYN of a client was reinjected.
    pub(crate) fn reinject(&mut self, ends: Ends) {
        if self.waiting.contains_key(&ends) {
            self.reinjected.insert(ends);
        }
    }

    /// Returns the indices of all connections with held SYNs.
    pub(crate) fn all(&self) -> Vec<usize> {
        self.waiting.values().copied().collect()
    }

    pub(crate) fn get(&self, ends: Ends) -> Option<usize> {
        self.waiting.get(&ends).copied()
    }

    /// Inserts a client whose connection is at `index`.
    pub(crate) fn insert(
        &mut self,
        now: Instant,
        ends: Ends,
        (client, group): (IpAddr, Option<Neighbour>),
        index: usize,
    ) {
        self.remove(ends);
        self.waiting.insert(ends, index);
        self.slots.release(index);
        self.slots.occupy(now, Owner { group, client }, index);
    }

    /// Removes a client.
    pub(crate) fn remove(&mut self, ends: Ends) {
        self.reinjected.remove(&ends);
        if let Some(index) = self.waiting.remove(&ends) {
            self.slots.release(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::AdmitDecision::{Full, Hold, OverQuota};
    use super::*;
    use crate::WhenFull;
    use units::Span;

    const BOUNDS: ConfirmSection =
        ConfirmSection { max_pending: 40, rate: 8, when_full: WhenFull::Refuse };
    fn ends(host: u8, number: u16) -> Ends {
        (SocketAddr::from(([10, 1, 0, host], number)), SocketAddr::from(([192, 0, 2, 1], number)))
    }

    /// The owner of a connection's slot.
    fn owner(client: IpAddr) -> Owner<Arc<str>> {
        Owner { group: "".into(), client }
    }

    fn decide(table: &mut PendingTable, now: Instant, host: u8, enters: bool) -> AdmitDecision {
        let client = IpAddr::from([10, 1, 0, host]);
        table.decide(now, (client, None), BOUNDS, || enters.then(|| owner(client)))
    }

    fn insert(table: &mut PendingTable, now: Instant, ends: Ends, index: usize) {
        table.insert(now, ends, (ends.0.ip(), None), index);
    }

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Span::from_secs(seconds)
    }

    #[test]
    fn only_reinjected_syns_are_expected() {
        let mut table = PendingTable::default();
        insert(&mut table, at(9), ends(1, 1), 0);
        insert(&mut table, at(9), ends(1, 2), 1);
        assert!(!table.expects(), "their servers have not answered");
        table.reinject(ends(1, 2));
        table.reinject(ends(1, 3));
        table.remove(ends(1, 1));
        assert!(table.expects());
        table.remove(ends(1, 2));
        assert!(!table.expects(), "a client whose SYN was removed is not expected");
    }

    #[test]
    fn one_client_of_dead_servers_leaves_slots_to_others() {
        let mut table = PendingTable::default();
        let (mut taken, mut others) = (0, 0);
        for number in 0..2_000 {
            let now = at(9 + u64::from(number) / 20);
            if matches!(decide(&mut table, now, 66, true), Hold(_, None)) {
                insert(&mut table, now, ends(66, number), usize::from(number));
                taken += 1;
            }
            // Also if it continues.
            if number % 20 == 19 {
                let verdict = decide(&mut table, now, 7, true);
                assert!(matches!(verdict, Hold(_, None)), "{number}: {verdict:?}");
                others += 1;
            }
        }
        assert_eq!((taken, others), (36, 100), "nine tenths of 40");
        for number in 0..18 {
            let now = at(200 + u64::from(number));
            let Hold(_, reclaimed) = decide(&mut table, now, 8, true) else {
                panic!("{number}: it holds less than the other");
            };
            assert_eq!(reclaimed.is_some(), number >= 4, "{number}");
            insert(&mut table, now, ends(8, number), 3_000 + usize::from(number));
        }
    }

    #[test]
    fn one_client_that_is_answered_fast_leaves_rate_to_others() {
        let mut table = PendingTable::default();
        for second in 0..60 {
            let mut taken = 0;
            for _ in 0..100 {
                let verdict = decide(&mut table, at(second), 66, true);
                taken += u32::from(matches!(verdict, Hold(..)));
            }
            assert!(second == 0 || taken == 4, "half of 8 a second, not {taken}");
            for host in 1..=3 {
                assert!(matches!(decide(&mut table, at(second), host, true), Hold(..)));
            }
        }
    }

    #[test]
    fn a_host_that_forges_addresses_leaves_slots_and_rate_to_other_neighbours() {
        let mut table = PendingTable::default();
        let forged = |number: u32| (IpAddr::from(number.to_be_bytes()), Some([6; 8]));
        let decide = |table: &mut PendingTable, now, who: (IpAddr, Option<Neighbour>)| {
            table.decide(now, who, BOUNDS, || Some(owner(who.0)))
        };
        let mut index = 0;
        for number in 0..1_000 {
            let (now, who) = (at(9 + u64::from(number) / 20), forged(0x0a01_0000 + number));
            if matches!(decide(&mut table, now, who), Hold(..)) {
                let from = SocketAddr::new(who.0, 9);
                table.insert(now, (from, ends(1, 1).1), who, index);
                index += 1;
            }
        }
        let all = (table.slots.len(), index);
        assert_eq!(all, (40, 40), "all of them, while there is no other client");
        let other = (IpAddr::from([10, 1, 0, 7]), Some([7; 8]));
        for number in 0..20 {
            let now = at(100 + number);
            assert_eq!(decide(&mut table, now, forged(9)), Full);
            let Hold(_, Some(from)) = decide(&mut table, now, other) else {
                panic!("{number}: the other neighbour has less");
            };
            assert!(from < 40, "the slot of a forged SYN is reclaimed");
            table.insert(now, ends(7, number as u16), other, 100 + number as usize);
        }
        // Refused immediately, it leaves a part of the rate to others.
        let mut table = PendingTable::default();
        for second in 0..60 {
            let now = at(second);
            let taken = (0..100).filter(|n| {
                let who = forged(second as u32 * 100 + n);
                matches!(decide(&mut table, now, who), Hold(..))
            });
            let taken = taken.count();
            assert!(second == 0 || taken == 6, "three quarters of 8 a second, not {taken}");
            let enters = |table: &mut PendingTable| matches!(decide(table, now, other), Hold(..));
            assert!((0..2).all(|_| enters(&mut table)), "{second}");
        }
        assert_eq!(table.slots.len(), 0);
    }

    #[test]
    fn a_client_over_its_quota_does_not_affect_others() {
        let (mut table, now) = (PendingTable::default(), at(9));
        for _ in 0..1_000 {
            assert_eq!(decide(&mut table, now, 66, false), OverQuota);
        }
        for number in 0..40 {
            let host = 1 + number as u8 % 8;
            assert!(matches!(decide(&mut table, now, host, true), Hold(_, None)));
            insert(&mut table, now, ends(host, number), usize::from(number));
        }
        assert_eq!(decide(&mut table, at(99), 66, false), OverQuota);
        assert_eq!(table.slots.len(), 40, "no slot is reclaimed for it");
        assert_eq!(decide(&mut table, now, 9, true), Full, "no rate is left");
    }
}
