//! New connections a second of each terminal at a hub and each client at a terminal, where those
//! are bounded: a token bucket for each, `burst` at once and one more each `1 / rate` seconds. How
//! many connections each may have at once is in [`slots`](crate::engine::limits::slots).

use crate::Terms;
use crate::intercept::Neighbour;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use units::{Instant, Span};

/// Maximum number of stored buckets, beyond which all are discarded.
const MOST: usize = 1 << 16;
/// Number of buckets at which full ones are first discarded.
const FIRST_SWEEP: usize = 1 << 10;

/// Owner of a quota.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum QuotaOwner {
    /// A terminal, by its name at the hub.
    Terminal(Arc<str>),
    /// A client of a terminal, by its address.
    Client(IpAddr),
    /// A host on a terminal's own network, by its MAC address.
    Neighbour(Neighbour),
}

/// The owner of a quota that all share.
pub(crate) const GLOBAL: QuotaOwner = QuotaOwner::Client(IpAddr::V4(Ipv4Addr::UNSPECIFIED));

/// Token buckets by owner.
#[derive(Debug, Default)]
pub(crate) struct Quotas {
    /// Time at which each bucket is full.
    full: BTreeMap<QuotaOwner, Instant>,
    sweep_at: usize,
}

impl Quotas {
    /// Whether the bucket of `quota_owner` has a token; takes none.
    pub(crate) fn has_token(&self, now: Instant, quota_owner: &QuotaOwner, terms: &Terms) -> bool {
        let Some(rate) = terms.rate else { return true };
        let full = self.full.get(quota_owner).map_or(now, |&full| full.max(now));
        full.since(now) <= missing(rate, terms.burst)
    }

    /// Takes a token for a new connection of `quota_owner`; false if there is none.
    pub(crate) fn take(&mut self, now: Instant, quota_owner: &QuotaOwner, terms: &Terms) -> bool {
        let Some(rate) = terms.rate else { return true };
        self.sweep(now);
        let full = self.full.entry(quota_owner.clone()).or_default();
        let from = (*full).max(now);
        let has_token = from.since(now) <= missing(rate, terms.burst);
        if has_token {
            *full = from + each(rate);
        }
        has_token
    }

    /// Discards full buckets when their number has doubled.
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

/// Returns the time in which one token is added.
fn each(rate: u32) -> Span {
    Span::from_secs(1) / u64::from(rate.max(1))
}

/// Returns the time to fill of a bucket with one token left.
fn missing(rate: u32, burst: u32) -> Span {
    each(rate) * u64::from(burst.max(1) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(last: u8) -> QuotaOwner {
        QuotaOwner::Client([10, 1, 0, last].into())
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
            let quota_owner = QuotaOwner::Client(std::net::Ipv6Addr::from_bits(number).into());
            assert!(quotas.take(Instant::ZERO, &quota_owner, &terms));
        }
        assert!(quotas.full.len() <= 2 * MOST + 1, "{}", quotas.full.len());
    }
}
