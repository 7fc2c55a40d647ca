//! NOTE: octets of the layer above that ride along.
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

/// Whether segments of these types carry a NOTE, perhaps an empty one.
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
