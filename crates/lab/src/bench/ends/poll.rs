//! Readiness of many sockets on one thread.

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use std::io;
use std::os::fd::AsFd;

/// Maximum number of events of one wait.
const EVENTS: usize = 256;

/// A set of sockets, each with a number.
pub(in crate::bench) struct Poll {
    epoll: Epoll,
    events: Vec<EpollEvent>,
}

impl Poll {
    pub(in crate::bench) fn new() -> io::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        Ok(Self { epoll, events: vec![EpollEvent::empty(); EVENTS] })
    }

    pub(in crate::bench) fn add(
        &self,
        socket: impl AsFd,
        number: usize,
        of: EpollFlags,
    ) -> io::Result<()> {
        Ok(self.epoll.add(socket, EpollEvent::new(of, number as u64))?)
    }

    pub(super) fn change(
        &self,
        socket: impl AsFd,
        number: usize,
        of: EpollFlags,
    ) -> io::Result<()> {
        Ok(self.epoll.modify(socket, &mut EpollEvent::new(of, number as u64))?)
    }

    pub(super) fn remove(&self, socket: impl AsFd) -> io::Result<()> {
        Ok(self.epoll.delete(socket)?)
    }

    /// Waits for at most `milliseconds`, and returns the numbers of sockets that are ready.
    pub(in crate::bench) fn wait(&mut self, milliseconds: u8) -> io::Result<Vec<usize>> {
        let timeout = EpollTimeout::from(milliseconds);
        match self.epoll.wait(&mut self.events, timeout) {
            Ok(count) => Ok(self.events[..count].iter().map(|one| one.data() as usize).collect()),
            Err(nix::errno::Errno::EINTR) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns whether the error means that the socket is not ready.
pub(in crate::bench) fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
