//! Datagrams between two processes of one gateway, of which the newer receives by the UDP port.
//!
//! ```text
//!   UDP port ──▶ newest process ──unknown association──▶ earlier process ──▶ ...
//!                       ▲──────Hello of no association──────┘
//! ```
//!
//! A message is the source address (23 octets) and the datagram. A full channel drops messages, as
//! a full socket buffer does.

use crate::engine::SocketId;
use socket2::{Domain, Socket, Type};
use std::io::{self, ErrorKind, IoSlice, Read};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsRawFd, OwnedFd};

/// Octets of an address: family, IP address, port, scope.
const ADDRESS: usize = 1 + 16 + 2 + 4;
/// Room for bursts, as far as the system permits.
const BUFFER: usize = 4 << 20;

/// One end of the connection to another process.
#[derive(Debug)]
pub(super) struct Channel(Socket);

/// A received message.
pub(super) enum Message<'b> {
    /// A datagram and its source.
    Datagram(SocketAddr, &'b mut [u8]),
    /// There is none now.
    Empty,
    /// The other process has ended.
    Closed,
}

/// Returns the two ends of a channel.
pub(crate) fn channel() -> io::Result<(OwnedFd, OwnedFd)> {
    let (one, other) = Socket::pair(Domain::UNIX, Type::SEQPACKET, None)?;
    for end in [&one, &other] {
        end.set_nonblocking(true)?;
        end.set_send_buffer_size(BUFFER)?;
    }
    Ok((one.into(), other.into()))
}

impl Channel {
    pub(super) fn new(end: OwnedFd) -> Self {
        Self(end.into())
    }

    pub(super) fn id(&self) -> SocketId {
        SocketId(self.0.as_raw_fd())
    }

    /// Passes on a datagram from `from`.
    pub(super) fn send(&self, from: SocketAddr, datagram: &[u8]) {
        let head = encode(from);
        let parts = [IoSlice::new(&head), IoSlice::new(datagram)];
        match self.0.send_vectored(&parts) {
            Ok(_) => {}
            // The datagram is lost, as by a full socket buffer.
            Err(error) => tracing::debug!(%error, "datagram not passed to the other process"),
        }
    }

    /// Reads the next message into `buffer`.
    pub(super) fn receive<'b>(&self, buffer: &'b mut [u8]) -> Message<'b> {
        loop {
            match (&self.0).read(buffer) {
                Ok(0) => return Message::Closed,
                Ok(len) if len < ADDRESS => {}
                Ok(len) => {
                    let (head, datagram) = buffer[..len].split_at_mut(ADDRESS);
                    return Message::Datagram(decode(head), datagram);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Message::Empty,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Message::Closed,
            }
        }
    }
}

fn encode(address: SocketAddr) -> [u8; ADDRESS] {
    let (family, ip, scope) = match address {
        SocketAddr::V4(v4) => (4, v4.ip().to_ipv6_mapped(), 0),
        SocketAddr::V6(v6) => (6, *v6.ip(), v6.scope_id()),
    };
    let mut out = [0; ADDRESS];
    out[0] = family;
    out[1..17].copy_from_slice(&ip.octets());
    out[17..19].copy_from_slice(&address.port().to_be_bytes());
    out[19..].copy_from_slice(&scope.to_be_bytes());
    out
}

fn decode(head: &[u8]) -> SocketAddr {
    let mut octets = [0; 16];
    octets.copy_from_slice(&head[1..17]);
    let (ip, port) = (Ipv6Addr::from(octets), u16::from_be_bytes([head[17], head[18]]));
    let scope = u32::from_be_bytes([head[19], head[20], head[21], head[22]]);
    match (head[0], ip.to_ipv4_mapped()) {
        (4, Some(v4)) => SocketAddr::new(IpAddr::V4(v4), port),
        (_, _) => SocketAddrV6::new(ip, port, 0, scope).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_keeps_its_source_and_its_boundaries() {
        let (one, other) = channel().expect("a pair");
        let (one, other) = (Channel::new(one), Channel::new(other));
        let sources = ["192.0.2.1:7000", "[::ffff:192.0.2.1]:7", "[fe80::1%3]:65535"];
        for source in sources {
            let source: SocketAddr = source.parse().expect("an address");
            one.send(source, b"first");
            one.send(source, b"");
            let mut buffer = [0; 64];
            for expected in [b"first".as_slice(), b""] {
                let Message::Datagram(from, datagram) = other.receive(&mut buffer) else {
                    panic!("a datagram");
                };
                assert_eq!((from, &*datagram), (source, expected));
            }
            assert!(matches!(other.receive(&mut buffer), Message::Empty));
        }
        drop(one);
        assert!(matches!(other.receive(&mut [0; 64]), Message::Closed));
    }
}
