//! Segments on IP, by a raw socket. The kernel makes the IP header.

use super::Peer;
use super::carrier::Deliver;
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use xstp::wire::{PROTOCOL_NUMBER, ipv4};

/// Packets that are received in one round.
const PACKETS: usize = 256;

#[derive(Debug)]
pub(super) struct Raw {
    /// A raw socket, which has the same operations.
    socket: UdpSocket,
    local: IpAddr,
    /// Whether the socket has refused the last packet.
    is_full: bool,
    pub(super) refused: u64,
}

impl Raw {
    pub(super) fn open(local: IpAddr) -> io::Result<Self> {
        if local.is_unspecified() {
            let text = "an address of this machine is expected, as checksums include it";
            return Err(io::Error::new(ErrorKind::InvalidInput, text));
        }
        let address = SocketAddr::new(local, 0);
        let protocol = Protocol::from(i32::from(PROTOCOL_NUMBER));
        let socket = Socket::new(Domain::for_address(address), Type::RAW, Some(protocol))?;
        socket.set_nonblocking(true)?;
        // As much as the system's limit permits.
        socket.set_recv_buffer_size(4 << 20)?;
        socket.bind(&address.into())?;
        Ok(Self { socket: socket.into(), local, is_full: false, refused: 0 })
    }

    pub(super) fn descriptor(&self) -> io::Result<OwnedFd> {
        self.socket.as_fd().try_clone_to_owned()
    }

    pub(super) fn receive(
        &mut self,
        buffer: &mut [u8],
        deliver: &mut Deliver<'_>,
    ) -> io::Result<()> {
        for _ in 0..PACKETS {
            let found = self.socket.recv_from(buffer).map(|(len, from)| {
                let packet = &buffer[..len];
                // On IPv6 the kernel has removed the header.
                let IpAddr::V4(local) = self.local else { return Some((from.ip(), packet)) };
                let received = ipv4::decode(packet).filter(|received| received.to == local)?;
                Some((IpAddr::V4(received.from), received.segment))
            });
            match found {
                Ok(Some((from, segment))) => deliver(from.into(), segment),
                Ok(None) => self.refused += 1,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                // Errors of earlier packets, which ICMP reports.
                Err(_) => {}
            }
        }
        Ok(())
    }

    pub(super) fn reaches(&self, peer: IpAddr) -> bool {
        peer.is_ipv4() == self.local.is_ipv4()
    }

    /// Whether the last packet was refused because the socket's buffer is full; sending is then
    /// tried again when it has room.
    pub(super) fn take_full(&mut self) -> bool {
        std::mem::take(&mut self.is_full)
    }

    pub(super) fn send(&mut self, peer: Peer, segment: &[u8]) -> bool {
        match self.socket.send_to(segment, SocketAddr::new(peer.address, 0)) {
            Ok(_) => true,
            Err(error) => {
                self.is_full = error.kind() == ErrorKind::WouldBlock;
                false
            }
        }
    }
}
