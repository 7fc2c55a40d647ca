//! A descriptor that is kept so that one more can be had when the process has no other left.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;

/// The descriptor, while it is there.
#[derive(Debug)]
pub(crate) struct Reserve(Option<OwnedFd>);

impl Reserve {
    pub(crate) fn new() -> Self {
        let mut reserve = Self(None);
        reserve.restore();
        reserve
    }

    /// Closes the descriptor, so that the next call that needs one gets it; false when it has been
    /// given up already.
    pub(crate) fn give_up(&mut self) -> bool {
        self.0.take().is_some()
    }

    /// Opens it again, if that can be done now.
    pub(crate) fn restore(&mut self) {
        if self.0.is_none() {
            self.0 = UnixDatagram::unbound().ok().map(OwnedFd::from);
        }
    }
}

/// Whether a call failed because there are no descriptors, of this process or of the system.
pub(crate) fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}
