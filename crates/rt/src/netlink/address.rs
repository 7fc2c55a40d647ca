//! Removal of addresses.

use super::message::Message;
use super::{Netlink, NetlinkError, family};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use std::net::IpAddr;

impl Netlink {
    /// Removes `address` from the interface.
    ///
    /// # Errors
    /// The kernel's, such as `EADDRNOTAVAIL` when the interface does not have it.
    pub fn delete_address(
        &mut self,
        name: &str,
        address: IpAddr,
        prefix: u8,
    ) -> Result<(), NetlinkError> {
        let mut message = AddressMessage::default();
        message.header.family = family(address);
        message.header.prefix_len = prefix;
        message.header.index = self.link_index(name)?;
        message.attributes.push(AddressAttribute::Local(address));
        self.change(
            &format!("RTM_DELADDR ({address}/{prefix} on {name})"),
            Message::new(libc::RTM_DELADDR, &message),
        )
    }
}
