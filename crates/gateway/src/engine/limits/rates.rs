//! New connections a second of each terminal at a hub and each client at a terminal, where those
//! are bounded: a token bucket for each, `burst` at once and one more each `1 / rate` seconds. How
//! many connections each may have at once is in [`slots`](crate::engine::limits::slots).

use crate::Terms;
use crate::intercept::Neighbour;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use units::{Instant, Span};

/// Holders that are remembered; beyond that all are forgotten.
const MOST: usize = 1 << 16;
/// How many there are before the first look for those that need not be remembered.
const FIRST_SWEEP: usize = 1 << 10;

/// Who has a share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Holder {
    /// A terminal, by the name that it has with the hub.
    Terminal(Arc<str>),
    /// A client of a terminal, by its address.
    Client(IpAddr),
    /// A host on a terminal's own network, by the address of its hardware.
    Neighbour(Neighbour),
}

/// Where there is one share for all.
pub(crate) const TOGETHER: Holder = Holder::Client(IpAddr::V4(Ipv4Addr::UNSPECIFIED));

/// The buckets, by who has them.
#[derive(Debug, Default)]
pub(crate) struct Quotas {
    /// When each bucket is full again.
    full: BTreeMap<Holder, Instant>,
    sweep_at: usize,
}

impl Quotas {
    /// Whether [`Quotas::take`] would find a token for `holder`; takes none.
    pub(crate) fn has_token(&self, now: Instant, holder: &Holder, terms: &Terms) -> bool {
        let Some(rate) = terms.rate else { return true };
        let full = self.full.get(holder).map_or(now, |&full| full.max(now));
        full.since(now) <= missing(rate, terms.burst)
    }

    /// Takes a token for a new connection of `holder`; false when there is none.
    pub(crate) fn take(&mut self, now: Instant, holder: &Holder, terms: &Terms) -> bool {
        let Some(rate) = terms.rate else { return true };
        self.sweep(now);
        let full = self.full.entry(holder.clone()).or_default();
        let from = (*full).max(now);
        let has_token = from.since(now) <= missing(rate, terms.burst);
        if has_token {
            *full = from + each(rate);
        }
        has_token
    }

    /// Forgets full buckets, now and then.
    fn sweep(&mut self, now: Instant) {
        if self.full.len() < self.sweep_at.max(FIRST_SWEEP) {
            return;
        }
        self.full.retain(|_, full| *full > now);
        if self.full.len() > MOST {
            self.full.clear();
        }
        self.sweep_at = self.full.len() * 2;
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
    fn a_bucket_empties_and_fills() {
        let (mut quotas, terms) = (Quotas::default(), terms(100, Some(10), 3));
        let at = |ms: u64| Instant::ZERO + Span::from_millis(1_000 + ms);
        let mut ask = |ms: u64| quotas.take(at(ms), &client(1), &terms);
        assert_eq!([0, 0, 0, 0, 99].map(&mut ask), [true, true, true, false, false]);
        assert_eq!([100, 100, 300, 300, 300].map(&mut ask), [true, false, true, true, false]);
        assert_eq!([9_000; 4].map(&mut ask), [true, true, true, false]);
    }

    #[test]
    fn many_addresses_do_not_fill_memory() {
        // An hour until a bucket is full again, and a client with a whole IPv6 network.
        let (mut quotas, terms) = (Quotas::default(), terms(100, Some(1), 3_600));
        for number in 0..4 * MOST as u128 {
            let holder = Holder::Client(std::net::Ipv6Addr::from_bits(number).into());
            assert!(quotas.take(Instant::ZERO, &holder, &terms));
        }
        assert!(quotas.full.len() <= 2 * MOST + 1, "{}", quotas.full.len());
    }
}
