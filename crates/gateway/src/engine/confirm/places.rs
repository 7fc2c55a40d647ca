//! How many intercepted clients may wait for their servers' answers: all together, and each of
//! them, so that one that tries dead addresses keeps nobody else from being confirmed.

use crate::engine::quota::{Holder, Quotas, TOGETHER};
use crate::{ConfirmSection, Terms};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use units::Instant;

/// Both ends of a connection, without what belongs to one interface.
pub(super) type Ends = (SocketAddr, SocketAddr);

/// Of the places, and of the new ones a second, one client has this part at most.
const PART: u32 = 2;

/// Clients that wait, by what they want.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// Where they are in the table of connections.
    waiting: BTreeMap<Ends, usize>,
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
    /// Judges one more client. `may_enter` says whether it may have a connection at all, and is
    /// asked only where there is a place; what all have together is taken only by those that may.
    pub(super) fn judge(
        &mut self,
        now: Instant,
        client: IpAddr,
        bounds: ConfirmSection,
        may_enter: impl FnOnce() -> Option<Holder>,
    ) -> Verdict {
        let ConfirmSection { most, rate, when_full: _ } = bounds;
        let all = Terms { connections: u32::MAX, rate: Some(rate), burst: most };
        let part = |whole: u32| whole.div_ceil(PART);
        let own = Terms { connections: part(most), rate: Some(part(rate)), burst: part(most) };
        let client = Holder::Client(client.to_canonical());
        let place = self.waiting.len() < most as usize;
        let fits = place
            && self.shares.has_token(now, &TOGETHER, &all)
            && self.shares.open(&client) < own.connections
            && self.shares.has_token(now, &client, &own);
        if !fits {
            return Verdict::Full;
        }
        let Some(holder) = may_enter() else { return Verdict::TurnAway };
        // Both are there: nothing has come between.
        let taken = [(&TOGETHER, &all), (&client, &own)]
            .map(|(holder, terms)| self.shares.ask(now, holder, terms).is_ok());
        debug_assert_eq!(taken, [true, true]);
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
        self.waiting.values().copied().collect()
    }

    pub(super) fn get(&self, ends: Ends) -> Option<usize> {
        self.waiting.get(&ends).copied()
    }

    /// A client waits, whose connection is at `index`.
    pub(super) fn insert(&mut self, ends: Ends, index: usize) {
        if self.waiting.insert(ends, index).is_none() {
            self.shares.take(&Holder::Client(ends.0.ip()));
        }
    }

    /// It waits no more.
    pub(super) fn remove(&mut self, ends: Ends) {
        self.let_in.remove(&ends);
        if self.waiting.remove(&ends).is_some() {
            self.shares.give_back(&Holder::Client(ends.0.ip()));
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

    fn judge(places: &mut Places, now: Instant, host: u8, enters: bool) -> Verdict {
        let client = IpAddr::from([10, 1, 0, host]);
        places.judge(now, client, BOUNDS, || enters.then_some(Holder::Client(client)))
    }

    #[test]
    fn only_who_was_let_in_is_expected() {
        let mut places = Places::default();
        places.insert(ends(1, 1), 0);
        places.insert(ends(1, 2), 1);
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
                places.insert(ends(66, number), usize::from(number));
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
    fn who_may_not_enter_takes_nothing_from_others() {
        let (mut places, now) = (Places::default(), Instant::ZERO + Span::from_secs(9));
        for _ in 0..1_000 {
            assert_eq!(judge(&mut places, now, 66, false), Verdict::TurnAway);
        }
        for number in 0..40 {
            let host = 1 + number as u8 % 8;
            assert!(matches!(judge(&mut places, now, host, true), Verdict::Ask(_)));
            places.insert(ends(host, number), usize::from(number));
        }
        assert_eq!(judge(&mut places, now, 9, true), Verdict::Full, "all places");
    }
}
