//! Sockets that the service manager hands over: from a socket unit, or kept over a restart.
//!
//! They are known by their address and kind, not by their names: whoever wants to listen on an
//! address gets the socket that is there already, with all that waits in its queue.

use socket2::{SockRef, Socket, Type};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::{Mutex, Once, PoisonError};

/// Those that nobody has wanted yet.
static HANDED: Mutex<Vec<Handed>> = Mutex::new(Vec::new());
/// The names of those that are used, and that are not to be handed over again.
static USED: Mutex<Vec<String>> = Mutex::new(Vec::new());
static ASKED: Once = Once::new();

#[derive(Debug)]
struct Handed {
    socket: Socket,
    name: String,
    kind: Type,
    address: SocketAddr,
}

/// A name that the manager takes, for a socket on `address`.
pub(crate) fn name_of(kind: &str, address: SocketAddr) -> String {
    format!("{kind}-{address}").replace(':', "_")
}

/// The listener on `address` that was handed over, if one was. It does not block.
pub(crate) fn listener(address: SocketAddr) -> Option<TcpListener> {
    take(Type::STREAM, address, true).map(TcpListener::from)
}

/// The datagram socket on `address` that was handed over, if one was. It does not block. The
/// manager is not to keep it any longer unless it is `kept`.
pub(crate) fn datagrams(address: SocketAddr, kept: bool) -> Option<UdpSocket> {
    take(Type::DGRAM, address, kept).map(UdpSocket::from)
}

/// Closes what nobody has wanted; returns the names of what the manager is not to keep any longer.
pub(crate) fn close_rest() -> Vec<String> {
    let rest = std::mem::take(&mut *all());
    for Handed { name, address, .. } in &rest {
        tracing::info!(name, %address, "a socket that was handed over is not wanted any more");
    }
    let used = std::mem::take(&mut *USED.lock().unwrap_or_else(PoisonError::into_inner));
    rest.into_iter().map(|handed| handed.name).chain(used).collect()
}

fn take(kind: Type, address: SocketAddr, kept: bool) -> Option<Socket> {
    let mut all = all();
    let index = all.iter().position(|one| one.kind == kind && one.address == address)?;
    let Handed { socket, name, .. } = all.remove(index);
    tracing::info!(name, %address, "goes on with a socket that was handed over");
    if !kept {
        USED.lock().unwrap_or_else(PoisonError::into_inner).push(name);
    }
    Some(socket)
}

fn all() -> std::sync::MutexGuard<'static, Vec<Handed>> {
    let mut all = HANDED.lock().unwrap_or_else(PoisonError::into_inner);
    ASKED.call_once(|| *all = from_manager());
    all
}

fn from_manager() -> Vec<Handed> {
    let found = match sd_notify::listen_fds_with_names() {
        Ok(found) => found,
        Err(error) => {
            tracing::warn!(%error, "sockets that were handed over cannot be taken");
            return Vec::new();
        }
    };
    let look = |(number, name): (i32, String)| {
        // SAFETY: the manager has opened it for this process, which takes each only here, once.
        let socket = Socket::from(unsafe { OwnedFd::from_raw_fd(number) });
        match look_at(&socket) {
            Ok((kind, address)) => Some(Handed { socket, name, kind, address }),
            Err(error) => {
                tracing::warn!(%error, name, "what was handed over is no socket of ours");
                None
            }
        }
    };
    found.filter_map(look).collect()
}

/// What kind of socket it is, and where.
fn look_at(socket: &Socket) -> std::io::Result<(Type, SocketAddr)> {
    let reference = SockRef::from(socket);
    let kind = reference.r#type()?;
    let address = reference.local_addr()?.as_socket();
    let address = address.ok_or_else(|| std::io::Error::other("it has no address of IP"))?;
    if kind == Type::STREAM && !reference.is_listener()? {
        return Err(std::io::Error::other("it does not listen"));
    }
    reference.set_nonblocking(true)?;
    Ok((kind, address))
}

/// As if the manager had handed over `socket`, kept as `name`.
#[cfg(test)]
pub(crate) fn hand_over(socket: UdpSocket, name: &str) {
    let socket = Socket::from(socket);
    let (kind, address) = look_at(&socket).expect("a socket of IP");
    all().push(Handed { socket, name: name.into(), kind, address });
}
