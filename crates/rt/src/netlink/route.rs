//! Routes and policy rules, and their netlink encoding.

use super::message::Message;
use super::{Netlink, NetlinkError, family};
use netlink_packet_route::route::{
    RouteAttribute, RouteMessage, RouteMetric, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Type of a route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RouteKind {
    /// Forwards the packets.
    #[default]
    Unicast,
    /// Delivers the packets locally (`ip route add local ...`).
    Local,
    /// Rejects the packets with an ICMP message.
    Unreachable,
}

/// A route; the fields that are `None` are left to the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Its type.
    pub kind: RouteKind,
    /// Network and prefix length.
    pub destination: (IpAddr, u8),
    /// The next hop.
    pub gateway: Option<IpAddr>,
    /// The output interface.
    pub interface: Option<String>,
    /// The source address of locally generated packets.
    pub source: Option<IpAddr>,
    /// The routing table; 254 is `main`.
    pub table: u32,
    /// The TCP congestion control of connections along it.
    pub congestion_control: Option<String>,
    /// Their initial congestion window, in segments.
    pub initial_cwnd: Option<u32>,
    /// Their initial receive window, in segments.
    pub initial_rwnd: Option<u32>,
    /// The path's MTU, in bytes.
    pub mtu: Option<u32>,
}

impl Route {
    /// The table that is used without a rule.
    pub const MAIN: u32 = 254;

    /// A route to `network/prefix`.
    pub fn to(network: IpAddr, prefix: u8) -> Self {
        Self {
            kind: RouteKind::Unicast,
            destination: (network, prefix),
            gateway: None,
            interface: None,
            source: None,
            table: Self::MAIN,
            congestion_control: None,
            initial_cwnd: None,
            initial_rwnd: None,
            mtu: None,
        }
    }

    /// The IPv4 default route by `gateway`.
    pub fn default_v4(gateway: Ipv4Addr) -> Self {
        Self::to(Ipv4Addr::UNSPECIFIED.into(), 0).via(gateway.into())
    }

    /// The IPv6 default route by `gateway`.
    pub fn default_v6(gateway: Ipv6Addr) -> Self {
        Self::to(Ipv6Addr::UNSPECIFIED.into(), 0).via(gateway.into())
    }

    /// `local default dev lo table TABLE`, which TPROXY needs: packets that a rule directs to this
    /// table are delivered locally. `any` gives the address family.
    pub fn local_default(any: IpAddr, table: u32) -> Self {
        let unspecified = match any {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let mut route = Self::to(unspecified, 0);
        route.kind = RouteKind::Local;
        route.interface = Some("lo".to_owned());
        route.table = table;
        route
    }

    /// Returns the route with a next hop.
    pub fn via(mut self, gateway: IpAddr) -> Self {
        self.gateway = Some(gateway);
        self
    }

    /// Returns the route with an output interface.
    pub fn on(mut self, interface: &str) -> Self {
        self.interface = Some(interface.to_owned());
        self
    }

    pub(super) fn message(&self, net: &mut Netlink) -> Result<RouteMessage, NetlinkError> {
        let (network, prefix) = self.destination;
        let mut message = RouteMessage::default();
        message.header.address_family = family(network);
        message.header.destination_prefix_length = prefix;
        message.header.table = u8::try_from(self.table).unwrap_or(0);
        message.header.protocol = RouteProtocol::Static;
        (message.header.kind, message.header.scope) = match self.kind {
            RouteKind::Unicast if self.gateway.is_none() && network.is_ipv4() => {
                (RouteType::Unicast, RouteScope::Link)
            }
            RouteKind::Unicast => (RouteType::Unicast, RouteScope::Universe),
            RouteKind::Local => (RouteType::Local, RouteScope::Host),
            RouteKind::Unreachable => (RouteType::Unreachable, RouteScope::Universe),
        };
        let attributes = &mut message.attributes;
        attributes.push(RouteAttribute::Table(self.table));
        if prefix > 0 {
            attributes.push(RouteAttribute::Destination(network.into()));
        }
        if let Some(gateway) = self.gateway {
            attributes.push(RouteAttribute::Gateway(gateway.into()));
        }
        if let Some(interface) = &self.interface {
            attributes.push(RouteAttribute::Oif(net.link_index(interface)?));
        }
        if let Some(source) = self.source {
            attributes.push(RouteAttribute::PrefSource(source.into()));
        }
        let metrics = self.metrics();
        if !metrics.is_empty() {
            attributes.push(RouteAttribute::Metrics(metrics));
        }
        Ok(message)
    }

    fn metrics(&self) -> Vec<RouteMetric> {
        [
            self.mtu.map(RouteMetric::Mtu),
            self.initial_cwnd.map(RouteMetric::InitCwnd),
            self.initial_rwnd.map(RouteMetric::InitRwnd),
            self.congestion_control.clone().map(RouteMetric::CcAlgo),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            RouteKind::Unicast => "",
            RouteKind::Local => "local ",
            RouteKind::Unreachable => "unreachable ",
        };
        write!(f, "{kind}{}/{}", self.destination.0, self.destination.1)?;
        if let Some(gateway) = self.gateway {
            write!(f, " via {gateway}")?;
        }
        if let Some(interface) = &self.interface {
            write!(f, " dev {interface}")?;
        }
        if let Some(name) = &self.congestion_control {
            write!(f, " congctl {name}")?;
        }
        if self.table != Self::MAIN {
            write!(f, " table {}", self.table)?;
        }
        Ok(())
    }
}

/// A policy rule that selects a routing table by firewall mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkRule {
    /// For IPv6 packets; otherwise for IPv4.
    pub v6: bool,
    /// The mark.
    pub mark: u32,
    /// The mask of the mark.
    pub mask: u32,
    /// The table.
    pub table: u32,
    /// Priority: lower is first, `main` is at 32766.
    pub priority: u32,
}

/// A policy rule that selects a routing table by destination network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DestinationRule {
    /// Network and prefix length.
    pub destination: (IpAddr, u8),
    /// The table.
    pub table: u32,
    /// Priority: lower is first, `main` is at 32766.
    pub priority: u32,
}

impl DestinationRule {
    pub(super) fn message(&self) -> RuleMessage {
        let (network, length) = self.destination;
        let mut message = RuleMessage::default();
        message.header.family = family(network);
        message.header.dst_len = length;
        message.header.action = RuleAction::ToTable;
        message.header.table = u8::try_from(self.table).unwrap_or(0);
        message.attributes = vec![
            RuleAttribute::Destination(network),
            RuleAttribute::Table(self.table),
            RuleAttribute::Priority(self.priority),
            RuleAttribute::Protocol(PROTOCOL),
        ];
        message
    }
}

impl Netlink {
    /// Adds a policy rule for a destination.
    ///
    /// # Errors
    /// `EEXIST` if there is an equal one.
    pub fn add_destination_rule(&mut self, rule: &DestinationRule) -> Result<(), NetlinkError> {
        self.create(
            &format!("RTM_NEWRULE ({rule})"),
            Message::new(libc::RTM_NEWRULE, &rule.message()),
        )
    }

    /// Removes a rule with the same attributes.
    ///
    /// # Errors
    /// `ENOENT` when there is none.
    pub fn delete_destination_rule(&mut self, rule: &DestinationRule) -> Result<(), NetlinkError> {
        self.change(
            &format!("RTM_DELRULE ({rule})"),
            Message::new(libc::RTM_DELRULE, &rule.message()),
        )
    }
}

impl fmt::Display for DestinationRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { destination: (network, length), table, priority } = self;
        write!(f, "priority {priority} to {network}/{length} table {table}")
    }
}

/// The protocol number of the rules, which distinguishes them from equal rules of other programs:
/// the kernel compares it as well. Numbers above 4 are free for applications (`rtnetlink(7)`).
const PROTOCOL: RouteProtocol = RouteProtocol::Other(98);

impl MarkRule {
    pub(super) fn message(&self) -> RuleMessage {
        let any: IpAddr =
            if self.v6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        let mut message = RuleMessage::default();
        message.header.family = family(any);
        message.header.action = RuleAction::ToTable;
        message.header.table = u8::try_from(self.table).unwrap_or(0);
        message.attributes = vec![
            RuleAttribute::FwMark(self.mark),
            RuleAttribute::FwMask(self.mask),
            RuleAttribute::Table(self.table),
            RuleAttribute::Priority(self.priority),
            RuleAttribute::Protocol(PROTOCOL),
        ];
        message
    }
}

impl fmt::Display for MarkRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { v6, mark, mask, table, priority } = self;
        let family = if *v6 { "IPv6" } else { "IPv4" };
        write!(f, "{family} pref {priority} fwmark {mark:#x}/{mask:#x} table {table}")
    }
}
