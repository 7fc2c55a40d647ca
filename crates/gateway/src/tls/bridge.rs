//! A TLS connection whose datagrams are passed to and from a UDP socket of this host.
//!
//! ```text
//!   link socket ◀──UDP on loopback──▶ bridge ◀══TLS══▶ bridge ◀──UDP on loopback──▶ link socket
//! ```
//!
//! While the TCP socket is full a bridge holds datagrams, and the engine sends no more of them
//! ([`Backlog`]).

use super::backlog::Backlog;
use super::frame::{Deframer, FrameError, LENGTH, MAX_DATAGRAM, length_field};
use crate::TlsCongestion;
use association::SEALED;
use mio::net::{TcpStream, UdpSocket};
use rustls::Connection;
use socket2::{SockRef, Socket};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use units::Span;

/// Maximum octets of one TLS record, which is made of as many datagrams as wait.
const RECORD: usize = 16 << 10;
/// Maximum number of reads, and of records written, in one turn.
const BUDGET: usize = 8;
/// Time after which a connection whose data is not acknowledged is closed.
const USER_TIMEOUT: Span = Span::from_secs(15);
/// Maximum octets that wait for room in the TCP socket. Engines send less ([`Backlog`]), except for
/// answers to handshakes.
const QUEUE: usize = 512 << 10;

/// Receive buffer of the UDP socket, which bridges empty in each turn.
const LOCAL_BUFFER: usize = 128 << 10;

/// Why a connection has ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum BridgeError {
    #[error("closed by the other side")]
    Closed,
    #[error(transparent)]
    Tcp(#[from] io::Error),
    #[error(transparent)]
    Tls(#[from] rustls::Error),
    #[error("not a gateway: {0}")]
    Frame(#[from] FrameError),
}

/// Buffers of a thread, which all its bridges use in turn.
#[derive(Debug)]
pub(super) struct Scratch {
    plain: Vec<u8>,
}

impl Default for Scratch {
    fn default() -> Self {
        Self { plain: vec![0; RECORD + LENGTH + MAX_DATAGRAM] }
    }
}

/// What a turn has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Turn {
    /// There may be more to do without a further event.
    pub(super) more: bool,
    /// A sealed datagram was passed to the TLS connection. A hub seals only for terminals that it
    /// has authenticated.
    pub(super) sealed: bool,
}

/// A TLS connection and a connected UDP socket.
#[derive(Debug)]
pub(super) struct Bridge {
    tls: Connection,
    tcp: TcpStream,
    udp: UdpSocket,
    deframer: Deframer,
    /// Frames that wait for room in the TCP socket.
    queue: VecDeque<u8>,
    backlog: Arc<Backlog>,
    /// Unsent octets beyond which the TCP socket takes no more.
    unsent_limit: usize,
}

impl Bridge {
    pub(super) fn new(tls: Connection, tcp: TcpStream, udp: UdpSocket) -> Self {
        let (queue, backlog) = (VecDeque::new(), Arc::default());
        Self { tls, tcp, udp, deframer: Deframer::default(), queue, backlog, unsent_limit: 0 }
    }

    /// Returns what the engine sees of its queue.
    pub(super) fn backlog(&self) -> &Arc<Backlog> {
        &self.backlog
    }

    /// Returns the sockets, for registration.
    pub(super) fn sockets(&mut self) -> (&mut TcpStream, &mut UdpSocket) {
        (&mut self.tcp, &mut self.udp)
    }

    pub(super) fn is_handshaking(&self) -> bool {
        self.tls.is_handshaking()
    }

    /// Sends a datagram without content to the link socket, so that its loop wakes.
    pub(super) fn wake(&self) {
        let _ = self.udp.send(&[]);
    }

    /// Passes on what has arrived on either side, within the budget.
    ///
    /// # Errors
    /// What has ended the connection.
    pub(super) fn turn(&mut self, scratch: &mut Scratch) -> Result<Turn, BridgeError> {
        let more_in = match self.receive(scratch) {
            Ok(more) => more,
            Err(error) => {
                // An alert may say why.
                let _ = self.tls.write_tls(&mut self.tcp);
                return Err(error);
            }
        };
        self.follow_window();
        let (more_out, sealed) = self.transmit(scratch)?;
        self.backlog.set_queued(self.queue.len());
        Ok(Turn { more: more_in || more_out, sealed })
    }

    /// Lets as much wait in the TCP socket, and before it, as the congestion window calls for.
    fn follow_window(&mut self) {
        let Ok((window, round_trip)) = congestion_window(&self.tcp) else { return };
        let limit = self.backlog.set_window(window, round_trip);
        let differs = limit >= 2 * self.unsent_limit || 2 * limit <= self.unsent_limit;
        // Without the option the kernel queues more, in the order of arrival.
        if differs && SockRef::from(&self.tcp).set_tcp_notsent_lowat(limit as u32).is_ok() {
            self.unsent_limit = limit;
        }
    }

    /// TLS to UDP; true if there may be more.
    fn receive(&mut self, scratch: &mut Scratch) -> Result<bool, BridgeError> {
        for _ in 0..BUDGET {
            match self.tls.read_tls(&mut self.tcp) {
                Ok(0) => return Err(BridgeError::Closed),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            }
            self.tls.process_new_packets()?;
            loop {
                match self.tls.reader().read(&mut scratch.plain) {
                    Ok(0) => return Err(BridgeError::Closed),
                    Ok(count) => {
                        let udp = &self.udp;
                        // What the link socket has no room for is lost, as by a full socket.
                        let deliver = &mut |datagram: &[u8]| drop(udp.send(datagram));
                        self.deframer.push(&scratch.plain[..count], deliver)?;
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(true)
    }

    /// UDP to TLS; whether there may be more, and whether a datagram was sealed.
    fn transmit(&mut self, scratch: &mut Scratch) -> Result<(bool, bool), BridgeError> {
        let mut sealed = false;
        for _ in 0..BUDGET {
            let has_room = self.flush()?;
            if self.tls.is_handshaking() {
                return Ok((false, sealed));
            }
            self.fill_queue(&mut scratch.plain, &mut sealed);
            if !has_room || self.queue.is_empty() {
                return Ok((false, sealed));
            }
            let record = self.queue.len().min(RECORD);
            for (to, octet) in scratch.plain.iter_mut().zip(self.queue.drain(..record)) {
                *to = octet;
            }
            self.tls.writer().write_all(&scratch.plain[..record])?;
        }
        Ok((true, sealed))
    }

    /// Writes what is encrypted; false if the TCP socket is full.
    fn flush(&mut self) -> Result<bool, BridgeError> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut self.tcp) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                // The connection is not established yet.
                Err(error) if error.kind() == ErrorKind::NotConnected => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }

    /// Moves datagrams to the queue while it has room.
    fn fill_queue(&mut self, room: &mut [u8], sealed: &mut bool) {
        while self.queue.len() < QUEUE {
            // An error belongs to an earlier datagram, or there is none.
            let Ok(count) = self.udp.recv(room) else { return self.backlog.received_all() };
            self.backlog.received(count);
            let datagram = &room[..count];
            let Some(length) = length_field(datagram) else { continue };
            *sealed |= datagram.first().is_some_and(|first| SEALED.contains(first));
            self.queue.extend(length);
            self.queue.extend(datagram);
        }
    }
}

/// Sets the options of a TCP socket that carries datagrams.
///
/// # Errors
/// The kernel's, if the connection is gone already.
pub(super) fn tune_tcp(socket: &impl AsFd, congestion: TlsCongestion) -> io::Result<()> {
    let socket = SockRef::from(socket);
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_user_timeout(Some(std::time::Duration::from_nanos(USER_TIMEOUT.as_nanos())))?;
    if let Err(error) = socket.set_tcp_congestion(congestion.name().as_bytes()) {
        tracing::debug!(%error, "the kernel's default congestion control carries TLS");
    }
    Ok(())
}

/// Returns the congestion window of a connection in octets, and its smoothed RTT.
fn congestion_window(socket: &TcpStream) -> io::Result<(u64, Span)> {
    let mut info = std::mem::MaybeUninit::<libc::tcp_info>::zeroed();
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: `info` has room for the length given.
    let status = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: all octets are zero or were written by the kernel, and every field is an integer.
    let info = unsafe { info.assume_init() };
    let window = u64::from(info.tcpi_snd_cwnd) * u64::from(info.tcpi_snd_mss);
    Ok((window, Span::from_micros(u64::from(info.tcpi_rtt))))
}

/// Opens a UDP socket that is connected from `local` to the link socket `peer`.
///
/// # Errors
/// The kernel's.
pub(super) fn local_udp(
    local: std::net::SocketAddr,
    peer: std::net::SocketAddr,
) -> io::Result<UdpSocket> {
    let socket = Socket::new(
        socket2::Domain::for_address(local),
        socket2::Type::DGRAM,
        Some(socket2::Protocol::UDP),
    )?;
    socket.set_nonblocking(true)?;
    socket.set_recv_buffer_size(LOCAL_BUFFER)?;
    socket.bind(&local.into())?;
    socket.connect(&peer.into())?;
    Ok(UdpSocket::from_std(socket.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::settings;
    use rustls::{ClientConnection, ServerConnection};
    use std::net::{Ipv4Addr, SocketAddr, TcpListener};

    const ANY: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);

    /// A link socket.
    fn link() -> std::net::UdpSocket {
        let socket = std::net::UdpSocket::bind(ANY).unwrap();
        socket.set_nonblocking(true).unwrap();
        socket
    }

    /// A bridge for `link`, and the address of its UDP socket.
    fn bridge(tls: Connection, tcp: std::net::TcpStream, link: SocketAddr) -> (Bridge, SocketAddr) {
        tcp.set_nonblocking(true).unwrap();
        let udp = local_udp(ANY.into(), link).unwrap();
        let address = udp.local_addr().unwrap();
        (Bridge::new(tls, TcpStream::from_std(tcp), udp), address)
    }

    /// TLS-3.2
    #[test]
    fn datagrams_are_delivered_in_order_and_those_without_a_frame_are_dropped() {
        let [near, far] = [link(), link()];
        let listener = TcpListener::bind(ANY).unwrap();
        let tcp = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let name = "hub.example".try_into().unwrap();
        let client = ClientConnection::new(settings::of_terminal().unwrap(), name).unwrap();
        let server = ServerConnection::new(settings::of_hub(None).unwrap()).unwrap();
        let (mut terminal, address) = bridge(client.into(), tcp, near.local_addr().unwrap());
        let accepted = listener.accept().unwrap().0;
        let (mut hub, _) = bridge(server.into(), accepted, far.local_addr().unwrap());
        let mut scratch = Scratch::default();
        let mut arrived = Vec::new();
        let mut room = [0; MAX_DATAGRAM];
        let clock = rt::Clock::new();
        let began = clock.now();
        for number in 0..50_u8 {
            near.send_to(&vec![number; 24 + 20 * usize::from(number)], address).unwrap();
            // Shorter and longer than a frame.
            near.send_to(&[number; 23], address).unwrap();
            near.send_to(&[number; MAX_DATAGRAM + 1], address).unwrap();
            while arrived.len() <= usize::from(number) {
                terminal.turn(&mut scratch).unwrap();
                hub.turn(&mut scratch).unwrap();
                if let Ok(length) = far.recv(&mut room) {
                    arrived.push((room[0], length));
                }
                let time = clock.now().since(began);
                assert!(time < Span::from_secs(30), "{} arrived", arrived.len());
            }
        }
        let sent: Vec<_> = (0..50).map(|number| (number, 24 + 20 * usize::from(number))).collect();
        assert_eq!(arrived, sent);
    }
}
