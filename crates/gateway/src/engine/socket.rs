//! What a gateway asks of the kernel for each TCP socket.

use crate::Limits;
use mio::net::TcpStream;
use socket2::{SockRef, TcpKeepalive};
use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;
use units::{Instant, Span};

/// How often an unanswered keep-alive is repeated before the other end counts as gone.
const KEEPALIVE_TRIES: u32 = 4;

/// Nothing is held back to fill a segment, and an idle client that is gone is noticed. However
/// the socket is closed from here on, the other end hears a reset, unless [`close_in_order`] did
/// it: a process that is killed must not pass for the end of the data.
pub(super) fn prepare(stream: &TcpStream, limits: &Limits) -> io::Result<()> {
    let socket = SockRef::from(stream);
    socket.set_tcp_nodelay(true)?;
    socket.set_linger(Some(Duration::ZERO))?;
    let idle = duration(limits.keepalive);
    let interval = (idle / KEEPALIVE_TRIES).max(Duration::from_secs(1));
    let keepalive =
        TcpKeepalive::new().with_time(idle).with_interval(interval).with_retries(KEEPALIVE_TRIES);
    socket.set_tcp_keepalive(&keepalive)
}

/// Closes with a reset, not with an orderly end: what is not delivered is thrown away.
pub(super) fn close_with_reset(stream: TcpStream) {
    // Without it the kernel ends the connection in good order, which would be a lie; a socket
    // that is already gone refuses, and needs no reset.
    let _ = SockRef::from(&stream).set_linger(Some(Duration::ZERO));
    drop(stream);
}

/// Closes after everything has been said: the kernel delivers what it still holds.
pub(super) fn close_in_order(stream: TcpStream) {
    // A socket that is gone refuses; nothing is lost by that.
    let _ = SockRef::from(&stream).set_linger(None);
    drop(stream);
}

/// What the kernel knows of a TCP connection; `None` when the socket is none.
pub(super) fn information(stream: &TcpStream) -> Option<libc::tcp_info> {
    // SAFETY: all zeroes is a valid value of this plain C structure.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut len = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: `info` is valid for writes of `len` bytes, and `len` for a read and a write.
    let status = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &raw mut len,
        )
    };
    (status == 0).then_some(info)
}

/// Bytes that the other end of the socket does not have.
pub(super) fn unacknowledged(stream: &impl AsRawFd) -> u64 {
    let mut count: libc::c_int = 0;
    // SAFETY: TIOCOUTQ writes one integer.
    let status = unsafe { libc::ioctl(stream.as_raw_fd(), libc::TIOCOUTQ, &raw mut count) };
    if status == 0 { u64::try_from(count).unwrap_or(0) } else { 0 }
}

/// For how long nothing has come from the other end, when it owes TCP an answer.
///
/// A reader that merely takes its time answers the probes of its closed window, so it is told
/// apart from one that is gone.
pub(super) fn unanswered_for(stream: &TcpStream) -> Option<Span> {
    let info = information(stream)?;
    if info.tcpi_unacked == 0 && info.tcpi_probes == 0 {
        return None;
    }
    Some(Span::from_millis(u64::from(info.tcpi_last_ack_recv)))
}

/// Whether the other end has been silent for `longest`, and has owed an answer for as long:
/// one that was idle, and is asked only now, still has its time. `owing` is remembered from one
/// look to the next.
pub(super) fn has_vanished(
    now: Instant,
    unanswered: Option<Span>,
    owing: &mut Option<Instant>,
    longest: Span,
) -> bool {
    let Some(silent) = unanswered else {
        *owing = None;
        return false;
    };
    let since = *owing.get_or_insert(now);
    silent >= longest && now.since(since) >= longest
}

/// The error that ended a socket, if one did.
pub(super) fn taken_error(stream: &TcpStream) -> Option<io::Error> {
    stream.take_error().ok().flatten()
}

/// Whether an error of `accept`, `read`, `write` means only: later.
pub(super) fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// As many descriptors as the system lets this process have; returns how many that are.
pub(crate) fn raise_descriptor_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid for writes.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return 0;
    }
    let raised = libc::rlimit { rlim_cur: limit.rlim_max, rlim_max: limit.rlim_max };
    // SAFETY: `raised` is valid for reads.
    let status = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) };
    if status == 0 { raised.rlim_cur } else { limit.rlim_cur }
}

fn duration(span: Span) -> Duration {
    Duration::from_nanos(span.as_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client of which the gateway's socket is closed by `close` when it has said `ok`: what it
    /// reads.
    fn heard(close: impl FnOnce(TcpStream)) -> io::Result<Vec<u8>> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        let mut client = std::net::TcpStream::connect(listener.local_addr()?)?;
        let (socket, _) = listener.accept()?;
        socket.set_nonblocking(true)?;
        let socket = TcpStream::from_std(socket);
        prepare(&socket, &Limits::default())?;
        io::Write::write_all(&mut &socket, b"ok")?;
        socket.shutdown(std::net::Shutdown::Write)?;
        // A half that has ended is no connection that has.
        let mut heard = Vec::new();
        io::Read::read_to_end(&mut client, &mut heard)?;
        close(socket);
        io::Write::write_all(&mut client, b"?")?;
        // Whoever resets does so by now: loopback is as fast as the call.
        match client.take_error()? {
            Some(error) => Err(error),
            None => Ok(heard),
        }
    }

    #[test]
    fn a_socket_that_is_merely_dropped_resets() {
        let error = heard(drop).expect_err("the kernel of a killed process does no more");
        assert!(matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe));
    }

    #[test]
    fn who_was_idle_for_long_has_not_vanished_when_asked() {
        let longest = Span::from_secs(120);
        let at = |seconds| Instant::ZERO + Span::from_secs(seconds);
        let silent = |seconds| Some(Span::from_secs(seconds));
        let mut owing = None;
        // Idle for an hour, then a byte is sent, and a moment later someone looks.
        assert!(!has_vanished(at(3600), silent(3600), &mut owing, longest));
        assert!(!has_vanished(at(3719), silent(3719), &mut owing, longest));
        assert!(has_vanished(at(3720), silent(3720), &mut owing, longest));
        // An answer begins it all anew; a steady stream owes for ever and is never silent.
        assert!(!has_vanished(at(3725), None, &mut owing, longest));
        for seconds in (3730..4000).step_by(5) {
            assert!(!has_vanished(at(seconds), silent(1), &mut owing, longest));
        }
        assert!(!has_vanished(at(4005), silent(119), &mut owing, longest));
        assert!(has_vanished(at(4006), silent(120), &mut owing, longest));
    }
}
