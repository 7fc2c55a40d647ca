//! Packets that are forwarded unsplit: a TUN interface, and the rules and routes to it.
//!
//! ```text
//! terminal   LAN ─▶ mark ─▶ [rule: mark → table] ─▶ default by TUN ─▶ relay
//!            relay ─▶ TUN ─▶ the kernel's routes ─▶ LAN
//! hub        relay ─▶ source and destination allowed? ─▶ TUN ─▶ the kernel's routes
//!            to a terminal's network ─▶ [rule: network → table] ─▶ default by TUN ─▶ relay
//! ```
//!
//! When the process ends, in whatever way, the kernel removes the interface and its routes, and the
//! rules lead to an empty table: packets bypass the gateway.

pub(crate) mod packet;

use crate::intercept::{ForwardRules, InterceptError, Interception, Prefix};
use crate::{ForwardSection, HubSection, Role};
use rt::Tun;
use rt::netlink::{DestinationRule, Netlink, NetlinkError, ReversePath, Route};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Priority of a hub's rules for destinations: after those of interception.
const PRIORITY: u32 = 2540;

/// The tunnel's own address, which no host has: the dummy address of RFC 7600.
const DUMMY: Ipv4Addr = Ipv4Addr::new(192, 0, 0, 8);

/// Errors of the tunnel.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ForwardError {
    /// The TUN interface was not created.
    #[error("forward.device: cannot make the TUN interface {name}: {source}{advice}")]
    Tun {
        /// Its name.
        name: String,
        /// The kernel's error.
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

/// The interface, and the rules and routes to it, which are removed on drop.
#[derive(Debug)]
pub(crate) struct Forwarding {
    // Dropped before the interface.
    rules: Option<(Interception, ForwardRules)>,
    routes: Option<Routes>,
    /// At a hub: the networks of each terminal, and those of all others.
    pub(crate) homes: Homes,
    pub(crate) tun: Tun,
}

impl Forwarding {
    /// Creates what `section` configures for `role`.
    pub(crate) fn open(section: &ForwardSection, role: &Role) -> Result<Self, ForwardError> {
        let tun = open_tun(section)?;
        let (rules, routes, homes) = match role {
            Role::Terminal(_) => {
                let rules = rules(section);
                let installed = Interception::forward(&rules)?;
                installed.notes().iter().for_each(|note| tracing::warn!(%note, "forward"));
                (Some((installed, rules)), None, Homes::default())
            }
            Role::Hub(hub) => {
                let homes = Homes::new(section, hub);
                (None, Some(Routes::open(section, &homes.all())?), homes)
            }
            Role::Single(_) => unreachable!("a single gateway forwards no packets"),
        };
        Ok(Self { tun, homes, rules, routes })
    }

    /// At a terminal: stops forwarding packets, which then bypass the gateway, or resumes it.
    ///
    /// # Errors
    /// The kernel's error; nothing has changed then.
    pub(crate) fn set_bypass(&mut self, passing: bool) -> Result<(), InterceptError> {
        match &mut self.rules {
            Some((installed, _)) if passing => installed.suspend(),
            Some((installed, rules)) => installed.change_forward(rules),
            None => Ok(()),
        }
    }

    /// Sets the terminals' networks to those of `hub`, beside those of `section`.
    ///
    /// # Errors
    /// When the kernel refuses a rule; nothing has changed then.
    pub(crate) fn set_homes(
        &mut self,
        section: &ForwardSection,
        hub: &HubSection,
    ) -> Result<(), ForwardError> {
        let homes = Homes::new(section, hub);
        if let Some(routes) = &mut self.routes {
            routes.change(&homes.all())?;
        }
        self.homes = homes;
        Ok(())
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
    // Replies arrive on another interface than the main table's.
    let mut netlink = Netlink::open()?;
    if let Err(error) = netlink.set_reverse_path(name, ReversePath::Off) {
        tracing::warn!(%error, "rp_filter not changed: packets from the tunnel may be dropped");
    }
    // Distributions set the loose filter, for all interfaces or for each new one; it drops all packets
    // from an interface without an address.
    if let Err(error) = netlink.add_host_address(name, DUMMY) {
        tracing::warn!(%error, "no address for the tunnel: where rp_filter is 2, its packets are dropped");
    }
    let all = std::fs::read_to_string("/proc/sys/net/ipv4/conf/all/rp_filter");
    if all.is_ok_and(|value| value.trim() == "1") {
        tracing::warn!(
            "net.ipv4.conf.all.rp_filter is 1: packets that come out of the tunnel are dropped; \
             set it to 2 or 0"
        );
    }
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

/// The networks of each terminal.
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

    /// Whether `address` is in a network of the terminal `name`.
    pub(crate) fn is_home(&self, name: &str, address: IpAddr) -> bool {
        let own = self.known.iter().find(|(known, _)| known == name);
        let networks = own.map_or(&self.others, |(_, networks)| networks);
        networks.iter().any(|network| network.contains(address))
    }

    /// Returns the index in `names` of the terminal that has `address`: the one with the longest
    /// matching prefix, else the only one without networks of its own. A terminal with several paths
    /// occurs several times in `names`.
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
        rest.all(|name| name == only).then_some(only)
    }
}

/// A hub's rules and routes, which are removed on drop.
#[derive(Debug)]
struct Routes {
    netlink: Netlink,
    device: String,
    table: u32,
    priority: u32,
    /// Whether the table has a route, for IPv4 and for IPv6.
    routed: [bool; 2],
    rules: Vec<DestinationRule>,
}

impl Routes {
    fn open(section: &ForwardSection, networks: &[Prefix]) -> Result<Self, ForwardError> {
        let numbers = ForwardRules::new(&section.id, &[], &section.device);
        let mut this = Self {
            netlink: Netlink::open()?,
            device: section.device.clone(),
            table: section.marking.table.unwrap_or(numbers.table),
            priority: section.marking.priority.unwrap_or(PRIORITY),
            routed: [false; 2],
            rules: Vec::new(),
        };
        this.change(networks)?;
        Ok(this)
    }

    /// Replaces the rules by those for `networks`. When the kernel refuses one, none of the new ones
    /// remains.
    fn change(&mut self, networks: &[Prefix]) -> Result<(), ForwardError> {
        let before = self.rules.len();
        for network in networks {
            let destination = (network.network(), network.length());
            if self.rules.iter().any(|rule| rule.destination == destination) {
                continue;
            }
            if let Err(error) = self.add(destination) {
                self.rules.split_off(before).iter().for_each(|rule| self.delete(rule));
                return Err(error);
            }
        }
        let wanted = |rule: &DestinationRule| {
            networks.iter().any(|n| (n.network(), n.length()) == rule.destination)
        };
        let (kept, gone) = std::mem::take(&mut self.rules).into_iter().partition(wanted);
        self.rules = kept;
        let gone: Vec<DestinationRule> = gone;
        gone.iter().for_each(|rule| self.delete(rule));
        Ok(())
    }

    fn add(&mut self, destination: (IpAddr, u8)) -> Result<(), ForwardError> {
        let (table, priority, v6) = (self.table, self.priority, destination.0.is_ipv6());
        if !self.routed[usize::from(v6)] {
            let any: IpAddr =
                if v6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
            // The kernel removes the route with the interface.
            self.netlink.add_route(&Route { table, ..Route::to(any, 0).on(&self.device) })?;
            self.routed[usize::from(v6)] = true;
        }
        let rule = DestinationRule { destination, table, priority };
        match self.netlink.add_destination_rule(&rule) {
            // Left by an earlier run that was killed.
            Err(error) if error.errno() == Some(libc::EEXIST) => {}
            added => added?,
        }
        self.rules.push(rule);
        Ok(())
    }

    fn delete(&mut self, rule: &DestinationRule) {
        if let Err(error) = self.netlink.delete_destination_rule(rule) {
            tracing::warn!(%error, "a rule was not removed; it leads to an empty table");
        }
    }
}

impl Drop for Routes {
    fn drop(&mut self) {
        for rule in std::mem::take(&mut self.rules).iter().rev() {
            self.delete(rule);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sched::{CloneFlags, unshare};

    #[test]
    fn networks_that_change_have_their_rules() {
        let thread = std::thread::spawn(|| {
            if let Err(why) = unshare(CloneFlags::CLONE_NEWNET) {
                eprintln!("skipped: unshare(CLONE_NEWNET) was refused: {why}");
                return;
            }
            let section = |clients: &str| {
                let text = format!(
                    "role = \"hub\"\nsecurity = \"none\"\n[link]\nlisten = \"0.0.0.0:7000\"\n\
                     [forward]\nnetworks = [\"10.1.0.0/24\"]\ndevice = \"tun7\"\n\
                     [[terminal]]\nname = \"boat\"\nclients = [{clients}]\n"
                );
                crate::Config::parse("test.toml", &text).unwrap()
            };
            let old = section("\"10.2.0.0/24\", \"10.3.0.0/24\"");
            let forward = old.forward.clone().unwrap();
            let mut forwarding = match Forwarding::open(&forward, &old.role) {
                Ok(forwarding) => forwarding,
                Err(ForwardError::Tun { source, .. }) => {
                    eprintln!("skipped: no TUN interface: {source}");
                    return;
                }
                Err(error) => panic!("{error}"),
            };
            let Role::Hub(hub) = section("\"10.3.0.0/24\", \"fd00:5::/64\"").role else {
                panic!("a hub")
            };
            forwarding.set_homes(&forward, &hub).unwrap();
            assert!(forwarding.homes.is_home("boat", "fd00:5::9".parse().unwrap()));
            assert!(!forwarding.homes.is_home("boat", "10.2.0.9".parse().unwrap()));
            let routes = forwarding.routes.as_ref().unwrap();
            let (table, priority) = (routes.table, routes.priority);
            let mut netlink = Netlink::open().unwrap();
            let mut is_there = |network: &str, length| {
                let destination = (network.parse().unwrap(), length);
                let rule = DestinationRule { destination, table, priority };
                let added = netlink.add_destination_rule(&rule);
                added.is_err_and(|error| error.errno() == Some(libc::EEXIST))
            };
            assert!(is_there("10.1.0.0", 24) && is_there("10.3.0.0", 24));
            assert!(is_there("fd00:5::", 64) && !is_there("10.2.0.0", 24));
        });
        thread.join().expect("the test in a namespace failed");
    }

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
        assert_eq!(home("10.9.9.9", &["car", "boat", "car"]), Some("car"), "by two paths");
        assert_eq!(home("10.9.9.9", &["car", "car", "bus"]), None, "which of the two?");
        assert_eq!(home("10.1.2.3", &["boat", "boat"]), Some("boat"));
        assert_eq!(home("192.0.2.1", &all), None);
        assert!(homes.is_home("car", "10.9.9.9".parse().unwrap()));
        assert!(!homes.is_home("ship", "10.1.2.3".parse().unwrap()));
        assert!(homes.is_home("boat", "fd00:1::5".parse().unwrap()));
        assert_eq!(homes.all().len(), 4);
    }
}
