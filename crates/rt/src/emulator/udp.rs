//! The relay without privileges: UDP datagrams between clients and one target.
//!
//! ```text
//!   side B                                                       side A
//!   client 1 ──▶ ┌────────┐      return ──▶      ┌ socket 1 ┐ ──▶
//!                │ listen │                      │          │     target
//!   client 2 ──▶ └────────┘      ◀── forward     └ socket 2 ┘ ──▶
//! ```
//!
//! The clients are terminals and the target is the hub, so what the target sends goes forward.
//! Each client gets a socket of its own towards the target, as behind an address translator.

use super::Side;
use super::carried::{Carried, ClientId, Envelope};
use crate::batch::ReceiveBatch;
use crate::packet::headers::internet_checksum;
use crate::pcap;
use crate::{Clock, sockets};
use socket2::{Domain, SockAddr, Socket, Type};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, RawFd};
use units::{Instant, Span};

/// Maximum simultaneous clients.
const MOST_CLIENTS: usize = 256;
/// Idle time after which a client's slot may be reused.
const SILENT: Span = Span::from_secs(30);
/// The largest datagram.
const ROOM: usize = 65_536;

pub(super) struct UdpRelay {
    listen: Socket,
    local: SocketAddr,
    listen_class: Option<u8>,
    target: SocketAddr,
    clients: Vec<Client>,
    batch: ReceiveBatch,
    clock: Clock,
    buffer: usize,
    /// Dropped by the kernel at sockets of former clients.
    dropped_before: u64,
    /// Dropped because all slots were in use.
    refused: u64,
    notes: Vec<String>,
}

struct Client {
    address: SocketAddr,
    socket: Socket,
    local: SocketAddr,
    class: Option<u8>,
    turn: u32,
    last_heard: Instant,
}

impl UdpRelay {
    /// Listens on `listen` and relays to `target`.
    pub(super) fn open(listen: SocketAddr, target: SocketAddr, buffer: usize) -> io::Result<Self> {
        let mut notes = Vec::new();
        let socket = udp_socket(listen, buffer, Some(&mut notes))?;
        socket.bind(&SockAddr::from(listen))?;
        let local = local_address(&socket)?;
        Ok(Self {
            listen: socket,
            local,
            listen_class: None,
            target,
            clients: Vec::new(),
            batch: ReceiveBatch::new(32, ROOM),
            clock: Clock::new(),
            buffer,
            dropped_before: 0,
            refused: 0,
            notes,
        })
    }

    /// The address that clients send to.
    pub(super) fn local(&self) -> SocketAddr {
        self.local
    }

    pub(super) fn name(&self, side: Side) -> String {
        match side {
            Side::A => format!("target {}", self.target),
            Side::B => format!("clients of {}", self.local),
        }
    }

    pub(super) fn notes(&self) -> &[String] {
        &self.notes
    }

    pub(super) fn descriptors(&self, out: &mut Vec<RawFd>) {
        out.push(self.listen.as_raw_fd());
        out.extend(self.clients.iter().map(|client| client.socket.as_raw_fd()));
    }

    pub(super) fn kernel_drops(&self, side: Side) -> u64 {
        match side {
            Side::A => {
                let of = |client: &Client| sockets::dropped(client.socket.as_raw_fd());
                self.dropped_before + self.clients.iter().map(of).sum::<u64>()
            }
            Side::B => self.refused + sockets::dropped(self.listen.as_raw_fd()),
        }
    }

    /// See [`super::ports::Attached::receive`].
    pub(super) fn receive(
        &mut self,
        side: Side,
        limit: usize,
        take: &mut impl FnMut(Option<u64>, Carried),
    ) -> io::Result<Option<u64>> {
        match side {
            Side::A => self.receive_from_target(limit, take),
            Side::B => self.receive_from_clients(limit, take),
        }
    }

    fn receive_from_clients(
        &mut self,
        limit: usize,
        take: &mut impl FnMut(Option<u64>, Carried),
    ) -> io::Result<Option<u64>> {
        let mut last = None;
        for _ in 0..limit.div_ceil(self.batch.capacity()) {
            let count = self.batch.receive(self.listen.as_raw_fd(), self.batch.capacity())?;
            for index in 0..count {
                let message = self.batch.message(index);
                let Some(address) = message.address() else { continue };
                let (payload, beside) = (message.bytes.to_vec(), message.beside());
                let Some(client) = self.client(address) else {
                    self.refused += 1;
                    continue;
                };
                last = beside.unix_ns.or(last);
                let class = beside.traffic_class.unwrap_or(0);
                let packet = Carried::datagram(payload, overhead(self.local), client, class);
                take(beside.unix_ns, packet);
            }
            if count < self.batch.capacity() {
                return Ok(None);
            }
        }
        Ok(last)
    }

    fn receive_from_target(
        &mut self,
        limit: usize,
        take: &mut impl FnMut(Option<u64>, Carried),
    ) -> io::Result<Option<u64>> {
        let mut before: Option<u64> = None;
        for (place, client) in self.clients.iter().enumerate() {
            let id = ClientId { place: place as u32, turn: client.turn };
            let mut last = None;
            let mut drained = false;
            for _ in 0..limit.div_ceil(self.batch.capacity()) {
                // A target that refuses is treated as not responding: ICMP errors reported here
                // mean that an earlier datagram was lost behind the relay.
                let capacity = self.batch.capacity();
                let count = self.batch.receive(client.socket.as_raw_fd(), capacity).unwrap_or(0);
                for index in 0..count {
                    let message = self.batch.message(index);
                    let beside = message.beside();
                    last = beside.unix_ns.or(last);
                    let class = beside.traffic_class.unwrap_or(0);
                    let payload = message.bytes.to_vec();
                    take(
                        beside.unix_ns,
                        Carried::datagram(payload, overhead(self.target), id, class),
                    );
                }
                if count < capacity {
                    drained = true;
                    break;
                }
            }
            if !drained {
                before = before.into_iter().chain(last).min();
            }
        }
        Ok(before)
    }

    /// Sends one datagram.
    pub(super) fn send(&mut self, side: Side, packet: &Carried) -> io::Result<()> {
        let Envelope::Datagram { client: id, traffic_class } = packet.envelope else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let client =
            self.clients.get_mut(id.place as usize).filter(|client| client.turn == id.turn);
        let Some(client) = client else {
            return Err(io::Error::other("its client has lost its place to another"));
        };
        let (socket, family_of, known) = match side {
            Side::A => (&client.socket, self.target, &mut client.class),
            Side::B => (&self.listen, self.local, &mut self.listen_class),
        };
        set_class(socket, family_of, known, traffic_class)?;
        let send = || match side {
            Side::A => client.socket.send(&packet.bytes),
            Side::B => self.listen.send_to(&packet.bytes, &SockAddr::from(client.address)),
        };
        let refused = |error: &io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
        // The error refers to an earlier datagram; this one has not been sent.
        match send().or_else(|error| if refused(&error) { send() } else { Err(error) }) {
            Ok(_) => Ok(()),
            // No process listens there at present, which is not the relay's error.
            Err(error) if refused(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Octets of the headers of a datagram at `side`.
    pub(super) fn headers(
        &self,
        side: Side,
        direction: pcap::Direction,
        id: ClientId,
        class: u8,
        payload: &[u8],
    ) -> Vec<u8> {
        let client = self.clients.get(id.place as usize);
        let (near, far) = match side {
            Side::A => (client.map_or(self.local, |client| client.local), self.target),
            Side::B => (self.local, client.map_or(self.local, |client| client.address)),
        };
        match direction {
            pcap::Direction::Inbound => ip_udp_headers(far, near, class, payload),
            pcap::Direction::Outbound => ip_udp_headers(near, far, class, payload),
        }
    }

    fn client(&mut self, address: SocketAddr) -> Option<ClientId> {
        let now = self.clock.now();
        if let Some(place) = self.clients.iter().position(|client| client.address == address) {
            self.clients[place].last_heard = now;
            let turn = self.clients[place].turn;
            return Some(ClientId { place: place as u32, turn });
        }
        let oldest = || {
            let silent = |client: &Client| now.since(client.last_heard);
            let longest = (0..self.clients.len()).max_by_key(|&at| silent(&self.clients[at]))?;
            (silent(&self.clients[longest]) >= SILENT).then_some(longest)
        };
        let place = if self.clients.len() < MOST_CLIENTS { self.clients.len() } else { oldest()? };
        let (socket, local) = self.towards_target().ok()?;
        let mut client = Client { address, socket, local, class: None, turn: 0, last_heard: now };
        match self.clients.get_mut(place) {
            Some(old) => {
                self.dropped_before += sockets::dropped(old.socket.as_raw_fd());
                client.turn = old.turn.wrapping_add(1);
                *old = client;
            }
            None => self.clients.push(client),
        }
        Some(ClientId { place: place as u32, turn: self.clients[place].turn })
    }

    fn towards_target(&self) -> io::Result<(Socket, SocketAddr)> {
        let socket = udp_socket(self.target, self.buffer, None)?;
        socket.connect(&SockAddr::from(self.target))?;
        let local = local_address(&socket)?;
        Ok((socket, local))
    }
}

fn udp_socket(
    family_of: SocketAddr,
    buffer: usize,
    notes: Option<&mut Vec<String>>,
) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(family_of), Type::DGRAM.nonblocking(), None)?;
    let fd = socket.as_raw_fd();
    sockets::set_number(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
    match family_of.ip() {
        IpAddr::V4(_) => socket.set_recv_tos_v4(true)?,
        IpAddr::V6(_) => socket.set_recv_tclass_v6(true)?,
    }
    let granted = sockets::receive_buffer(fd, buffer);
    sockets::send_buffer(fd, buffer);
    if let Some(notes) = notes.filter(|_| granted < buffer) {
        notes.push(format!(
            "receive buffers of {} kB instead of {} (net.core.rmem_max)",
            granted / 1024,
            buffer / 1024
        ));
    }
    Ok(socket)
}

fn local_address(socket: &Socket) -> io::Result<SocketAddr> {
    socket.local_addr()?.as_socket().ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
}

fn set_class(
    socket: &Socket,
    family_of: SocketAddr,
    known: &mut Option<u8>,
    class: u8,
) -> io::Result<()> {
    if *known == Some(class) {
        return Ok(());
    }
    match family_of.ip() {
        IpAddr::V4(_) => socket.set_tos_v4(u32::from(class))?,
        IpAddr::V6(_) => socket.set_tclass_v6(u32::from(class))?,
    }
    *known = Some(class);
    Ok(())
}

/// Octets of IP and UDP headers.
fn overhead(family_of: SocketAddr) -> usize {
    if family_of.is_ipv4() { 28 } else { 48 }
}

/// The headers of a datagram for captures; without UDP checksum in IPv4, which is allowed.
fn ip_udp_headers(from: SocketAddr, to: SocketAddr, class: u8, payload: &[u8]) -> Vec<u8> {
    let udp_len = (payload.len() + 8).min(0xffff) as u16;
    let mut headers = Vec::with_capacity(48);
    match (from.ip(), to.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let total = (payload.len() + 28).min(0xffff) as u16;
            headers.extend([0x45, class]);
            headers.extend(total.to_be_bytes());
            headers.extend([0, 0, 0x40, 0, 64, 17, 0, 0]);
            headers.extend(source.octets());
            headers.extend(destination.octets());
            let sum = internet_checksum(&headers);
            headers[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        (source, destination) => {
            headers.extend([0x60 | class >> 4, class << 4, 0, 0]);
            headers.extend(udp_len.to_be_bytes());
            headers.extend([17, 64]);
            headers.extend(as_v6(source).octets());
            headers.extend(as_v6(destination).octets());
        }
    }
    headers.extend(from.port().to_be_bytes());
    headers.extend(to.port().to_be_bytes());
    headers.extend(udp_len.to_be_bytes());
    headers.extend([0, 0]);
    headers
}

fn as_v6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(v4) => Ipv4Addr::to_ipv6_mapped(&v4),
        IpAddr::V6(v6) => v6,
    }
}
