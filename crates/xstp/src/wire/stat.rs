//! STAT.
//!
//! ```text
//! published   +---------------+-----------------------------------------------+
//!             | boundaries: L |                     N(R)                      |
//!             +---------------+-----------------------------------------------+
//!             |                          echoed count                         |
//!             +-----------------------------------------------+---------------+
//!             |                      e1                       |  ... eL, L is 0 or above 1
//!             +-----------------------------------------------+----
//!             the window is the header's
//! sealed      +---------------+-----------------------------------------------+
//!             |0 0 0 0 0 0 S A|                     N(R)                      |
//!             +---------------+-----------------------------------------------+
//!             |                         echoed stamp                          |
//!             +---------------------------------------------------------------+
//!             |  echoed count, window: variable-length                        |
//!             +---------------------------------------------------------------+
//!             |  if A: arrival of the POLL                                    |
//!             +---------------------------------------------------------------+
//!             |  if A: octets received so far                                 |
//!             +---------------------------------------------------------------+
//!             |  if S: skip;  number of lengths, lengths: variable-length     |
//!             +---------------------------------------------------------------+
//! ```

use super::header::Header;
use super::octets::{Reader, Sink};
use super::runs::{RunList, Runs};
use super::{DecodeError, EncodeError, Profile};
use crate::seq::Seq24;

const HAS_ARRIVAL: u8 = 0x01;
const HAS_SKIP: u8 = 0x02;

/// STAT: what the receiver has, as of a POLL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat<'a> {
    /// The POLL that it answers.
    pub echo: Echo,
    /// N(R), "VR(R)": everything below it is received.
    pub received_below: Seq24,
    /// How many numbers from N(R) on the receiver accepts; at most
    /// [`Profile::max_window`], what is above is not told.
    pub window: u32,
    /// What the receiver measured; never as published.
    pub arrival: Option<Arrival>,
    /// What is missing and what is received from N(R) on.
    pub runs: RunList<'a>,
}

/// Which POLL a STAT answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// The POLL's count.
    pub count: u32,
    /// The POLL's stamp; as published this is the count.
    pub stamp: u32,
}

/// What the receiver measured when the POLL arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When, on its own clock, in microseconds modulo 2³².
    pub at: u32,
    /// Octets that had arrived by then, modulo 2³²: the whole IP packets of all segments, those
    /// that arrived twice included.
    pub octets: u32,
}

impl<'a> Stat<'a> {
    /// The runs of the list: missing, received, missing, ...
    pub fn runs(&self) -> Runs<'a> {
        self.runs.runs(self.received_below)
    }

    pub(super) fn encode(
        &self,
        profile: &Profile,
        sink: &mut impl Sink,
    ) -> Result<(), EncodeError> {
        match profile {
            Profile::Published(_) => {
                sink.octet(self.runs.boundary_count()?);
                sink.number(self.received_below);
                sink.u32(self.echo.count);
                self.runs.encode_boundaries(self.received_below, sink);
            }
            Profile::Sealed => self.encode_sealed(sink),
        }
        Ok(())
    }

    fn encode_sealed(&self, sink: &mut impl Sink) {
        let arrival = if self.arrival.is_some() { HAS_ARRIVAL } else { 0 };
        let skip = if self.runs.skip() > 0 { HAS_SKIP } else { 0 };
        sink.octet(arrival | skip);
        sink.number(self.received_below);
        sink.u32(self.echo.stamp);
        sink.varint(self.echo.count);
        sink.varint(self.window.min(Seq24::HALF));
        if let Some(arrival) = self.arrival {
            sink.u32(arrival.at);
            sink.u32(arrival.octets);
        }
        if self.runs.skip() > 0 {
            sink.varint(self.runs.skip());
        }
        self.runs.encode_lengths(sink);
    }

    pub(super) fn decode(
        profile: &Profile,
        header: &Header,
        reader: &mut Reader<'a>,
    ) -> Result<Self, DecodeError> {
        match profile {
            Profile::Published(_) => Self::decode_published(header.window, reader),
            Profile::Sealed => Self::decode_sealed(reader),
        }
    }

    fn decode_published(window: u32, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let count = reader.octet()?;
        if count == 1 {
            return Err(DecodeError::ListLength { part: reader.part(), found: 1 });
        }
        let received_below = reader.number()?;
        let echo = reader.u32()?;
        let runs = RunList::decode_boundaries(received_below, count, reader)?;
        let echo = Echo { count: echo, stamp: echo };
        Ok(Self { echo, received_below, window, arrival: None, runs })
    }

    fn decode_sealed(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let flags = reader.octet()?;
        reader.check(u32::from(flags), u32::from(HAS_ARRIVAL | HAS_SKIP), "flags")?;
        let received_below = reader.number()?;
        let stamp = reader.u32()?;
        let echo = Echo { count: reader.varint()?, stamp };
        let window = reader.varint_up_to(Seq24::HALF, "window")?;
        let arrival = if flags & HAS_ARRIVAL != 0 {
            Some(Arrival { at: reader.u32()?, octets: reader.u32()? })
        } else {
            None
        };
        let runs = if flags & HAS_SKIP == 0 {
            RunList::decode_lengths(0, reader)?
        } else {
            let part = reader.part();
            let skip = reader.varint_up_to(Seq24::HALF, "skip")?;
            if skip == 0 {
                return Err(DecodeError::ListOrder { part, expected: 1, found: 0 });
            }
            let runs = RunList::decode_lengths(skip, reader)?;
            if runs.is_empty() {
                return Err(DecodeError::ListLength { part, found: 0 });
            }
            runs
        };
        Ok(Self { echo, received_below, window, arrival, runs })
    }
}
