//! Servers that have refused or not responded recently.

use crate::proxy::{Destination, RefuseReason};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use units::{Instant, Span};

/// Maximum number of servers that are stored, which bounds the packet filter's sets as well.
const MAX_SERVERS: usize = 1024;
/// Maximum number of them that clients of one network have caused.
const MAX_OF_NETWORK: usize = 64;
/// Time for which a refusal is stored. A server that is restarted is back after a few seconds.
const REFUSED: Span = Span::from_secs(10);
/// Time for which a timeout is stored. It exceeds the time in which it was detected.
const NO_ANSWER: Span = Span::from_secs(30);

/// A server as clients name it: an address or a name, in lower case, and a port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Server {
    Address(SocketAddr),
    Name(String, u16),
}

impl Server {
    fn address(address: SocketAddr) -> Self {
        Self::Address(SocketAddr::new(address.ip().to_canonical(), address.port()))
    }
}

impl From<&Destination> for Server {
    fn from(destination: &Destination) -> Self {
        match destination {
            Destination::Address(address) => Self::address(*address),
            Destination::Name(name, port) => Self::Name(name.to_ascii_lowercase(), *port),
        }
    }
}

/// What is stored of one server.
#[derive(Clone, Copy, Debug)]
struct Failure {
    until: Instant,
    /// The network of the client that has caused the entry.
    network: IpAddr,
}

/// The table of servers that have failed.
#[derive(Debug, Default)]
pub(super) struct Failures {
    entries: BTreeMap<Server, Failure>,
    next_expiry: Option<Instant>,
}

impl Failures {
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn contains(&self, now: Instant, server: &Server) -> bool {
        self.entries.get(server).is_some_and(|failure| now < failure.until)
    }

    /// Stores that a client of `network` was refused by `server`, if the reason is the server's
    /// and not the gateways'. True when the addresses stored have changed.
    pub(super) fn add(
        &mut self,
        now: Instant,
        network: IpAddr,
        server: Server,
        reason: RefuseReason,
    ) -> bool {
        let time = match reason {
            RefuseReason::ConnectionRefused
            | RefuseReason::HostUnreachable
            | RefuseReason::NetworkUnreachable
            | RefuseReason::NameNotFound => REFUSED,
            RefuseReason::TimedOut => NO_ANSWER,
            // A refusal by the policy for one client does not concern the server.
            RefuseReason::Policy | RefuseReason::Limit | RefuseReason::Other => return false,
        };
        let until = now + time;
        let changed = match self.entries.get_mut(&server) {
            Some(failure) => {
                failure.until = failure.until.max(until);
                false
            }
            None => {
                self.make_room(network);
                let is_address = matches!(server, Server::Address(_));
                self.entries.insert(server, Failure { until, network });
                is_address
            }
        };
        self.find_next_expiry();
        changed
    }

    /// Removes `server`, which has answered. True when the addresses stored have changed.
    pub(super) fn remove(&mut self, server: &Server) -> bool {
        let removed = self.entries.remove(server).is_some();
        if removed {
            self.find_next_expiry();
        }
        removed && matches!(server, Server::Address(_))
    }

    /// Removes entries whose time is over. True when the addresses stored have changed.
    pub(super) fn expire(&mut self, now: Instant) -> bool {
        if self.next_expiry.is_none_or(|at| now < at) {
            return false;
        }
        let before = self.addresses().len();
        self.entries.retain(|_, failure| now < failure.until);
        self.find_next_expiry();
        self.addresses().len() != before
    }

    pub(super) fn next_expiry(&self) -> Option<Instant> {
        self.next_expiry
    }

    /// The servers that are named by their addresses.
    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        let address = |server: &Server| match server {
            Server::Address(address) => Some(*address),
            Server::Name(..) => None,
        };
        self.entries.keys().filter_map(address).collect()
    }

    fn find_next_expiry(&mut self) {
        self.next_expiry = self.entries.values().map(|failure| failure.until).min();
    }

    /// Makes room for an entry caused by a client of `network`, at that network's expense when it
    /// has its share, and otherwise of the network with the most entries.
    fn make_room(&mut self, network: IpAddr) {
        let of = |wanted: IpAddr| {
            self.entries.values().filter(|failure| failure.network == wanted).count()
        };
        let payer = if of(network) >= MAX_OF_NETWORK {
            network
        } else if self.entries.len() >= MAX_SERVERS {
            let mut counts: BTreeMap<IpAddr, usize> = BTreeMap::new();
            for failure in self.entries.values() {
                *counts.entry(failure.network).or_default() += 1;
            }
            let largest = counts.into_iter().max_by_key(|(_, count)| *count);
            largest.map_or(network, |(network, _)| network)
        } else {
            return;
        };
        let its = self.entries.iter().filter(|(_, failure)| failure.network == payer);
        let first = its.min_by_key(|(_, failure)| failure.until).map(|(server, _)| server.clone());
        if let Some(server) = first {
            self.entries.remove(&server);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Span::from_secs(seconds)
    }

    fn server(number: u16) -> Server {
        Server::Address(SocketAddr::from(([192, 0, 2, 1], number)))
    }

    fn network(last: u8) -> IpAddr {
        IpAddr::from([10, 1, 0, last])
    }

    #[test]
    fn only_failures_of_the_server_are_stored_temporarily() {
        let mut failures = Failures::default();
        for (port, reason, seconds) in [
            (1, RefuseReason::ConnectionRefused, 10),
            (2, RefuseReason::HostUnreachable, 10),
            (3, RefuseReason::NetworkUnreachable, 10),
            (4, RefuseReason::NameNotFound, 10),
            (5, RefuseReason::TimedOut, 30),
            (6, RefuseReason::Policy, 0),
            (7, RefuseReason::Limit, 0),
            (8, RefuseReason::Other, 0),
        ] {
            let stored = failures.add(at(0), network(1), server(port), reason);
            assert_eq!(stored, seconds > 0, "{reason:?}");
            assert_eq!(failures.contains(at(0), &server(port)), seconds > 0);
            assert!(!failures.contains(at(seconds), &server(port)));
        }
        assert_eq!(failures.next_expiry(), Some(at(10)));
        assert!(!failures.expire(at(9)));
        assert!(failures.expire(at(10)));
        assert_eq!(failures.addresses().len(), 1);
        assert!(failures.expire(at(30)) && failures.is_empty());
        assert_eq!(failures.next_expiry(), None);
    }

    #[test]
    fn a_success_removes_a_server_under_all_its_spellings() {
        let mut failures = Failures::default();
        let name = |name: &str| Server::from(&Destination::Name(name.into(), 80));
        failures.add(at(0), network(1), name("Example.org"), RefuseReason::ConnectionRefused);
        assert!(failures.contains(at(1), &name("example.ORG")));
        assert!(!failures.remove(&name("EXAMPLE.org")), "no address of the packet filter's");
        assert!(failures.is_empty());
        let mapped = Destination::Address("[::ffff:192.0.2.1]:80".parse().unwrap());
        failures.add(at(0), network(1), Server::from(&mapped), RefuseReason::TimedOut);
        assert!(failures.remove(&server(80)));
        assert!(!failures.remove(&server(80)));
    }

    #[test]
    fn a_network_that_scans_displaces_its_own_entries_only() {
        let mut failures = Failures::default();
        let refuse = |failures: &mut Failures, now, of, port| {
            failures.add(now, network(of), server(port), RefuseReason::ConnectionRefused);
        };
        refuse(&mut failures, at(0), 1, 1);
        for port in 1_000..3_000 {
            refuse(&mut failures, at(1), 2, port);
        }
        assert!(failures.contains(at(2), &server(1)));
        assert_eq!(failures.entries.len(), 1 + MAX_OF_NETWORK);
        // Many networks fill the table, and the largest of them makes room.
        for of in 3..200 {
            for port in 0..32 {
                refuse(&mut failures, at(2), of, 3_000 + u16::from(of) * 64 + port);
            }
        }
        assert_eq!(failures.entries.len(), MAX_SERVERS);
        assert!(failures.contains(at(3), &server(1)), "the smallest keeps what it has");
    }
}
