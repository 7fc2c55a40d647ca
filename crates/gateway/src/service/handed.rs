//! Sockets from the service manager: of a socket unit, or stored over a restart.
//!
//! They are matched by address and kind, not by name: a listener on an address takes the socket
//! that exists already, with the connections in its queue.

use super::handover;
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
    /// Channel to the process that this one replaces.
    channel: Option<OwnedFd>,
}

/// Returns a name that the manager accepts, for a socket on `address`.
pub(crate) fn name_of(kind: &str, address: SocketAddr) -> String {
    format!("{kind}-{address}").replace(':', "_")
}

/// Takes the listener on `address`, if there is one. It is nonblocking.
pub(crate) fn listener(address: SocketAddr) -> Option<TcpListener> {
    take(Type::STREAM, address, true).map(|handed| handed.socket.into())
}

/// Takes the datagram socket on `address`, if there is one, and the channel to the process that
/// this one replaces. Both are nonblocking. The manager removes the socket from its store unless
/// it is `kept`.
pub(crate) fn datagrams(address: SocketAddr, kept: bool) -> Option<(UdpSocket, Option<OwnedFd>)> {
    let Handed { socket, channel, .. } = take(Type::DGRAM, address, kept)?;
    Some((socket.into(), channel))
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

fn take(kind: Type, address: SocketAddr, kept: bool) -> Option<Handed> {
    let mut all = all();
    let index = all.iter().position(|one| one.kind == kind && one.address == address)?;
    let handed = all.remove(index);
    let name = handed.name.clone();
    tracing::info!(name, %address, "using an open socket");
    if !kept {
        USED.lock().unwrap_or_else(PoisonError::into_inner).push(name);
    }
    Some(handed)
}

fn all() -> std::sync::MutexGuard<'static, Vec<Handed>> {
    let mut all = HANDED.lock().unwrap_or_else(PoisonError::into_inner);
    ASKED.call_once(|| {
        *all = from_manager();
        all.extend(handover::sockets().into_iter().filter_map(from_process));
    });
    all
}

/// Returns a socket of the process that this one replaces.
fn from_process((socket, channel): (OwnedFd, Option<OwnedFd>)) -> Option<Handed> {
    let (socket, name) = (Socket::from(socket), String::from("handed over"));
    let looked = look_at(&socket);
    let (kind, address) =
        looked.inspect_err(|error| tracing::warn!(%error, "socket not taken over")).ok()?;
    Some(Handed { socket, name, kind, address, channel })
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
            Ok((kind, address)) => Some(Handed { socket, name, kind, address, channel: None }),
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
    all().push(Handed { socket, name: name.into(), kind, address, channel: None });
}
