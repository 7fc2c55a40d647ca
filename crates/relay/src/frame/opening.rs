//! Encoding of openings (RLY-1.5).

use super::{Open, Writer};
use crate::target::Destination;
use std::net::{IpAddr, SocketAddr};

impl Writer<'_> {
    pub(super) fn open(&mut self, open: &Open) {
        let source = match open.target.source {
            None => 0,
            Some(SocketAddr::V4(_)) => 0x10,
            Some(SocketAddr::V6(_)) => 0x20,
        };
        self.byte(open.priority as u8);
        match &open.target.destination {
            Destination::Address(address) => {
                self.byte(source | if address.is_ipv4() { 0 } else { 1 });
                self.address(*address);
            }
            Destination::Name(name, port) => {
                self.byte(source | 2);
                self.byte(name.len() as u8);
                self.bytes(name.as_bytes());
                self.bytes(&port.to_be_bytes());
            }
        }
        if let Some(address) = open.target.source {
            self.address(address);
        }
    }

    fn address(&mut self, address: SocketAddr) {
        match address.ip() {
            IpAddr::V4(ip) => self.bytes(&ip.octets()),
            IpAddr::V6(ip) => self.bytes(&ip.octets()),
        }
        self.bytes(&address.port().to_be_bytes());
    }
}

/// Returns the number of bytes of an opening.
pub(super) fn open_len(open: &Open) -> usize {
    let address = |address: SocketAddr| if address.is_ipv4() { 6 } else { 18 };
    let destination = match &open.target.destination {
        Destination::Address(to) => address(*to),
        Destination::Name(name, _) => 1 + name.len() + 2,
    };
    2 + destination + open.target.source.map_or(0, address)
}
