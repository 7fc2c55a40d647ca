//! Headers of the two profiles.
//!
//! ```text
//! published, 16 octets                  0                   1                   2                   3
//!                                       0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//!                                      +-------------------------------+-------------------------------+
//!                                      |          source port          |       destination port        |
//!                                      +---------------+---------------+-------------------------------+
//!                                      |     type      |                    number                     |
//!                                      +---------------+---------------+-------------------------------+
//!                                      |            window             |           checksum            |
//!                                      +-------------------------------+-------------------------------+
//!                                      |                           timestamp                           |
//!                                      +---------------------------------------------------------------+
//! sealed, 4 octets                     +---------------+-----------------------------------------------+
//!                                      |     type      |                    number                     |
//!                                      +---------------+-----------------------------------------------+
//! ```
//!
//! The number is N(S) in a segment with SD, otherwise VT(S). The window is that of BGN, BGNAK or
//! STAT, in packets. The timestamp is the sequence number of the POLL in a segment with POLL,
//! otherwise the timestamp of BGN; both are milliseconds of the sender's clock. Fields that are not
//! used by the types of a segment are sent as zero and ignored.

use super::checksum::checksum;
use super::octets::{Reader, Sink};
use super::{DecodeError, Kinds, Part};
use crate::seq::Seq24;
use core::net::SocketAddr;
use units::Span;

/// IP protocol number of published segments: 253, reserved for experiments (RFC 3692).
pub const PROTOCOL_NUMBER: u8 = 253;

/// Offset of the checksum in a published header.
pub(super) const CHECKSUM: core::ops::Range<usize> = 10..12;

/// Addresses of a published session: they give the ports and the pseudo-header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoints {
    /// Local address.
    pub local: SocketAddr,
    /// Remote address.
    pub remote: SocketAddr,
}

/// Format of segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// On IP, as in the papers: a header of 16 octets with ports, checksum and timestamp.
    Published(Endpoints),
    /// Inside an association, which authenticates peer and octets: a header of 4 octets.
    Sealed,
}

impl Profile {
    /// Unit of timestamps: 1 ms as published, 1 µs when sealed.
    pub const fn tick(&self) -> Span {
        match self {
            Self::Published(_) => Span::from_millis(1),
            Self::Sealed => Span::from_micros(1),
        }
    }

    /// Maximum window that can be encoded, in packets.
    pub const fn max_window(&self) -> u32 {
        match self {
            Self::Published(_) => u16::MAX as u32,
            Self::Sealed => Seq24::HALF,
        }
    }

    pub(crate) const fn header_len(&self) -> usize {
        match self {
            Self::Published(_) => 16,
            Self::Sealed => 4,
        }
    }
}

/// Decoded header; `window` and `timestamp` are zero in the sealed profile.
pub(super) struct Header {
    pub(super) kinds: Kinds,
    pub(super) number: Seq24,
    pub(super) window: u32,
    pub(super) timestamp: u32,
}

impl Header {
    /// Writes the header with a checksum of zero.
    pub(super) fn encode(&self, profile: &Profile, sink: &mut impl Sink) {
        if let Profile::Published(ends) = profile {
            sink.u16(ends.local.port());
            sink.u16(ends.remote.port());
        }
        sink.octet(self.kinds.bits());
        sink.number(self.number);
        if let Profile::Published(_) = profile {
            sink.u16(u16::try_from(self.window).unwrap_or(u16::MAX));
            sink.u16(0);
            sink.u32(self.timestamp);
        }
    }

    /// Decodes the header and verifies ports and checksum.
    pub(super) fn decode(profile: &Profile, octets: &[u8]) -> Result<Self, DecodeError> {
        let found = octets.len();
        let expected = profile.header_len();
        if found < expected {
            return Err(DecodeError::Truncated { part: Part::Header, expected, found });
        }
        let mut reader = Reader::new(octets, Part::Header);
        if let Profile::Published(ends) = profile {
            check_sum(ends, octets)?;
            let found = (reader.u16()?, reader.u16()?);
            let expected = (ends.remote.port(), ends.local.port());
            if found != expected {
                return Err(DecodeError::Ports { expected, found });
            }
        }
        let bits = reader.octet()?;
        let kinds = Kinds::from_bits(bits)
            .filter(|&kinds| kinds != Kinds::REPAIR || *profile == Profile::Sealed)
            .ok_or(DecodeError::Combination { found: Kinds::unchecked(bits) })?;
        let mut header = Self { kinds, number: reader.number()?, window: 0, timestamp: 0 };
        if let Profile::Published(_) = profile {
            header.window = u32::from(reader.u16()?);
            reader.take(CHECKSUM.len())?;
            header.timestamp = reader.u32()?;
        }
        Ok(header)
    }
}

fn check_sum(ends: &Endpoints, octets: &[u8]) -> Result<(), DecodeError> {
    let rest = checksum(ends.remote.ip(), ends.local.ip(), octets);
    if rest == 0 {
        return Ok(());
    }
    let mut field = Reader::new(&octets[CHECKSUM], Part::Header);
    let found = field.u16()?;
    // In one's complement arithmetic the right field is the wrong one plus what is left over.
    let sum = u32::from(found) + u32::from(rest);
    let expected = ((sum & 0xffff) + (sum >> 16)) as u16;
    Err(DecodeError::Checksum { expected, found })
}
