//! File descriptors of this process.

use crate::engine::{Descriptors, Reserve};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;

/// Raises the limit on descriptors to its maximum, of which each of `loops` gets an equal part, and
/// reserves one descriptor.
pub(crate) fn descriptors(loops: u32) -> Descriptors {
    let limit = raise_descriptor_limit() / u64::from(loops.max(1));
    Descriptors { limit, reserve: Box::new(KernelReserve::new()) }
}

/// Raises the limit on descriptors to the maximum for this process and returns it.
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

/// A reserved descriptor; `None` while it is given up.
#[derive(Debug)]
pub(crate) struct KernelReserve(Option<OwnedFd>);

impl KernelReserve {
    /// Reserves a descriptor, if one is available.
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
