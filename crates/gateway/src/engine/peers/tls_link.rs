//! The TLS carrier of a path: its connection, and the socket by which datagrams reach it.

use super::carrier::{Carrier, CarrierAction};
use super::relay_set::RelaySet;
use crate::engine::host::{DatagramSocket, Delivered, Host, Source, TlsRoute, TlsState, TlsTunnel};
use crate::report::UdpCounters;
use crate::{HubAddress, PathSection, TlsCongestion, TlsSection};
use association::reachability;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use units::Instant;

/// The TLS carrier of a path.
#[derive(Debug)]
pub(crate) struct TlsLink {
    carrier: Carrier,
    port: u16,
    server_name: Option<String>,
    congestion: TlsCongestion,
    source: IpAddr,
    interface: Option<String>,
    /// Socket on loopback for the datagrams of the connection.
    socket: Box<dyn DatagramSocket>,
    tunnel: Option<Box<dyn TlsTunnel>>,
    /// Counter of the last probe by UDP.
    probe: u32,
    /// Whether the last review has found TLS in use.
    was_used: bool,
}

impl TlsLink {
    /// Opens the socket. `random` makes the counters of probes unpredictable.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn open(
        host: &mut dyn Host,
        path: &PathSection,
        section: &TlsSection,
        random: u32,
    ) -> io::Result<Self> {
        let named = match &path.link.peer {
            Some(HubAddress::Name(name, _)) => Some(name.to_string()),
            Some(HubAddress::Address(_)) | None => None,
        };
        Ok(Self {
            carrier: Carrier::new(section.always),
            port: section.port,
            server_name: section.server_name.clone().or(named),
            congestion: section.congestion,
            source: path.link.listen.ip(),
            interface: path.interface.clone(),
            socket: host.bind((Ipv4Addr::LOCALHOST, 0).into(), None)?,
            tunnel: None,
            probe: random,
            was_used: false,
        })
    }

    /// Watches the socket as the source with this `number`.
    pub(crate) fn watch(&self, host: &mut dyn Host, number: usize) -> io::Result<()> {
        host.watch(self.socket.id(), Source::Datagrams(number))
    }

    /// Whether datagrams are sent by TLS.
    pub(crate) fn is_used(&self) -> bool {
        self.carrier.uses_tls()
    }

    /// Whether datagrams are sent by UDP.
    pub(crate) fn permits_udp(&self) -> bool {
        self.carrier.uses_udp()
    }

    pub(crate) fn counters(&self) -> &UdpCounters {
        self.socket.counters()
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.carrier.poll_timeout()
    }

    /// Chooses the carrier of the path `number` to `hub`; `udp` is the socket for probes, `next`
    /// returns where the next one is sent. True if it is another now.
    pub(crate) fn review(
        &mut self,
        now: Instant,
        host: &mut dyn Host,
        (answers, hub): (bool, SocketAddr),
        udp: Option<&mut Box<dyn DatagramSocket>>,
        next: &mut dyn FnMut() -> SocketAddr,
    ) -> bool {
        let mut udp = udp;
        loop {
            let tls = self.tunnel.as_ref().map_or(TlsState::Closed, |tunnel| tunnel.state());
            match self.carrier.review(now, answers, tls) {
                None => break,
                Some(CarrierAction::Open) => self.connect(host, hub),
                Some(CarrierAction::Close) => self.tunnel = None,
                Some(CarrierAction::Probe) => {
                    // Successive counters differ in all octets.
                    self.probe = self.probe.wrapping_add(0x9e37_79b9);
                    if let Some(udp) = &mut udp {
                        udp.send(next(), &reachability::probe(self.probe), reachability::LEN);
                    }
                }
            }
        }
        let used = self.is_used();
        match (std::mem::replace(&mut self.was_used, used), used) {
            (false, true) => tracing::warn!(%hub, "the link uses TLS"),
            (true, false) => tracing::info!(%hub, "the link does not use TLS any more"),
            (_, _) => return false,
        }
        true
    }

    fn connect(&mut self, host: &mut dyn Host, hub: SocketAddr) {
        let route = TlsRoute {
            hub: (hub.ip(), self.port).into(),
            source: self.source,
            interface: self.interface.clone(),
            server_name: self.server_name.clone(),
            congestion: self.congestion,
        };
        let opened = self.socket.local_address().and_then(|address| host.open_tls(&route, address));
        match opened {
            Ok(tunnel) => {
                tracing::info!(hub = %route.hub, "connecting by TLS");
                self.tunnel = Some(tunnel);
            }
            Err(error) => tracing::warn!(hub = %route.hub, %error, "no TLS connection"),
        }
    }

    /// Handles a datagram that was received by UDP; true if it answers a probe.
    pub(crate) fn handle_udp(&mut self, now: Instant, datagram: &[u8]) -> bool {
        let is_response = self.is_used() && reachability::is_response(datagram, self.probe);
        if is_response {
            tracing::info!("the hub answers by UDP");
            self.carrier.handle_answer(now);
        }
        is_response
    }

    /// Receives datagrams; true if there may be more.
    pub(crate) fn receive(
        &mut self,
        relays: &mut RelaySet,
        now: Instant,
        number: usize,
    ) -> io::Result<bool> {
        let tunnel = self.tunnel.as_ref().map(|tunnel| tunnel.address());
        let hub = relays.path_address(number);
        self.socket.receive(&mut |from, datagram, is_last| match hub {
            Some(hub) if Some(from) == tunnel => {
                relays.handle_datagram(now, number, hub, (datagram, is_last))
            }
            // Another program of this host.
            Some(_) | None => Delivered::Unvalidated,
        })
    }

    /// Returns how many datagrams one call of [`TlsLink::send`] takes.
    pub(crate) fn max_batch(&self) -> usize {
        self.socket.max_batch()
    }

    /// Whether datagrams wait for room in the connection.
    pub(crate) fn is_full(&self) -> bool {
        self.is_used() && self.tunnel.as_ref().is_some_and(|tunnel| !tunnel.has_room())
    }

    /// Sends datagrams to the connection.
    pub(crate) fn send(&mut self, contents: &[u8], segment_size: usize) {
        if let Some(tunnel) = &self.tunnel {
            tunnel.note_sent(contents.len());
            self.socket.send(tunnel.address(), contents, segment_size);
        }
    }
}
