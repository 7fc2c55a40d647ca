//! POLL.
//!
//! ```text
//! published   the count is the header's timestamp; in a segment with SD:
//!             +-----------------------------------------------+
//!             |                     VT(S)                     |
//!             +-----------------------------------------------+
//! sealed      +---------------------------------------------------------------+
//!             |                             stamp                             |
//!             +---------------------------------------------------------------+
//!             |  count, variable-length   | in a segment with SD: ahead,      |
//!             |                           | variable-length                   |
//!             +---------------------------+-----------------------------------+
//! ```
//!
//! Without SD the header's number is VT(S). With SD it is the packet's own, and VT(S) is one
//! more when the packet is the newest: `ahead` is what is left between them, mostly zero.
//!
//! The stamp is part of POLL and of BGN; a segment with both carries it once, after BGN.

use super::octets::{Reader, Sink};
use super::{DecodeError, Part, Profile};
use crate::seq::Seq24;

/// POLL: asks for a STAT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Poll {
    /// Tells this POLL from all others of the connection: VT(PS), compared modulo 2³². Sealed it
    /// rises by one for each POLL. As published it is the timestamp, in milliseconds, pushed
    /// ahead where need be so that each POLL's is above the last one's.
    pub count: u32,
    /// The number of the next new packet: VT(S).
    pub next: Seq24,
}

impl Poll {
    pub(super) fn encode(&self, profile: &Profile, data: Option<Seq24>, sink: &mut impl Sink) {
        if let Profile::Sealed = profile {
            sink.varint(self.count);
        }
        let Some(number) = data else { return };
        match profile {
            Profile::Published(_) => sink.number(self.next),
            Profile::Sealed => sink.varint(self.ahead_of(number)),
        }
    }

    pub(super) fn decode(
        profile: &Profile,
        number: Seq24,
        has_data: bool,
        timestamp: u32,
        reader: &mut Reader<'_>,
    ) -> Result<Self, DecodeError> {
        let count = match profile {
            Profile::Published(_) => timestamp,
            Profile::Sealed => reader.varint()?,
        };
        if !has_data {
            return Ok(Self { count, next: number });
        }
        let next = match profile {
            Profile::Published(_) => reader.number()?,
            Profile::Sealed => number.next().add(reader.varint_up_to(Seq24::HALF - 1, "ahead")?),
        };
        let poll = Self { count, next };
        reader.in_part(Part::Poll).check(poll.ahead_of(number), Seq24::HALF - 1, "ahead")?;
        Ok(poll)
    }

    /// How far VT(S) is beyond the number after that of the segment's packet.
    pub(super) fn ahead_of(&self, number: Seq24) -> u32 {
        self.next.distance(number.next())
    }
}
