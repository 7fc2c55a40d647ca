//! Names of addresses: those that responses had, and those that stand for a name that is looked up
//! at the hub.

use super::message::Response;
use crate::intercept::Prefix;
use relay::Destination;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use units::{Instant, Span};

/// Maximum number of addresses with names.
const MAX_NAMES: usize = 8192;
/// A placeholder keeps its name for so long after its last use: browsers use an address for
/// minutes, whatever its TTL.
const KEPT: Span = Span::from_secs(3600);

/// The names of addresses.
#[derive(Debug, Default)]
pub(crate) struct AddressNames {
    /// Network of the placeholders.
    pool: Option<Prefix>,
    /// Whether addresses of responses have names as well.
    learns: bool,
    /// Number of the last placeholder.
    last: u32,
    entries: BTreeMap<IpAddr, Named>,
    placeholders: BTreeMap<Arc<str>, Ipv4Addr>,
    /// Addresses by the time of their last use.
    used: BTreeSet<(Instant, IpAddr)>,
    /// Connections that were opened by name instead of by address.
    pub(crate) opened: u64,
}

#[derive(Debug)]
struct Named {
    name: Arc<str>,
    used: Instant,
    /// Several names have this address, so that none of them is the destination.
    is_shared: bool,
}

impl AddressNames {
    /// Names with the placeholders of `pool`, and with those of responses if it `learns`.
    pub(crate) fn new(pool: Option<Prefix>, learns: bool) -> Self {
        Self { pool, learns, ..Self::default() }
    }

    /// Returns the placeholder of `name`, if there is one to be had.
    pub(crate) fn placeholder(&mut self, now: Instant, name: &str) -> Option<Ipv4Addr> {
        if let Some(&address) = self.placeholders.get(name) {
            self.touch(now, address.into());
            return Some(address);
        }
        let pool = self.pool?;
        let IpAddr::V4(network) = pool.network() else { return None };
        let size = 1u32.checked_shl(32 - u32::from(pool.length())).unwrap_or(u32::MAX);
        // The first and the last address of a network are those of no host.
        self.last = self.last % size.checked_sub(2).filter(|&size| size > 0)? + 1;
        let address = Ipv4Addr::from_bits(network.to_bits() + self.last);
        let other = self.entries.get(&address.into());
        if other.is_some_and(|other| other.used + KEPT > now) || !self.has_room(now) {
            return None;
        }
        self.remove(address.into());
        let name: Arc<str> = name.into();
        self.placeholders.insert(Arc::clone(&name), address);
        self.add(now, address.into(), name);
        Some(address)
    }

    /// Notes the addresses of `name`.
    pub(crate) fn learn(&mut self, now: Instant, name: &str, response: &Response) {
        if !self.learns {
            return;
        }
        for &address in &response.addresses {
            if let Some(entry) = self.entries.get_mut(&address) {
                entry.is_shared |= *entry.name != *name;
            } else if self.has_room(now) {
                self.add(now, address, name.into());
            }
            self.touch(now, address);
        }
    }

    /// Returns the name to be opened instead of `address`, if it has one. `None`: it is a
    /// placeholder whose name is not known any more.
    pub(crate) fn destination(&mut self, now: Instant, address: SocketAddr) -> Option<Destination> {
        let ip = address.ip().to_canonical();
        let name = self.entries.get(&ip).filter(|entry| !entry.is_shared);
        let Some(name) = name.map(|entry| entry.name.to_string()) else {
            let is_placeholder = self.pool.is_some_and(|pool| pool.contains(ip));
            return (!is_placeholder).then_some(Destination::Address(address));
        };
        self.touch(now, ip);
        self.opened += 1;
        Some(Destination::Name(name, address.port()))
    }

    fn add(&mut self, now: Instant, address: IpAddr, name: Arc<str>) {
        self.used.insert((now, address));
        self.entries.insert(address, Named { name, used: now, is_shared: false });
    }

    fn touch(&mut self, now: Instant, address: IpAddr) {
        let Some(entry) = self.entries.get_mut(&address) else { return };
        self.used.remove(&(entry.used, address));
        self.used.insert((now, address));
        entry.used = now;
    }

    /// Removes the entry that was not used for the longest time where there are too many, unless
    /// that may still be in use.
    fn has_room(&mut self, now: Instant) -> bool {
        if self.entries.len() < MAX_NAMES {
            return true;
        }
        let oldest = self.used.first().filter(|(used, _)| *used + KEPT <= now);
        let Some(&(_, address)) = oldest else { return false };
        self.remove(address);
        true
    }

    fn remove(&mut self, address: IpAddr) {
        let Some(entry) = self.entries.remove(&address) else { return };
        self.used.remove(&(entry.used, address));
        if self.placeholders.get(&entry.name).is_some_and(|&other| IpAddr::V4(other) == address) {
            self.placeholders.remove(&entry.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Span::from_secs(seconds)
    }

    fn names(pool: &str) -> AddressNames {
        AddressNames::new(Some(pool.parse().unwrap()), true)
    }

    fn response(addresses: &[IpAddr]) -> Response {
        let mut response = Response::default();
        response.addresses.extend(addresses);
        response
    }

    #[test]
    fn a_placeholder_stands_for_its_name_until_it_is_not_used_for_an_hour() {
        let mut names = names("198.18.0.0/30");
        let one = names.placeholder(at(0), "one.test").unwrap();
        let two = names.placeholder(at(1), "two.test").unwrap();
        assert_eq!(names.placeholder(at(2), "one.test"), Some(one));
        assert_eq!((one.octets()[3], two.octets()[3]), (1, 2));
        let destination = |names: &mut AddressNames, seconds, address: Ipv4Addr| {
            let found = names.destination(at(seconds), (address, 80).into());
            found.map(|found| found.to_string())
        };
        assert_eq!(destination(&mut names, 3, one).as_deref(), Some("one.test:80"));
        assert_eq!(names.placeholder(at(3_000), "three.test"), None, "both are in use");
        assert_eq!(names.placeholder(at(3_000), "three.test"), None);
        assert_eq!(names.placeholder(at(3_602), "three.test"), None);
        assert_eq!(names.placeholder(at(3_602), "three.test"), Some(two), "the least used");
        assert_eq!(destination(&mut names, 3_602, two).as_deref(), Some("three.test:80"));
        // Its host and its network are not given out.
        assert_eq!(destination(&mut names, 1, [198, 18, 0, 3].into()), None);
        let outside = destination(&mut names, 1, [192, 0, 2, 1].into());
        assert_eq!(outside.as_deref(), Some("192.0.2.1:80"));
        assert_eq!(names.opened, 2);
    }

    #[test]
    fn an_address_of_several_names_has_none() {
        let mut names = names("198.18.0.0/15");
        let shared: IpAddr = [192, 0, 2, 1].into();
        let own: IpAddr = [192, 0, 2, 2].into();
        names.learn(at(0), "one.test", &response(&[shared, own]));
        names.learn(at(0), "one.test", &response(&[shared]));
        let open = |names: &mut AddressNames, ip: IpAddr| {
            names.destination(at(1), (ip, 443).into()).unwrap().to_string()
        };
        assert_eq!(open(&mut names, shared), "one.test:443");
        names.learn(at(0), "two.test", &response(&[shared]));
        assert_eq!(open(&mut names, shared), "192.0.2.1:443");
        assert_eq!(open(&mut names, own), "one.test:443");
    }

    #[test]
    fn names_in_use_are_not_replaced_and_their_number_is_bounded() {
        let mut names = names("198.18.0.0/15");
        for number in 0..MAX_NAMES {
            assert!(names.placeholder(at(0), &format!("n{number}.test")).is_some());
        }
        assert_eq!(names.placeholder(at(10), "more.test"), None);
        assert!(names.placeholder(at(10), "n0.test").is_some());
        assert!(names.placeholder(at(3_600), "more.test").is_some());
        assert_eq!(names.entries.len(), MAX_NAMES);
        assert_eq!((names.placeholders.len(), names.used.len()), (MAX_NAMES, MAX_NAMES));
    }
}
