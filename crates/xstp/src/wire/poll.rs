//! POLL.
//!
//! ```text
//! published   the sequence number is the timestamp of the header; with SD:
//!             +-----------------------------------------------+
//!             |                     VT(S)                     |
//!             +-----------------------------------------------+
//! sealed      +---------------------------------------------------------------+
//!             |                           timestamp                           |
//!             +---------------------------------------------------------------+
//!             |  seq, variable-length     | in a segment with SD: ahead,      |
//!             |                           | variable-length                   |
//!             +---------------------------+-----------------------------------+
//! ```
//!
//! Without SD the number of the header is VT(S). With SD it is that of the packet; `ahead` is the
//! distance from the packet after it to VT(S), zero for the newest packet.
//!
//! POLL and BGN have a timestamp; a segment with both has it once, after BGN.

use super::octets::{Reader, Sink};
use super::{DecodeError, Part, Profile};
use crate::seq::Seq24;

/// POLL: requests a STAT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Poll {
    /// POLL sequence number, VT(PS), modulo 2³². Sealed, it increases by one per POLL. As published
    /// it is the timestamp in milliseconds, or one more than that of the last POLL if that is
    /// higher.
    pub seq: u32,
    /// Sequence number of the next new packet: VT(S).
    pub next: Seq24,
}

impl Poll {
    pub(super) fn encode(&self, profile: &Profile, data: Option<Seq24>, sink: &mut impl Sink) {
        if let Profile::Sealed = profile {
            sink.varint(self.seq);
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
        let seq = match profile {
            Profile::Published(_) => timestamp,
            Profile::Sealed => reader.varint()?,
        };
        if !has_data {
            return Ok(Self { seq, next: number });
        }
        let next = match profile {
            Profile::Published(_) => reader.number()?,
            Profile::Sealed => number.next().add(reader.varint_up_to(Seq24::HALF - 1, "ahead")?),
        };
        let poll = Self { seq, next };
        reader.in_part(Part::Poll).check(poll.ahead_of(number), Seq24::HALF - 1, "ahead")?;
        Ok(poll)
    }

    /// Distance from the packet after `number` to VT(S).
    pub(super) fn ahead_of(&self, number: Seq24) -> u32 {
        self.next.distance(number.next())
    }
}
