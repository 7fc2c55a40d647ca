//! Waiting for packets, commands or a time, whichever is first.

use std::io;
use std::os::fd::RawFd;
use units::Span;

/// Descriptors to wait on. The first is that of the commands, the rest are the ports.
pub(super) struct Waiter {
    descriptors: Vec<libc::pollfd>,
}

impl Waiter {
    pub(super) fn new() -> Self {
        Self { descriptors: Vec::new() }
    }

    /// Sets the descriptors to wait on.
    pub(super) fn set(&mut self, bell: RawFd, ports: &[RawFd]) {
        self.descriptors.clear();
        self.descriptors.extend([&bell].into_iter().chain(ports).map(|&fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        }));
    }

    /// Waits for at most `longest`; on the ports only if `ports`. Returns whether a command
    /// arrived.
    pub(super) fn wait(&mut self, longest: Span, ports: bool) -> io::Result<bool> {
        let count = if ports { self.descriptors.len() } else { 1 };
        let time = libc::timespec {
            tv_sec: (longest.as_nanos() / 1_000_000_000) as _,
            tv_nsec: (longest.as_nanos() % 1_000_000_000) as libc::c_long,
        };
        // SAFETY: the first `count` descriptors are valid to read and write, `time` to read;
        // no signal mask is given.
        let ready = unsafe {
            libc::ppoll(
                self.descriptors.as_mut_ptr(),
                count as libc::nfds_t,
                &raw const time,
                std::ptr::null(),
            )
        };
        if ready < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::Interrupted { Ok(false) } else { Err(error) };
        }
        Ok(self.descriptors.first().is_some_and(|bell| bell.revents != 0))
    }

    /// Whether the port with this index was readable at the last wait.
    pub(super) fn is_ready(&self, port: usize) -> bool {
        self.descriptors.get(port + 1).is_some_and(|port| port.revents != 0)
    }
}
