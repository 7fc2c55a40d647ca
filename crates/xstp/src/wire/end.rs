//! END, ENDAK and RST.
//!
//! ```text
//! published   +---------------+
//!             |  incarnation  |
//!             +---------------+
//! sealed      +---------------+---------------+---------------+---------------+
//!             |                          incarnation                          |
//!             +---------------------------------------------------------------+
//! ```
//!
//! The sequence number of END is VT(S), one after the last packet of the direction. ENDAK repeats
//! it.

use super::octets::{Reader, Sink};
use super::{DecodeError, Profile};

/// END, ENDAK and RST: the session to which they apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Incarnation of the BGN, as in [`Begin`](super::Begin::incarnation).
    pub incarnation: u32,
}

impl End {
    pub(super) fn encode(self, profile: &Profile, sink: &mut impl Sink) {
        match profile {
            Profile::Published(_) => sink.octet(self.incarnation as u8),
            Profile::Sealed => sink.u32(self.incarnation),
        }
    }

    pub(super) fn decode(profile: &Profile, reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let incarnation = match profile {
            Profile::Published(_) => u32::from(reader.octet()?),
            Profile::Sealed => reader.u32()?,
        };
        Ok(Self { incarnation })
    }
}
