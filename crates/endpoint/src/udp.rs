//! The UDP socket of an endpoint, with segmentation offload where the kernel supports it.

use quinn_udp::{RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use socket2::{Domain, Protocol, Socket, Type};
use std::collections::BTreeMap;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

/// Octets of a receive buffer: with coalescing one call returns up to 64 KB.
const BUFFER: usize = 65_536;
/// Maximum number of peers whose local address is stored; for others the kernel's route selects it.
const MAX_SOURCES: usize = 1024;

/// Result of sending a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// Sent, or lost for a reason that retransmission repairs.
    Done,
    /// The socket's buffer is full.
    Full,
    /// A datagram exceeds the MTU of this host's link.
    TooBig,
}

#[derive(Debug)]
pub(crate) struct Udp {
    socket: UdpSocket,
    state: UdpSocketState,
    buffer: Vec<u8>,
    /// The local address to which each peer sends, if the socket is bound to all addresses.
    sources: Option<BTreeMap<SocketAddr, IpAddr>>,
}

impl Udp {
    pub(crate) fn bind(address: SocketAddr, interface: Option<&str>) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        if address.is_ipv6() {
            socket.set_only_v6(false)?;
        }
        socket.set_nonblocking(true)?;
        // As much as the system's limit permits.
        socket.set_recv_buffer_size(4 << 20)?;
        socket.set_send_buffer_size(1 << 20)?;
        if let Some(name) = interface {
            socket.bind_device(Some(name.as_bytes()))?;
        }
        socket.bind(&address.into())?;
        let socket = UdpSocket::from(socket);
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        let sources = address.ip().is_unspecified().then(BTreeMap::new);
        Ok(Self { socket, state, buffer: vec![0; BUFFER], sources })
    }

    pub(crate) fn local_address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    pub(crate) fn max_batch(&self) -> usize {
        self.state.max_gso_segments().max(1)
    }

    /// Receives one batch; returns false if there is none. `deliver` returns whether the datagram
    /// was authenticated.
    pub(crate) fn receive(
        &mut self,
        mut deliver: impl FnMut(SocketAddr, &mut [u8]) -> bool,
    ) -> io::Result<bool> {
        let mut meta = [RecvMeta::default()];
        let received = {
            let mut slices = [IoSliceMut::new(&mut self.buffer)];
            self.state.recv(UdpSockRef::from(&self.socket), &mut slices, &mut meta)
        };
        match received {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            // An ICMP error of an earlier datagram.
            Err(_) => return Ok(true),
        }
        let [meta] = meta;
        let mut authentic = false;
        for datagram in self.buffer[..meta.len].chunks_mut(meta.stride.max(1)) {
            authentic |= deliver(meta.addr, datagram);
        }
        if let (Some(sources), Some(here), true) = (&mut self.sources, meta.dst_ip, authentic)
            && here.to_canonical() == here
            && here.is_ipv4() == meta.addr.is_ipv4()
        {
            if sources.len() >= MAX_SOURCES && !sources.contains_key(&meta.addr) {
                sources.clear();
            }
            sources.insert(meta.addr, here);
        }
        Ok(true)
    }

    pub(crate) fn send(&mut self, to: SocketAddr, contents: &[u8], segment_size: usize) -> Sent {
        let mut transmit = Transmit {
            destination: to,
            ecn: None,
            contents,
            segment_size: (contents.len() > segment_size).then_some(segment_size),
            src_ip: self.sources.as_ref().and_then(|sources| sources.get(&to).copied()),
        };
        loop {
            let Err(error) = self.state.try_send(UdpSockRef::from(&self.socket), &transmit) else {
                return Sent::Done;
            };
            match error.kind() {
                io::ErrorKind::WouldBlock => return Sent::Full,
                io::ErrorKind::Interrupted => {}
                _ if error.raw_os_error() == Some(EMSGSIZE) => return Sent::TooBig,
                _ if transmit.src_ip.take().is_some() => {
                    // This host may no longer have the address.
                    self.sources.as_mut().map(|sources| sources.remove(&to));
                }
                _ => return Sent::Done,
            }
        }
    }
}

const EMSGSIZE: i32 = nix::errno::Errno::EMSGSIZE as i32;
