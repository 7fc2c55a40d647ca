//! How many intercepted clients may wait for their servers' answers. The places are
//! [`slots`](crate::engine::limits::slots), shared by neighbour on the wire, so that one that makes
//! addresses up keeps nobody else from being confirmed, and among its clients by address, so that
//! one that tries dead addresses does not either.
//!
//! A neighbour that makes up addresses of hardware as well gets around that: what bounds those is
//! a switch. A router is one neighbour, and all its clients together have one neighbour's share.

use crate::engine::limits::rates::{Holder, Quotas, TOGETHER};
use crate::engine::limits::slots::{self, Bounds, Owner, SlotTable};
use crate::intercept::Neighbour;
use crate::{ConfirmSection, Terms};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use units::Instant;

/// Both ends of a connection, without what belongs to one interface.
pub(crate) type Ends = (SocketAddr, SocketAddr);

/// Of the new ones a second one client has this part at most.
const PART: u32 = 2;
/// And what one neighbour leaves to others, which may be a router with many clients behind it.
const LEFT: u32 = 4;

/// Clients that wait, by what they want.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// Where they are in the table of connections.
    waiting: BTreeMap<Ends, usize>,
    /// Those of them that were let in.
    let_in: BTreeSet<Ends>,
    /// Who has the places.
    slots: SlotTable<Option<Neighbour>>,
    /// How many new ones each client, each neighbour and all together have had of late.
    rates: Quotas,
}

/// What becomes of a client that knocks.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Its server is asked; whose connection it is, and the connection that has lost its place to
    /// it, which is to be reset.
    Ask(Owner<Arc<str>>, Option<usize>),
    /// There is no place for it: `when_full` says what becomes of it.
    Full,
    /// It has had what one client may have of the terminal.
    TurnAway,
}

impl Places {
    /// Judges one more client, by the network by which it is counted and its neighbour's address.
    /// `may_enter` says whether it may have a connection at all, and is asked only where there is a
    /// place.
    pub(crate) fn judge(
        &mut self,
        now: Instant,
        (client, neighbour): (IpAddr, Option<Neighbour>),
        bounds: ConfirmSection,
        may_enter: impl FnOnce() -> Option<Owner<Arc<str>>>,
    ) -> Verdict {
        let ConfirmSection { most, rate, when_full: _ } = bounds;
        let terms = |rate, burst| Terms { connections: u32::MAX, rate: Some(rate), burst };
        let part = |whole: u32| whole.div_ceil(PART);
        let share = |whole: u32| (whole - whole / LEFT).max(1);
        let neighbours = neighbour.map(Holder::Neighbour);
        let asked = [
            (Some(&TOGETHER), terms(rate, most)),
            (Some(&Holder::Client(client)), terms(part(rate), part(most))),
            (neighbours.as_ref(), terms(share(rate), share(most))),
        ];
        let asked = || asked.iter().filter_map(|(holder, terms)| Some(((*holder)?, terms)));
        if !asked().all(|(holder, terms)| self.rates.has_token(now, holder, terms)) {
            return Verdict::Full;
        }
        let owner = Owner { group: neighbour, client };
        let bounds = Bounds { total: most as usize, ..Bounds::NONE };
        let reclaimed = match self.slots.judge(&owner, bounds) {
            slots::Verdict::Free => None,
            slots::Verdict::Reclaim(index) => Some(index),
            slots::Verdict::Refused(_) => return Verdict::Full,
        };
        let Some(owner) = may_enter() else { return Verdict::TurnAway };
        for (holder, terms) in asked() {
            self.rates.take(now, holder, terms);
        }
        if let Some(index) = reclaimed {
            self.slots.release(index);
        }
        Verdict::Ask(owner, reclaimed)
    }

    /// Whether anybody was let in and has not come out of the listener yet.
    pub(crate) fn expects(&self) -> bool {
        !self.let_in.is_empty()
    }

    /// A client that waits is let in.
    pub(crate) fn let_in(&mut self, ends: Ends) {
        if self.waiting.contains_key(&ends) {
            self.let_in.insert(ends);
        }
    }

    /// Where those are that wait.
    pub(crate) fn all(&self) -> Vec<usize> {
        self.waiting.values().copied().collect()
    }

    pub(crate) fn get(&self, ends: Ends) -> Option<usize> {
        self.waiting.get(&ends).copied()
    }

    /// A client waits, whose connection is at `index`.
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

    /// It waits no more.
    pub(crate) fn remove(&mut self, ends: Ends) {
        self.let_in.remove(&ends);
        if let Some(index) = self.waiting.remove(&ends) {
            self.slots.release(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WhenFull;
    use units::Span;

    const BOUNDS: ConfirmSection =
        ConfirmSection { most: 40, rate: 8, when_full: WhenFull::Refuse };
    fn ends(host: u8, number: u16) -> Ends {
        (SocketAddr::from(([10, 1, 0, host], number)), SocketAddr::from(([192, 0, 2, 1], number)))
    }

    /// The owner of a connection's slot.
    fn owner(client: IpAddr) -> Owner<Arc<str>> {
        Owner { group: "".into(), client }
    }

    fn judge(places: &mut Places, now: Instant, host: u8, enters: bool) -> Verdict {
        let client = IpAddr::from([10, 1, 0, host]);
        places.judge(now, (client, None), BOUNDS, || enters.then(|| owner(client)))
    }

    fn insert(places: &mut Places, now: Instant, ends: Ends, index: usize) {
        places.insert(now, ends, (ends.0.ip(), None), index);
    }

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Span::from_secs(seconds)
    }

    #[test]
    fn only_who_was_let_in_is_expected() {
        let mut places = Places::default();
        insert(&mut places, at(9), ends(1, 1), 0);
        insert(&mut places, at(9), ends(1, 2), 1);
        assert!(!places.expects(), "their servers are being asked");
        places.let_in(ends(1, 2));
        places.let_in(ends(1, 3));
        places.remove(ends(1, 1));
        assert!(places.expects());
        places.remove(ends(1, 2));
        assert!(!places.expects(), "whoever has gone is not expected");
    }

    #[test]
    fn one_client_at_dead_addresses_leaves_places_to_others() {
        let mut places = Places::default();
        let (mut taken, mut others) = (0, 0);
        for number in 0..2_000 {
            let now = at(9 + u64::from(number) / 20);
            if matches!(judge(&mut places, now, 66, true), Verdict::Ask(_, None)) {
                insert(&mut places, now, ends(66, number), usize::from(number));
                taken += 1;
            }
            // However long it goes on.
            if number % 20 == 19 {
                let verdict = judge(&mut places, now, 7, true);
                assert!(matches!(verdict, Verdict::Ask(_, None)), "{number}: {verdict:?}");
                others += 1;
            }
        }
        assert_eq!((taken, others), (36, 100), "nine tenths of 40");
        // When others have the rest, they have places in spite of it.
        for number in 0..18 {
            let now = at(200 + u64::from(number));
            let Verdict::Ask(_, reclaimed) = judge(&mut places, now, 8, true) else {
                panic!("{number}: it holds less than the other");
            };
            assert_eq!(reclaimed.is_some(), number >= 4, "{number}");
            insert(&mut places, now, ends(8, number), 3_000 + usize::from(number));
        }
    }

    #[test]
    fn one_client_that_is_answered_fast_leaves_rate_to_others() {
        let mut places = Places::default();
        for second in 0..60 {
            let mut taken = 0;
            for _ in 0..100 {
                let verdict = judge(&mut places, at(second), 66, true);
                taken += u32::from(matches!(verdict, Verdict::Ask(..)));
            }
            assert!(second == 0 || taken == 4, "half of 8 a second, not {taken}");
            for host in 1..=3 {
                assert!(matches!(judge(&mut places, at(second), host, true), Verdict::Ask(..)));
            }
        }
    }

    #[test]
    fn one_that_makes_addresses_up_leaves_places_and_rate_to_other_neighbours() {
        let mut places = Places::default();
        let forged = |number: u32| (IpAddr::from(number.to_be_bytes()), Some([6; 8]));
        let judge = |places: &mut Places, now, who: (IpAddr, Option<Neighbour>)| {
            places.judge(now, who, BOUNDS, || Some(owner(who.0)))
        };
        let mut index = 0;
        for number in 0..1_000 {
            let (now, who) = (at(9 + u64::from(number) / 20), forged(0x0a01_0000 + number));
            if matches!(judge(&mut places, now, who), Verdict::Ask(..)) {
                let from = SocketAddr::new(who.0, 9);
                places.insert(now, (from, ends(1, 1).1), who, index);
                index += 1;
            }
        }
        assert_eq!((places.slots.len(), index), (40, 40), "all of them, while nobody else asks");
        let other = (IpAddr::from([10, 1, 0, 7]), Some([7; 8]));
        for number in 0..20 {
            let now = at(100 + number);
            assert_eq!(judge(&mut places, now, forged(9)), Verdict::Full);
            let Verdict::Ask(_, Some(from)) = judge(&mut places, now, other) else {
                panic!("{number}: the other neighbour has less");
            };
            assert!(from < 40, "a forged one makes way");
            places.insert(now, ends(7, number as u16), other, 100 + number as usize);
        }
        // Answered at once, it leaves some of the rate.
        let mut places = Places::default();
        for second in 0..60 {
            let now = at(second);
            let taken = (0..100).filter(|n| {
                let who = forged(second as u32 * 100 + n);
                matches!(judge(&mut places, now, who), Verdict::Ask(..))
            });
            let taken = taken.count();
            assert!(second == 0 || taken == 6, "three quarters of 8 a second, not {taken}");
            let enters =
                |places: &mut Places| matches!(judge(places, now, other), Verdict::Ask(..));
            assert!((0..2).all(|_| enters(&mut places)), "{second}");
        }
        assert_eq!(places.slots.len(), 0);
    }

    #[test]
    fn who_may_not_enter_takes_nothing_from_others() {
        let (mut places, now) = (Places::default(), at(9));
        for _ in 0..1_000 {
            assert_eq!(judge(&mut places, now, 66, false), Verdict::TurnAway);
        }
        for number in 0..40 {
            let host = 1 + number as u8 % 8;
            assert!(matches!(judge(&mut places, now, host, true), Verdict::Ask(_, None)));
            insert(&mut places, now, ends(host, number), usize::from(number));
        }
        assert_eq!(judge(&mut places, at(99), 66, false), Verdict::TurnAway);
        assert_eq!(places.slots.len(), 40, "nobody makes way for it");
        assert_eq!(judge(&mut places, now, 9, true), Verdict::Full, "no rate is left");
    }
}
