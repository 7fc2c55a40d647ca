//! Where a terminal's hub is: an address, or a name that has addresses.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;

/// Octets of the longest name, without a dot at its end (RFC 1035 §2.3.4).
const LONGEST_NAME: usize = 253;

/// The hub's address and port, or its name and port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HubAddress {
    /// An address, which is the one that is used.
    Address(SocketAddr),
    /// A name, whose addresses are looked up, and its port.
    Name(Arc<str>, u16),
}

impl HubAddress {
    /// The address, if it is one.
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Address(address) => Some(*address),
            Self::Name(..) => None,
        }
    }

    /// Any port of the family of the address; for a name, of both families.
    pub(super) fn any_port(&self) -> SocketAddr {
        match self {
            Self::Address(SocketAddr::V4(_)) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            Self::Address(SocketAddr::V6(_)) | Self::Name(..) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        }
    }
}

impl fmt::Display for HubAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Name(name, port) => write!(f, "{name}:{port}"),
        }
    }
}

impl FromStr for HubAddress {
    type Err = ();

    /// An address as the standard library takes it, or a host name (RFC 1123 §2.1), with a port.
    fn from_str(text: &str) -> Result<Self, ()> {
        if let Ok(address) = text.parse() {
            return Ok(Self::Address(address));
        }
        let (name, port) = text.rsplit_once(':').ok_or(())?;
        let port: u16 = port.parse().map_err(|_| ())?;
        let plain = name.strip_suffix('.').unwrap_or(name);
        let is_label = |label: &str| {
            (1..=63).contains(&label.len())
                && label.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
        };
        // A last label of digits is an address that was mistyped.
        let is_number = |label: &str| label.bytes().all(|b| b.is_ascii_digit());
        let fits = plain.len() <= LONGEST_NAME
            && plain.split('.').all(is_label)
            && !plain.rsplit('.').next().is_some_and(is_number);
        if fits && port != 0 { Ok(Self::Name(name.into(), port)) } else { Err(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_names_are_told_apart() {
        for text in ["192.0.2.1:7000", "[2001:db8::1]:7000"] {
            let address = text.parse::<HubAddress>().unwrap();
            assert_eq!((address.address(), address.to_string()), (text.parse().ok(), text.into()));
        }
        for text in ["hub.example:7000", "hub:1", "localhost:7000", "hub-1.example.:7000"] {
            let name = text.parse::<HubAddress>().unwrap();
            assert_eq!((name.address(), name.to_string()), (None, text.into()));
            assert_eq!(name.any_port(), "[::]:0".parse().unwrap());
        }
        let long = format!("{}:7000", ["a".repeat(63).as_str(); 4].join("."));
        for text in [
            "hub.example",
            "hub.example:",
            ":7000",
            "hub..example:7000",
            "hub example:7000",
            "192.0.2.300:7000",
            "192.0.2:7000",
            "2001:db8::1:7000",
            "hub.example:0",
            "hub.example:70000",
            &long,
        ] {
            assert_eq!(text.parse::<HubAddress>(), Err(()), "{text}");
        }
    }
}
