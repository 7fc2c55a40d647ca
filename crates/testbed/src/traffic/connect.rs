//! How a client reaches its server.

use std::io::{self, Read, Write};
use std::mem::size_of;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::time::Duration;

/// The path from a client to its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The client connects to the server address.
    Direct,
    /// The client uses a SOCKS5 proxy at this address.
    Socks5(SocketAddr),
    /// As `Direct`, with a limited receive buffer.
    Buffered(ReceiveBuffer),
}

/// Receive buffer limits of a client's socket, which replace the kernel's autotuning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveBuffer {
    /// `SO_RCVBUF` in octets; the kernel doubles it for its overhead.
    pub bytes: u32,
    /// The maximum receive window in octets (`TCP_WINDOW_CLAMP`).
    pub window: u32,
}

/// Opens a TCP connection to `server`.
///
/// # Errors
/// The error of the kernel or the proxy.
pub fn connect(way: Way, server: SocketAddr, patience: Duration) -> io::Result<TcpStream> {
    let mut stream = match way {
        Way::Direct => TcpStream::connect_timeout(&server, patience)?,
        Way::Socks5(proxy) => TcpStream::connect_timeout(&proxy, patience)?,
        Way::Buffered(buffer) => connect_buffered(server, buffer, patience)?,
    };
    stream.set_nodelay(true)?;
    if let Way::Socks5(_) = way {
        stream.set_read_timeout(Some(patience))?;
        ask_proxy(&mut stream, server)?;
        stream.set_read_timeout(None)?;
    }
    Ok(stream)
}

/// The buffer must be set before connect, because it determines the window scale.
fn connect_buffered(
    server: SocketAddr,
    buffer: ReceiveBuffer,
    patience: Duration,
) -> io::Result<TcpStream> {
    let domain = socket2::Domain::for_address(server);
    let socket = socket2::Socket::new(domain, socket2::Type::STREAM, None)?;
    socket.set_recv_buffer_size(buffer.bytes as usize)?;
    clamp(&socket, buffer.window)?;
    socket.connect_timeout(&server.into(), patience)?;
    Ok(socket.into())
}

/// Limits the advertised receive window. The kernel (seen with 6.18) resets the limit when it
/// measures the memory per segment, so a reader sets it repeatedly.
pub(super) fn clamp(socket: &impl AsRawFd, window: u32) -> io::Result<()> {
    let window = libc::c_int::try_from(window).unwrap_or(libc::c_int::MAX);
    // SAFETY: the pointer is to an int, of which the length is given.
    let status = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_WINDOW_CLAMP,
            (&raw const window).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// RFC 1928, without authentication.
fn ask_proxy(stream: &mut TcpStream, server: SocketAddr) -> io::Result<()> {
    let refused = |what: String| io::Error::new(io::ErrorKind::ConnectionRefused, what);
    stream.write_all(&[5, 1, 0])?;
    let mut choice = [0; 2];
    stream.read_exact(&mut choice)?;
    if choice != [5, 0] {
        return Err(refused(format!(
            "the proxy chose method {} of version {}",
            choice[1], choice[0]
        )));
    }
    let mut request = vec![5, 1, 0];
    match server.ip() {
        IpAddr::V4(v4) => {
            request.push(1);
            request.extend(v4.octets());
        }
        IpAddr::V6(v6) => {
            request.push(4);
            request.extend(v6.octets());
        }
    }
    request.extend(server.port().to_be_bytes());
    stream.write_all(&request)?;
    let mut reply = [0; 4];
    stream.read_exact(&mut reply)?;
    if reply[1] != 0 {
        return Err(refused(format!("the proxy answered with code {}", reply[1])));
    }
    let bound = match reply[3] {
        1 => 6,
        4 => 18,
        kind => return Err(refused(format!("the proxy bound an address of type {kind}"))),
    };
    stream.read_exact(&mut [0; 18][..bound])
}
