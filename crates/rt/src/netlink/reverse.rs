//! Reverse-path filtering of one interface without the files of `/proc/sys`, which a service
//! manager may protect; the right to change interfaces suffices.

use super::message::{Link, Message, nested};
use super::{Netlink, NetlinkError};
use netlink_packet_core::DefaultNla;
use netlink_packet_route::AddressFamily;
use netlink_packet_route::address::{AddressAttribute, AddressMessage, AddressScope};
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
        let within = |kind, value| nested(&[DefaultNla::new(kind, value)]);
        let settings = within(CONF, within(RP_FILTER, value.to_ne_bytes().to_vec()));
        let link = Link::numbered(self.link_index(name)?);
        let link = link.with(libc::IFLA_AF_SPEC, within(INET, settings));
        let call = format!("RTM_SETLINK ({name} rp_filter {value})");
        self.change(&call, Message::new(libc::RTM_SETLINK, &link))
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
        self.create(&call, Message::new(libc::RTM_NEWADDR, &message))
    }
}
