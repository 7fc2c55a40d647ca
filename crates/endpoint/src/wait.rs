//! Waiting for a socket, a wake-up or a time.

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::time::TimeSpec;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;
use units::Span;

/// Wakes the endpoint's thread from others.
#[derive(Debug)]
pub(crate) struct Waker(EventFd);

impl Waker {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?))
    }

    pub(crate) fn wake(&self) {
        // A full counter wakes the thread as well.
        let _ = self.0.write(1);
    }

    /// Waits until `socket` is readable (or writable, if `writable`), a wake-up, or for `time`.
    pub(crate) fn wait(
        &self,
        socket: &impl AsFd,
        writable: bool,
        time: Option<Span>,
    ) -> io::Result<()> {
        let mut flags = PollFlags::POLLIN;
        flags.set(PollFlags::POLLOUT, writable);
        let mut fds =
            [PollFd::new(socket.as_fd(), flags), PollFd::new(self.0.as_fd(), PollFlags::POLLIN)];
        let time = time.map(|time| TimeSpec::from(Duration::from_nanos(time.as_nanos())));
        match ppoll(&mut fds, time, None) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        // Empty if another event ended the wait.
        let _ = self.0.read();
        Ok(())
    }
}
