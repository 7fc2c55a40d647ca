//! USTAT.
//!
//! ```text
//! published   +---------------+-----------------------------------------------+
//!             | boundaries: L |                     N(R)                      |
//!             +---------------+-------------------------------+---------------+
//!             |                      e1                       |  ... eL, L is even and above 0
//!             +-----------------------------------------------+----
//! sealed      +-----------------------------------------------+
//!             |                     N(R)                      |
//!             +-----------------------------------------------+---------------+
//!             |  skip, number of lengths (odd), lengths: variable-length      |
//!             +---------------------------------------------------------------+
//! ```
//!
//! Pairs of boundaries are the gaps: the first missing packet, and the one after the last. Gaps
//! that were detected within the hold time share a segment.

use super::octets::{Reader, Sink};
use super::runs::{Run, RunList};
use super::{DecodeError, EncodeError, Part, Profile};
use crate::seq::Seq24;

/// USTAT: gaps that the receiver has just detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ustat<'a> {
    received_below: Seq24,
    gaps: RunList<'a>,
}

impl<'a> Ustat<'a> {
    /// A USTAT with N(R) `received_below`; `gaps` are the missing runs of the list. Returns `None`
    /// if the list is empty or does not end with a gap.
    pub fn new(received_below: Seq24, gaps: RunList<'a>) -> Option<Self> {
        (gaps.len() % 2 == 1).then_some(Self { received_below, gaps })
    }

    /// N(R), "VR(R)": all packets below it are received.
    pub const fn received_below(&self) -> Seq24 {
        self.received_below
    }

    /// Gaps in order, at least one.
    pub fn gaps(&self) -> impl Iterator<Item = Run> + Clone + use<'a> {
        self.gaps.runs(self.received_below).filter(|run| run.missing)
    }

    pub(super) fn encode(
        &self,
        profile: &Profile,
        sink: &mut impl Sink,
    ) -> Result<(), EncodeError> {
        match profile {
            Profile::Published(_) => {
                sink.octet(self.gaps.boundary_count()?);
                sink.number(self.received_below);
                self.gaps.encode_boundaries(self.received_below, sink);
            }
            Profile::Sealed => {
                sink.number(self.received_below);
                sink.varint(self.gaps.skip());
                self.gaps.encode_lengths(sink);
            }
        }
        Ok(())
    }

    pub(super) fn decode(profile: &Profile, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let (received_below, gaps) = match profile {
            Profile::Published(_) => {
                let count = reader.octet()?;
                let received_below = reader.number()?;
                (received_below, RunList::decode_boundaries(received_below, count, reader)?)
            }
            Profile::Sealed => {
                let received_below = reader.number()?;
                let skip = reader.varint_up_to(Seq24::HALF, "skip")?;
                (received_below, RunList::decode_lengths(skip, reader)?)
            }
        };
        let found = gaps.len();
        Self::new(received_below, gaps).ok_or(DecodeError::ListLength { part: Part::Ustat, found })
    }
}
