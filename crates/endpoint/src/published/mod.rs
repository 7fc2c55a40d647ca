//! Streams of the published profile: XSTP as in the papers, on IP or on packet radio, without an
//! association.
//!
//! ```text
//!   Stream ── Connection ── segments ──┬── raw IP socket, protocol 253
//!                                      └── IPv4 in AX.25 UI frames ── KISS ── TNC ── radio
//! ```
//!
//! A [`Host`] has one of these carriers, and a thread. It [connects](Host::connect) to ports of
//! peers and [listens](Host::listen) at its own, as TCP does; the [`Stream`]s are those of an
//! [`Endpoint`](crate::Endpoint). Nothing is encrypted or authenticated: anyone who can send
//! packets with a peer's address, or frames with its call sign, can act as this peer.
//!
//! `docs/spec/radio.md` specifies the packets on packet radio.

mod carrier;
mod connections;
mod line;
mod raw;
mod tnc;

pub use connections::Counters;
pub use line::Line;
pub use satlink::tnc::ax25::CallSign;
pub use satlink::tnc::kiss::Parameters;
pub use tnc::{Station, StationError, Tnc};
pub use xstp::session::SessionConfig;

use crate::endpoint::span;
use crate::shared::{Driven, Lifetime, MAX_LINGER, Shared, Streams};
use crate::stream::Stream;
use carrier::Carrier;
use connections::Connections;
use rt::Clock;
use std::fmt;
use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::task::{self, Poll};
use std::time::Duration;
use units::{Instant, Span};
use xstp::wire::ipv4;

/// Time for which a station waits for the program's answer to a frame. An access to the channel
/// takes much longer.
const RADIO_HOLD: Span = Span::from_millis(20);

/// Another host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Peer {
    /// IP address.
    pub address: IpAddr,
    /// Call sign on packet radio; `None` on IP.
    pub station: Option<CallSign>,
}

impl From<IpAddr> for Peer {
    fn from(address: IpAddr) -> Self {
        Self { address, station: None }
    }
}

impl From<Station> for Peer {
    fn from(station: Station) -> Self {
        Self { address: station.address.into(), station: Some(station.call) }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.station {
            Some(call) => call.fmt(f),
            None => self.address.fmt(f),
        }
    }
}

/// Returns settings for raw IP: XSTP as Elaasar et al. 2003 measured it, with segments for packets
/// of `mtu` octets, windows of 1024 packets, and a limit of 2 minutes without a response.
///
/// # Panics
/// If `mtu` is below 576.
pub fn ip_session(local: IpAddr, mtu: u16) -> SessionConfig {
    assert!(mtu >= 576, "an MTU of at least 576 octets is expected");
    let header = if local.is_ipv4() { ipv4::HEADER } else { 40 };
    let max_segment = usize::from(mtu) - header;
    let published = SessionConfig::xstp_2003();
    SessionConfig {
        max_segment,
        packet_overhead: header,
        number_window: 1024,
        receive_window: 1024,
        send_buffer: 1024 * max_segment,
        handshake_tries: 8,
        no_response: Some(Span::from_secs(120)),
        ..published
    }
}

/// Returns settings for packet radio of 1.2 to 9.6 kbit/s: segments of 218 octets, so that a frame
/// has 255 octets as in the paper's experiment; windows of 8 packets, sent at once, of which the last
/// has a POLL; no probing, because the answers that wait for the channel seem lost to it; and a
/// limit of 10 minutes without a response.
pub fn radio_session() -> SessionConfig {
    /// Packets: about 15 s at 1.2 kbit/s.
    const WINDOW: u32 = 8;
    let published = SessionConfig::xstp_2003().with_probing(None);
    SessionConfig {
        max_segment: ax25_segment(),
        packet_overhead: ipv4::HEADER,
        number_window: WINDOW,
        receive_window: WINDOW,
        initial_peer_window: WINDOW,
        initial_window: WINDOW,
        send_buffer: 2 * WINDOW as usize * ax25_segment(),
        // A first round trip that is assumed too short fills the channel with POLLs.
        initial_rtt: Span::from_secs(20),
        handshake_timeout: Span::from_secs(5),
        handshake_tries: 12,
        no_response: Some(Span::from_secs(600)),
        stp: xstp::session::StpPolicy { small_window: WINDOW + 1, ..published.stp },
        ..published
    }
}

const fn ax25_segment() -> usize {
    use satlink::tnc::ax25;
    ax25::FRAME_AS_PUBLISHED - ax25::HEADER_AS_PUBLISHED - ipv4::HEADER
}

/// The state of a host, which its thread drives.
#[derive(Debug)]
struct Inner {
    connections: Connections,
    carrier: Carrier,
    lifetime: Lifetime,
    send_buffer: usize,
    /// On packet radio: nothing is sent before, so that the program's answer to what was received
    /// shares a frame with that of the protocol.
    hold_until: Option<Instant>,
    /// When packets were last exchanged.
    last: Instant,
}

/// One host: a carrier with its thread.
///
/// If it is dropped, no more connections can be made or accepted. Its thread continues until the
/// streams are closed and their data is acknowledged, at most 60 s; [`close`](Self::close) waits
/// for this.
#[derive(Debug)]
pub struct Host {
    shared: Arc<Shared<Inner>>,
}

impl Host {
    /// Creates the host at the address `local` of this machine, on IP with protocol 253.
    ///
    /// # Errors
    /// If `local` is no address of this machine, or this process may not open raw sockets
    /// (CAP_NET_RAW).
    ///
    /// # Panics
    /// If `session` is invalid.
    pub fn raw(local: IpAddr, session: &SessionConfig) -> io::Result<Self> {
        Self::start(local, Carrier::Raw(raw::Raw::open(local)?), session)
    }

    /// Creates the host of a station with a TNC.
    ///
    /// # Errors
    /// If the TNC is not reached.
    ///
    /// # Panics
    /// If `session` is invalid, or the number of a port, the route or the repeaters of `tnc` are
    /// beyond their limits.
    pub fn radio(tnc: &Tnc, session: &SessionConfig) -> io::Result<Self> {
        let carrier = Carrier::Tnc(Box::new(tnc::TncLink::open(tnc)?));
        Self::start(tnc.station.address.into(), carrier, session)
    }

    fn start(local: IpAddr, carrier: Carrier, session: &SessionConfig) -> io::Result<Self> {
        let mut random = [0; 2];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        // Ports are random, so that those of an earlier process are rarely used again.
        let connections = Connections::new(
            session.clone(),
            local,
            Clock::unix_s() as u32,
            u16::from_be_bytes(random),
        );
        let clock = Clock::new();
        let lifetime = Lifetime::default();
        let send_buffer = session.send_buffer;
        let inner = Inner {
            connections,
            carrier,
            lifetime,
            send_buffer,
            hold_until: None,
            last: clock.now(),
        };
        Ok(Self { shared: Shared::start(clock, inner)? })
    }

    /// Begins a connection to `port` of `peer`, without waiting.
    ///
    /// # Errors
    /// If the host is closed or has too many connections, or its carrier does not reach such a peer.
    pub fn connect(&self, peer: impl Into<Peer>, port: u16) -> io::Result<Stream> {
        self.connect_with(peer, port, &[])
    }

    /// As [`connect`](Self::connect), with `data` that is written first. As much of it as fits is
    /// sent with BGN, which saves a channel access on packet radio.
    ///
    /// # Errors
    /// As for `connect`, and if `data` is longer than the send buffer.
    pub fn connect_with(
        &self,
        peer: impl Into<Peer>,
        port: u16,
        data: &[u8],
    ) -> io::Result<Stream> {
        let peer = peer.into();
        let number = self.shared.change(|state, now| {
            state.check_open()?;
            state.carrier.check(peer)?;
            if data.len() > state.send_buffer {
                return Err(io::Error::new(ErrorKind::InvalidInput, "longer than the send buffer"));
            }
            let number = state.connections.connect(now, peer, port)?;
            if !data.is_empty() {
                state.connections.entry(number)?.write(data)?;
            }
            Ok(number)
        })?;
        Ok(Stream::new(self.shared.clone(), number))
    }

    /// Listens at `port`.
    ///
    /// # Errors
    /// If another listener has the port, or the host is closed.
    pub fn listen(&self, port: u16) -> io::Result<Listener> {
        self.shared.change(|state, _| {
            state.check_open()?;
            state.connections.listen(port)
        })?;
        Ok(Listener { shared: Arc::clone(&self.shared), port })
    }

    /// Returns the counters.
    pub fn counters(&self) -> Counters {
        self.shared.change(|state, _| Counters {
            refused: state.connections.counters.refused + state.carrier.refused(),
            ..state.connections.counters
        })
    }

    /// Ends the listeners, and waits until all connections are closed.
    ///
    /// # Errors
    /// `TimedOut` if this takes longer than `limit`; the rest is lost then.
    pub fn close(self, limit: Duration) -> io::Result<()> {
        self.shared.close(self.shared.clock.now() + span(limit))
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.shared.drain(self.shared.clock.now() + MAX_LINGER);
    }
}

/// A connection that a peer has begun.
#[derive(Debug)]
pub struct Accepted {
    /// Its stream.
    pub stream: Stream,
    /// The peer.
    pub peer: Peer,
    /// The port of the peer.
    pub port: u16,
}

/// Accepts connections at a port. If it is dropped, the port is free again, and connections that
/// were not accepted are reset.
#[derive(Debug)]
pub struct Listener {
    shared: Arc<Shared<Inner>>,
    port: u16,
}

impl Listener {
    /// Waits for a connection.
    ///
    /// # Errors
    /// If the host is closed.
    pub fn accept(&self) -> io::Result<Accepted> {
        let accepted = self.shared.block(None, |state, _| state.accept(self.port))?;
        Ok(self.accepted(accepted))
    }

    /// As [`accept`](Self::accept); `TimedOut` after `limit`.
    ///
    /// # Errors
    /// If the time has passed, or the host is closed.
    pub fn accept_for(&self, limit: Duration) -> io::Result<Accepted> {
        let by = self.shared.clock.now() + span(limit);
        let accepted = self.shared.block(Some(by), |state, _| state.accept(self.port))?;
        Ok(self.accepted(accepted))
    }

    /// As [`accept`](Self::accept), for a task.
    pub fn poll_accept(&self, context: &mut task::Context<'_>) -> Poll<io::Result<Accepted>> {
        let result = self.shared.change(|state, _| {
            let result = state.accept(self.port);
            if matches!(&result, Err(error) if error.kind() == ErrorKind::WouldBlock) {
                state.connections.set_accepting(self.port, context.waker());
            }
            result
        });
        match result {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Poll::Pending,
            other => Poll::Ready(other.map(|accepted| self.accepted(accepted))),
        }
    }

    fn accepted(&self, (number, peer, port): (u64, Peer, u16)) -> Accepted {
        Accepted { stream: Stream::new(self.shared.clone(), number), peer, port }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.shared.change(|state, now| state.connections.unlisten(now, self.port));
    }
}

impl Inner {
    fn check_open(&self) -> io::Result<()> {
        match self.lifetime.is_over || self.lifetime.ends_by.is_some() {
            true => Err(io::Error::new(ErrorKind::NotConnected, "the host is closed")),
            false => Ok(()),
        }
    }

    fn accept(&mut self, port: u16) -> io::Result<(u64, Peer, u16)> {
        match self.connections.accept(port) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.check_open()?;
                Err(error)
            }
            other => other,
        }
    }

    /// Sends what is due; returns whether the carrier takes no more.
    fn transmit(&mut self, now: Instant) -> io::Result<bool> {
        /// Packets of one round, so that other threads reach the state.
        const PACKETS: usize = 64;
        for _ in 0..PACKETS {
            if self.carrier.is_full()? {
                return Ok(true);
            }
            let Some(outgoing) = self.connections.poll_transmit(now) else { break };
            if !self.carrier.send(outgoing.peer, &outgoing.segment)? {
                self.connections.counters.not_sent += 1;
            }
        }
        self.carrier.is_full()
    }
}

impl Streams for Inner {
    fn lifetime(&mut self) -> &mut Lifetime {
        &mut self.lifetime
    }

    fn take_events(&mut self) -> bool {
        self.connections.handle_events(self.last)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let due = self.connections.poll_timeout()?;
        Some(self.hold_until.map_or(due, |until| due.max(until)))
    }

    fn read(&mut self, _: Instant, number: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.connections.entry(number)?.read(buffer)
    }

    fn write(&mut self, _: Instant, number: u64, data: &[u8]) -> io::Result<usize> {
        self.connections.entry(number)?.write(data)
    }

    fn is_ready(&mut self, number: u64, interest: (bool, bool)) -> bool {
        self.connections.entry(number).is_ok_and(|entry| entry.is_ready(interest))
    }

    fn finish(&mut self, now: Instant, number: u64) -> io::Result<()> {
        self.connections.entry(number)?.finish(now)
    }

    fn unacknowledged(&mut self, number: u64) -> io::Result<u64> {
        self.connections.entry(number)?.unacknowledged()
    }

    fn drop_stream(&mut self, now: Instant, number: u64) {
        self.connections.drop_stream(now, number);
    }

    #[cfg(feature = "tokio")]
    fn set_waker(&mut self, number: u64, waker: &task::Waker) {
        self.connections.set_waker(number, waker);
    }
}

impl Driven for Inner {
    fn descriptor(&self) -> io::Result<OwnedFd> {
        self.carrier.descriptor()
    }

    fn exchange(&mut self, now: Instant, buffer: &mut [u8]) -> io::Result<bool> {
        self.last = now;
        let connections = &mut self.connections;
        connections.handle_timeout(now);
        let mut has_received = false;
        self.carrier.receive(buffer, &mut |peer, segment| {
            connections.handle_segment(now, peer, segment);
            has_received = true;
        })?;
        if has_received && matches!(self.carrier, Carrier::Tnc(_)) {
            self.hold_until = self.hold_until.or(Some(now + RADIO_HOLD));
        }
        if self.hold_until.is_some_and(|until| now < until) {
            return self.carrier.is_full();
        }
        self.hold_until = None;
        self.transmit(now)
    }

    fn drain(&mut self) {
        self.connections.unlisten_all(self.last);
    }

    fn is_drained(&self) -> bool {
        self.connections.is_drained()
    }

    fn end(&mut self, now: Instant, _: &mut [u8]) {
        self.connections.abort_all(now);
        let _ = self.transmit(now); // The peers detect it later.
    }
}

fn push(wakers: &mut Vec<task::Waker>, waker: &task::Waker) {
    if !wakers.iter().any(|other| other.will_wake(waker)) {
        wakers.push(waker.clone());
    }
}

#[cfg(test)]
mod tests;
