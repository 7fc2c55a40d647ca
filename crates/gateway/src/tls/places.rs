//! Bounds on the TLS connections of a hub.
//!
//! ```text
//!   accepted ──the hub seals a datagram for it──▶ authenticated ──nothing sealed for it──▶ closed
//!      └── 15 s ──▶ closed                                              for 120 s
//! ```
//!
//! TLS authenticates nobody. A connection counts as authenticated when the hub sends it a sealed
//! datagram, which it does only for terminals that it knows. Until then the connections of a source
//! are limited, and when their total is reached the oldest one is closed for a new one, so that a
//! flood has to renew all of them while one handshake lasts to keep a terminal out.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use units::{Instant, Span};

/// Maximum number of connections.
pub(crate) const MAX_CONNECTIONS: usize = 1024;
/// Maximum number of connections that are not authenticated: of all sources, and of one.
const MAX_PENDING: usize = 128;
const MAX_PENDING_OF_SOURCE: usize = 16;
/// Time for the handshakes of TLS and of the association.
const PENDING: Span = Span::from_secs(15);
/// Time without a sealed datagram from the hub after which a connection is closed. Keep-alives are
/// more frequent.
const IDLE: Span = Span::from_secs(120);

/// The connections of a hub, by numbers below [`MAX_CONNECTIONS`].
#[derive(Debug, Default)]
pub(crate) struct Places {
    all: BTreeMap<usize, Place>,
}

#[derive(Debug)]
struct Place {
    source: IpAddr,
    since: Instant,
    /// Time of the last sealed datagram from the hub.
    sealed: Option<Instant>,
}

/// The admission of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admitted {
    /// It has this number; the connection that had it is to be closed.
    Number(usize),
    /// It is to be closed.
    Refused,
}

impl Places {
    /// Admits a connection from `source`.
    pub(crate) fn admit(&mut self, now: Instant, source: IpAddr) -> Admitted {
        let source = network(source);
        let pending = self.all.iter().filter(|(_, place)| place.sealed.is_none());
        let of_source = pending.clone().filter(|(_, place)| place.source == source).count();
        if of_source >= MAX_PENDING_OF_SOURCE {
            return Admitted::Refused;
        }
        let full = self.all.len() >= MAX_CONNECTIONS || pending.clone().count() >= MAX_PENDING;
        let oldest = || pending.min_by_key(|(_, place)| place.since).map(|(number, _)| *number);
        let free = || (0..MAX_CONNECTIONS).find(|number| !self.all.contains_key(number));
        let Some(number) = (if full { oldest() } else { free() }) else {
            return Admitted::Refused;
        };
        self.all.insert(number, Place { source, since: now, sealed: None });
        Admitted::Number(number)
    }

    /// Notes that the hub has sealed a datagram for a connection.
    pub(crate) fn sealed(&mut self, now: Instant, number: usize) {
        if let Some(place) = self.all.get_mut(&number) {
            place.sealed = Some(now);
        }
    }

    pub(crate) fn remove(&mut self, number: usize) {
        self.all.remove(&number);
    }

    /// Returns a connection whose time is over.
    pub(crate) fn expired(&self, now: Instant) -> Option<usize> {
        let is_over = |place: &Place| match place.sealed {
            None => now.since(place.since) >= PENDING,
            Some(last) => now.since(last) >= IDLE,
        };
        self.all.iter().find(|(_, place)| is_over(place)).map(|(number, _)| *number)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }
}

/// Returns the address, or in IPv6 its network of 64 bits.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64).into(),
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Span::from_secs(seconds)
    }

    fn source(number: u32) -> IpAddr {
        Ipv4Addr::from_bits(0xc000_0200 + number).into()
    }

    /// TLS-2.3
    #[test]
    fn a_source_has_few_connections_before_it_is_authenticated() {
        let mut places = Places::default();
        for number in 0..MAX_PENDING_OF_SOURCE {
            assert_eq!(places.admit(at(0), source(1)), Admitted::Number(number));
        }
        assert_eq!(places.admit(at(0), source(1)), Admitted::Refused);
        assert_ne!(places.admit(at(0), source(2)), Admitted::Refused, "another source");
        places.sealed(at(0), 3);
        assert_ne!(places.admit(at(0), source(1)), Admitted::Refused);
        let mut places = Places::default();
        let of_network =
            |host: u64| IpAddr::from(Ipv6Addr::from_bits(0x2001 << 112 | u128::from(host)));
        let admitted =
            (0..100).filter(|&n| places.admit(at(0), of_network(n)) != Admitted::Refused);
        assert_eq!(admitted.count(), MAX_PENDING_OF_SOURCE);
    }

    /// TLS-2.3
    #[test]
    fn a_flood_closes_its_own_oldest_connections() {
        let mut places = Places::default();
        assert_eq!(places.admit(at(0), source(0)), Admitted::Number(0));
        places.sealed(at(0), 0);
        for number in 1..=10_000_u32 {
            let admitted =
                places.admit(at(0) + Span::from_millis(u64::from(number)), source(number));
            assert!(!matches!(admitted, Admitted::Refused | Admitted::Number(0)), "{admitted:?}");
            assert!(places.len() <= MAX_PENDING + 1);
        }
    }

    /// TLS-2.3
    #[test]
    fn authenticated_connections_are_not_closed_for_others() {
        let mut places = Places::default();
        for number in 0..MAX_CONNECTIONS {
            assert_eq!(places.admit(at(0), source(number as u32)), Admitted::Number(number));
            places.sealed(at(0), number);
        }
        assert_eq!(places.admit(at(1), source(5_000)), Admitted::Refused);
        places.remove(77);
        assert_eq!(places.admit(at(1), source(5_000)), Admitted::Number(77));
        assert_eq!(places.admit(at(1), source(5_001)), Admitted::Number(77), "it is pending");
    }

    /// TLS-2.3
    #[test]
    fn connections_expire() {
        let mut places = Places::default();
        places.admit(at(0), source(1));
        places.admit(at(0), source(2));
        places.sealed(at(1), 1);
        assert_eq!((places.expired(at(14)), places.expired(at(15))), (None, Some(0)));
        places.remove(0);
        assert_eq!((places.expired(at(120)), places.expired(at(121))), (None, Some(1)));
    }
}
