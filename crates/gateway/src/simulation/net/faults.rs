//! What the kernel does to a gateway's calls although nothing is wrong with them: parts instead of
//! the whole, interruptions, and errors.

use super::tcp::Owner;
use super::{Net, conn_of};
use crate::engine::SocketId;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use units::RngStream;

/// A call that may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::simulation) enum Call {
    Accept,
    Connect,
    Read,
    Write,
    Shutdown,
    Prepare,
    Watch,
    LocalAddress,
    Receive,
}

/// The errors of each call (man pages of `accept`, `connect`, `tcp`, `ip`, `udp`, `epoll_ctl`,
/// `setsockopt`). Those of `accept` and `recvmsg` concern nobody; any other breaks a connection.
pub(in crate::simulation) const ERRORS: [(Call, &[i32]); 9] = [
    (
        Call::Accept,
        &[
            libc::ECONNABORTED,
            libc::EINTR,
            libc::EPROTO,
            libc::EPERM,
            libc::ENETDOWN,
            libc::ENETUNREACH,
            libc::EHOSTDOWN,
            libc::EHOSTUNREACH,
            libc::ENOPROTOOPT,
            libc::EOPNOTSUPP,
            libc::ETIMEDOUT,
            libc::ENOBUFS,
            libc::ENOMEM,
            libc::ENFILE,
        ],
    ),
    (
        Call::Connect,
        &[
            libc::EADDRNOTAVAIL,
            libc::EAGAIN,
            libc::EACCES,
            libc::EPERM,
            libc::ENETUNREACH,
            libc::EHOSTUNREACH,
            libc::ENETDOWN,
            libc::EAFNOSUPPORT,
            libc::ENOBUFS,
            libc::ENOMEM,
            libc::ENFILE,
        ],
    ),
    (
        Call::Read,
        &[
            libc::ECONNRESET,
            libc::ETIMEDOUT,
            libc::EHOSTUNREACH,
            libc::ENETUNREACH,
            libc::EPIPE,
            libc::EIO,
        ],
    ),
    (
        Call::Write,
        &[
            libc::EPIPE,
            libc::ECONNRESET,
            libc::ETIMEDOUT,
            libc::EHOSTUNREACH,
            libc::ENETDOWN,
            libc::EACCES,
        ],
    ),
    (Call::Shutdown, &[libc::ENOTCONN]),
    (Call::Prepare, &[libc::EINVAL, libc::ENOBUFS, libc::ENOMEM]),
    (Call::Watch, &[libc::ENOMEM, libc::ENOSPC]),
    (Call::LocalAddress, &[libc::ENOTCONN, libc::ENOBUFS]),
    (Call::Receive, &[libc::ECONNREFUSED, libc::EHOSTUNREACH, libc::ENOMEM, libc::EINTR]),
];

/// How often calls fail, and whom that has hit.
#[derive(Clone, Debug, Default)]
pub(in crate::simulation) struct Faults {
    /// How often reads and writes move less than they could, and calls are interrupted or find
    /// full buffers, in a thousand.
    pub(in crate::simulation) partial: u64,
    /// How often each call fails, in ten thousand.
    pub(in crate::simulation) errors: BTreeMap<Call, u64>,
    /// Tasks of whose sockets a call has failed, and servers to which connecting has.
    pub(in crate::simulation) struck: BTreeSet<usize>,
    pub(in crate::simulation) struck_servers: BTreeSet<SocketAddr>,
}

impl Faults {
    /// The storm is over; who was hit stays known.
    pub(in crate::simulation) fn calm_down(&mut self) {
        self.partial = 0;
        self.errors.clear();
    }

    /// How many of `all` bytes a call moves.
    pub(super) fn part_of(&self, rng: &mut RngStream, all: usize) -> usize {
        match self.is_partial(rng) && all > 0 {
            true => 1 + rng.below(all as u64) as usize,
            false => all,
        }
    }

    fn is_partial(&self, rng: &mut RngStream) -> bool {
        self.partial > 0 && rng.below(1000) < self.partial
    }
}

impl Net {
    /// Whether this call is one of those that are interrupted.
    pub(in crate::simulation) fn is_interrupted(&mut self) -> bool {
        self.faults.is_partial(&mut self.rng)
    }

    /// The error with which `call` fails now, if it does.
    pub(in crate::simulation) fn fault(&mut self, call: Call) -> Option<io::Error> {
        let often = self.faults.errors.get(&call).copied().filter(|often| *often > 0)?;
        if self.rng.below(10_000) >= often {
            return None;
        }
        let (_, errors) = ERRORS.iter().find(|(of, _)| *of == call)?;
        let error = errors[self.rng.below(errors.len() as u64) as usize];
        self.note(error as u64);
        Some(io::Error::from_raw_os_error(error))
    }

    /// As [`Net::fault`], for a call on the socket `id`, whose task is hit then.
    pub(in crate::simulation) fn fault_of(
        &mut self,
        call: Call,
        id: SocketId,
    ) -> Option<io::Error> {
        let (conn, end) = conn_of(id);
        // Without that, this would be a call on a connection that is over anyway.
        if !self.conns[conn].is_connected(end) {
            return None;
        }
        let error = self.fault(call)?;
        for end in &self.conns[conn].ends {
            if let Owner::Task(task) = end.owner {
                self.faults.struck.insert(task);
            }
        }
        Some(error)
    }

    /// As [`Net::fault_of`], for an error that ends the connection.
    pub(in crate::simulation) fn fatal_fault(
        &mut self,
        call: Call,
        id: SocketId,
    ) -> Option<io::Error> {
        let error = self.fault_of(call, id)?;
        let (conn, end) = conn_of(id);
        self.conns[conn].break_down(self.now, end);
        self.touch(conn);
        Some(error)
    }
}
