//! SD: payload of the packet whose sequence number is in the header.
//!
//! ```text
//! both        +----------------------------------------------------------------
//!             |  payload, to the end of the segment, perhaps empty         ...
//!             +----------------------------------------------------------------
//! ```
//!
//! The payload is the last part and extends to the end of the datagram. A packet that is no longer
//! needed is retransmitted with an empty payload.

use super::DecodeError;
use super::octets::Reader;

/// Decodes the payload if there is SD; otherwise no octets may be left.
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
