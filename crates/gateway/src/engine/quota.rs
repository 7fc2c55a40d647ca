//! Shares of what a gateway has: so many connections, and so many new ones a second, for each
//! terminal at a hub and for each client at a terminal, so that none of them can take all.
//!
//! New connections are counted by a token bucket: `burst` at once, and one more each
//! `1 / rate` seconds.

use crate::Terms;
use crate::intercept::Neighbour;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use units::{Instant, Span};

/// Holders that are remembered only for what they had lately; beyond that those that hold
/// nothing are forgotten.
const MOST_IDLE: usize = 1 << 16;
/// How many there are before the first look for those that need not be remembered.
const FIRST_SWEEP: usize = 1 << 10;

/// Who has a share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Holder {
    /// A terminal, by the name that it has with the hub.
    Terminal(Arc<str>),
    /// A client of a terminal, by its address.
    Client(IpAddr),
    /// A host on a terminal's own network, by the address of its hardware.
    Neighbour(Neighbour),
}

/// Where there is one share for all.
pub(super) const TOGETHER: Holder = Holder::Client(IpAddr::V4(Ipv4Addr::UNSPECIFIED));

/// What there is too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    Connections,
    Rate,
}

/// What everybody has of the gateway.
#[derive(Debug, Default)]
pub(super) struct Quotas {
    shares: BTreeMap<Holder, Share>,
    sweep_at: usize,
    /// Somebody has more connections, or fewer, than when it was last asked.
    changed: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Share {
    open: u32,
    /// When the bucket is full again.
    full: Instant,
}

impl Quotas {
    /// Takes a token for a new connection of `holder`, if it may have one.
    pub(super) fn ask(&mut self, now: Instant, holder: &Holder, terms: &Terms) -> Result<(), Over> {
        if self.open(holder) >= terms.connections {
            return Err(Over::Connections);
        }
        self.take_token(now, holder, terms)
    }

    /// As [`Quotas::ask`], for a connection that is in the table already.
    pub(super) fn ask_again(
        &mut self,
        now: Instant,
        holder: &Holder,
        terms: &Terms,
    ) -> Result<(), Over> {
        if self.open(holder) > terms.connections {
            return Err(Over::Connections);
        }
        self.take_token(now, holder, terms)
    }

    /// Connections that `holder` has.
    pub(super) fn open(&self, holder: &Holder) -> u32 {
        self.shares.get(holder).map_or(0, |share| share.open)
    }

    /// One more connection of `holder` is in the table.
    pub(super) fn take(&mut self, holder: &Holder) {
        self.shares.entry(holder.clone()).or_default().open += 1;
        self.changed = true;
    }

    /// Whether somebody has more connections, or fewer, than at the last [`Quotas::take_changed`].
    pub(super) fn have_changed(&self) -> bool {
        self.changed
    }

    /// The same, and from here on nobody has.
    pub(super) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// The terminals that are remembered, and the connections of each.
    pub(super) fn terminals(&self) -> impl Iterator<Item = (&Arc<str>, u32)> {
        self.shares.iter().filter_map(|(holder, share)| match holder {
            Holder::Terminal(name) => Some((name, share.open)),
            Holder::Client(_) | Holder::Neighbour(_) => None,
        })
    }

    /// One fewer.
    pub(super) fn give_back(&mut self, holder: &Holder) {
        let Some(share) = self.shares.get_mut(holder) else { return };
        share.open = share.open.saturating_sub(1);
        self.changed = true;
        if share.open == 0 && share.full == Instant::ZERO {
            self.shares.remove(holder);
        }
    }

    /// Whether [`Quotas::ask`] would find a token for `holder`; takes none.
    pub(super) fn has_token(&self, now: Instant, holder: &Holder, terms: &Terms) -> bool {
        let Some(rate) = terms.rate else { return true };
        let full = self.shares.get(holder).map_or(now, |share| share.full.max(now));
        full.since(now) <= missing(rate, terms.burst)
    }

    fn take_token(&mut self, now: Instant, holder: &Holder, terms: &Terms) -> Result<(), Over> {
        let Some(rate) = terms.rate else { return Ok(()) };
        self.sweep(now);
        let share = self.shares.entry(holder.clone()).or_default();
        let full = share.full.max(now);
        if full.since(now) > missing(rate, terms.burst) {
            return Err(Over::Rate);
        }
        share.full = full + each(rate);
        Ok(())
    }

    /// Forgets who holds nothing and has a full bucket, now and then.
    fn sweep(&mut self, now: Instant) {
        if self.shares.len() < self.sweep_at.max(FIRST_SWEEP) {
            return;
        }
        self.shares.retain(|_, share| share.open > 0 || share.full > now);
        if self.shares.len() > MOST_IDLE {
            self.shares.retain(|_, share| share.open > 0);
        }
        self.sweep_at = self.shares.len() * 2;
    }
}

/// The time until one token is there again.
fn each(rate: u32) -> Span {
    Span::from_secs(1) / u64::from(rate.max(1))
}

/// How far from full a bucket may be that has one token left.
fn missing(rate: u32, burst: u32) -> Span {
    each(rate) * u64::from(burst.max(1) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(last: u8) -> Holder {
        Holder::Client([10, 1, 0, last].into())
    }

    fn terms(connections: u32, rate: Option<u32>, burst: u32) -> Terms {
        Terms { connections, rate, burst }
    }

    #[test]
    fn connections_at_once_are_each_holders_own() {
        let (mut quotas, terms) = (Quotas::default(), terms(2, None, 1));
        for _ in 0..2 {
            quotas.ask(Instant::ZERO, &client(1), &terms).unwrap();
            quotas.take(&client(1));
        }
        assert_eq!(quotas.ask(Instant::ZERO, &client(1), &terms), Err(Over::Connections));
        assert_eq!(quotas.ask_again(Instant::ZERO, &client(1), &terms), Ok(()));
        assert_eq!(quotas.ask(Instant::ZERO, &client(2), &terms), Ok(()));
        quotas.give_back(&client(1));
        assert_eq!(quotas.ask(Instant::ZERO, &client(1), &terms), Ok(()));
        quotas.give_back(&client(1));
        assert!(quotas.shares.is_empty(), "who holds nothing is forgotten");
    }

    #[test]
    fn a_bucket_empties_and_fills() {
        let (mut quotas, terms) = (Quotas::default(), terms(100, Some(10), 3));
        let at = |ms: u64| Instant::ZERO + Span::from_millis(1_000 + ms);
        let mut ask = |ms: u64| quotas.ask(at(ms), &client(1), &terms).is_ok();
        assert_eq!([0, 0, 0, 0, 99].map(&mut ask), [true, true, true, false, false]);
        assert_eq!([100, 100, 300, 300, 300].map(&mut ask), [true, false, true, true, false]);
        assert_eq!([9_000; 4].map(&mut ask), [true, true, true, false]);
    }

    #[test]
    fn many_addresses_do_not_fill_memory() {
        // An hour until a bucket is full again, and a client with a whole IPv6 network.
        let (mut quotas, terms) = (Quotas::default(), terms(100, Some(1), 3_600));
        for number in 0..4 * MOST_IDLE as u128 {
            let holder = Holder::Client(std::net::Ipv6Addr::from_bits(number).into());
            quotas.ask(Instant::ZERO, &holder, &terms).unwrap();
        }
        assert!(quotas.shares.len() <= 2 * MOST_IDLE + 1, "{}", quotas.shares.len());
    }
}
