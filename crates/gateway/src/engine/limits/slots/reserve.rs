//! Shortage of descriptors.

use std::io;

/// Whether a call failed because the process or the system has no descriptors.
pub(crate) fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}
