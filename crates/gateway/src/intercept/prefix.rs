//! Networks and port ranges, as written in configurations.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::Deserialize;

/// A network: `192.0.2.0/24`, `2001:db8::/32`, or one address alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Prefix {
    network: IpAddr,
    length: u8,
}

impl Prefix {
    /// The network's first address.
    pub const fn network(&self) -> IpAddr {
        self.network
    }

    /// The prefix length in bits.
    pub const fn length(&self) -> u8 {
        self.length
    }

    /// Whether it contains `address`; an IPv4-mapped IPv6 address is an IPv4 address.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.network.is_ipv4()
            && first_address(address, self.length) == self.network
    }
}

impl FromStr for Prefix {
    /// For people: what was found, and what was expected.
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("{text:?} is not a network ({why}); such as 192.0.2.0/24");
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong("the address is malformed"))?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let length = match length {
            None => longest,
            Some(digits) => digits.parse().map_err(|_| wrong("the length is not a number"))?,
        };
        if length > longest {
            return Err(wrong(&format!("the length is above {longest}")));
        }
        let network = first_address(address, length);
        if network != address {
            return Err(wrong(&format!("there are bits behind the prefix; {network}/{length}?")));
        }
        // Addresses are compared unmapped; otherwise none would be in it.
        match (network.to_canonical(), length.checked_sub(96)) {
            (network @ IpAddr::V4(_), Some(length)) if address.is_ipv6() => {
                Ok(Self { network, length })
            }
            (_, _) => Ok(Self { network, length }),
        }
    }
}

fn first_address(address: IpAddr, length: u8) -> IpAddr {
    let length = u32::from(length);
    match address {
        IpAddr::V4(a) => {
            let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
            Ipv4Addr::from(u32::from(a) & mask).into()
        }
        IpAddr::V6(a) => {
            let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
            Ipv6Addr::from(u128::from(a) & mask).into()
        }
    }
}

impl TryFrom<String> for Prefix {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.length)
    }
}

/// A port, `443`, or a range of them, `8000-8080`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct PortRange {
    first: u16,
    last: u16,
}

impl PortRange {
    /// The lowest port in it.
    pub const fn first(&self) -> u16 {
        self.first
    }

    /// The highest port in it.
    pub const fn last(&self) -> u16 {
        self.last
    }

    /// Whether `port` is in it.
    pub const fn contains(&self, port: u16) -> bool {
        self.first <= port && port <= self.last
    }
}

impl FromStr for PortRange {
    /// For people: what was found, and what was expected.
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("{text:?} is not a port or a range of ports; such as 443, 8000-8080");
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let first = first.trim().parse().map_err(|_| wrong())?;
        let last = last.trim().parse().map_err(|_| wrong())?;
        if first == 0 || first > last { Err(wrong()) } else { Ok(Self { first, last }) }
    }
}

impl TryFrom<String> for PortRange {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            write!(f, "{}", self.first)
        } else {
            write!(f, "{}-{}", self.first, self.last)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_read_and_shown() {
        for text in ["10.0.0.0/8", "0.0.0.0/0", "192.0.2.1/32", "2001:db8::/32", "::/0"] {
            assert_eq!(text.parse::<Prefix>().unwrap().to_string(), text);
        }
        assert_eq!("::1".parse::<Prefix>().unwrap().length(), 128);
        // An IPv4-mapped IPv6 address is an IPv4 address, in a configuration as well.
        for (text, plain) in [
            ("::ffff:10.1.0.0/112", "10.1.0.0/16"),
            ("::ffff:10.1.2.3", "10.1.2.3/32"),
            ("::ffff:0:0/96", "0.0.0.0/0"),
            ("::ffff:0:0/95", ""),
            ("::fffe:0:0/95", "::fffe:0:0/95"),
        ] {
            let shown = text.parse::<Prefix>().map(|network| network.to_string());
            assert_eq!(shown.unwrap_or_default(), plain, "{text}");
        }
    }

    #[test]
    fn networks_contain_their_own() {
        let is_in = |network: &str, address: &str| {
            network.parse::<Prefix>().unwrap().contains(address.parse().unwrap())
        };
        assert!(is_in("127.0.0.0/8", "127.1.2.3"));
        assert!(is_in("127.0.0.0/8", "::ffff:127.0.0.1"));
        assert!(!is_in("127.0.0.0/8", "128.0.0.1"));
        assert!(is_in("0.0.0.0/0", "192.0.2.1"));
        assert!(is_in("192.0.2.1", "192.0.2.1"));
        assert!(!is_in("192.0.2.1", "192.0.2.2"));
        assert!(is_in("2001:db8::/32", "2001:db8:1::1"));
        assert!(!is_in("2001:db8::/32", "2001:db9::1"));
        assert!(!is_in("::/0", "192.0.2.1"));
        assert!(is_in("::ffff:10.0.0.0/104", "10.2.3.4"));
        assert!(is_in("::ffff:10.0.0.0/104", "::ffff:10.2.3.4"));
        assert!(!is_in("::ffff:10.0.0.0/104", "11.2.3.4"));
    }

    #[test]
    fn errors_of_malformed_networks_have_a_cause() {
        for (text, word) in [
            ("10.0.0.0/33", "above 32"),
            ("10.0.0/8", "malformed"),
            ("10.0.0.0/x", "not a number"),
            ("10.0.0.1/8", "10.0.0.0/8?"),
            ("2001:db8::1/64", "2001:db8::/64?"),
        ] {
            let error = text.parse::<Prefix>().unwrap_err();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn ports_are_read_and_shown() {
        for text in ["22", "8000-8080", "1-65535"] {
            assert_eq!(text.parse::<PortRange>().unwrap().to_string(), text);
        }
        for text in ["", "0", "9-8", "65536", "http", "1-2-3"] {
            assert!(text.parse::<PortRange>().is_err(), "{text}");
        }
    }
}
