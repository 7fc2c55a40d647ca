//! The kernel as implementation of the engine's host interface.

use super::route;
use super::shards::ShardPlace;
use super::tcp::KernelTcp;
use super::udp::KernelUdp;
use crate::engine::{
    DatagramSocket, Host, LocalAddress, Route, Socket, SocketId, Source, TlsRoute, TlsTunnel,
};
use crate::tls::KernelTunnel;
use crate::{host, intercept};
use mio::unix::SourceFd;
use mio::{Interest, Registry};
use relay::Families;
use rt::Clock;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use units::Instant;

/// Opens sockets of the kernel and registers them with the readiness loop.
#[derive(Debug)]
pub(crate) struct KernelHost {
    pub(super) registry: Registry,
    pub(super) clock: Clock,
    /// Where the sockets of several shards share an address.
    pub(super) place: Option<ShardPlace>,
}

impl Host for KernelHost {
    fn watch(&mut self, socket: SocketId, source: Source) -> io::Result<()> {
        let interest = match source {
            Source::Connection(_) => Interest::READABLE | Interest::WRITABLE,
            Source::Datagrams(_)
            | Source::NameQueries(_)
            | Source::Names
            | Source::HeldSyns
            | Source::Packets
            | Source::Listener(_) => Interest::READABLE,
        };
        self.registry.register(&mut SourceFd(&socket.0), super::token(source), interest)
    }

    fn watch_writable(&self, socket: SocketId, source: Source, writable: bool) -> io::Result<()> {
        let interest = match writable {
            true => Interest::READABLE | Interest::WRITABLE,
            false => Interest::READABLE,
        };
        self.registry.reregister(&mut SourceFd(&socket.0), super::token(source), interest)
    }

    fn unwatch(&mut self, socket: SocketId) {
        if let Err(error) = self.registry.deregister(&mut SourceFd(&socket.0)) {
            tracing::debug!(%error, "unwatching a socket failed");
        }
    }

    fn connect(&mut self, local: LocalAddress, server: SocketAddr) -> io::Result<Socket> {
        self.connect_tuned(local, server, &|_| Ok(()))
    }

    fn connect_tuned(
        &mut self,
        local: LocalAddress,
        server: SocketAddr,
        tune: &dyn Fn(BorrowedFd<'_>) -> io::Result<()>,
    ) -> io::Result<Socket> {
        let prepare = |socket: &socket2::Socket| tune(socket.as_fd());
        intercept::connect_prepared(local, server, prepare).map(KernelTcp::from_std)
    }

    fn bind(
        &mut self,
        address: SocketAddr,
        interface: Option<&str>,
    ) -> io::Result<Box<dyn DatagramSocket>> {
        self.bind_ports(address, &[], interface)
    }

    fn bind_ports(
        &mut self,
        address: SocketAddr,
        ports: &[u16],
        interface: Option<&str>,
    ) -> io::Result<Box<dyn DatagramSocket>> {
        if let Some(place) = &self.place {
            return Ok(Box::new(place.bind(address, ports, interface)?));
        }
        let mut udp = KernelUdp::bind(address, interface)?;
        for &port in ports {
            udp.add_port(KernelUdp::bind((address.ip(), port).into(), interface)?);
        }
        Ok(Box::new(udp))
    }

    fn open_tls(&mut self, route: &TlsRoute, local: SocketAddr) -> io::Result<Box<dyn TlsTunnel>> {
        Ok(Box::new(KernelTunnel::open(route, local)?))
    }

    fn source_for(&self, destination: SocketAddr) -> Option<IpAddr> {
        route::source_for(destination).ok()
    }

    fn path_mtu(&self, route: &Route) -> io::Result<usize> {
        route::mtu(route)
    }

    fn families(&self) -> Families {
        route::families()
    }

    fn has_address(&self, address: SocketAddr) -> Option<bool> {
        host::has(address)
    }

    fn unix_ns(&self, at: Instant) -> u64 {
        self.clock.epoch_unix_ns() + at.as_nanos()
    }
}
