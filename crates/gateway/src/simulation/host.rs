//! The network in memory as an engine's host, in place of the kernel.

use super::names::MemoryLookups;
use super::net::datagrams::Datagrams;
use super::net::faults::Call;
use super::net::handshake::gateway_address;
use super::net::{HELD_SYNS, LISTENERS, Net, Shared, conn_of, id_of};
use super::udp::MemoryUdp;
use crate::Limits;
use crate::engine::{
    Close, DatagramSocket, Descriptors, HeldSyns, Host, ListenSocket, LocalAddress, Platform,
    Reserve, Route, Socket, SocketId, Source, TcpSocket, TlsRoute, TlsTunnel,
};
use crate::intercept::{ReceiveStatus, Syn};
use crate::report::UdpCounters;
use relay::{Families, RefuseReason};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;
use units::{Instant, Span};

/// Default limit on descriptors, which an event may reduce.
pub(super) const DESCRIPTORS: usize = 100_000;

/// Returns the engine's interfaces to the host `node`.
pub(super) fn platform(net: &Shared, node: usize) -> Platform {
    let mut reserve = MemoryReserve { net: net.clone(), node, held: false };
    reserve.restore();
    Platform {
        host: Box::new(MemoryHost { net: net.clone(), node }),
        lookups: Box::new(MemoryLookups { net: net.clone(), node }),
        descriptors: Descriptors { limit: DESCRIPTORS as u64, reserve: Box::new(reserve) },
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
        let mut net = self.net.net();
        if let Source::Connection(_) = source
            && let Some(error) = net.fault_of(Call::Watch, socket)
        {
            return Err(error);
        }
        net.watch(self.node, socket, source);
        Ok(())
    }

    fn watch_writable(&self, _: SocketId, _: Source, _: bool) -> io::Result<()> {
        Ok(())
    }

    fn unwatch(&mut self, _: SocketId) {}

    fn connect(&mut self, local: LocalAddress, server: SocketAddr) -> io::Result<Socket> {
        let mut net = self.net.net();
        if let Some(error) = net.fault(Call::Connect) {
            net.faults.affected_servers.insert(server);
            return Err(error);
        }
        let id = net.connect(self.node, local, server)?;
        Ok(Box::new(MemoryTcp { net: self.net.clone(), id }))
    }

    fn connect_tuned(
        &mut self,
        local: LocalAddress,
        server: SocketAddr,
        _: &dyn Fn(BorrowedFd<'_>) -> io::Result<()>,
    ) -> io::Result<Socket> {
        self.connect(local, server)
    }

    fn bind_ports(
        &mut self,
        address: SocketAddr,
        ports: &[u16],
        interface: Option<&str>,
    ) -> io::Result<Box<dyn DatagramSocket>> {
        match ports {
            [] => self.bind(address, interface),
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    fn bind(
        &mut self,
        address: SocketAddr,
        _: Option<&str>,
    ) -> io::Result<Box<dyn DatagramSocket>> {
        let mut net = self.net.net();
        net.take_descriptor(self.node)?;
        let number = net.sockets.len();
        net.sockets.push(Datagrams::new(self.node, address));
        let counters = UdpCounters::default();
        Ok(Box::new(MemoryUdp { net: self.net.clone(), node: self.node, number, counters }))
    }

    fn open_tls(&mut self, _: &TlsRoute, _: SocketAddr) -> io::Result<Box<dyn TlsTunnel>> {
        Err(io::Error::from(io::ErrorKind::Unsupported))
    }

    fn source_for(&self, destination: SocketAddr) -> Option<IpAddr> {
        Some(gateway_address(destination).ip())
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

/// Fails if a simulated signal interrupts the call.
fn interrupted(net: &mut Net) -> io::Result<()> {
    match net.is_interrupted() {
        true => Err(io::Error::from_raw_os_error(libc::EINTR)),
        false => Ok(()),
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
        interrupted(&mut net)?;
        match net.fatal_fault(Call::Read, self.id) {
            Some(error) => Err(error),
            None => net.read(self.id, buffer, true),
        }
    }

    fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut net = self.net.net();
        match net.fatal_fault(Call::Read, self.id) {
            Some(error) => Err(error),
            None => net.read(self.id, buffer, false),
        }
    }

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut net = self.net.net();
        interrupted(&mut net)?;
        match net.fatal_fault(Call::Write, self.id) {
            Some(error) => Err(error),
            None => net.write(self.id, bytes),
        }
    }

    fn shutdown_write(&self) -> io::Result<()> {
        let mut net = self.net.net();
        match net.fatal_fault(Call::Shutdown, self.id) {
            Some(error) => Err(error),
            None => net.shutdown_write(self.id),
        }
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
        let ((conn, end), mut net) = (conn_of(self.id), self.net.net());
        match net.fault_of(Call::LocalAddress, self.id) {
            Some(error) => Err(error),
            None => Ok(net.conns[conn].ends[end].address),
        }
    }

    fn prepare(&self, _: &Limits) -> io::Result<()> {
        let ((conn, end), mut net) = (conn_of(self.id), self.net.net());
        if let Some(error) = net.fault_of(Call::Prepare, self.id) {
            return Err(error);
        }
        net.conns[conn].ends[end].resets = true;
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
        if net.is_interrupted() {
            return Err(io::Error::from_raw_os_error(libc::ECONNABORTED));
        }
        if let Some(error) = net.fault(Call::Accept) {
            return Err(error);
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

impl Drop for MemoryListener {
    fn drop(&mut self) {
        self.net.net().close_listener(self.number);
    }
}

/// SYNs that the packet filter of a node holds.
#[derive(Debug)]
pub(super) struct MemorySyns {
    pub(super) net: Shared,
    pub(super) node: usize,
}

impl HeldSyns for MemorySyns {
    fn id(&self) -> SocketId {
        SocketId(HELD_SYNS + self.node as i32)
    }

    fn receive(&mut self, limit: usize, take: &mut dyn FnMut(Syn)) -> ReceiveStatus {
        let syns: Vec<Syn> = {
            let mut net = self.net.net();
            let waiting = &mut net.nodes[self.node].syns;
            let count = waiting.len().min(limit);
            waiting.drain(..count).collect()
        };
        syns.into_iter().for_each(take);
        ReceiveStatus { more: !self.net.net().nodes[self.node].syns.is_empty(), lost: false }
    }

    fn is_forged(&mut self, _: &Syn) -> bool {
        false
    }

    fn reinject(&self, syn: &Syn) {
        self.net.net().reinject(self.node, syn);
    }

    fn reject(&self, syn: &Syn, reason: RefuseReason) {
        self.net.net().reject(self.node, syn, reason);
    }
}

/// The reserved descriptor.
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
