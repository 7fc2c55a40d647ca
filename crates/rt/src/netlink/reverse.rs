//! Reverse-path filtering of one interface without the files of `/proc/sys`, which a service
//! manager may protect; the right to change interfaces suffices.

use super::{Netlink, NetlinkError};
use netlink_packet_core::DefaultNla;
use netlink_packet_route::address::{AddressAttribute, AddressMessage, AddressScope};
use netlink_packet_route::link::{AfSpecUnspec, LinkAttribute, LinkMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use std::net::{IpAddr, Ipv4Addr};

/// `AF_INET`, as an attribute of `IFLA_AF_SPEC`.
const INET: u16 = 2;
/// `IFLA_INET_CONF`: settings by number, in either direction of another shape.
const CONF: u16 = 1;
/// `IPV4_DEVCONF_RP_FILTER`
const RP_FILTER: u16 = 8;

/// Source address validation of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReversePath {
    /// None, unless the setting for all interfaces is stricter.
    Off,
    /// Strict: replies must leave by the same interface.
    Strict,
    /// Loose: there must be a route to the source by any interface.
    Loose,
}

impl Netlink {
    /// Sets an interface's `net.ipv4.conf.NAME.rp_filter`.
    ///
    /// # Errors
    /// [`NetlinkError::NoSuchLink`], or the kernel's refusal.
    pub fn set_reverse_path(&mut self, name: &str, how: ReversePath) -> Result<(), NetlinkError> {
        let value: u32 = match how {
            ReversePath::Off => 0,
            ReversePath::Strict => 1,
            ReversePath::Loose => 2,
        };
        let settings = attribute(CONF, &attribute(RP_FILTER, &value.to_ne_bytes()));
        let spec = AfSpecUnspec::Other(DefaultNla::new(INET, settings));
        let mut link = LinkMessage::default();
        link.header.index = self.link_index(name)?;
        link.attributes.push(LinkAttribute::AfSpecUnspec(vec![spec]));
        let call = format!("RTM_SETLINK ({name} rp_filter {value})");
        self.change(&call, RouteNetlinkMessage::SetLink(link))
    }

    /// Adds an IPv4 address of host scope, which is never used as a source. An interface without
    /// any address drops all packets if its filter is [`ReversePath::Loose`]
    /// (`__fib_validate_source` in Linux).
    ///
    /// # Errors
    /// [`NetlinkError::NoSuchLink`], or the kernel's refusal.
    pub fn add_host_address(&mut self, name: &str, address: Ipv4Addr) -> Result<(), NetlinkError> {
        let mut message = AddressMessage::default();
        message.header.family = AddressFamily::Inet;
        message.header.prefix_len = 32;
        message.header.scope = AddressScope::Host;
        message.header.index = self.link_index(name)?;
        message.attributes.push(AddressAttribute::Local(IpAddr::V4(address)));
        let call = format!("RTM_NEWADDR ({address}/32 on {name}, scope host)");
        self.create(&call, RouteNetlinkMessage::NewAddress(message))
    }
}

/// An attribute whose payload is a multiple of four bytes.
fn attribute(kind: u16, payload: &[u8]) -> Vec<u8> {
    let length = payload.len() as u16 + 4;
    [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), payload].concat()
}
