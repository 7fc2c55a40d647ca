//! TCP sockets and listeners of the kernel.

use crate::Limits;
use crate::engine::{Close, ListenSocket, Socket, SocketId, TcpSocket};
use mio::net::{TcpListener, TcpStream};
use socket2::{SockRef, TcpKeepalive};
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;
use units::Span;

/// Number of unanswered keep-alive segments after which the connection is given up.
const KEEPALIVE_TRIES: u32 = 4;

/// A TCP connection of the kernel.
#[derive(Debug)]
pub(crate) struct KernelTcp(TcpStream);

impl KernelTcp {
    /// Converts a socket, which must be nonblocking.
    pub(crate) fn from_std(stream: std::net::TcpStream) -> Socket {
        Self::from_mio(TcpStream::from_std(stream))
    }

    pub(super) fn from_mio(stream: TcpStream) -> Socket {
        Box::new(Self(stream))
    }

    /// Returns the kernel's `tcp_info`; `None` if the socket has none.
    fn information(&self) -> Option<libc::tcp_info> {
        // SAFETY: all zeroes is a valid value of this plain C structure.
        let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
        let mut len = size_of::<libc::tcp_info>() as libc::socklen_t;
        // SAFETY: `info` is valid for writes of `len` bytes, and `len` for a read and a write.
        let status = unsafe {
            libc::getsockopt(
                self.0.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                (&raw mut info).cast(),
                &raw mut len,
            )
        };
        (status == 0).then_some(info)
    }
}

impl TcpSocket for KernelTcp {
    fn id(&self) -> SocketId {
        SocketId(self.0.as_raw_fd())
    }

    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        (&self.0).read(buffer)
    }

    fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.peek(buffer)
    }

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        (&self.0).write(bytes)
    }

    fn write_vectored(&self, pieces: &[io::IoSlice<'_>]) -> io::Result<usize> {
        (&self.0).write_vectored(pieces)
    }

    fn shutdown_write(&self) -> io::Result<()> {
        self.0.shutdown(Shutdown::Write)
    }

    fn take_error(&self) -> Option<io::Error> {
        self.0.take_error().ok().flatten()
    }

    fn is_connected(&self) -> bool {
        self.0.peer_addr().is_ok()
    }

    fn local_address(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// Sets the options of a connection. If its socket is closed other than by [`Close::Graceful`],
    /// for example because the process is killed, the remote host receives a RST and not a FIN, so
    /// that it does not take a truncated stream for a complete one.
    fn prepare(&self, limits: &Limits) -> io::Result<()> {
        let socket = SockRef::from(&self.0);
        socket.set_tcp_nodelay(true)?;
        socket.set_linger(Some(Duration::ZERO))?;
        let idle = duration(limits.keepalive);
        let interval = (idle / KEEPALIVE_TRIES).max(Duration::from_secs(1));
        let keepalive = TcpKeepalive::new()
            .with_time(idle)
            .with_interval(interval)
            .with_retries(KEEPALIVE_TRIES);
        socket.set_tcp_keepalive(&keepalive)
    }

    fn unacknowledged(&self) -> u64 {
        unacknowledged(&self.0)
    }

    fn unanswered_for(&self) -> Option<Span> {
        let info = self.information()?;
        if info.tcpi_unacked == 0 && info.tcpi_probes == 0 {
            return None;
        }
        Some(Span::from_millis(u64::from(info.tcpi_last_ack_recv)))
    }

    fn retransmitted(&self) -> Option<(u32, u32)> {
        self.information().map(|info| (info.tcpi_total_retrans, info.tcpi_snd_mss))
    }

    fn close(self: Box<Self>, how: Close) {
        let linger = match how {
            Close::Graceful => None,
            Close::Reset => Some(Duration::ZERO),
        };
        // The call fails on a closed socket, where the option has no effect.
        let _ = SockRef::from(&self.0).set_linger(linger);
    }
}

/// Returns the number of bytes that the remote host of `stream` has not acknowledged.
pub(crate) fn unacknowledged(stream: &impl AsRawFd) -> u64 {
    let mut count: libc::c_int = 0;
    // SAFETY: TIOCOUTQ writes one integer.
    let status = unsafe { libc::ioctl(stream.as_raw_fd(), libc::TIOCOUTQ, &raw mut count) };
    if status == 0 { u64::try_from(count).unwrap_or(0) } else { 0 }
}

/// A listening socket of the kernel.
#[derive(Debug)]
pub(crate) struct KernelListener(TcpListener);

impl KernelListener {
    /// Converts a listener, which must be nonblocking.
    pub(crate) fn from_std(listener: std::net::TcpListener) -> Box<dyn ListenSocket> {
        Box::new(Self(TcpListener::from_std(listener)))
    }
}

impl ListenSocket for KernelListener {
    fn id(&self) -> SocketId {
        SocketId(self.0.as_raw_fd())
    }

    fn accept(&self) -> io::Result<(Socket, SocketAddr)> {
        self.0.accept().map(|(stream, client)| (KernelTcp::from_mio(stream), client))
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.0.as_fd())
    }
}

fn duration(span: Span) -> Duration {
    Duration::from_nanos(span.as_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends `ok` and a FIN to a client, closes the gateway's socket by `close`, and returns the
    /// bytes that the client received or its socket error.
    fn received_before_close(close: impl FnOnce(Socket)) -> io::Result<Vec<u8>> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        let mut client = std::net::TcpStream::connect(listener.local_addr()?)?;
        let (socket, _) = listener.accept()?;
        socket.set_nonblocking(true)?;
        let socket = KernelTcp::from_std(socket);
        socket.prepare(&Limits::default())?;
        assert_eq!(socket.write(b"ok")?, 2);
        socket.shutdown_write()?;
        // The connection is half-closed and still open in the other direction.
        let mut received = Vec::new();
        client.read_to_end(&mut received)?;
        close(socket);
        client.write_all(b"?")?;
        // On loopback, a RST has arrived when the write returns.
        match client.take_error()? {
            Some(error) => Err(error),
            None => Ok(received),
        }
    }

    #[test]
    fn a_dropped_socket_sends_a_rst() {
        let error =
            received_before_close(drop).expect_err("the kernel of a killed process does no more");
        assert!(matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe));
    }
}
