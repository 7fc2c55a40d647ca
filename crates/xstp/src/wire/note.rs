//! NOTE: octets of the upper layer that are piggybacked.
//!
//! ```text
//! sealed, in every segment with POLL or STAT
//!             +-------------------------------+----
//!             |  length, variable-length      |  octets ...
//!             +-------------------------------+----
//! published   there is none
//! ```

use super::octets::{Reader, Sink};
use super::{DecodeError, Kinds, Profile};

/// Whether segments of these types have a NOTE, which may be empty.
pub(super) const fn is_carried(profile: &Profile, kinds: Kinds) -> bool {
    match profile {
        Profile::Published(_) => false,
        Profile::Sealed => kinds.intersects(Kinds::POLL.and(Kinds::STAT)),
    }
}

pub(super) fn encode(note: &[u8], sink: &mut impl Sink) {
    // A segment is never longer than a datagram.
    sink.varint(note.len() as u32);
    sink.put(note);
}

pub(super) fn decode<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], DecodeError> {
    let len = reader.varint()?;
    reader.take(usize::try_from(len).unwrap_or(usize::MAX))
}
