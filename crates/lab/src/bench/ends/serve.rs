//! The server of a load: one thread, with as many connections as it has descriptors.
//!
//! A connection begins with a header of [`HEADER`] octets: the kind of request, and a number.

use super::poll::{Poll, is_pause};
use nix::sys::epoll::EpollFlags;
use rt::Clock;
use socket2::{Domain, SockRef, Socket, Type};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;
use units::{BitRate, Span};

/// Octets of a header.
pub(crate) const HEADER: usize = 9;
/// Octets of one write or read of bulk data.
pub(super) const BLOCK: usize = 256 << 10;
/// Octets that the kernel stores of a connection beyond those that the window lets it send. All hosts of
/// a benchmark share the kernel's limit of memory for TCP (`tcp_mem`); a thousand full send buffers
/// reach it, and TCP then discards what it has received.
const UNSENT: u32 = 128 << 10;
/// The listener's number among the sockets.
const LISTENER: usize = usize::MAX;

/// Kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// Unlimited octets at full speed.
    Bulk,
    /// Unlimited octets at this rate in bits per second.
    Paced(u64),
    /// Read and discard all octets.
    Discard,
    /// Echo all octets.
    Echo,
    /// The number of octets that all [`Request::Discard`] connections have received, now and
    /// after each octet of the client.
    Received,
}

impl Request {
    pub(crate) fn encode(self) -> [u8; HEADER] {
        let (kind, number) = match self {
            Self::Bulk => (b'B', 0),
            Self::Paced(bps) => (b'P', bps),
            Self::Discard => (b'D', 0),
            Self::Echo => (b'E', 0),
            Self::Received => (b'R', 0),
        };
        let mut header = [kind; HEADER];
        header[1..].copy_from_slice(&u64::to_be_bytes(number));
        header
    }

    fn decode(header: [u8; HEADER]) -> Option<Self> {
        let [kind, number @ ..] = header;
        match kind {
            b'B' => Some(Self::Bulk),
            b'P' => Some(Self::Paced(u64::from_be_bytes(number))),
            b'D' => Some(Self::Discard),
            b'E' => Some(Self::Echo),
            b'R' => Some(Self::Received),
            _ => None,
        }
    }
}

/// A connection, and the received part of its header.
struct Connection {
    stream: TcpStream,
    header: [u8; HEADER],
    filled: usize,
    request: Option<Request>,
}

struct Server {
    poll: Poll,
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    received: u64,
    block: Vec<u8>,
}

/// Bounds the octets that the kernel stores of a connection before it can send them.
///
/// # Errors
/// The kernel's error.
pub(super) fn bound_unsent(stream: &TcpStream) -> io::Result<()> {
    SockRef::from(stream).set_tcp_notsent_lowat(UNSENT)
}

/// Serves connections to `address` until the process ends.
///
/// # Errors
/// If the address cannot be bound or the kernel refuses to poll.
pub fn serve(address: SocketAddr) -> io::Result<()> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    // Thousands of connections may be opened at once.
    socket.listen(4096)?;
    socket.set_nonblocking(true)?;
    let listener = TcpListener::from(socket);
    let mut server = Server {
        poll: Poll::new()?,
        connections: Vec::new(),
        free: Vec::new(),
        received: 0,
        block: vec![0x5a; BLOCK],
    };
    server.poll.add(&listener, LISTENER, EpollFlags::EPOLLIN)?;
    loop {
        for number in server.poll.wait(u8::MAX)? {
            if number == LISTENER {
                server.accept(&listener);
            } else if let Some(mut connection) = server.connections[number].take() {
                match server.advance(&mut connection, number) {
                    Ok(true) => server.connections[number] = Some(connection),
                    // Errors of a client's connection are ignored.
                    Ok(false) | Err(_) => server.free.push(number),
                }
            }
        }
    }
}

impl Server {
    fn accept(&mut self, listener: &TcpListener) {
        while let Ok((stream, _)) = listener.accept() {
            let number = self.free.pop().unwrap_or_else(|| {
                self.connections.push(None);
                self.connections.len() - 1
            });
            let ready = stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true));
            let ready = ready.and_then(|()| bound_unsent(&stream));
            if ready.and_then(|()| self.poll.add(&stream, number, EpollFlags::EPOLLIN)).is_ok() {
                let header = [0; HEADER];
                self.connections[number] =
                    Some(Connection { stream, header, filled: 0, request: None });
            } else {
                self.free.push(number);
            }
        }
    }

    /// Serves a ready connection; returns false when it has ended.
    fn advance(&mut self, connection: &mut Connection, number: usize) -> io::Result<bool> {
        let done = match connection.request {
            None => return self.read_header(connection, number),
            Some(Request::Bulk) => connection.stream.write(&self.block),
            Some(Request::Discard) => {
                let read = connection.stream.read(&mut self.block);
                self.received += *read.as_ref().unwrap_or(&0) as u64;
                read
            }
            Some(Request::Echo) => connection.stream.read(&mut self.block).and_then(|count| {
                // A client waits for the response to each request, so there is room for it.
                connection.stream.write_all(&self.block[..count]).map(|()| count)
            }),
            Some(Request::Received) => connection.stream.read(&mut [0]).and_then(|count| {
                connection.stream.write_all(&self.received.to_be_bytes()).map(|()| count)
            }),
            Some(Request::Paced(_)) => Ok(0),
        };
        match done {
            Ok(count) => Ok(count > 0),
            Err(error) if is_pause(&error) => Ok(true),
            Err(error) => Err(error),
        }
    }

    fn read_header(&mut self, connection: &mut Connection, number: usize) -> io::Result<bool> {
        match connection.stream.read(&mut connection.header[connection.filled..]) {
            Ok(0) => return Ok(false),
            Ok(count) => connection.filled += count,
            Err(error) if is_pause(&error) => return Ok(true),
            Err(error) => return Err(error),
        }
        if connection.filled < HEADER {
            return Ok(true);
        }
        connection.request = Request::decode(connection.header);
        match connection.request {
            None => return Ok(false),
            Some(Request::Bulk) => {
                self.poll.change(&connection.stream, number, EpollFlags::EPOLLOUT)?;
            }
            Some(Request::Paced(bps)) => {
                self.poll.remove(&connection.stream)?;
                let stream = connection.stream.try_clone()?;
                stream.set_nonblocking(false)?;
                thread::spawn(move || pace(stream, bps));
                return Ok(false);
            }
            Some(Request::Received) => {
                connection.stream.write_all(&self.received.to_be_bytes())?;
            }
            Some(Request::Discard | Request::Echo) => {}
        }
        Ok(true)
    }
}

/// Writes `bps` bits per second, in a block every millisecond, until the client closes.
pub(super) fn pace(mut stream: impl Write, bps: u64) {
    let clock = Clock::new();
    let start = clock.now();
    let mut sent = 0;
    let mut block = Vec::new();
    loop {
        let due = BitRate::from_bps(bps).bytes_in(clock.now().since(start));
        // After a stall the backlog is sent in bounded bursts.
        block.resize((due - sent).min(BLOCK as u64) as usize, 0x5a);
        if stream.write_all(&block).is_err() {
            return;
        }
        sent += block.len() as u64;
        clock.sleep_until(clock.now() + Span::from_millis(1));
    }
}

/// Returns the number of octets that the server at `address` has received on [`Request::Discard`]
/// connections.
///
/// # Errors
/// If the server does not respond.
pub(crate) fn received(address: SocketAddr, patience: Span) -> io::Result<u64> {
    let patience = Duration::from_nanos(patience.as_nanos());
    let mut stream = TcpStream::connect_timeout(&address, patience)?;
    stream.set_read_timeout(Some(patience))?;
    stream.write_all(&Request::Received.encode())?;
    let mut count = [0; 8];
    stream.read_exact(&mut count)?;
    Ok(u64::from_be_bytes(count))
}
