//! Encodings calculated by hand, and properties of all segments.

mod bad;
mod properties;
mod vectors;

use super::*;
use crate::seq::Seq24;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::vec::Vec;

const SEALED: Profile = Profile::Sealed;

fn address(last: u8, port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)), port)
}

/// Profile of 10.0.0.1 port 1000 for segments to 10.0.0.2 port 2000.
fn sender() -> Profile {
    Profile::Published(Endpoints { local: address(1, 1000), remote: address(2, 2000) })
}

/// Profile of the receiver of [`sender`].
fn receiver() -> Profile {
    Profile::Published(Endpoints { local: address(2, 2000), remote: address(1, 1000) })
}

fn number(value: u32) -> Seq24 {
    Seq24::new(value)
}

/// Octets from hexadecimal digits; other characters are separators.
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        text.chars().filter_map(|c| c.to_digit(16)).map(|digit| digit as u8).collect();
    assert_eq!(digits.len() % 2, 0, "odd number of digits");
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}
