//! Interface of the engine to its host: sockets, clock and routes.
//!
//! ```text
//!   engine ── connect, bind, watch, routes ──▶ Host ──▶ kernel (driver) │ memory (simulation)
//!      ▲                                         │
//!      └── handle_readiness(now, source, ready) ─┘
//! ```
//!
//! Sockets are objects that the engine owns; a socket that is dropped is closed. Readiness is
//! edge-triggered: after [`Host::watch`] each change is reported once, as a [`Source`], and the
//! engine stores it until a call returns [`io::ErrorKind::WouldBlock`]. All calls return at once,
//! with the errors of the kernel. Time is an argument of the engine's methods.

pub(crate) use crate::intercept::LocalAddress;
use crate::intercept::{ReceiveStatus, Syn};
use crate::report::UdpCounters;
use crate::{Limits, TlsCongestion};
use relay::{Families, RefuseReason};
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{BorrowedFd, OwnedFd};
use units::{Instant, Span};

/// Identifier of a socket or another source of readiness: the kernel's descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SocketId(pub(crate) i32);

/// A source of readiness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The datagram socket with this number.
    Datagrams(usize),
    /// The socket with this number, for DNS queries.
    NameQueries(usize),
    /// Answers of the resolver.
    Names,
    /// The log of SYNs that are held.
    HeldSyns,
    /// The tunnel interface of packets that are forwarded unsplit.
    Packets,
    /// The listener with this number.
    Listener(usize),
    /// A socket of the connection with this number.
    Connection(usize),
}

/// Kinds of readiness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Readiness {
    /// There are bytes, datagrams or clients, or the peer has ended its send side.
    pub(crate) readable: bool,
    /// There is room to write, or the peer receives no more.
    pub(crate) writable: bool,
    /// The socket has a pending error.
    pub(crate) error: bool,
}

/// A route from this host to a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// Address of the peer.
    pub(crate) peer: SocketAddr,
    /// Source address of packets; the routing table selects it when it is unspecified.
    pub(crate) source: IpAddr,
    /// Outgoing interface; the routing table selects it when `None`.
    pub(crate) interface: Option<String>,
}

impl Route {
    /// A route that is left to the routing table.
    pub(crate) fn to(peer: SocketAddr) -> Self {
        Self { peer, source: Ipv4Addr::UNSPECIFIED.into(), interface: None }
    }
}

/// The operating system below the engine.
pub(crate) trait Host: fmt::Debug + Send {
    /// Reports readiness of `socket` as that of `source` from here on.
    ///
    /// # Errors
    /// The kernel's, for want of memory or where the socket is watched already.
    fn watch(&mut self, socket: SocketId, source: Source) -> io::Result<()>;

    /// Sets whether room in the send buffer of the datagram socket `socket` is reported, which at
    /// first it is not: each datagram that leaves the buffer would be reported. Room that is there
    /// already is reported.
    ///
    /// # Errors
    /// The kernel's, for want of memory.
    fn watch_writable(&self, socket: SocketId, source: Source, writable: bool) -> io::Result<()>;

    /// Does not report the readiness of `socket` any more.
    fn unwatch(&mut self, socket: SocketId);

    /// Begins to connect to `server` from the address `local`. The outcome is read with
    /// [`TcpSocket::take_error`] and [`TcpSocket::is_connected`].
    ///
    /// # Errors
    /// Those of `connect` that are known at once, and those of having no descriptor.
    fn connect(&mut self, local: LocalAddress, server: SocketAddr) -> io::Result<Socket>;

    /// As [`Host::connect`], and applies `tune` to the kernel's socket before its first packet.
    ///
    /// # Errors
    /// As [`Host::connect`], and those of `tune`.
    fn connect_tuned(
        &mut self,
        local: LocalAddress,
        server: SocketAddr,
        tune: &dyn Fn(BorrowedFd<'_>) -> io::Result<()>,
    ) -> io::Result<Socket>;

    /// Opens a datagram socket on `address`, whose datagrams leave by `interface` if one is named.
    ///
    /// # Errors
    /// Those of `bind`: the address or the interface is not there, or is in use.
    fn bind(
        &mut self,
        address: SocketAddr,
        interface: Option<&str>,
    ) -> io::Result<Box<dyn DatagramSocket>>;

    /// As [`Host::bind`], and receives at further ports of the address. Each source is answered from
    /// the port at which its last datagram was received.
    ///
    /// # Errors
    /// As [`Host::bind`].
    fn bind_ports(
        &mut self,
        address: SocketAddr,
        ports: &[u16],
        interface: Option<&str>,
    ) -> io::Result<Box<dyn DatagramSocket>>;

    /// Begins to connect by TLS, for the datagrams of the socket of this host at `local`.
    ///
    /// # Errors
    /// Those that are known at once.
    fn open_tls(&mut self, route: &TlsRoute, local: SocketAddr) -> io::Result<Box<dyn TlsTunnel>>;

    /// Returns the address from which the routes have datagrams to `destination` sent.
    fn source_for(&self, destination: SocketAddr) -> Option<IpAddr>;

    /// Returns the largest IP packet that the first link of `route` takes, in octets.
    ///
    /// # Errors
    /// The kernel's, where there is no route.
    fn path_mtu(&self, route: &Route) -> io::Result<usize>;

    /// Returns the address families with which this host reaches the Internet.
    fn families(&self) -> Families;

    /// Returns whether this host has `address`; `None` where that is not known.
    fn has_address(&self, address: SocketAddr) -> Option<bool>;

    /// Returns `at` as nanoseconds since 1970.
    fn unix_ns(&self, at: Instant) -> u64;
}

/// How a TCP connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Close {
    /// The kernel delivers what it still holds, and a FIN.
    Graceful,
    /// What is not delivered is discarded, and the peer receives a RST.
    Reset,
}

/// A TCP connection. When it is dropped after [`TcpSocket::prepare`] its peer receives a RST.
pub(crate) trait TcpSocket: fmt::Debug + Send {
    /// Returns its identifier.
    fn id(&self) -> SocketId;

    /// Reads into `buffer`; zero: the peer has ended its send side.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] while nothing has come, and what ended the connection.
    fn read(&self, buffer: &mut [u8]) -> io::Result<usize>;

    /// As [`TcpSocket::read`], but the bytes stay to be read again.
    ///
    /// # Errors
    /// As [`TcpSocket::read`].
    fn peek(&self, buffer: &mut [u8]) -> io::Result<usize>;

    /// Writes a part of `bytes`, or all of them.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] while there is no room, and what ended the connection.
    fn write(&self, bytes: &[u8]) -> io::Result<usize>;

    /// As [`TcpSocket::write`], of several pieces one after another.
    ///
    /// # Errors
    /// As [`TcpSocket::write`].
    fn write_vectored(&self, pieces: &[io::IoSlice<'_>]) -> io::Result<usize> {
        self.write(pieces.first().map_or(&[], |piece| piece))
    }

    /// Ends the send side: a FIN follows the bytes that were written.
    ///
    /// # Errors
    /// What ended the connection.
    fn shutdown_write(&self) -> io::Result<()>;

    /// Takes the error that ended the connection, or an attempt to connect.
    fn take_error(&self) -> Option<io::Error>;

    /// Returns whether the peer has answered, and the connection has not been reset since.
    fn is_connected(&self) -> bool;

    /// Returns the socket's own address; of an intercepted client, that of its server.
    ///
    /// # Errors
    /// The kernel's.
    fn local_address(&self) -> io::Result<SocketAddr>;

    /// Sets the options of a gateway's connection: no delay to fill a segment, keep-alives as
    /// `limits` have them, and a RST at whatever end but a graceful close.
    ///
    /// # Errors
    /// Where the connection is gone already.
    fn prepare(&self, limits: &Limits) -> io::Result<()>;

    /// Returns the number of octets written that the peer has not acknowledged.
    fn unacknowledged(&self) -> u64;

    /// Returns the time since the peer's last segment, while data or a zero-window probe is
    /// unacknowledged. A slow reader acknowledges those probes.
    fn unanswered_for(&self) -> Option<Span>;

    /// Returns how many segments were retransmitted, and the size of one in octets.
    fn retransmitted(&self) -> Option<(u32, u32)>;

    /// Closes the connection.
    fn close(self: Box<Self>, how: Close);
}

/// A TCP connection of whichever host.
pub(crate) type Socket = Box<dyn TcpSocket>;

/// A listening socket.
pub(crate) trait ListenSocket: fmt::Debug + Send {
    /// Returns its identifier.
    fn id(&self) -> SocketId;

    /// Accepts the next client, and returns its address.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] while there is none, those of a client that is gone, and those
    /// of having no descriptor.
    fn accept(&self) -> io::Result<(Socket, SocketAddr)>;

    /// The kernel's descriptor, to be kept by a service manager, where there is one.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;
}

/// Result of sending datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// They are sent, or cannot be because there is no route or no receiver.
    Done,
    /// The send buffer is full: to be repeated when it is writable.
    Full,
    /// A datagram exceeds the MTU of the first link.
    TooBig,
}

/// Result of the delivery of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivered {
    /// It is from a peer.
    Peer,
    /// It is not authenticated.
    Unvalidated,
    /// It is for the shard of this hub with this number.
    OtherShard(u32),
    /// It may be for another process of this gateway, on the same address.
    OtherProcess,
}

/// Clients' SYNs that the packet filter holds back until their servers have answered.
pub(crate) trait HeldSyns: fmt::Debug + Send {
    /// Returns its identifier at the host.
    fn id(&self) -> SocketId;

    /// Hands the SYNs that have arrived since to `take`, at most `limit` of them.
    fn receive(&mut self, limit: usize, take: &mut dyn FnMut(Syn)) -> ReceiveStatus;

    /// Returns whether the SYN's source is an address of this host, or no valid host address.
    fn is_forged(&mut self, syn: &Syn) -> bool;

    /// Passes the SYN on to the listener.
    fn reinject(&self, syn: &Syn);

    /// Sends the client what the network would have sent for `reason`: a RST, an ICMP message or
    /// nothing.
    fn reject(&self, syn: &Syn, reason: RefuseReason);
}

/// A UDP socket.
pub(crate) trait DatagramSocket: fmt::Debug + Send {
    /// Returns its identifier.
    fn id(&self) -> SocketId;

    /// Returns the address in use.
    ///
    /// # Errors
    /// The kernel's.
    fn local_address(&self) -> io::Result<SocketAddr>;

    /// Returns whether the socket is bound to the present `interface`: a recreated interface has
    /// another index, and the kernel binds sockets to indices.
    fn is_bound_to(&self, interface: &str) -> bool;

    /// Returns the counters of the socket.
    fn counters(&self) -> &UdpCounters;

    /// Returns how many datagrams of one size a call of [`DatagramSocket::send`] takes.
    fn max_batch(&self) -> usize;

    /// Receives once and passes each datagram to `deliver`, with true unless another process of
    /// this gateway gets those that are [`Delivered::OtherProcess`]. Returns whether there may be more.
    ///
    /// # Errors
    /// The kernel's, where they are not those of an earlier datagram.
    fn receive(
        &mut self,
        deliver: &mut dyn FnMut(SocketAddr, &mut [u8], bool) -> Delivered,
    ) -> io::Result<bool>;

    /// Sends `contents`, datagrams of `segment_size` octets of which the last may be shorter.
    fn send(&mut self, destination: SocketAddr, contents: &[u8], segment_size: usize) -> Sent;

    /// Returns the sockets by which other processes of this gateway pass on datagrams.
    fn neighbours(&self) -> Vec<SocketId> {
        Vec::new()
    }

    /// Returns the kernel's descriptors of the further ports.
    fn further(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }

    /// Whether an earlier process of this gateway still has associations.
    fn has_predecessor(&self) -> bool {
        false
    }

    /// Leaves receiving to the process that replaces this one, which passes on datagrams by
    /// `successor`.
    fn set_successor(&mut self, successor: OwnedFd) {
        drop(successor);
    }

    /// Repeats the detection of the socket's features after its address has been added again.
    fn renew(&mut self);

    /// The kernel's descriptor, to be kept by a service manager, where there is one.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;
}

/// Where a TLS connection leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TlsRoute {
    /// The hub's address and TCP port.
    pub(crate) hub: SocketAddr,
    /// The source address, which may be unspecified.
    pub(crate) source: IpAddr,
    /// The interface to use, where one is configured.
    pub(crate) interface: Option<String>,
    /// The name that is sent in the clear (SNI), if one is.
    pub(crate) server_name: Option<String>,
    /// The congestion control of TCP.
    pub(crate) congestion: TlsCongestion,
}

/// The state of a TLS connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TlsState {
    /// The handshakes of TCP and TLS are not complete.
    Connecting,
    /// It carries datagrams.
    Open,
    /// It has ended, or was not established.
    Closed,
}

/// A TLS connection to a hub that passes datagrams to and from a socket of this host. It ends when
/// this is dropped.
pub(crate) trait TlsTunnel: fmt::Debug + Send {
    /// Returns the address of this host to which the socket sends datagrams for the hub.
    fn address(&self) -> SocketAddr;

    /// Returns its state. The socket becomes readable when it changes.
    fn state(&self) -> TlsState;

    /// Whether it has room for datagrams. While it has none, the engine looks again at intervals.
    fn has_room(&self) -> bool;

    /// Counts octets that are about to be sent to its address.
    fn note_sent(&self, octets: usize);
}

/// A descriptor that is kept so that one more can be had when the process has no other left.
pub(crate) trait Reserve: fmt::Debug + Send {
    /// Closes the descriptor, so that the next call that needs one gets it; false when it is closed
    /// already.
    fn give_up(&mut self) -> bool;

    /// Opens it again, if that can be done now.
    fn restore(&mut self);
}

/// Descriptors as the host has them.
#[derive(Debug)]
pub(crate) struct Descriptors {
    /// How many this process may have.
    pub(crate) limit: u64,
    /// The one in reserve.
    pub(crate) reserve: Box<dyn Reserve>,
}
