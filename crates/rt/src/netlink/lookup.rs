//! Route lookup in the kernel.

use super::message::Message;
use super::{Netlink, NetlinkError, family};
use netlink_packet_core::{NLM_F_ACK, NLM_F_REQUEST};
use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteMessage};
use std::net::IpAddr;

impl Netlink {
    /// The current route of packets to `address`: the next hop, unless the address is on the link,
    /// and the interface.
    ///
    /// # Errors
    /// `ENETUNREACH` if there is no route.
    pub fn route_to(&mut self, address: IpAddr) -> Result<(Option<IpAddr>, String), NetlinkError> {
        let call = format!("RTM_GETROUTE ({address})");
        let mut message = RouteMessage::default();
        message.header.address_family = family(address);
        message.header.destination_prefix_length = if address.is_ipv4() { 32 } else { 128 };
        message.attributes.push(RouteAttribute::Destination(address.into()));
        let question = Message::new(libc::RTM_GETROUTE, &message);
        let answers = self.request(&call, question, NLM_F_REQUEST | NLM_F_ACK)?;
        let missing = || NetlinkError::Answer { call: call.clone(), reason: "no route".into() };
        let (mut gateway, mut interface) = (None, None);
        for answer in answers {
            let Some(route) = answer.route() else { continue };
            for attribute in route.attributes {
                match attribute {
                    RouteAttribute::Gateway(RouteAddress::Inet(hop)) => {
                        gateway = Some(IpAddr::V4(hop));
                    }
                    RouteAttribute::Gateway(RouteAddress::Inet6(hop)) => {
                        gateway = Some(IpAddr::V6(hop));
                    }
                    RouteAttribute::Oif(index) => interface = name_of(index),
                    _ => {}
                }
            }
        }
        interface.map(|interface| (gateway, interface)).ok_or_else(missing)
    }
}

/// The interface with the number `index`, in the calling thread's network namespace.
fn name_of(index: u32) -> Option<String> {
    let mut name = [0 as libc::c_char; libc::IF_NAMESIZE];
    // SAFETY: `name` has room for the longest name and its end.
    let found = unsafe { libc::if_indextoname(index, name.as_mut_ptr()) };
    if found.is_null() {
        return None;
    }
    let bytes = name.iter().take_while(|&&c| c != 0).map(|&c| c as u8).collect();
    String::from_utf8(bytes).ok()
}
