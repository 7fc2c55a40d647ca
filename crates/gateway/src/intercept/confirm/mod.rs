//! Clients whose SYNs are held until their server has answered.
//!
//! ```text
//! client ─SYN→ [prerouting: a port that is confirmed: log to us, drop]
//!                                     │
//!                                     ▼
//!                            SynGate::receive ──▶ the engine has the hub connect
//!                                                        │ connected       │ refused
//!                      SynGate::reinject ◀───────────────┘                 ▼
//!                                     │                            SynGate::refuse: RST, ICMP, silence
//!                                     ▼
//!  the client's own SYN ─▶ [output, with our mark] ─▶ lo ─▶ [prerouting: tproxy] ─▶ listener
//! ```
//!
//! A listener answers a SYN at once, so the SYN reaches it only after the server has answered.
//! The reinjected packet is the client's own with all its options, so the kernel negotiates with
//! the client as without a gateway. Only the first packet of a connection is held.

mod nflog;
mod syn;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::RawFd;

use relay::RefuseReason;
use rt::netlink::Netlink;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use super::InterceptError;
use nflog::Nflog;
pub(crate) use nflog::ReceiveStatus;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use nflog::packets as logged_packets;
pub(crate) use syn::{Neighbour, Syn, Unreachable};

/// Receives SYNs of clients from NFLOG, and sends packets to clients and on behalf of clients.
#[derive(Debug)]
pub(crate) struct SynGate {
    log: Nflog,
    /// Socket whose packets are looped back as received ones, and are intercepted.
    inward: Pair,
    /// Socket whose packets are sent to their destination.
    outward: Pair,
    /// Socket for ICMPv6, whose source address and checksum the kernel fills in.
    icmp6: Option<Socket>,
    netlink: Netlink,
}

/// Raw sockets of both address families.
#[derive(Debug)]
struct Pair {
    v4: Socket,
    v6: Option<Socket>,
}

impl SynGate {
    /// Opens the sockets; `first` is the first NFLOG group that is tried, and `mark` the firewall
    /// mark of reinjected packets.
    ///
    /// # Errors
    /// When a socket is refused: `EPERM` without `CAP_NET_RAW` or `CAP_NET_ADMIN`.
    pub(crate) fn open(first: u16, mark: u32) -> Result<Self, InterceptError> {
        // The most frequently refused socket first.
        let inward = Pair::open(Some(mark))?;
        let outward = Pair::open(None)?;
        let icmp6 = match icmp6() {
            Ok(socket) => Some(socket),
            Err(_) if inward.v6.is_none() => None,
            Err(source) => return Err(raw_refused("IPPROTO_ICMPV6", source)),
        };
        let netlink = Netlink::open().map_err(InterceptError::routing)?;
        Ok(Self { log: Nflog::open(first)?, inward, outward, icmp6, netlink })
    }

    /// The NFLOG group to which the rules are to log.
    pub(crate) fn group(&self) -> u16 {
        self.log.group()
    }

    /// Returns the descriptor that becomes readable when a SYN was received.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.log.descriptor()
    }

    /// Receives at most `limit` SYNs and calls `take` for each.
    pub(crate) fn receive(&mut self, limit: usize, mut take: impl FnMut(Syn)) -> ReceiveStatus {
        self.log.receive(limit, |packet, neighbour| match Syn::parse(packet) {
            Some(syn) => take(syn.sent_by(neighbour)),
            None => tracing::debug!("truncated SYN ignored"),
        })
    }

    /// Whether the source address is one of this host or no unicast address. The kernel drops such
    /// packets on reception, but not when they are looped back.
    pub(crate) fn is_forged(&mut self, syn: &Syn) -> bool {
        let client = syn.client.ip();
        client.is_unspecified()
            || client.is_loopback()
            || client.is_multicast()
            || client == IpAddr::from(Ipv4Addr::BROADCAST)
            || self.netlink.is_own(client).unwrap_or(true)
    }

    /// Sends the client's SYN to the listener.
    pub(crate) fn reinject(&self, syn: &Syn) {
        self.inward.send(syn.packet(), syn.server);
    }

    /// Rejects the client's SYN as the network would have: by RST, by ICMP, or by silence in place
    /// of an unresponsive server.
    pub(crate) fn refuse(&self, syn: &Syn, reason: RefuseReason) {
        let what = match reason {
            RefuseReason::ConnectionRefused | RefuseReason::Limit | RefuseReason::Other => {
                self.outward.send(&syn.reset(), syn.client);
                return;
            }
            RefuseReason::TimedOut => return,
            RefuseReason::Policy => Unreachable::Prohibited,
            RefuseReason::HostUnreachable | RefuseReason::NameNotFound => Unreachable::Host,
            RefuseReason::NetworkUnreachable => Unreachable::Network,
        };
        let message = syn.unreachable(what);
        match (&self.icmp6, syn.client) {
            (_, SocketAddr::V4(_)) => self.outward.send(&message, syn.client),
            (Some(socket), SocketAddr::V6(_)) => send(socket, &message, syn.client),
            (None, SocketAddr::V6(_)) => {}
        }
    }
}

impl Pair {
    fn open(mark: Option<u32>) -> Result<Self, InterceptError> {
        let v4 = raw(Domain::IPV4, mark).map_err(|source| raw_refused("IPPROTO_RAW", source))?;
        let v6 = match raw(Domain::IPV6, mark) {
            Ok(socket) => Some(socket),
            Err(error) if error.raw_os_error() == Some(libc::EAFNOSUPPORT) => None,
            Err(source) => return Err(raw_refused("IPPROTO_RAW", source)),
        };
        Ok(Self { v4, v6 })
    }

    fn send(&self, packet: &[u8], to: SocketAddr) {
        let socket = if to.is_ipv4() { Some(&self.v4) } else { self.v6.as_ref() };
        if let Some(socket) = socket {
            send(socket, packet, to);
        }
    }
}

/// Sends once: a lost packet is covered by TCP's retransmission of the SYN.
fn send(socket: &Socket, packet: &[u8], to: SocketAddr) {
    let to = SockAddr::from(SocketAddr::new(to.ip(), 0));
    if let Err(error) = socket.send_to(packet, &to) {
        tracing::debug!(?to, %error, "packet to a client not sent");
    }
}

/// Opens a socket that sends whole packets and receives none, as protocol 255 never does.
fn raw(domain: Domain, mark: Option<u32>) -> io::Result<Socket> {
    let raw = Protocol::from(libc::IPPROTO_RAW);
    let socket = Socket::new(domain, Type::RAW.nonblocking(), Some(raw))?;
    if domain == Domain::IPV6 {
        socket.set_header_included_v6(true)?;
    }
    if let Some(mark) = mark {
        socket.set_mark(mark)?;
    }
    Ok(socket)
}

fn icmp6() -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV6, Type::RAW.nonblocking(), Some(Protocol::ICMPV6))?;
    block_icmp6(&socket)?;
    Ok(socket)
}

/// Filters out all received ICMPv6 messages (RFC 3542, section 3.2).
fn block_icmp6(socket: &Socket) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    const ICMP6_FILTER: libc::c_int = 1;
    let all = [u32::MAX; 8];
    // SAFETY: `all` is an icmp6_filter, 32 bytes, and outlives the call.
    let status = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_ICMPV6,
            ICMP6_FILTER,
            all.as_ptr().cast(),
            size_of_val(&all) as libc::socklen_t,
        )
    };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn raw_refused(protocol: &str, source: io::Error) -> InterceptError {
    let advice = match source.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            "; to confirm intercepted connections needs CAP_NET_RAW, to answer them early does not"
        }
        Some(_) | None => "",
    };
    let call = format!("socket(SOCK_RAW, {protocol}) or SO_MARK on it");
    InterceptError::Refused { call, source, advice: advice.into() }
}
