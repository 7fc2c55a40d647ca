//! UDP socket of a path with its send buffer. A hub has one, a terminal one for each path, so that
//! a full send buffer blocks one path only.
//!
//! ```text
//!   bound ──the interface is gone, or is another──▶ waiting ──once a second, until it succeeds──▶ bound
//!     └─────this host has lost the address──▶ absent ──it has it again──▶ bound
//! ```

use crate::engine::host::{DatagramSocket, Delivered, Host, Sent, SocketId, Source};
use crate::engine::peers::hub_ports::HubPorts;
use crate::engine::peers::outgoing::Outgoing;
use crate::engine::peers::relay_set::RelaySet;
use crate::engine::peers::tls_link::TlsLink;
use crate::report::UdpCounters;
use crate::tls;
use crate::{HubAddress, PathSection};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};
use units::Instant;

/// Maximum number of receive calls in one round.
const RECEIVE_BUDGET: usize = 8;
/// Maximum number of batches sent in one round.
const TRANSMIT_BUDGET: usize = 64;
/// Maximum octets of a batch, which the kernel takes in one call.
const BATCH: usize = 63 * 1024;

/// UDP socket of a path.
#[derive(Debug)]
pub(crate) struct LinkSocket {
    place: SocketBinding,
    /// The socket, while it is bound.
    udp: Option<Box<dyn DatagramSocket>>,
    /// TLS in place of UDP, where it is configured.
    tls: Option<Box<TlsLink>>,
    /// The hub's ports, if a terminal has several.
    ports: Option<HubPorts>,
    /// The host does not have the source address.
    absent: bool,
    pub(crate) readable: bool,
    /// Room in the send buffer is reported.
    watches_writable: bool,
    /// Datagrams of the next batch.
    buffer: Vec<u8>,
    /// Batch in the buffer that the socket has not taken yet.
    pub(crate) pending: Option<Outgoing>,
    /// Counters of former sockets.
    past: UdpCounters,
}

/// Address and interface to which a socket is bound.
#[derive(Debug)]
struct SocketBinding {
    /// Name of the path; empty if there is only one.
    path: String,
    address: SocketAddr,
    /// Further ports.
    ports: Vec<u16>,
    interface: Option<String>,
    /// Last error that was logged.
    refusal: Option<String>,
}

impl SocketBinding {
    fn bind(&self, host: &mut dyn Host) -> io::Result<Box<dyn DatagramSocket>> {
        host.bind_ports(self.address, &self.ports, self.interface.as_deref())
    }

    /// Whether `udp` is bound to the interface.
    fn has(&self, udp: &dyn DatagramSocket) -> bool {
        self.interface.as_ref().is_none_or(|interface| udp.is_bound_to(interface))
    }

    fn complain(&mut self, error: &io::Error) {
        let refusal = Some(error.to_string());
        if self.refusal != refusal {
            let Self { path, address, .. } = self;
            let interface = self.interface.as_deref().unwrap_or("any");
            tracing::warn!(%path, %address, interface, %error, "path down: waiting for interface or address");
            self.refusal = refusal;
        }
    }
}

impl LinkSocket {
    /// The socket of a path. If its interface or address is missing, it is bound later.
    ///
    /// # Errors
    /// The kernel's, when waiting would not help.
    pub(crate) fn open(path: &PathSection, host: &mut dyn Host) -> io::Result<Self> {
        let (name, interface) = (path.name.clone(), path.interface.clone());
        let address = path.link.listen;
        // At a terminal they are the hub's.
        let ports = if path.link.peer.is_none() { path.link.ports.clone() } else { Vec::new() };
        let mut place = SocketBinding { path: name, address, ports, interface, refusal: None };
        let mut bound = place.bind(host);
        let named = matches!(path.link.peer, Some(HubAddress::Name(..)));
        if named && address.ip().is_unspecified() && bound.as_ref().is_err_and(has_no_ipv6) {
            // Only the hub's IPv4 addresses remain.
            place.address = (Ipv4Addr::UNSPECIFIED, address.port()).into();
            bound = place.bind(host);
        }
        let udp = match bound {
            Ok(udp) => Some(udp),
            Err(error) if is_absent(&error) => {
                place.complain(&error);
                None
            }
            Err(error) => return Err(error),
        };
        let (buffer, past) = (vec![0; BATCH], UdpCounters::default());
        let (absent, readable, watches_writable) = (false, true, false);
        let (tls, pending) = (None, None);
        let ports = path.link.peer.as_ref().and_then(|hub| HubPorts::new(hub, &path.link));
        Ok(Self {
            place,
            udp,
            tls,
            ports,
            absent,
            readable,
            watches_writable,
            buffer,
            pending,
            past,
        })
    }

    /// Uses `tls` while UDP does not work.
    pub(crate) fn set_tls(&mut self, tls: TlsLink) {
        self.tls = Some(Box::new(tls));
    }

    /// Whether datagrams can be sent and received.
    pub(crate) fn is_working(&self) -> bool {
        self.udp.is_some() && !self.absent
    }

    /// Returns the address that it is bound to, or waits for.
    pub(crate) fn address(&self) -> SocketAddr {
        self.place.address
    }

    /// Whether it may have to be rebound without an event that reports so.
    pub(crate) fn may_move(&self) -> bool {
        self.udp.is_none() || self.place.interface.is_some()
    }

    /// Returns the missing interface, if there is one.
    pub(crate) fn missing(&self) -> Option<String> {
        let SocketBinding { path, interface, .. } = &self.place;
        let interface = interface.as_deref().filter(|_| self.udp.is_none())?;
        Some(format!("interface {interface} (path {path:?})"))
    }

    /// Returns the socket, while it is bound.
    pub(crate) fn udp(&self) -> Option<&dyn DatagramSocket> {
        self.udp.as_deref()
    }

    /// Returns the local address, while it is bound.
    pub(crate) fn local_address(&self) -> Option<SocketAddr> {
        self.udp.as_ref().and_then(|udp| udp.local_address().ok())
    }

    /// Returns the counters of all its sockets.
    pub(crate) fn counters(&self) -> UdpCounters {
        let mut all = self.past;
        if let Some(udp) = &self.udp {
            all.add(udp.counters());
        }
        if let Some(tls) = &self.tls {
            all.add(tls.counters());
        }
        all
    }

    /// Watches the socket as the source with this `number`.
    pub(crate) fn watch(&mut self, host: &mut dyn Host, number: usize) -> io::Result<()> {
        self.tls.iter().try_for_each(|tls| tls.watch(host, number))?;
        let Some(udp) = &self.udp else { return Ok(()) };
        let source = Source::Datagrams(number);
        udp.neighbours().into_iter().try_for_each(|neighbour| host.watch(neighbour, source))?;
        watch_ports(&**udp, host, source)
    }

    /// Whether an earlier process of this gateway still has associations.
    pub(crate) fn has_predecessor(&self) -> bool {
        self.udp.as_ref().is_some_and(|udp| udp.has_predecessor())
    }

    /// Leaves receiving to the process that replaces this one, with which it is connected by
    /// `successor`.
    pub(crate) fn hand_over(&mut self, host: &mut dyn Host, number: usize, successor: OwnedFd) {
        let Some(udp) = &mut self.udp else { return };
        let watched = host.watch(SocketId(successor.as_raw_fd()), Source::Datagrams(number));
        if let Err(error) = watched {
            tracing::error!(%error, "datagrams of the next process are not received");
        }
        udp.further().iter().for_each(|port| host.unwatch(SocketId(port.as_raw_fd())));
        host.unwatch(udp.id());
        udp.set_successor(successor);
        self.readable = true;
    }

    /// Rebinds the socket if its interface was replaced. True if the socket has changed or is
    /// missing.
    pub(crate) fn rebind_if_needed(&mut self, host: &mut dyn Host, number: usize) -> bool {
        if self.udp.as_ref().is_some_and(|udp| self.place.has(&**udp)) {
            return false;
        }
        let lost = self.udp.take();
        if let Some(udp) = lost {
            udp.further().iter().for_each(|port| host.unwatch(SocketId(port.as_raw_fd())));
            host.unwatch(udp.id());
            self.past.add(udp.counters());
            self.pending = None;
            self.watches_writable = false;
        }
        let bound = self.place.bind(host).and_then(|udp| {
            watch_ports(&*udp, host, Source::Datagrams(number))?;
            Ok(udp)
        });
        match bound {
            Ok(udp) => {
                let interface = self.place.interface.as_deref().unwrap_or("any");
                tracing::info!(path = %self.place.path, interface, "path socket bound");
                (self.udp, self.readable, self.place.refusal) = (Some(udp), true, None);
                true
            }
            Err(error) => {
                self.place.complain(&error);
                true
            }
        }
    }

    /// Notes whether the host lacks the source address.
    pub(crate) fn set_absent(&mut self, absent: bool) {
        if self.absent && !absent {
            if let Some(udp) = &mut self.udp {
                udp.renew();
            }
            self.readable = true;
        }
        self.absent = absent;
    }

    /// Receives datagrams within the budget of a round.
    pub(crate) fn receive(&mut self, relays: &mut RelaySet, now: Instant, number: usize) {
        for _ in 0..RECEIVE_BUDGET {
            if !self.readable {
                return;
            }
            let tls = self.tls.as_mut().map(|tls| tls.receive(relays, now, number));
            let udp = self.udp.as_mut().map(|udp| {
                let tls = &mut self.tls;
                udp.receive(&mut |from, datagram, is_last| {
                    if tls.as_mut().is_some_and(|tls| tls.handle_udp(now, datagram)) {
                        return Delivered::Unvalidated;
                    }
                    relays.handle_datagram(now, number, from, (datagram, is_last))
                })
            });
            self.readable = [tls, udp].into_iter().flatten().fold(false, |readable, received| {
                readable
                    | received.unwrap_or_else(|error| {
                        tracing::warn!(%error, "receiving datagrams failed");
                        false
                    })
            });
        }
    }

    /// Chooses between UDP and TLS.
    pub(crate) fn review_carrier(
        &mut self,
        relays: &mut RelaySet,
        host: &mut dyn Host,
        now: Instant,
        number: usize,
    ) {
        self.review_ports(relays, now, number);
        let (Some(tls), Some(hub)) = (&mut self.tls, relays.path_address(number)) else { return };
        let answers = relays.is_path_answered(number);
        let ports = &mut self.ports;
        let mut next = || {
            if let Some(ports) = ports {
                relays.set_path_port(number, ports.next(now));
            }
            relays.path_destination(number).unwrap_or(hub)
        };
        if tls.review(now, host, (answers, hub), self.udp.as_mut(), &mut next) {
            self.pending = None;
            relays.set_uses_tls(number, tls.is_used());
        }
    }

    /// Uses another port of the hub when it does not answer, or after a time.
    fn review_ports(&mut self, relays: &mut RelaySet, now: Instant, number: usize) {
        let Some(ports) = self.ports.as_mut() else { return };
        if self.tls.as_ref().is_some_and(|tls| !tls.permits_udp()) {
            ports.pause(now);
            return;
        }
        if let Some(port) = ports.review(now, relays.path_answer(number)) {
            self.pending = None;
            relays.set_path_port(number, port);
        }
    }

    /// Whether due datagrams wait for room in the TLS connection.
    pub(crate) fn is_full(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_full())
    }

    /// Returns when to call [`LinkSocket::review_carrier`].
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let tls = self.tls.as_ref().and_then(|tls| tls.poll_timeout());
        let ports = self.ports.as_ref().and_then(HubPorts::poll_timeout);
        tls.into_iter().chain(ports).min()
    }

    /// Sends what the pacer permits; true when there is more.
    pub(crate) fn transmit(
        &mut self,
        relays: &mut RelaySet,
        host: &dyn Host,
        now: Instant,
        number: usize,
    ) -> bool {
        let works = !self.absent && relays.has_destination(number);
        if works && self.tls.as_ref().is_some_and(|tls| tls.is_used()) {
            return self.transmit_by_tls(relays, now, number);
        }
        let works = works && self.tls.as_ref().is_none_or(|tls| tls.permits_udp());
        for _ in 0..TRANSMIT_BUDGET {
            let Some(udp) = self.udp.as_mut().filter(|_| works) else {
                self.pending = None;
                return self.discard_due(relays, now, number);
            };
            let outgoing = match self.pending.take() {
                Some(pending) => pending,
                None => {
                    let most = udp.max_batch();
                    match relays.poll_transmit(now, number, &mut self.buffer, most) {
                        Some(outgoing) => outgoing,
                        None => {
                            self.watch_writable(host, number, false);
                            return false;
                        }
                    }
                }
            };
            let Outgoing { destination, len, segment_size } = outgoing;
            tls::note_sent(destination, len);
            match udp.send(destination, &self.buffer[..len], segment_size) {
                Sent::Done => {}
                Sent::Full => {
                    self.pending = Some(outgoing);
                    self.watch_writable(host, number, true);
                    return false;
                }
                Sent::TooBig => {
                    relays.check_paths(host);
                    relays.on_emsgsize(number, destination, segment_size);
                }
            }
        }
        true
    }

    /// As [`LinkSocket::transmit`], by TLS.
    fn transmit_by_tls(&mut self, relays: &mut RelaySet, now: Instant, number: usize) -> bool {
        for _ in 0..TRANSMIT_BUDGET {
            let Some(tls) = self.tls.as_mut().filter(|tls| !tls.is_full()) else { return false };
            let most = tls.max_batch();
            let Some(outgoing) = relays.poll_transmit(now, number, &mut self.buffer, most) else {
                return false;
            };
            tls.send(&self.buffer[..outgoing.len], outgoing.segment_size);
        }
        true
    }

    /// Has room in the send buffer reported, or not.
    fn watch_writable(&mut self, host: &dyn Host, number: usize, writable: bool) {
        let Some(udp) = self.udp.as_ref().filter(|_| self.watches_writable != writable) else {
            return;
        };
        match host.watch_writable(udp.id(), Source::Datagrams(number), writable) {
            Ok(()) => self.watches_writable = writable,
            // The next round tries again to send, and to watch the socket.
            Err(error) => tracing::warn!(%error, "send buffer of the datagram socket not watched"),
        }
    }

    /// Discards due datagrams, which are lost as in an outage of the link.
    fn discard_due(&mut self, relays: &mut RelaySet, now: Instant, number: usize) -> bool {
        for _ in 0..TRANSMIT_BUDGET {
            let Some(outgoing) = relays.poll_transmit(now, number, &mut self.buffer, 1) else {
                return false;
            };
            let count = outgoing.len.div_ceil(outgoing.segment_size.max(1)) as u64;
            self.past.send_errors += count;
        }
        true
    }
}

fn watch_ports(udp: &dyn DatagramSocket, host: &mut dyn Host, source: Source) -> io::Result<()> {
    let further = udp.further().into_iter().map(|port| SocketId(port.as_raw_fd()));
    std::iter::once(udp.id()).chain(further).try_for_each(|id| host.watch(id, source))
}

/// Whether the interface or address is missing and may appear later.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENODEV | libc::ENXIO | libc::EADDRNOTAVAIL))
}

/// Whether the kernel was started without IPv6.
fn has_no_ipv6(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EAFNOSUPPORT)
}

/// Returns the counters of all sockets.
pub(crate) fn counted(link_sockets: &[LinkSocket]) -> UdpCounters {
    let mut all = UdpCounters::default();
    link_sockets.iter().for_each(|link_socket| all.add(&link_socket.counters()));
    all
}
