//! Effects of the kernel on a gateway's calls without a fault of the peer: partial reads and
//! writes, interruptions, and errors.

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
/// `setsockopt`). Those of `accept` and `recvmsg` affect no connection; any other ends one.
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

/// Probabilities of failing calls, and the affected tasks.
#[derive(Clone, Debug, Default)]
pub(in crate::simulation) struct Faults {
    /// Number of reads and writes in 1,000 that transfer a part, are interrupted or find full
    /// buffers.
    pub(in crate::simulation) partial: u64,
    /// Number of failures in 10,000, by call.
    pub(in crate::simulation) errors: BTreeMap<Call, u64>,
    /// Tasks with a failed call on one of their sockets, or to whose server connecting failed.
    pub(in crate::simulation) affected: BTreeSet<usize>,
    pub(in crate::simulation) affected_servers: BTreeSet<SocketAddr>,
}

impl Faults {
    /// Ends the faults; the affected tasks stay recorded.
    pub(in crate::simulation) fn end_faults(&mut self) {
        self.partial = 0;
        self.errors.clear();
    }

    /// Returns how many of `all` bytes a call transfers.
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
    /// Returns whether this call is interrupted.
    pub(in crate::simulation) fn is_interrupted(&mut self) -> bool {
        self.faults.is_partial(&mut self.rng)
    }

    /// Returns the error with which `call` fails now, if it does.
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

    /// Returns an error as [`Net::fault`] does, for a call on the socket `id`, and records its
    /// task.
    pub(in crate::simulation) fn fault_of(
        &mut self,
        call: Call,
        id: SocketId,
    ) -> Option<io::Error> {
        let (conn, end) = conn_of(id);
        // A failing call on a closed connection would affect no task.
        if !self.conns[conn].is_connected(end) {
            return None;
        }
        let error = self.fault(call)?;
        for end in &self.conns[conn].ends {
            if let Owner::Task(task) = end.owner {
                self.faults.affected.insert(task);
            }
        }
        Some(error)
    }

    /// Returns an error as [`Net::fault_of`] does, of a kind that ends the connection.
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
