//! A terminal's TLS connection to its hub, in a thread of its own.

use super::backlog::Backlog;
use super::bridge::{Bridge, BridgeError, Scratch, local_udp, tune_tcp};
use super::settings;
use crate::engine::{TlsRoute, TlsState, TlsTunnel};
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token, Waker};
use rt::Clock;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, Connection};
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::thread;
use std::time::Duration;
use units::{Instant, Span};

const TCP: Token = Token(0);
const UDP: Token = Token(1);
const WAKER: Token = Token(2);
/// Time for the handshakes of TCP and TLS.
const HANDSHAKE: Span = Span::from_secs(10);

const CONNECTING: u8 = 0;
const OPEN: u8 = 1;
const CLOSED: u8 = 2;
/// The engine has no use for it any more.
const DROPPED: u8 = 3;

/// A TLS connection of the kernel's.
#[derive(Debug)]
pub(crate) struct KernelTunnel {
    address: SocketAddr,
    state: Arc<AtomicU8>,
    backlog: Arc<Backlog>,
    waker: Arc<Waker>,
}

impl KernelTunnel {
    /// Connects to the hub, and passes datagrams to and from the socket at `link` on this host.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn open(route: &TlsRoute, link: SocketAddr) -> io::Result<Self> {
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        let mut udp = local_udp((Ipv4Addr::LOCALHOST, 0).into(), link)?;
        let address = udp.local_addr()?;
        let mut tcp = connect(route)?;
        let name = match &route.server_name {
            Some(name) => ServerName::try_from(name.clone()).map_err(io::Error::other)?,
            None => ServerName::IpAddress(route.hub.ip().into()),
        };
        let tls =
            ClientConnection::new(settings::of_terminal()?, name).map_err(io::Error::other)?;
        poll.registry().register(&mut tcp, TCP, Interest::READABLE | Interest::WRITABLE)?;
        poll.registry().register(&mut udp, UDP, Interest::READABLE)?;
        let bridge = Bridge::new(Connection::Client(tls), tcp, udp);
        let backlog = Arc::clone(bridge.backlog());
        let state = Arc::new(AtomicU8::new(CONNECTING));
        let (hub, shared) = (route.hub, Arc::clone(&state));
        // A waker that is closed at once does not wake.
        let kept = Arc::clone(&waker);
        thread::Builder::new().name("tls".into()).spawn(move || {
            let mut client = Client { bridge, state: shared, clock: Clock::new() };
            if let Err(error) = client.run(poll) {
                tracing::info!(%hub, %error, "TLS connection to the hub ended");
            }
            client.set(CLOSED);
            drop(kept);
        })?;
        Ok(Self { address, state, backlog, waker })
    }
}

impl TlsTunnel for KernelTunnel {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn state(&self) -> TlsState {
        match self.state.load(Relaxed) {
            CONNECTING => TlsState::Connecting,
            OPEN => TlsState::Open,
            _ => TlsState::Closed,
        }
    }

    fn has_room(&self) -> bool {
        self.backlog.has_room()
    }

    fn note_sent(&self, octets: usize) {
        self.backlog.sent(octets);
    }
}

impl Drop for KernelTunnel {
    fn drop(&mut self) {
        self.state.store(DROPPED, Relaxed);
        // The thread has ended if it cannot be woken.
        let _ = self.waker.wake();
    }
}

/// Begins to connect; the socket becomes writable when the hub has answered.
fn connect(route: &TlsRoute) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(route.hub), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    if let Some(interface) = &route.interface {
        socket.bind_device(Some(interface.as_bytes()))?;
    }
    if !route.source.is_unspecified() {
        socket.bind(&SocketAddr::from((route.source, 0)).into())?;
    }
    tune_tcp(&socket, route.congestion)?;
    match socket.connect(&route.hub.into()) {
        Ok(()) => {}
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {}
        Err(error) => return Err(error),
    }
    Ok(TcpStream::from_std(socket.into()))
}

/// What the thread has.
struct Client {
    bridge: Bridge,
    state: Arc<AtomicU8>,
    clock: Clock,
}

impl Client {
    fn run(&mut self, mut poll: Poll) -> Result<(), BridgeError> {
        let (mut events, mut scratch) = (Events::with_capacity(8), Scratch::default());
        let limit: Instant = self.clock.now() + HANDSHAKE;
        let mut more = false;
        loop {
            let left = limit.since(self.clock.now());
            let handshaking = self.bridge.is_handshaking();
            if handshaking && left.is_zero() {
                return Err(io::Error::from(io::ErrorKind::TimedOut).into());
            }
            let wait = match (more, handshaking) {
                (true, _) => Some(Duration::ZERO),
                (false, true) => Some(Duration::from_nanos(left.as_nanos())),
                (false, false) => None,
            };
            match poll.poll(&mut events, wait) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                    return Err(error.into());
                }
                Ok(()) | Err(_) => {}
            }
            if self.state.load(Relaxed) == DROPPED {
                return Ok(());
            }
            more = self.bridge.turn(&mut scratch)?.more;
            if handshaking && !self.bridge.is_handshaking() {
                self.set(OPEN);
            }
        }
    }

    /// Sets the state, unless the engine has no use for it, and wakes the engine.
    fn set(&self, state: u8) {
        let set = |present| (present != DROPPED).then_some(state);
        if self.state.fetch_update(Relaxed, Relaxed, set).is_ok() {
            self.bridge.wake();
        }
    }
}
