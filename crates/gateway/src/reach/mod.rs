//! Rules on destinations that may be reached through a hub, applied right before each connection.
//!
//! ```text
//!   name ─▶ addresses ─▶ each: the address itself, and IPv4 addresses embedded in it
//!                               │
//!                               ▼
//!                        most specific rule wins ──▶ connect to that address, or refuse
//! ```
//!
//! Names are resolved first, and only addresses are checked, the same ones that are connected to:
//! DNS rebinding gains nothing. Whether an address is this host's own is queried from the kernel
//! each time, so there is no list that could be outdated.

mod forms;
mod rule;

use crate::intercept::Prefix;
use forms::embedded;
use rt::netlink::{Netlink, NetlinkError};
use std::fmt;
use std::net::{IpAddr, SocketAddr};

use rule::Rank;
pub use rule::Rule;

/// Networks that are refused regardless of the configuration: unspecified, multicast, reserved,
/// broadcast.
const NOWHERE: [&str; 5] = ["0.0.0.0/8", "::", "224.0.0.0/4", "240.0.0.0/4", "ff00::/8"];
/// Networks of services on the hub itself, or on its own links.
const PRIVATE: [&str; 4] = ["127.0.0.0/8", "::1", "169.254.0.0/16", "fe80::/10"];
/// Metadata services of cloud providers, which offer credentials to each host: refused unless a
/// rule allows the address or a network as narrow.
const METADATA: [&str; 16] = [
    // Amazon, Azure, Google, Oracle, IBM, DigitalOcean, Hetzner, Huawei, OpenStack and others.
    "169.254.169.254",
    "fe80::a9fe:a9fe",
    // Amazon: containers (ECS), pods (EKS); over IPv6 instances, pods, resolver and time.
    "169.254.170.2",
    "169.254.170.23",
    "fd00:ec2::/32",
    // Google, instances that have IPv6 alone.
    "fd20:ce::254",
    // Azure: WireServer, which serves the configuration of extensions.
    "168.63.129.16",
    // Oracle, and Oracle Cloud Classic.
    "fd00:c1::a9fe:a9fe",
    "192.0.0.192",
    // Alibaba.
    "100.100.100.200",
    "fd00:100::100:200",
    // Tencent.
    "169.254.0.23",
    // Akamai (Linode).
    "fd00:a9fe:a9fe::1",
    // Scaleway.
    "169.254.42.42",
    "fd00:42::42",
    // Volcano Engine and BytePlus.
    "100.96.0.96",
];

/// Allowed and refused destinations of a configuration.
#[derive(Clone, Debug, Default)]
pub struct Destinations {
    /// Exceptions from what is refused.
    pub allow: Vec<Rule>,
    /// What is refused.
    pub deny: Vec<Rule>,
}

/// Reason for refusing a destination, for logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DenyReason {
    /// A rule of the configuration, or a built-in one.
    Rule(String),
    /// The kernel would deliver it to this host.
    Own,
    /// The query whether it would failed.
    Unknown,
    /// The packet has a source route.
    SourceRouted,
    /// It embeds an IPv4 address that is refused.
    Embedded(IpAddr, Box<DenyReason>),
}

impl fmt::Display for DenyReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule(rule) => write!(f, "{rule} is denied"),
            Self::Own => f.write_str("it is the hub's own address"),
            Self::Unknown => f.write_str("the kernel did not tell whether it is the hub's own"),
            Self::SourceRouted => f.write_str("source routing would send it elsewhere"),
            Self::Embedded(inner, because) => write!(f, "it stands for {inner}, and {because}"),
        }
    }
}

/// Applies the rules to destinations.
#[derive(Debug)]
pub(crate) struct Reach {
    rules: Vec<Ranked>,
    /// For queries whether an address is this host's own; `None` where that is allowed.
    kernel: Option<Netlink>,
}

#[derive(Debug)]
struct Ranked {
    rule: Rule,
    /// Whether a configured rule wins over a built-in one that is as specific.
    written: bool,
    deny: bool,
}

impl Reach {
    /// Creates the hub's rules; with `guarded`, its own addresses and those on its own links are
    /// refused unless a rule allows them.
    ///
    /// # Errors
    /// When netlink is not available.
    pub(crate) fn hub(lists: &Destinations, guarded: bool) -> Result<Self, NetlinkError> {
        let mut reach = Self::listed(lists);
        reach.add_built_in(&NOWHERE);
        reach.add_built_in(&METADATA);
        if guarded {
            reach.add_built_in(&PRIVATE);
            reach.kernel = Some(Netlink::open()?);
        }
        Ok(reach)
    }

    /// Creates rules of `lists` only, which narrow those of the hub further.
    pub(crate) fn listed(lists: &Destinations) -> Self {
        let written = |list: &[Rule], deny| {
            list.iter().map(move |&rule| Ranked { rule, written: true, deny }).collect::<Vec<_>>()
        };
        let mut rules = written(&lists.allow, false);
        rules.extend(written(&lists.deny, true));
        Self { rules, kernel: None }
    }

    fn add_built_in(&mut self, networks: &[&str]) {
        let rules = networks.iter().filter_map(|text| text.parse::<Rule>().ok());
        self.rules.extend(rules.map(|rule| Ranked { rule, written: false, deny: true }));
    }

    /// Whether `server` may be connected to.
    pub(crate) fn check(&mut self, server: SocketAddr) -> Result<(), DenyReason> {
        self.check_ports(server.ip(), &[server.port()])
    }

    /// Whether every port of `address` may be reached: for packets whose port is hidden.
    pub(crate) fn check_all_ports(&mut self, address: IpAddr) -> Result<(), DenyReason> {
        // Between these ports the result does not change.
        let edges = |ranked: &Ranked| {
            let ports = ranked.rule.ports()?;
            Some([Some(ports.first()), ports.last().checked_add(1)])
        };
        let mut ports: Vec<u16> = self.rules.iter().filter_map(edges).flatten().flatten().collect();
        ports.push(1);
        ports.sort_unstable();
        ports.dedup();
        self.check_ports(address, &ports)
    }

    fn check_ports(&mut self, address: IpAddr, ports: &[u16]) -> Result<(), DenyReason> {
        let address = address.to_canonical();
        self.check_form(address, ports)?;
        for inner in embedded(address) {
            self.check_form(inner, ports)
                .map_err(|because| DenyReason::Embedded(inner, Box::new(because)))?;
        }
        Ok(())
    }

    fn check_form(&mut self, address: IpAddr, ports: &[u16]) -> Result<(), DenyReason> {
        let mut all_named = true;
        for &port in ports {
            all_named &= self.is_named(address, port)?;
        }
        // Loopback has been checked by its network.
        if all_named || address.is_loopback() {
            return Ok(());
        }
        self.check_route(address)
    }

    /// Applies the rules only; returns whether the rule that allows the address names it alone. Only
    /// such a rule allows this host's own addresses.
    fn is_named(&self, address: IpAddr, port: u16) -> Result<bool, DenyReason> {
        let ranked = |ranked: &Ranked| {
            let rank = ranked.rule.rank(address, port)?;
            Some((rank, ranked.written, ranked.deny, ranked.rule))
        };
        let best = self.rules.iter().filter_map(ranked).max_by_key(|best| (best.0, best.1, best.2));
        match best {
            Some((_, _, true, rule)) => Err(DenyReason::Rule(rule.to_string())),
            Some((rank, _, false, _)) => Ok(rank >= Rank::address()),
            None => Ok(false),
        }
    }

    /// Refuses `address` if it is the hub's own and the hub is guarded.
    pub(crate) fn is_own(&mut self, address: IpAddr) -> bool {
        self.check_route(address.to_canonical()).is_err()
    }

    fn check_route(&mut self, address: IpAddr) -> Result<(), DenyReason> {
        let Some(kernel) = &mut self.kernel else { return Ok(()) };
        match kernel.is_own(address) {
            Ok(true) => Err(DenyReason::Own),
            Ok(false) => Ok(()),
            Err(error) => {
                tracing::warn!(%address, %error, "route lookup failed, destination refused");
                Err(DenyReason::Unknown)
            }
        }
    }
}

/// Whether servers may see the address `client` for a terminal whose clients are in `networks`;
/// never without networks.
pub(crate) fn may_speak_for(networks: &[Prefix], client: IpAddr) -> bool {
    let client = client.to_canonical();
    let strange = client.is_unspecified() || client.is_multicast() || client.is_loopback();
    !strange && networks.iter().any(|network| network.contains(client))
}

#[cfg(test)]
mod tests;
