//! Hellos to a hub outside a gateway, over a socket that blocks.

use crate::SystemEntropy;
use association::{Config, Terminal, TerminalReceived, TransmitBatch};
use rt::Clock;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;
use units::{Instant, Span};

/// Response of a hub to a Hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Response {
    /// To one that registers a key.
    Registered {
        /// Whether the hub will store the key.
        received: bool,
    },
    /// To one that makes an association.
    Connected,
    /// None in time.
    None,
}

/// Sends Hellos to `hub` until there is a response, or for `limit`. The association is not used.
///
/// # Errors
/// If a socket fails.
pub(crate) fn exchange(
    clock: Clock,
    hub: SocketAddr,
    config: &Config,
    limit: Span,
) -> io::Result<Response> {
    let socket = socket_to(hub)?;
    let start = clock.now();
    let until = start + limit;
    let mut terminal = Terminal::new(config.clone(), start, SystemEntropy);
    let mut buffer = [0; 1500];
    loop {
        let now = clock.now();
        if now >= until {
            return Ok(Response::None);
        }
        let mut batch = TransmitBatch::new(&mut buffer, 1);
        while terminal.poll_transmit(now, &mut batch) {
            for datagram in batch.datagrams() {
                unless_transient(socket.send(datagram))?;
            }
            batch.clear();
        }
        let due = terminal.poll_timeout().map_or(until, |due| due.min(until));
        socket.set_read_timeout(Some(wait(now, due)))?;
        let Some(length) = unless_transient(socket.recv(&mut buffer))? else { continue };
        match terminal.handle_datagram(clock.now(), &mut buffer[..length]) {
            Ok(TerminalReceived::Registered { received }) => {
                return Ok(Response::Registered { received });
            }
            Ok(TerminalReceived::Established) => return Ok(Response::Connected),
            Ok(TerminalReceived::Payload { .. } | TerminalReceived::Nothing) | Err(_) => {}
        }
    }
}

/// Returns a socket that receives from `hub` only.
pub(crate) fn socket_to(hub: SocketAddr) -> io::Result<UdpSocket> {
    let any: SocketAddr = match hub {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(hub)?;
    Ok(socket)
}

/// A socket has no timeout of zero.
pub(crate) fn wait(now: Instant, due: Instant) -> Duration {
    Duration::from_nanos(due.since(now).as_nanos()).max(Duration::from_millis(1))
}

/// A timeout, and an ICMP error, which may be transient or forged, are no result.
pub(crate) fn unless_transient(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Ok(length) => Ok(Some(length)),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::WouldBlock
                    | io::ErrorKind::TimedOut
                    | io::ErrorKind::Interrupted
                    | io::ErrorKind::ConnectionRefused
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
