//! The network in memory as an engine's host.

use super::net::{DATAGRAMS, Datagrams, LISTENERS, Shared, conn_of, id_of};
use crate::engine::resolver::{Action, Failure, Found, Update};
use crate::engine::{
    Close, DatagramSocket, Descriptors, Host, ListenSocket, Lookups, Platform, Reserve, Route,
    Sent, Socket, SocketId, Source, TcpSocket,
};
use crate::report::UdpCounters;
use crate::{Limits, ResolverSection};
use relay::Families;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use units::{Instant, Span};

/// Descriptors that an engine is told of; how many there are is the storm's to choose.
const DESCRIPTORS: u64 = 100_000;

/// All that an engine needs of the host `node`.
pub(super) fn platform(net: &Shared, node: usize) -> Platform {
    let mut reserve = MemoryReserve { net: net.clone(), node, held: false };
    reserve.restore();
    Platform {
        host: Box::new(MemoryHost { net: net.clone(), node }),
        lookups: Box::new(MemoryLookups { net: net.clone(), node }),
        descriptors: Descriptors { limit: DESCRIPTORS, reserve: Box::new(reserve) },
    }
}

/// A host in memory.
#[derive(Debug)]
pub(super) struct MemoryHost {
    pub(super) net: Shared,
    pub(super) node: usize,
}

impl Host for MemoryHost {
    fn watch(&mut self, socket: SocketId, source: Source) -> io::Result<()> {
        self.net.net().watch(self.node, socket, source);
        Ok(())
    }

    fn unwatch(&mut self, _: SocketId) {}

    fn connect(&mut self, _: Option<SocketAddr>, server: SocketAddr) -> io::Result<Socket> {
        let id = self.net.net().connect(self.node, server)?;
        Ok(Box::new(MemoryTcp { net: self.net.clone(), id }))
    }

    fn bind(
        &mut self,
        address: SocketAddr,
        _: Option<&str>,
    ) -> io::Result<Box<dyn DatagramSocket>> {
        let mut net = self.net.net();
        net.take_descriptor(self.node)?;
        let number = net.sockets.len();
        net.sockets.push(Datagrams {
            node: self.node,
            address,
            source: None,
            arrived: [].into(),
            open: true,
            starved: false,
        });
        let counters = UdpCounters::default();
        Ok(Box::new(MemoryUdp { net: self.net.clone(), node: self.node, number, counters }))
    }

    fn source_for(&self, destination: SocketAddr) -> Option<IpAddr> {
        destination.is_ipv4().then_some(IpAddr::from([10, 9, 0, 1]))
    }

    fn path_mtu(&self, _: &Route) -> io::Result<usize> {
        Ok(self.net.net().path_mtu)
    }

    fn families(&self) -> Families {
        Families::default()
    }

    fn has_address(&self, _: SocketAddr) -> Option<bool> {
        Some(true)
    }

    fn unix_ns(&self, at: Instant) -> u64 {
        1_700_000_000_000_000_000 + at.as_nanos()
    }
}

/// An end of a connection in memory.
#[derive(Debug)]
pub(super) struct MemoryTcp {
    net: Shared,
    id: SocketId,
}

impl TcpSocket for MemoryTcp {
    fn id(&self) -> SocketId {
        self.id
    }

    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut net = self.net.net();
        if net.is_fickle() {
            return Err(io::Error::from_raw_os_error(libc::EINTR));
        }
        net.read(self.id, buffer, true)
    }

    fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.net.net().read(self.id, buffer, false)
    }

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut net = self.net.net();
        if net.is_fickle() {
            return Err(io::Error::from_raw_os_error(libc::EINTR));
        }
        net.write(self.id, bytes)
    }

    fn shutdown_write(&self) -> io::Result<()> {
        self.net.net().shutdown_write(self.id)
    }

    fn take_error(&self) -> Option<io::Error> {
        let (conn, end) = conn_of(self.id);
        self.net.net().conns[conn].take_error(end)
    }

    fn is_connected(&self) -> bool {
        let (conn, end) = conn_of(self.id);
        self.net.net().conns[conn].is_connected(end)
    }

    fn local_address(&self) -> io::Result<SocketAddr> {
        let (conn, end) = conn_of(self.id);
        Ok(self.net.net().conns[conn].ends[end].address)
    }

    fn prepare(&self, _: &Limits) -> io::Result<()> {
        let (conn, end) = conn_of(self.id);
        self.net.net().conns[conn].ends[end].resets = true;
        Ok(())
    }

    fn unacknowledged(&self) -> u64 {
        let (conn, end) = conn_of(self.id);
        self.net.net().conns[conn].unacknowledged(end)
    }

    fn unanswered_for(&self) -> Option<Span> {
        let ((conn, end), net) = (conn_of(self.id), self.net.net());
        net.conns[conn].unanswered_for(net.now, end)
    }

    fn retransmitted(&self) -> Option<(u32, u32)> {
        Some((0, 1448))
    }

    fn close(self: Box<Self>, how: Close) {
        self.net.net().close(self.id, how == Close::Reset);
    }
}

impl Drop for MemoryTcp {
    fn drop(&mut self) {
        let ((conn, end), mut net) = (conn_of(self.id), self.net.net());
        if net.conns[conn].is_open(end) {
            let resets = net.conns[conn].ends[end].resets;
            net.close(self.id, resets);
        }
    }
}

/// A listener in memory.
#[derive(Debug)]
pub(super) struct MemoryListener {
    pub(super) net: Shared,
    pub(super) number: usize,
}

impl ListenSocket for MemoryListener {
    fn id(&self) -> SocketId {
        SocketId(LISTENERS + self.number as i32)
    }

    fn accept(&self) -> io::Result<(Socket, SocketAddr)> {
        let mut net = self.net.net();
        if net.is_fickle() {
            return Err(io::Error::from_raw_os_error(libc::ECONNABORTED));
        }
        let (now, node) = (net.now, net.listeners[self.number].node);
        let first = net.listeners[self.number].backlog.front().copied();
        let Some(conn) = first.filter(|&conn| net.conns[conn].has_arrived(now)) else {
            return Err(io::Error::from_raw_os_error(libc::EAGAIN));
        };
        net.take_descriptor(node)?;
        net.listeners[self.number].backlog.pop_front();
        let client = net.conns[conn].ends[0].address;
        let id = id_of(conn, 1);
        Ok((Box::new(MemoryTcp { net: self.net.clone(), id }), client))
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// A datagram socket in memory.
#[derive(Debug)]
struct MemoryUdp {
    net: Shared,
    node: usize,
    number: usize,
    counters: UdpCounters,
}

impl DatagramSocket for MemoryUdp {
    fn id(&self) -> SocketId {
        SocketId(DATAGRAMS + self.number as i32)
    }

    fn local_address(&self) -> io::Result<SocketAddr> {
        Ok(self.net.net().sockets[self.number].address)
    }

    fn is_bound_to(&self, _: &str) -> bool {
        true
    }

    fn counters(&self) -> &UdpCounters {
        &self.counters
    }

    fn max_batch(&self) -> usize {
        16
    }

    fn receive(
        &mut self,
        deliver: &mut dyn FnMut(SocketAddr, &mut [u8]) -> bool,
    ) -> io::Result<bool> {
        let arrived = self.net.net().sockets[self.number].arrived.pop_front();
        let Some((from, mut datagram)) = arrived else { return Ok(false) };
        self.counters.received += 1;
        self.counters.received_bytes += datagram.len() as u64;
        deliver(from, &mut datagram);
        Ok(true)
    }

    fn send(&mut self, destination: SocketAddr, contents: &[u8], segment_size: usize) -> Sent {
        let mut net = self.net.net();
        if segment_size + 28 > net.path_mtu {
            self.counters.send_errors += 1;
            return Sent::TooBig;
        }
        if net.is_fickle() {
            self.counters.send_full += 1;
            net.starve(self.number);
            return Sent::Full;
        }
        for datagram in contents.chunks(segment_size.max(1)) {
            net.send(self.number, destination, datagram);
            self.counters.sent += 1;
            self.counters.sent_bytes += datagram.len() as u64;
        }
        Sent::Done
    }

    fn renew(&mut self) {}

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

impl Drop for MemoryUdp {
    fn drop(&mut self) {
        let mut net = self.net.net();
        net.sockets[self.number].open = false;
        net.nodes[self.node].open -= 1;
    }
}

/// Name servers in memory.
#[derive(Debug)]
struct MemoryLookups {
    net: Shared,
    node: usize,
}

impl Lookups for MemoryLookups {
    fn configure(&mut self, _: &ResolverSection) -> bool {
        false
    }

    fn has_room(&self) -> bool {
        true
    }

    fn send(&mut self, action: &Action) {
        let mut net = self.net.net();
        match action {
            Action::Start { lookup, name } => {
                net.nodes[self.node].lookups.insert(*lookup);
                let record = net.names.get(&**name).cloned();
                let (after, outcome) = match record {
                    Some(record) if record.addresses.is_empty() => {
                        (record.after, Err(Failure::NoAnswer))
                    }
                    Some(record) => {
                        let addresses: Arc<[IpAddr]> = record.addresses.into();
                        let found = Found::Partial(Arc::clone(&addresses));
                        let update = Update::Lookup { lookup: *lookup, found };
                        net.found(self.node, record.after / 2, *lookup, update);
                        (record.after, Ok(addresses))
                    }
                    None => (Span::from_millis(30), Err(Failure::NotFound)),
                };
                let found = Found::Complete(outcome, Span::from_secs(2));
                net.found(self.node, after, *lookup, Update::Lookup { lookup: *lookup, found });
            }
            Action::Stop { lookup } => drop(net.nodes[self.node].lookups.remove(lookup)),
        }
    }

    fn poll_update(&mut self) -> Option<Update> {
        self.net.net().nodes[self.node].updates.pop_front()
    }

    fn wake(&self) {
        self.net.net().nodes[self.node].names_ready = true;
    }
}

/// The descriptor in reserve.
#[derive(Debug)]
struct MemoryReserve {
    net: Shared,
    node: usize,
    held: bool,
}

impl Reserve for MemoryReserve {
    fn give_up(&mut self) -> bool {
        let held = std::mem::take(&mut self.held);
        self.net.net().nodes[self.node].open -= usize::from(held);
        held
    }

    fn restore(&mut self) {
        self.held = self.held || self.net.net().take_descriptor(self.node).is_ok();
    }
}

impl Drop for MemoryReserve {
    fn drop(&mut self) {
        self.give_up();
    }
}
