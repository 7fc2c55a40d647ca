//! Descriptors of this process.

use crate::engine::{Descriptors, Reserve};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;

/// As many descriptors as the system lets this process have, and one of them in reserve.
pub(crate) fn descriptors() -> Descriptors {
    Descriptors { limit: raise_descriptor_limit(), reserve: Box::new(KernelReserve::new()) }
}

/// As many descriptors as the system lets this process have; returns how many that are.
pub(crate) fn raise_descriptor_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid for writes.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return 0;
    }
    let raised = libc::rlimit { rlim_cur: limit.rlim_max, rlim_max: limit.rlim_max };
    // SAFETY: `raised` is valid for reads.
    let status = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) };
    if status == 0 { raised.rlim_cur } else { limit.rlim_cur }
}

/// The descriptor, while it is there.
#[derive(Debug)]
pub(crate) struct KernelReserve(Option<OwnedFd>);

impl KernelReserve {
    /// Keeps a descriptor from here on, if there is one.
    pub(crate) fn new() -> Self {
        let mut reserve = Self(None);
        reserve.restore();
        reserve
    }
}

impl Reserve for KernelReserve {
    fn give_up(&mut self) -> bool {
        self.0.take().is_some()
    }

    fn restore(&mut self) {
        if self.0.is_none() {
            self.0 = UnixDatagram::unbound().ok().map(OwnedFd::from);
        }
    }
}
