//! A rule on destinations: a network, ports, or both.

use crate::intercept::{PortRange, Prefix};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// A network and ports: `10.0.0.0/8`, `192.0.2.1 port 443`, `any port 8000-8099`, `any`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// `None` is any address.
    network: Option<Prefix>,
    /// `None` is any port.
    ports: Option<PortRange>,
}

/// Specificity of a matching rule: the prefix length of its network, then whether it has ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    /// 128 minus the number of host bits, so that both address families compare.
    bits: u8,
    ports: bool,
}

impl Rank {
    /// Minimum specificity of a rule for a single address.
    pub(super) const fn address() -> Self {
        Self { bits: 128, ports: false }
    }
}

impl Rule {
    /// The ports that it is for; `None` is any.
    pub(super) fn ports(&self) -> Option<PortRange> {
        self.ports
    }

    /// Returns the specificity; `None` if the rule does not match. IPv4-mapped addresses are unmapped
    /// by the caller.
    pub(super) fn rank(&self, address: IpAddr, port: u16) -> Option<Rank> {
        if self.ports.is_some_and(|ports| !ports.contains(port)) {
            return None;
        }
        let bits = match &self.network {
            None => 0,
            Some(network) if !network.contains(address) => return None,
            Some(network) if network.network().is_ipv4() => network.length() + 96,
            Some(network) => network.length(),
        };
        Some(Rank { bits, ports: self.ports.is_some() })
    }
}

impl FromStr for Rule {
    /// For people: what was found, and what was expected.
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let (network, ports) = match words[..] {
            [network] => (network, None),
            [network, "port" | "ports", ports] => (network, Some(ports)),
            _ => return Err(format!("{text:?} is not a rule; such as \"10.0.0.0/8 port 22\"")),
        };
        let network = if network == "any" { None } else { Some(network.parse()?) };
        let ports = ports.map(str::parse).transpose()?;
        Ok(Self { network, ports })
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.network {
            Some(network) => write!(f, "{network}")?,
            None => f.write_str("any")?,
        }
        match &self.ports {
            Some(ports) => write!(f, " port {ports}"),
            None => Ok(()),
        }
    }
}
