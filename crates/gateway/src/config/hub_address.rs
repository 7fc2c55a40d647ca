//! The address of a terminal's hub: an IP address, or a host name.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;

/// Maximum length of a host name in octets, without a final dot (RFC 1035 §2.3.4).
const MAX_NAME_OCTETS: usize = 253;

/// The hub's IP address or host name, with its port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HubAddress {
    /// An IP address and port.
    Address(SocketAddr),
    /// A host name, which the gateway resolves, and a port.
    Name(Arc<str>, u16),
}

impl HubAddress {
    /// Returns the IP address, or `None` for a host name.
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Address(address) => Some(*address),
            Self::Name(..) => None,
        }
    }

    /// Returns the port.
    pub(crate) fn port(&self) -> u16 {
        match self {
            Self::Address(address) => address.port(),
            Self::Name(_, port) => *port,
        }
    }

    /// Returns the wildcard address and port 0, in the family of the address; for a name, a socket
    /// of both families.
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

    /// Parses an IP address with a port as the standard library does, or a host name (RFC 1123
    /// §2.1) with a port.
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
        // A name whose last label consists of digits is a mistyped address.
        let is_number = |label: &str| label.bytes().all(|b| b.is_ascii_digit());
        let fits = plain.len() <= MAX_NAME_OCTETS
            && plain.split('.').all(is_label)
            && !plain.rsplit('.').next().is_some_and(is_number);
        if fits && port != 0 { Ok(Self::Name(name.into(), port)) } else { Err(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_names_are_distinguished() {
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
