//! SD: the payload of one packet, under the header's number.
//!
//! ```text
//! both        +----------------------------------------------------------------
//!             |  payload, to the end of the segment, perhaps empty         ...
//!             +----------------------------------------------------------------
//! ```
//!
//! The payload is the last part: its length is what the datagram leaves. An empty payload is
//! what stands under a number that was sent once and is no longer needed.

use super::DecodeError;
use super::octets::Reader;

/// The payload when there is SD; otherwise nothing may be left.
pub(super) fn decode<'a>(
    has_data: bool,
    reader: Reader<'a>,
) -> Result<Option<&'a [u8]>, DecodeError> {
    match (has_data, reader.left()) {
        (true, payload) => Ok(Some(payload)),
        (false, []) => Ok(None),
        (false, trailing) => Err(DecodeError::Trailing { found: trailing.len() }),
    }
}
