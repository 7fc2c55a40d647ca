//! Version: the response to a datagram of an unsupported version (ASC-1.5).
//!
//! ```text
//!   0  0                          version 0 and kind 0, in every version of the protocol
//!   1  octets 1 to 7 of the datagram that it answers
//!   8  lowest version, highest version that the sender understands
//!  10  tag, 16 octets
//! ```
//!
//! It is not authenticated: the tag is a checksum in every suite. A terminal only reports it.

use crate::checksum::{VERSION_KEY, tag_fits, write_tag};
use crate::error::OpenError;
use crate::wire::{TAG_LEN, VERSION};

/// Octets of a Version.
pub(crate) const VERSION_LEN: usize = 10 + TAG_LEN;

/// Returns the Version in response to `datagram`. `None` for a Version, which has no response, and
/// for a datagram that is smaller than the response.
pub(crate) fn answer(datagram: &[u8]) -> Option<Vec<u8>> {
    if datagram.len() < VERSION_LEN || datagram[0] >> 4 == 0 {
        return None;
    }
    let mut out = vec![0; VERSION_LEN];
    out[1..8].copy_from_slice(&datagram[1..8]);
    out[8..10].fill(VERSION);
    write_tag(VERSION_KEY, &mut out);
    Some(out)
}

/// Decodes a Version in response to a datagram that begins with `sent`; returns what the terminal
/// reports.
///
/// # Errors
/// If it is damaged, responds to another datagram, or names a supported version.
pub(crate) fn read(datagram: &[u8], sent: &[u8]) -> Result<OpenError, OpenError> {
    if datagram.len() != VERSION_LEN || datagram[0] != 0 {
        return Err(OpenError::Malformed("version message"));
    }
    if !tag_fits(VERSION_KEY, datagram) {
        return Err(OpenError::Tag);
    }
    let (lowest, highest) = (datagram[8], datagram[9]);
    if datagram[1..8] != sent[1..8] || (lowest..=highest).contains(&VERSION) {
        return Err(OpenError::Unexpected);
    }
    Ok(OpenError::PeerVersions { lowest, highest, own: VERSION })
}
