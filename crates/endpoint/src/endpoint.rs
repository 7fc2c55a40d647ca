//! Endpoints and their thread.

use crate::shared::{MAX_LINGER, Shared};
use crate::state::{Incoming, Side, State};
use crate::stream::Stream;
use crate::udp::Udp;
use crate::{RelayConfig, SystemEntropy, Target};
use relay::{Hub, PathReport, Relay};
use rt::Clock;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::task::{self, Poll};
use std::time::Duration;
use units::Span;

/// A stream that a peer has opened.
#[derive(Debug)]
pub struct Accepted {
    /// The stream.
    pub stream: Stream,
    /// Where the peer wants it to lead; its meaning is that of the program.
    pub target: Target,
    /// The peer's name in the configuration of a server; empty at a client.
    pub peer: String,
}

/// One end of associations: a UDP socket with its thread.
///
/// If it is dropped, no more streams can be opened or accepted. Its thread continues until the
/// streams are closed and their data is acknowledged, at most 60 s; the end of the process ends it
/// earlier. [`close`](Self::close) waits for this.
#[derive(Debug)]
pub struct Endpoint {
    pub(crate) shared: Arc<Shared<State>>,
    local: SocketAddr,
}

impl Endpoint {
    /// Creates a client of the server at `server`. A session is started now, and again whenever one
    /// ends; until the server responds, streams wait.
    ///
    /// # Errors
    /// If the socket or the thread cannot be created.
    ///
    /// # Panics
    /// If `config` has keys, but not exactly one peer.
    pub fn client(config: &RelayConfig, server: SocketAddr) -> io::Result<Self> {
        Self::client_from(config, server, None, None)
    }

    /// As [`client`](Self::client), from the address `local` and by way of the interface called
    /// `interface`, which Linux permits to root only.
    ///
    /// # Errors
    /// If the socket or the thread cannot be created.
    ///
    /// # Panics
    /// As [`client`](Self::client).
    pub fn client_from(
        config: &RelayConfig,
        server: SocketAddr,
        local: Option<IpAddr>,
        interface: Option<&str>,
    ) -> io::Result<Self> {
        let any = match server {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let local = SocketAddr::new(local.unwrap_or(any), 0);
        Self::start(local, interface, |clock| {
            let config = with_overhead(config, server);
            let relay = Relay::terminal(&config, clock.now(), SystemEntropy);
            Side::Client(Box::new(relay), server)
        })
    }

    /// Creates a server at `local`; port 0 is replaced by a free one.
    ///
    /// # Errors
    /// If the socket or the thread cannot be created.
    pub fn server(config: &RelayConfig, local: SocketAddr) -> io::Result<Self> {
        Self::start(local, None, |_| {
            Side::Server(Box::new(Hub::new(&with_overhead(config, local), SystemEntropy)))
        })
    }

    fn start(
        local: SocketAddr,
        interface: Option<&str>,
        side: impl FnOnce(&Clock) -> Side,
    ) -> io::Result<Self> {
        let udp = Udp::bind(local, interface)?;
        let local = udp.local_address()?;
        let clock = Clock::new();
        let state = State::new(side(&clock), udp);
        Ok(Self { shared: Shared::start(clock, state)?, local })
    }

    /// Returns the address of its socket.
    pub fn local_address(&self) -> SocketAddr {
        self.local
    }

    /// Opens a stream of a client to `target`, without waiting: the opening and the first data are
    /// sent in one packet.
    ///
    /// # Errors
    /// If the name of the target is invalid, the server's limit of streams is reached, or this is a
    /// server.
    pub fn open(&self, target: Target) -> io::Result<Stream> {
        let number = self.shared.change(|state, now| state.open(now, target))?;
        Ok(Stream::new(self.shared.clone(), number))
    }

    /// Waits until there is a session; at a server, with any client.
    ///
    /// # Errors
    /// `TimedOut` if there is none after `limit`.
    pub fn wait_connected(&self, limit: Duration) -> io::Result<()> {
        let by = self.shared.clock.now() + span(limit);
        self.shared.block(Some(by), |state, _| match state.is_connected() {
            true => Ok(()),
            false => Err(io::ErrorKind::WouldBlock.into()),
        })
    }

    /// Returns what a client has measured of the path to its server, and the minimum RTT, once it
    /// was measured; `None` at a server.
    pub fn path_report(&self) -> Option<(PathReport, Option<Span>)> {
        self.shared.change(|state, now| match &state.side {
            Side::Client(relay, _) => {
                let seen = relay.snapshot(now);
                Some((relay.path_report(now), seen.and_then(|seen| seen.min_rtt)))
            }
            Side::Server(_) => None,
        })
    }

    /// Waits for a stream that a peer opens.
    ///
    /// # Errors
    /// If the endpoint is closed.
    pub fn accept(&self) -> io::Result<Accepted> {
        let incoming = self.shared.block(None, |state, _| state.accept())?;
        Ok(self.accepted(incoming))
    }

    /// As [`accept`](Self::accept); `TimedOut` after `limit`.
    ///
    /// # Errors
    /// If the time has passed, or the endpoint is closed.
    pub fn accept_for(&self, limit: Duration) -> io::Result<Accepted> {
        let by = self.shared.clock.now() + span(limit);
        let incoming = self.shared.block(Some(by), |state, _| state.accept())?;
        Ok(self.accepted(incoming))
    }

    /// As [`accept`](Self::accept), for a task.
    pub fn poll_accept(&self, context: &mut task::Context<'_>) -> Poll<io::Result<Accepted>> {
        let result = self.shared.change(|state, _| {
            let result = state.accept();
            if matches!(&result, Err(error) if error.kind() == io::ErrorKind::WouldBlock) {
                state.set_accepting(context.waker());
            }
            result
        });
        match result {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
            other => Poll::Ready(other.map(|incoming| self.accepted(incoming))),
        }
    }

    /// As [`accept`](Self::accept), as a future.
    ///
    /// # Errors
    /// If the endpoint is closed.
    pub async fn accept_async(&self) -> io::Result<Accepted> {
        std::future::poll_fn(|context| self.poll_accept(context)).await
    }

    /// Ends the sessions in order once all streams are closed and all data is acknowledged.
    ///
    /// # Errors
    /// `TimedOut` if this takes longer than `limit`; the rest is lost then.
    pub fn close(self, limit: Duration) -> io::Result<()> {
        self.shared.close(self.shared.clock.now() + span(limit))
    }

    fn accepted(&self, incoming: Incoming) -> Accepted {
        let Incoming { number, target, peer } = incoming;
        Accepted { stream: Stream::new(self.shared.clone(), number), target, peer }
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.shared.drain(self.shared.clock.now() + MAX_LINGER);
    }
}

fn with_overhead(config: &RelayConfig, address: SocketAddr) -> RelayConfig {
    let ip_overhead = if address.is_ipv4() { relay::IPV4_UDP } else { relay::IPV6_UDP };
    RelayConfig { ip_overhead, ..config.clone() }
}

pub(crate) fn span(time: Duration) -> Span {
    Span::from_nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX / 4).min(u64::MAX / 4))
}
