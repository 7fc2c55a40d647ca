//! The TLS server of a hub: a thread that passes datagrams between TLS connections and the link
//! socket of the hub.
//!
//! Each connection has a UDP socket on a loopback address of its own, so that the hub's limits for
//! each source hold for each connection. Connections take turns.

use super::bridge::{Bridge, BridgeError, Scratch, local_udp, tune_tcp};
use super::origins::Origin;
use super::places::{Admitted, Places};
use crate::TlsCongestion;
use crate::driver::listen_on;
use crate::service::handed;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Registry, Token, Waker};
use rt::Clock;
use rustls::{Connection, ServerConfig, ServerConnection};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

const LISTENER: Token = Token(0);
const WAKER: Token = Token(1);
/// First token of connections, which have two each.
const CONNECTIONS: usize = 2;
/// Interval at which connections whose time is over are closed.
const SWEEP: Duration = Duration::from_secs(1);
/// Maximum number of connections accepted before the others have a turn.
const ACCEPTS: usize = 16;
/// The network of the connections' loopback addresses.
const LOOPBACK: Ipv4Addr = Ipv4Addr::new(127, 64, 0, 0);

/// A running TLS server. Its connections are closed when this is dropped.
#[derive(Debug)]
pub(crate) struct TlsServer {
    address: SocketAddr,
    listener: OwnedFd,
    stage: Arc<AtomicU8>,
    waker: Arc<Waker>,
}

/// Stages of a server.
const ACCEPTING: u8 = 0;
const DRAINING: u8 = 1;
const ENDED: u8 = 2;

impl TlsServer {
    /// Listens on `address`, and passes datagrams to and from the link socket at `link`.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn start(
        address: SocketAddr,
        (settings, congestion): (Arc<ServerConfig>, TlsCongestion),
        link: SocketAddr,
    ) -> io::Result<Self> {
        let listener = match handed::listener(address) {
            Some(listener) => listener,
            None => listen_on(address, false)?,
        };
        let address = listener.local_addr()?;
        let descriptor = listener.as_fd().try_clone_to_owned()?;
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        let mut listener = TcpListener::from_std(listener);
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        let stage = Arc::new(AtomicU8::new(ACCEPTING));
        let server = Server {
            poll,
            listener: Some(listener),
            settings,
            congestion,
            link: reachable(link),
            connections: BTreeMap::new(),
            places: Places::default(),
            ready: BTreeSet::new(),
            scratch: Scratch::default(),
            clock: Clock::new(),
            stage: Arc::clone(&stage),
            _waker: Arc::clone(&waker),
        };
        thread::Builder::new().name("tls".into()).spawn(move || server.run())?;
        Ok(Self { address, listener: descriptor, stage, waker })
    }

    /// Returns the address on which it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the listener, for the process that replaces this one.
    pub(crate) fn listener(&self) -> std::os::fd::BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// Leaves new connections to the process that replaces this one. The present ones stay.
    pub(crate) fn stop_accepting(&self) {
        self.enter(DRAINING);
    }

    fn enter(&self, stage: u8) {
        self.stage.store(stage, Relaxed);
        if let Err(error) = self.waker.wake() {
            tracing::warn!(%error, "TLS server not stopped");
        }
    }
}

impl Drop for TlsServer {
    fn drop(&mut self) {
        self.enter(ENDED);
    }
}

/// Returns an address at which the socket bound to `link` receives.
fn reachable(link: SocketAddr) -> SocketAddr {
    match link.ip().is_unspecified() {
        true => (Ipv4Addr::LOCALHOST, link.port()).into(),
        false => link,
    }
}

/// What the thread has.
#[derive(Debug)]
struct Server {
    poll: Poll,
    listener: Option<TcpListener>,
    settings: Arc<ServerConfig>,
    congestion: TlsCongestion,
    link: SocketAddr,
    connections: BTreeMap<usize, Client>,
    places: Places,
    /// Connections that may have something to do.
    ready: BTreeSet<usize>,
    scratch: Scratch,
    clock: Clock,
    stage: Arc<AtomicU8>,
    /// A waker that is closed at once does not wake.
    _waker: Arc<Waker>,
}

#[derive(Debug)]
struct Client {
    bridge: Bridge,
    address: SocketAddr,
    _origin: Origin,
}

impl Server {
    fn run(mut self) {
        let mut events = Events::with_capacity(256);
        let mut accepting = true;
        loop {
            let wait = match (self.ready.is_empty() && !accepting, self.connections.is_empty()) {
                (false, _) => Some(Duration::ZERO),
                (true, true) => None,
                (true, false) => Some(SWEEP),
            };
            if let Err(error) = self.poll.poll(&mut events, wait)
                && error.kind() != io::ErrorKind::Interrupted
            {
                tracing::error!(%error, "TLS server ended");
                return;
            }
            for event in &events {
                match event.token() {
                    LISTENER => accepting = true,
                    WAKER => {}
                    Token(token) => {
                        self.ready.insert((token - CONNECTIONS) / 2);
                    }
                }
            }
            match self.stage.load(Relaxed) {
                ACCEPTING => {}
                DRAINING => self.listener = None,
                _ => return,
            }
            accepting = accepting && self.accept();
            for number in std::mem::take(&mut self.ready) {
                self.turn(number);
            }
            while let Some(number) = self.places.expired(self.clock.now()) {
                self.close(number, "time is over");
            }
        }
    }

    /// Accepts connections; true when there may be more.
    fn accept(&mut self) -> bool {
        for _ in 0..ACCEPTS {
            let Some(listener) = &self.listener else { return false };
            match listener.accept() {
                Ok((socket, from)) => self.admit(socket, from),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                // The client is gone, or there is no descriptor: the next event tries again.
                Err(error) => {
                    tracing::debug!(%error, "TLS connection not accepted");
                    return false;
                }
            }
        }
        true
    }

    fn admit(&mut self, socket: TcpStream, from: SocketAddr) {
        let Admitted::Number(number) = self.places.admit(self.clock.now(), from.ip()) else {
            return;
        };
        if self.connections.contains_key(&number) {
            self.drop_client(number, "closed for another client");
        }
        match self.open(number, socket, from) {
            Ok(client) => {
                self.connections.insert(number, client);
                self.ready.insert(number);
            }
            Err(error) => {
                tracing::warn!(client = %from, %error, "TLS connection not served");
                self.places.remove(number);
            }
        }
    }

    fn open(&self, number: usize, mut tcp: TcpStream, address: SocketAddr) -> io::Result<Client> {
        tune_tcp(&tcp, self.congestion)?;
        let local: IpAddr = match self.link {
            SocketAddr::V4(_) => Ipv4Addr::from_bits(LOOPBACK.to_bits() + number as u32).into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let mut udp = local_udp((local, 0).into(), self.link)?;
        let tls = ServerConnection::new(Arc::clone(&self.settings)).map_err(io::Error::other)?;
        register(self.poll.registry(), number, &mut tcp, &mut udp)?;
        let local = udp.local_addr()?;
        let bridge = Bridge::new(Connection::Server(tls), tcp, udp);
        let origin = Origin::new(local, address, Arc::clone(bridge.backlog()));
        Ok(Client { bridge, address, _origin: origin })
    }

    fn turn(&mut self, number: usize) {
        let Some(client) = self.connections.get_mut(&number) else { return };
        match client.bridge.turn(&mut self.scratch) {
            Ok(turn) => {
                if turn.sealed {
                    self.places.sealed(self.clock.now(), number);
                }
                if turn.more {
                    self.ready.insert(number);
                }
            }
            Err(error @ (BridgeError::Closed | BridgeError::Tcp(_))) => {
                self.close(number, &error.to_string());
            }
            Err(error) => {
                tracing::debug!(client = %client.address, %error, "TLS connection refused");
                self.close(number, "refused");
            }
        }
    }

    fn close(&mut self, number: usize, reason: &str) {
        self.places.remove(number);
        self.drop_client(number, reason);
    }

    fn drop_client(&mut self, number: usize, reason: &str) {
        let Some(mut client) = self.connections.remove(&number) else { return };
        tracing::debug!(client = %client.address, reason, "TLS connection closed");
        let (tcp, udp) = client.bridge.sockets();
        // Closing them would do so as well.
        let _ = self.poll.registry().deregister(tcp);
        let _ = self.poll.registry().deregister(udp);
    }
}

fn register(
    registry: &Registry,
    number: usize,
    tcp: &mut TcpStream,
    udp: &mut mio::net::UdpSocket,
) -> io::Result<()> {
    let token = CONNECTIONS + 2 * number;
    registry.register(tcp, Token(token), Interest::READABLE | Interest::WRITABLE)?;
    registry.register(udp, Token(token + 1), Interest::READABLE)
}
