//! Descriptors that have run out.

use std::io;

/// Whether a call failed because there are no descriptors, of this process or of the system.
pub(crate) fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}
