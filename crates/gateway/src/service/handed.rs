//! Sockets from the service manager: of a socket unit, or stored over a restart.
//!
//! They are matched by address and kind, not by name: a listener on an address takes the socket
//! that exists already, with the connections in its queue.

use socket2::{SockRef, Socket, Type};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::{Mutex, Once, PoisonError};

/// Sockets that have not been taken yet.
static HANDED: Mutex<Vec<Handed>> = Mutex::new(Vec::new());
/// Names of sockets in use that are not to be stored again.
static USED: Mutex<Vec<String>> = Mutex::new(Vec::new());
static ASKED: Once = Once::new();

#[derive(Debug)]
struct Handed {
    socket: Socket,
    name: String,
    kind: Type,
    address: SocketAddr,
}

/// Returns a name that the manager accepts, for a socket on `address`.
pub(crate) fn name_of(kind: &str, address: SocketAddr) -> String {
    format!("{kind}-{address}").replace(':', "_")
}

/// Takes the listener on `address`, if there is one. It is nonblocking.
pub(crate) fn listener(address: SocketAddr) -> Option<TcpListener> {
    take(Type::STREAM, address, true).map(TcpListener::from)
}

/// Takes the datagram socket on `address`, if there is one. It is nonblocking. The manager
/// removes it from its store unless it is `kept`.
pub(crate) fn datagrams(address: SocketAddr, kept: bool) -> Option<UdpSocket> {
    take(Type::DGRAM, address, kept).map(UdpSocket::from)
}

/// Closes sockets that were not taken; returns the names that the manager is to remove.
pub(crate) fn close_rest() -> Vec<String> {
    let rest = std::mem::take(&mut *all());
    for Handed { name, address, .. } in &rest {
        tracing::info!(name, %address, "socket of the service manager closed: not configured any more");
    }
    let used = std::mem::take(&mut *USED.lock().unwrap_or_else(PoisonError::into_inner));
    rest.into_iter().map(|handed| handed.name).chain(used).collect()
}

fn take(kind: Type, address: SocketAddr, kept: bool) -> Option<Socket> {
    let mut all = all();
    let index = all.iter().position(|one| one.kind == kind && one.address == address)?;
    let Handed { socket, name, .. } = all.remove(index);
    tracing::info!(name, %address, "using a socket of the service manager");
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
            tracing::warn!(%error, "sockets of the service manager not taken");
            return Vec::new();
        }
    };
    let look = |(number, name): (i32, String)| {
        // SAFETY: the manager has opened it for this process, which takes each only here, once.
        let socket = Socket::from(unsafe { OwnedFd::from_raw_fd(number) });
        match look_at(&socket) {
            Ok((kind, address)) => Some(Handed { socket, name, kind, address }),
            Err(error) => {
                tracing::warn!(%error, name, "descriptor of the service manager ignored: not a usable socket");
                None
            }
        }
    };
    found.filter_map(look).collect()
}

/// Returns the kind and address of a socket.
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

/// Adds `socket` as if the manager had passed it under `name`.
#[cfg(test)]
pub(crate) fn hand_over(socket: UdpSocket, name: &str) {
    let socket = Socket::from(socket);
    let (kind, address) = look_at(&socket).expect("a socket of IP");
    all().push(Handed { socket, name: name.into(), kind, address });
}
