//! How many intercepted clients may wait for their servers' answers: all together, each of them,
//! so that one that tries dead addresses keeps nobody else from being confirmed, and each
//! neighbour on the wire, so that one that makes addresses up does not either.
//!
//! A neighbour that makes up addresses of hardware as well gets around that: what bounds those is
//! a switch. A router is one neighbour, and all its clients together have one neighbour's share.

use crate::engine::quota::{Holder, Quotas, TOGETHER};
use crate::intercept::Neighbour;
use crate::{ConfirmSection, Terms};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use units::Instant;

/// Both ends of a connection, without what belongs to one interface.
pub(super) type Ends = (SocketAddr, SocketAddr);

/// Of the places, and of the new ones a second, one client has this part at most.
const PART: u32 = 2;
/// And what one neighbour leaves to others, which may be a router with many clients behind it.
const LEFT: u32 = 4;

/// Clients that wait, by what they want.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// Where they are in the table of connections, and which neighbour has sent them.
    waiting: BTreeMap<Ends, (usize, Option<Neighbour>)>,
    /// Those of them that were let in.
    let_in: BTreeSet<Ends>,
    /// How many each client has, and how many new ones it, and all together, have had of late.
    shares: Quotas,
}

/// What becomes of a client that knocks.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Its server is asked; whose connection it is.
    Ask(Holder),
    /// There is no place for it: `when_full` says what becomes of it.
    Full,
    /// It has had what one client may have of the terminal.
    TurnAway,
}

impl Places {
    /// Judges one more client, by its address and its neighbour's. `may_enter` says whether it may have a connection at all, and is
    /// asked only where there is a place; what all have together is taken only by those that may.
    pub(super) fn judge(
        &mut self,
        now: Instant,
        (client, neighbour): (IpAddr, Option<Neighbour>),
        bounds: ConfirmSection,
        may_enter: impl FnOnce() -> Option<Holder>,
    ) -> Verdict {
        let ConfirmSection { most, rate, when_full: _ } = bounds;
        let all = Terms { connections: u32::MAX, rate: Some(rate), burst: most };
        let part = |whole: u32| whole.div_ceil(PART);
        let own = Terms { connections: part(most), rate: Some(part(rate)), burst: part(most) };
        let share = |whole: u32| (whole - whole / LEFT).max(1);
        let wire = Terms { connections: share(most), rate: Some(share(rate)), burst: share(most) };
        let client = Holder::Client(client.to_canonical());
        let neighbour = neighbour.map(Holder::Neighbour);
        let asked = [(Some(&TOGETHER), all), (Some(&client), own), (neighbour.as_ref(), wire)];
        let asked = || asked.iter().filter_map(|(holder, terms)| Some(((*holder)?, terms)));
        let place = self.waiting.len() < most as usize;
        let fits = place
            && asked().all(|(holder, terms)| {
                self.shares.open(holder) < terms.connections
                    && self.shares.has_token(now, holder, terms)
            });
        if !fits {
            return Verdict::Full;
        }
        let Some(holder) = may_enter() else { return Verdict::TurnAway };
        for (holder, terms) in asked() {
            // All are there: nothing has come between.
            let taken = self.shares.ask(now, holder, terms);
            debug_assert_eq!(taken, Ok(()));
        }
        Verdict::Ask(holder)
    }

    /// Whether anybody was let in and has not come out of the listener yet.
    pub(super) fn expects(&self) -> bool {
        !self.let_in.is_empty()
    }

    /// A client that waits is let in.
    pub(super) fn let_in(&mut self, ends: Ends) {
        if self.waiting.contains_key(&ends) {
            self.let_in.insert(ends);
        }
    }

    /// Where those are that wait.
    pub(super) fn all(&self) -> Vec<usize> {
        self.waiting.values().map(|(index, _)| *index).collect()
    }

    pub(super) fn get(&self, ends: Ends) -> Option<usize> {
        self.waiting.get(&ends).map(|(index, _)| *index)
    }

    /// A client waits, whose connection is at `index`.
    pub(super) fn insert(&mut self, ends: Ends, neighbour: Option<Neighbour>, index: usize) {
        self.remove(ends);
        self.waiting.insert(ends, (index, neighbour));
        holders(ends, neighbour).for_each(|holder| self.shares.take(&holder));
    }

    /// It waits no more.
    pub(super) fn remove(&mut self, ends: Ends) {
        self.let_in.remove(&ends);
        if let Some((_, neighbour)) = self.waiting.remove(&ends) {
            holders(ends, neighbour).for_each(|holder| self.shares.give_back(&holder));
        }
    }
}

/// Whose place it is.
fn holders(ends: Ends, neighbour: Option<Neighbour>) -> impl Iterator<Item = Holder> {
    [Holder::Client(ends.0.ip())].into_iter().chain(neighbour.map(Holder::Neighbour))
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

    fn judge(places: &mut Places, now: Instant, host: u8, enters: bool) -> Verdict {
        let client = IpAddr::from([10, 1, 0, host]);
        places.judge(now, (client, None), BOUNDS, || enters.then_some(Holder::Client(client)))
    }

    #[test]
    fn only_who_was_let_in_is_expected() {
        let mut places = Places::default();
        places.insert(ends(1, 1), None, 0);
        places.insert(ends(1, 2), None, 1);
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
        let (mut places, now) = (Places::default(), Instant::ZERO + Span::from_secs(9));
        let mut taken = 0;
        for number in 0..1_000 {
            if matches!(judge(&mut places, now, 66, true), Verdict::Ask(_)) {
                places.insert(ends(66, number), None, usize::from(number));
                taken += 1;
            }
        }
        assert_eq!(taken, 20, "half of them");
        // However long it goes on: its places are not free again before its servers answer.
        for second in 10..100 {
            let now = Instant::ZERO + Span::from_secs(second);
            assert_eq!(judge(&mut places, now, 66, true), Verdict::Full);
            let other = judge(&mut places, now, 7, true);
            assert!(matches!(other, Verdict::Ask(_)), "{second}");
        }
        places.remove(ends(66, 0));
        let later = Instant::ZERO + Span::from_secs(100);
        assert!(matches!(judge(&mut places, later, 66, true), Verdict::Ask(_)));
    }

    #[test]
    fn one_client_that_is_answered_fast_leaves_rate_to_others() {
        let mut places = Places::default();
        for second in 0..60 {
            let now = Instant::ZERO + Span::from_secs(second);
            let mut taken = 0;
            for _ in 0..100 {
                taken += u32::from(matches!(judge(&mut places, now, 66, true), Verdict::Ask(_)));
            }
            assert!(second == 0 || taken == 4, "half of 8 a second, not {taken}");
            for host in 1..=3 {
                assert!(matches!(judge(&mut places, now, host, true), Verdict::Ask(_)));
            }
        }
    }

    #[test]
    fn one_that_makes_addresses_up_leaves_places_and_rate_to_other_neighbours() {
        let (mut places, start) = (Places::default(), Instant::ZERO + Span::from_secs(9));
        let forged = |number: u32| (IpAddr::from(number.to_be_bytes()), Some([6; 8]));
        let judge = |places: &mut Places, now, who: (IpAddr, Option<Neighbour>)| {
            let verdict = places.judge(now, who, BOUNDS, || Some(Holder::Client(who.0)));
            matches!(verdict, Verdict::Ask(_))
        };
        let mut taken = 0;
        for number in 0..1_000 {
            let who = forged(0x0a01_0000 + number);
            if judge(&mut places, start, who) {
                let from = SocketAddr::new(who.0, 9);
                places.insert((from, ends(1, 1).1), who.1, taken);
                taken += 1;
            }
        }
        assert_eq!(taken, 30, "three quarters of them");
        let other = (IpAddr::from([10, 1, 0, 7]), Some([7; 8]));
        for second in 10..20 {
            let now = Instant::ZERO + Span::from_secs(second);
            assert!(!judge(&mut places, now, forged(9)));
            assert!(judge(&mut places, now, other), "{second}");
        }
        // Answered at once, it leaves some of the rate.
        let mut places = Places::default();
        for second in 0..60 {
            let now = Instant::ZERO + Span::from_secs(second);
            let taken =
                (0..100).filter(|n| judge(&mut places, now, forged(second as u32 * 100 + n)));
            let taken = taken.count();
            assert!(second == 0 || taken == 6, "three quarters of 8 a second, not {taken}");
            assert!((0..2).all(|_| judge(&mut places, now, other)), "{second}");
        }
        assert!(places.shares.open(&Holder::Neighbour([6; 8])) == 0);
    }

    #[test]
    fn who_may_not_enter_takes_nothing_from_others() {
        let (mut places, now) = (Places::default(), Instant::ZERO + Span::from_secs(9));
        for _ in 0..1_000 {
            assert_eq!(judge(&mut places, now, 66, false), Verdict::TurnAway);
        }
        for number in 0..40 {
            let host = 1 + number as u8 % 8;
            assert!(matches!(judge(&mut places, now, host, true), Verdict::Ask(_)));
            places.insert(ends(host, number), None, usize::from(number));
        }
        assert_eq!(judge(&mut places, now, 9, true), Verdict::Full, "all places");
    }
}
