//! The UDP sockets of the link, with batched system calls where the kernel supports them.

use super::answered_from::{AnsweredFrom, LocalEnd};
use super::channel::{Channel, Message};
use crate::engine::{DatagramSocket, Delivered, Sent, SocketId};
use crate::host;
use crate::report::UdpCounters;
use crate::service::handed;
use mio::net::UdpSocket;
use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Number of buffers for one receive call. With coalescing each holds up to 64 KB.
const RECEIVE_BUFFERS: usize = 4;
const RECEIVE_BUFFER: usize = 65_536;
/// Maximum number of datagrams of another process that are received in one call.
const PASSED_BUDGET: usize = 64;
/// Room for the datagrams that arrive while the loop is busy: at 50 Mbit/s more than half a second.
const SOCKET_RECEIVE_BUFFER: usize = 4 << 20;
/// Room for bursts of one quantum; the pacer limits the rate to that of the link.
const SOCKET_SEND_BUFFER: usize = 1 << 20;

/// A UDP socket with its counters.
#[derive(Debug)]
pub(crate) struct KernelUdp {
    /// The sockets, of which each has a port; the first is that of the configured address.
    ports: Vec<Port>,
    buffers: Vec<u8>,
    counters: UdpCounters,
    /// Present only if the socket is bound to a wildcard address, or to several ports.
    answered_from: Option<AnsweredFrom>,
    /// The process that this one has replaced, while it has associations.
    predecessor: Option<Channel>,
    /// The process that has replaced this one and receives by the socket.
    successor: Option<Channel>,
}

/// A socket of the kernel.
#[derive(Debug)]
struct Port {
    socket: UdpSocket,
    state: UdpSocketState,
}

impl KernelUdp {
    /// Opens a socket on `address`, bound to `interface` if one is named.
    pub(crate) fn bind(address: SocketAddr, interface: Option<&str>) -> io::Result<Self> {
        Self::open(address, interface, false)
    }

    /// As [`KernelUdp::bind`]; with `joins` on the address of a socket of this process.
    pub(super) fn open(
        address: SocketAddr,
        interface: Option<&str>,
        joins: bool,
    ) -> io::Result<Self> {
        if let Some((socket, channel)) = handed::datagrams(address, interface.is_none()) {
            if let Some(interface) = interface {
                // While the service manager keeps this socket, no other process can bind the port.
                SockRef::from(&socket).bind_device(Some(interface.as_bytes()))?;
            }
            let predecessor = channel.map(Channel::new);
            return Ok(Self { predecessor, ..Self::from_std(socket)? });
        }
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        if address.is_ipv6() {
            socket.set_only_v6(false)?;
        }
        socket.set_nonblocking(true)?;
        socket.set_reuse_port(joins)?;
        enlarge(&socket);
        if let Some(interface) = interface {
            socket.bind_device(Some(interface.as_bytes()))?;
        }
        host::bind(&socket, address)?;
        Self::from_std(socket.into())
    }

    /// Adds a socket on the same address with another port.
    pub(super) fn add_port(&mut self, other: Self) {
        self.ports.extend(other.ports);
        self.answered_from.get_or_insert_default();
    }

    /// Returns the configured port's socket.
    fn first(&self) -> &Port {
        &self.ports[0]
    }

    /// Converts a socket that was opened elsewhere; it is nonblocking.
    fn from_std(socket: std::net::UdpSocket) -> io::Result<Self> {
        let address = socket.local_addr()?;
        let socket = UdpSocket::from_std(socket);
        let state = UdpSocketState::new((&socket).into())?;
        let buffers = vec![0; RECEIVE_BUFFERS * RECEIVE_BUFFER];
        let answered_from = address.ip().is_unspecified().then(AnsweredFrom::default);
        let (counters, predecessor, successor) = (UdpCounters::default(), None, None);
        let ports = vec![Port { socket, state }];
        Ok(Self { ports, buffers, counters, answered_from, predecessor, successor })
    }
}

impl DatagramSocket for KernelUdp {
    fn id(&self) -> SocketId {
        SocketId(self.first().socket.as_raw_fd())
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.first().socket.as_fd())
    }

    fn is_bound_to(&self, interface: &str) -> bool {
        let bound = SockRef::from(&self.first().socket).device();
        matches!(bound, Ok(Some(name)) if name == interface.as_bytes())
    }

    fn local_address(&self) -> io::Result<SocketAddr> {
        self.first().socket.local_addr()
    }

    fn counters(&self) -> &UdpCounters {
        &self.counters
    }

    fn max_batch(&self) -> usize {
        self.first().state.max_gso_segments().max(1)
    }

    fn receive(
        &mut self,
        deliver: &mut dyn FnMut(SocketAddr, &mut [u8], bool) -> Delivered,
    ) -> io::Result<bool> {
        self.receive_returned(deliver);
        if self.successor.is_some() {
            return Ok(self.receive_passed(deliver));
        }
        let mut more = false;
        for port in 0..self.ports.len() {
            more |= self.receive_at(port, deliver)?;
        }
        Ok(more)
    }

    fn send(&mut self, destination: SocketAddr, contents: &[u8], segment_size: usize) -> Sent {
        let count = contents.len().div_ceil(segment_size.max(1)) as u64;
        let from = self.answered_from.as_ref().and_then(|from| from.get(destination));
        let port = from.map_or(0, |from| from.port).min(self.ports.len() - 1);
        let mut transmit = Transmit {
            destination,
            ecn: None,
            contents,
            segment_size: (count > 1).then_some(segment_size),
            src_ip: from.and_then(|from| from.ip),
        };
        loop {
            self.counters.send_calls += 1;
            let Port { socket, state } = &self.ports[port];
            let Err(error) = state.try_send(socket.into(), &transmit) else {
                self.counters.sent += count;
                self.counters.sent_bytes += contents.len() as u64;
                return Sent::Done;
            };
            if error.kind() == io::ErrorKind::WouldBlock {
                self.counters.send_full += 1;
                if port > 0 {
                    // Only room at the first port is reported.
                    self.counters.send_errors += count;
                    return Sent::Done;
                }
                return Sent::Full;
            }
            if error.kind() == io::ErrorKind::Interrupted {
                continue;
            }
            let too_big = error.raw_os_error() == Some(libc::EMSGSIZE);
            if transmit.src_ip.take().is_some() && !too_big {
                self.forget_source(destination, &error);
                continue;
            }
            self.counters.send_errors += count;
            return match error.raw_os_error() {
                Some(libc::EMSGSIZE) => Sent::TooBig,
                Some(_) | None => {
                    tracing::debug!(%destination, %error, "datagrams not sent");
                    Sent::Done
                }
            };
        }
    }

    fn neighbours(&self) -> Vec<SocketId> {
        self.predecessor.iter().map(Channel::id).collect()
    }

    fn further(&self) -> Vec<BorrowedFd<'_>> {
        self.ports[1..].iter().map(|port| port.socket.as_fd()).collect()
    }

    fn has_predecessor(&self) -> bool {
        self.predecessor.is_some()
    }

    fn set_successor(&mut self, successor: OwnedFd) {
        self.successor = Some(Channel::new(successor));
    }

    /// A refused source address has the same error as a kernel without segmentation offload, so the
    /// batch limit is restored.
    fn renew(&mut self) {
        for port in &mut self.ports {
            if let Ok(state) = UdpSocketState::new((&port.socket).into()) {
                port.state = state;
            }
        }
    }
}

impl KernelUdp {
    /// Receives once at a port; true if there may be more.
    fn receive_at(
        &mut self,
        port: usize,
        deliver: &mut dyn FnMut(SocketAddr, &mut [u8], bool) -> Delivered,
    ) -> io::Result<bool> {
        let is_last = self.predecessor.is_none();
        let mut meta = [RecvMeta::default(); RECEIVE_BUFFERS];
        let mut chunks = self.buffers.chunks_exact_mut(RECEIVE_BUFFER);
        let mut slices: [IoSliceMut<'_>; RECEIVE_BUFFERS] =
            std::array::from_fn(|_| IoSliceMut::new(chunks.next().unwrap_or_default()));
        let filled = match self.ports[port].state.recv(
            (&self.ports[port].socket).into(),
            &mut slices,
            &mut meta,
        ) {
            Ok(filled) => filled,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            // An ICMP error belongs to an earlier datagram and does not affect this socket.
            Err(error) if is_transient(&error) => return Ok(true),
            Err(error) => return Err(error),
        };
        for (slice, meta) in slices.iter_mut().zip(&meta).take(filled) {
            self.counters.received_bytes += meta.len as u64;
            let mut from_peer = false;
            for datagram in slice[..meta.len].chunks_mut(meta.stride.max(1)) {
                self.counters.received += 1;
                match deliver(meta.addr, datagram, is_last) {
                    Delivered::Peer => from_peer = true,
                    Delivered::Unvalidated | Delivered::OtherShard(_) => {}
                    Delivered::OtherProcess => {
                        if let Some(predecessor) = &self.predecessor {
                            predecessor.send(meta.addr, datagram);
                        }
                    }
                }
            }
            // The source of a reply to an IPv4-mapped address would need the same form; there the
            // kernel's route selects it.
            let is_plain = |here: &IpAddr| {
                here.to_canonical() == *here && here.is_ipv4() == meta.addr.is_ipv4()
            };
            let ip = meta.dst_ip.filter(is_plain);
            if let Some(answered_from) = &mut self.answered_from
                && (ip.is_some() || self.ports.len() > 1)
            {
                answered_from.note(meta.addr, LocalEnd { ip, port }, from_peer);
            }
        }
        // With fewer messages than buffers recvmmsg(2) has emptied the socket.
        Ok(filled == RECEIVE_BUFFERS)
    }
}

/// Datagrams of the other processes of this gateway.
impl KernelUdp {
    /// Receives Hellos that the replaced process returns because it does not have their
    /// association.
    fn receive_returned(
        &mut self,
        deliver: &mut dyn FnMut(SocketAddr, &mut [u8], bool) -> Delivered,
    ) {
        while let Some(predecessor) = &self.predecessor {
            match predecessor.receive(&mut self.buffers[..RECEIVE_BUFFER]) {
                Message::Datagram(from, datagram) => {
                    if deliver(from, datagram, true) == Delivered::OtherProcess
                        && let Some(successor) = &self.successor
                    {
                        successor.send(from, datagram);
                    }
                }
                Message::Empty => return,
                Message::Closed => {
                    tracing::info!("the replaced process has ended");
                    self.predecessor = None;
                }
            }
        }
    }

    /// Receives the datagrams that the process which has replaced this one passes on; true if
    /// there may be more.
    fn receive_passed(
        &mut self,
        deliver: &mut dyn FnMut(SocketAddr, &mut [u8], bool) -> Delivered,
    ) -> bool {
        for _ in 0..PASSED_BUDGET {
            let Some(successor) = &self.successor else { return true };
            match successor.receive(&mut self.buffers[..RECEIVE_BUFFER]) {
                Message::Datagram(from, datagram) => {
                    self.counters.received += 1;
                    self.counters.received_bytes += datagram.len() as u64;
                    let is_last = self.predecessor.is_none();
                    if deliver(from, datagram, is_last) == Delivered::OtherProcess {
                        self.predecessor.as_ref().unwrap_or(successor).send(from, datagram);
                    }
                }
                Message::Empty => return false,
                Message::Closed => {
                    tracing::error!("the process that has replaced this one has ended");
                    self.successor = None;
                }
            }
        }
        true
    }
}

impl KernelUdp {
    /// Returns where the last datagram from `from` was received, as far as replies depend on it.
    pub(super) fn received_at(&self, from: SocketAddr) -> Option<LocalEnd> {
        self.answered_from.as_ref()?.get(from)
    }

    /// Records that another socket received a datagram from `from` at `here`.
    pub(super) fn note_received(&mut self, from: SocketAddr, here: LocalEnd, is_peer: bool) {
        if let Some(answered_from) = &mut self.answered_from {
            answered_from.note(from, here, is_peer);
        }
    }

    /// Removes the stored local address for `destination` after an error that indicates that this
    /// host no longer has it. The kernel selects the source address from then on.
    fn forget_source(&mut self, destination: SocketAddr, error: &io::Error) {
        tracing::info!(%destination, %error, "source address of datagrams changed");
        if let Some(from) = &mut self.answered_from {
            from.forget(destination);
        }
        self.renew();
    }
}

/// Returns whether the error is an ICMP error that belongs to an earlier datagram.
fn is_transient(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ECONNREFUSED | libc::EHOSTUNREACH | libc::ENETUNREACH | libc::EINTR)
    )
}

/// Enlarges the socket buffers, beyond the system's limit if the process has the privilege.
fn enlarge(socket: &Socket) {
    let reference = SockRef::from(socket);
    for (option, bytes) in
        [(libc::SO_RCVBUFFORCE, SOCKET_RECEIVE_BUFFER), (libc::SO_SNDBUFFORCE, SOCKET_SEND_BUFFER)]
    {
        if force_buffer(socket, option, bytes).is_ok() {
            continue;
        }
        let asked = if option == libc::SO_RCVBUFFORCE {
            reference.set_recv_buffer_size(bytes)
        } else {
            reference.set_send_buffer_size(bytes)
        };
        if let Err(error) = asked {
            tracing::warn!(%error, bytes, "buffer of the datagram socket not enlarged");
        }
    }
}

fn force_buffer(socket: &Socket, option: libc::c_int, bytes: usize) -> io::Result<()> {
    let value = bytes as libc::c_int;
    // SAFETY: `value` is valid to read for the length given.
    let status = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            option,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mio::unix::SourceFd;
    use mio::{Events, Interest, Poll, Token};
    use std::time::Duration;

    fn receive_all(udp: &mut KernelUdp, want: usize) -> Vec<Vec<u8>> {
        receive_all_from(udp, want, drop)
    }

    fn receive_all_from(
        udp: &mut KernelUdp,
        want: usize,
        mut seen: impl FnMut(SocketAddr),
    ) -> Vec<Vec<u8>> {
        let mut poll = Poll::new().unwrap();
        let descriptor = udp.id().0;
        poll.registry().register(&mut SourceFd(&descriptor), Token(0), Interest::READABLE).unwrap();
        let mut events = Events::with_capacity(4);
        let mut datagrams: Vec<Vec<u8>> = Vec::new();
        while datagrams.len() < want {
            poll.poll(&mut events, Some(Duration::from_secs(10))).unwrap();
            assert!(!events.is_empty(), "{} of {want} datagrams", datagrams.len());
            let mut take = |from, datagram: &mut [u8], _| {
                seen(from);
                datagrams.push(datagram.to_vec());
                Delivered::Peer
            };
            while udp.receive(&mut take).unwrap() {}
        }
        datagrams
    }

    #[test]
    fn a_batch_is_received_as_separate_datagrams() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let mut to = KernelUdp::bind(address.parse().unwrap(), None).unwrap();
            let mut from = KernelUdp::bind(address.parse().unwrap(), None).unwrap();
            let mut contents = vec![1; 1000];
            contents.extend([2; 1000]);
            contents.extend([3; 10]);
            let destination = to.local_address().unwrap();
            assert_eq!(from.send(destination, &contents, 1000), Sent::Done);
            let datagrams = receive_all(&mut to, 3);
            let shapes: Vec<(usize, u8)> = datagrams.iter().map(|d| (d.len(), d[0])).collect();
            assert_eq!(shapes, [(1000, 1), (1000, 2), (10, 3)]);
            assert_eq!((to.counters().received, from.counters().sent), (3, 3));
        }
    }

    #[test]
    fn a_removed_local_address_is_no_longer_used() {
        let mut hub = KernelUdp::bind("127.0.0.1:0".parse().unwrap(), None).unwrap();
        let mut terminal = KernelUdp::bind("0.0.0.0:0".parse().unwrap(), None).unwrap();
        let destination = hub.local_address().unwrap();
        // The hub has received datagrams on an address that this host no longer has.
        let gone = LocalEnd { ip: Some([203, 0, 113, 9].into()), port: 0 };
        terminal.answered_from.as_mut().unwrap().note(destination, gone, true);
        assert_eq!(terminal.send(destination, b"still here", 5), Sent::Done);
        assert_eq!(receive_all(&mut hub, 2), [b"still", b" here"]);
        assert_eq!(terminal.counters().send_errors, 0);
        assert!(terminal.max_batch() > 1 || hub.max_batch() == 1, "batches are cut up as before");
    }

    #[test]
    fn replies_have_the_address_that_was_the_destination() {
        let mut hub = KernelUdp::bind("0.0.0.0:0".parse().unwrap(), None).unwrap();
        let mut terminal = KernelUdp::bind("127.0.0.1:0".parse().unwrap(), None).unwrap();
        let port = hub.local_address().unwrap().port();
        let asked = SocketAddr::from(([127, 0, 0, 9], port));
        terminal.send(asked, b"hello", 5);
        assert_eq!(receive_all(&mut hub, 1), [b"hello"]);
        hub.send(terminal.local_address().unwrap(), b"welcome", 7);
        let mut from = None;
        receive_all_from(&mut terminal, 1, |address| from = Some(address));
        assert_eq!(from, Some(asked));
    }

    /// TLS-5.1
    #[test]
    fn replies_have_the_port_that_was_the_destination() {
        let any = "127.0.0.1:0".parse().unwrap();
        let mut hub = KernelUdp::bind(any, None).unwrap();
        let other = KernelUdp::bind(any, None).unwrap();
        let [first, second] = [&hub, &other].map(|udp| udp.local_address().unwrap());
        hub.add_port(other);
        let mut terminal = KernelUdp::bind(any, None).unwrap();
        for asked in [first, second, first] {
            terminal.send(asked, b"hello", 5);
            let mut received = 0;
            while received == 0 {
                hub.receive(&mut |_, _, _| {
                    received += 1;
                    Delivered::Peer
                })
                .unwrap();
            }
            hub.send(terminal.local_address().unwrap(), b"welcome", 7);
            let mut from = None;
            receive_all_from(&mut terminal, 1, |address| from = Some(address));
            assert_eq!(from, Some(asked));
        }
    }

    #[test]
    fn a_datagram_above_the_mtu_is_reported() {
        let mut from = KernelUdp::bind("127.0.0.1:0".parse().unwrap(), None).unwrap();
        let to = from.local_address().unwrap();
        assert_eq!(from.send(to, &vec![0; 65_520], 65_520), Sent::TooBig);
        assert_eq!(from.counters().send_errors, 1);
    }

    #[test]
    fn a_socket_kept_by_the_manager_is_bound_to_an_interface() {
        let kept = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = kept.local_addr().unwrap();
        // The service manager keeps the socket, and no other process can bind the port meanwhile.
        let _manager = kept.try_clone().unwrap();
        handed::hand_over(kept, "link-of-before");
        let udp = KernelUdp::bind(address, Some("lo")).unwrap();
        assert!(udp.is_bound_to("lo") && !udp.is_bound_to("wan0"));
        assert_eq!(udp.local_address().unwrap(), address);
        assert!(KernelUdp::bind(address, None).is_err(), "it was the only one");
    }

    #[test]
    fn a_closed_port_at_the_peer_is_no_error() {
        let gone =
            KernelUdp::bind("127.0.0.1:0".parse().unwrap(), None).unwrap().local_address().unwrap();
        let mut from = KernelUdp::bind("127.0.0.1:0".parse().unwrap(), None).unwrap();
        for _ in 0..3 {
            assert_eq!(from.send(gone, b"hello", 5), Sent::Done);
        }
        while from.receive(&mut |_, _, _| panic!("nothing was sent here")).unwrap() {}
    }
}
