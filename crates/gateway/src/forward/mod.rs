//! Packets that are carried as they are: a TUN interface, and what leads to it.
//!
//! ```text
//! terminal   LAN ─▶ mark ─▶ [rule: mark → table] ─▶ default by TUN ─▶ relay
//!            relay ─▶ TUN ─▶ the kernel's routes ─▶ LAN
//! hub        relay ─▶ source and destination allowed? ─▶ TUN ─▶ the kernel's routes
//!            to a terminal's network ─▶ [rule: network → table] ─▶ default by TUN ─▶ relay
//! ```
//!
//! When the process ends, however it ends, the interface and the routes by it are gone, and what
//! the rules lead to is empty: packets go their ordinary way.

pub(crate) mod packet;

use crate::intercept::{ForwardRules, InterceptError, Interception, Prefix};
use crate::{ForwardSection, HubSection, Role};
use rt::Tun;
use rt::netlink::{DestinationRule, Netlink, NetlinkError, Route};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Where a hub's rules for destinations stand: behind those of interception.
const PRIORITY: u32 = 2540;

/// Why packets cannot be carried.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ForwardError {
    /// There is no TUN interface to be had.
    #[error("forward.device: cannot make the TUN interface {name}: {source}{advice}")]
    Tun {
        /// Its name.
        name: String,
        /// What the kernel said.
        source: io::Error,
        /// What to do about it.
        advice: &'static str,
    },
    /// The kernel refused a setting, a route or a rule.
    #[error("forward: {0}")]
    Netlink(#[from] NetlinkError),
    /// The packet filter, or its rules.
    #[error("forward: {0}")]
    Rules(#[from] InterceptError),
}

/// The interface, and what leads to it while this is there.
#[derive(Debug)]
pub(crate) struct Forwarding {
    // What leads to the interface goes before it does.
    _rules: Option<Interception>,
    _routes: Option<Routes>,
    /// At a hub: which terminal has which networks; those of all others.
    pub(crate) homes: Homes,
    pub(crate) tun: Tun,
}

impl Forwarding {
    /// As `section` says, for `role`.
    pub(crate) fn open(section: &ForwardSection, role: &Role) -> Result<Self, ForwardError> {
        let tun = open_tun(section)?;
        let (rules, routes, homes) = match role {
            Role::Terminal(_) => {
                let rules = Interception::forward(&rules(section))?;
                rules.notes().iter().for_each(|note| tracing::warn!(%note, "forward"));
                (Some(rules), None, Homes::default())
            }
            Role::Hub(hub) => {
                let homes = Homes::new(section, hub);
                (None, Some(Routes::add(section, &homes.all())?), homes)
            }
            Role::Single(_) => unreachable!("without a partner there is nothing to forward to"),
        };
        Ok(Self { tun, homes, _rules: rules, _routes: routes })
    }
}

fn open_tun(section: &ForwardSection) -> Result<Tun, ForwardError> {
    let name = &section.device;
    let tun = Tun::open(name).map_err(|source| {
        let advice = match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => "; this needs CAP_NET_ADMIN and /dev/net/tun",
            Some(libc::ENOENT | libc::ENODEV) => "; is there a /dev/net/tun? (modprobe tun)",
            Some(libc::EBUSY) => "; another program has it: choose another name",
            Some(_) | None => "",
        };
        ForwardError::Tun { name: name.clone(), source, advice }
    })?;
    // Replies come by another interface than the main table would have it.
    let filter = rt::netlink::sysctl(&format!("net/ipv4/conf/{name}/rp_filter"), "0");
    if let Err(error) = filter {
        tracing::warn!(%error, "packets that come out of the tunnel may be dropped");
    }
    let all = std::fs::read_to_string("/proc/sys/net/ipv4/conf/all/rp_filter");
    if all.is_ok_and(|value| value.trim() == "1") {
        tracing::warn!(
            "net.ipv4.conf.all.rp_filter is 1: packets that come out of the tunnel are dropped; \
             set it to 2 or 0"
        );
    }
    let mut netlink = Netlink::open()?;
    netlink.set_mtu(name, section.mtu)?;
    netlink.set_up(name)?;
    Ok(tun)
}

fn rules(section: &ForwardSection) -> ForwardRules {
    let mut rules = ForwardRules::new(&section.id, &section.interfaces, &section.device);
    rules.protocols.clone_from(&section.protocols);
    rules.include.clone_from(&section.include);
    rules.exclude.clone_from(&section.exclude);
    rules.include_ports.clone_from(&section.include_ports);
    rules.exclude_ports.clone_from(&section.exclude_ports);
    rules.refuse.clone_from(&section.refuse);
    rules.mark = section.marking.mark.unwrap_or(rules.mark);
    rules.table = section.marking.table.unwrap_or(rules.table);
    rules.priority = section.marking.priority.unwrap_or(rules.priority);
    rules
}

/// Which terminal is at home in which networks.
#[derive(Debug, Default)]
pub(crate) struct Homes {
    /// Terminals with networks of their own, by name.
    known: Vec<(String, Vec<Prefix>)>,
    /// The networks of all others.
    others: Vec<Prefix>,
}

impl Homes {
    fn new(section: &ForwardSection, hub: &HubSection) -> Self {
        let known = hub.terminals.iter().filter_map(|entry| {
            let clients = entry.clients.as_ref().filter(|clients| !clients.is_empty())?;
            Some((entry.name.clone(), clients.clone()))
        });
        Self { known: known.collect(), others: section.networks.clone() }
    }

    /// All networks.
    fn all(&self) -> Vec<Prefix> {
        let mut all = self.others.clone();
        for network in self.known.iter().flat_map(|(_, networks)| networks) {
            if !all.contains(network) {
                all.push(*network);
            }
        }
        all
    }

    /// Whether `address` is at home behind the terminal called `name`.
    pub(crate) fn is_home(&self, name: &str, address: IpAddr) -> bool {
        let own = self.known.iter().find(|(known, _)| known == name);
        let networks = own.map_or(&self.others, |(_, networks)| networks);
        networks.iter().any(|network| network.contains(address))
    }

    /// Behind which terminal `address` is, of those called `names`: the one whose own network
    /// is the narrowest around it, else the only one without networks of its own.
    pub(crate) fn home_of<'n>(
        &self,
        address: IpAddr,
        mut names: &mut dyn Iterator<Item = &'n str>,
    ) -> Option<&'n str> {
        let around = |networks: &[Prefix]| {
            let around = networks.iter().filter(|network| network.contains(address));
            around.map(Prefix::length).max()
        };
        let narrowest =
            self.known.iter().filter_map(|(name, networks)| Some((around(networks)?, name)));
        let others = around(&self.others);
        let owner = narrowest.max_by_key(|(length, _)| *length);
        if let Some((length, owner)) = owner
            && others.is_none_or(|other| length >= other)
        {
            return Iterator::find(&mut names, |name| name == owner);
        }
        others?;
        let is_known = |name: &&str| self.known.iter().any(|(known, _)| known == name);
        let mut rest = names.filter(|name| !is_known(name));
        let only = rest.next()?;
        rest.next().is_none().then_some(only)
    }
}

/// A hub's rules and routes; taken away when it is dropped.
#[derive(Debug)]
struct Routes {
    netlink: Netlink,
    rules: Vec<DestinationRule>,
}

impl Routes {
    fn add(section: &ForwardSection, networks: &[Prefix]) -> Result<Self, ForwardError> {
        let numbers = ForwardRules::new(&section.id, &[], &section.device);
        let table = section.marking.table.unwrap_or(numbers.table);
        let priority = section.marking.priority.unwrap_or(PRIORITY);
        let mut this = Self { netlink: Netlink::open()?, rules: Vec::new() };
        let families = [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)];
        for any in families {
            let of_family = |network: &&Prefix| network.network().is_ipv4() == any.is_ipv4();
            if !networks.iter().any(|network| of_family(&network)) {
                continue;
            }
            // The route goes with the interface.
            this.netlink.add_route(&Route { table, ..Route::to(any, 0).on(&section.device) })?;
            for network in networks.iter().filter(of_family) {
                let destination = (network.network(), network.length());
                let rule = DestinationRule { destination, table, priority };
                match this.netlink.add_destination_rule(&rule) {
                    // Left by an earlier run that was killed.
                    Err(error) if error.errno() == Some(libc::EEXIST) => {}
                    added => added?,
                }
                this.rules.push(rule);
            }
        }
        Ok(this)
    }
}

impl Drop for Routes {
    fn drop(&mut self) {
        for rule in self.rules.iter().rev() {
            if let Err(error) = self.netlink.delete_destination_rule(rule) {
                tracing::warn!(%error, "a rule stays behind; it leads to an empty table");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_has_one_home() {
        let networks = |all: &[&str]| all.iter().map(|text| text.parse().unwrap()).collect();
        let homes = Homes {
            known: vec![
                ("boat".into(), networks(&["10.1.0.0/16", "fd00:1::/64"])),
                ("ship".into(), networks(&["10.1.7.0/24"])),
            ],
            others: networks(&["10.0.0.0/8"]),
        };
        let home = |address: &str, names: &[&'static str]| {
            homes.home_of(address.parse().unwrap(), &mut names.iter().copied())
        };
        let all = ["boat", "ship", "car"];
        assert_eq!(home("10.1.2.3", &all), Some("boat"));
        assert_eq!(home("10.1.7.3", &all), Some("ship"), "the narrowest");
        assert_eq!(home("10.1.7.3", &["boat", "car"]), None, "its own is away");
        assert_eq!(home("10.9.9.9", &all), Some("car"), "the only one without its own");
        assert_eq!(home("10.9.9.9", &["boat", "car", "bus"]), None, "which of them?");
        assert_eq!(home("192.0.2.1", &all), None);
        assert!(homes.is_home("car", "10.9.9.9".parse().unwrap()));
        assert!(!homes.is_home("ship", "10.1.2.3".parse().unwrap()));
        assert!(homes.is_home("boat", "fd00:1::5".parse().unwrap()));
        assert_eq!(homes.all().len(), 4);
    }
}
