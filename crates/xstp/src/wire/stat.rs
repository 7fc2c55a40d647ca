//! STAT.
//!
//! ```text
//! published   +---------------+-----------------------------------------------+
//!             | boundaries: L |                     N(R)                      |
//!             +---------------+-----------------------------------------------+
//!             |                  echoed POLL sequence number                  |
//!             +-----------------------------------------------+---------------+
//!             |                      e1                       |  ... eL, L is 0 or above 1
//!             +-----------------------------------------------+----
//!             the window is the header's
//! sealed      +---------------+-----------------------------------------------+
//!             |0 0 0 0 0 0 S A|                     N(R)                      |
//!             +---------------+-----------------------------------------------+
//!             |                        echoed timestamp                       |
//!             +---------------------------------------------------------------+
//!             |  echoed POLL sequence number, window: variable-length         |
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

/// STAT: complete state of the receiver, in response to a POLL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat<'a> {
    /// POLL that it answers.
    pub echo: Echo,
    /// N(R), "VR(R)": all packets below it are received.
    pub received_below: Seq24,
    /// Receive window: number of packets from N(R) on that the receiver accepts, at most
    /// [`Profile::max_window`].
    pub window: u32,
    /// Measurements of the receiver; never as published.
    pub arrival: Option<Arrival>,
    /// Missing and received packets from N(R) on.
    pub runs: RunList<'a>,
}

/// The POLL that a STAT answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// Sequence number of the POLL.
    pub seq: u32,
    /// Timestamp of the POLL; as published, its sequence number.
    pub timestamp: u32,
}

/// Measurements of the receiver at the arrival of the POLL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    /// Time of the arrival, in microseconds of its clock, modulo 2³².
    pub at: u32,
    /// Octets received by then, modulo 2³²: whole IP packets of all segments, including
    /// duplicates.
    pub octets: u32,
}

impl<'a> Stat<'a> {
    /// Runs of the list: missing, received, missing, ...
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
                sink.u32(self.echo.seq);
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
        sink.u32(self.echo.timestamp);
        sink.varint(self.echo.seq);
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
        let echo = Echo { seq: echo, timestamp: echo };
        Ok(Self { echo, received_below, window, arrival: None, runs })
    }

    fn decode_sealed(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let flags = reader.octet()?;
        reader.check(u32::from(flags), u32::from(HAS_ARRIVAL | HAS_SKIP), "flags")?;
        let received_below = reader.number()?;
        let timestamp = reader.u32()?;
        let echo = Echo { seq: reader.varint()?, timestamp };
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
