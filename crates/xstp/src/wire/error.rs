//! Errors of decoding and encoding.

use super::Kinds;
use core::fmt;

/// Part of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The fixed header.
    Header,
    /// BGN or BGNAK.
    Begin,
    /// END or ENDAK.
    End,
    /// RST.
    Reset,
    /// Timestamp.
    Timestamp,
    /// POLL.
    Poll,
    /// STAT.
    Stat,
    /// USTAT.
    Ustat,
    /// NOTE.
    Note,
    /// REPAIR.
    Repair,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Header => "header",
            Self::Begin => "BGN",
            Self::End => "END",
            Self::Reset => "RST",
            Self::Timestamp => "timestamp",
            Self::Poll => "POLL",
            Self::Stat => "STAT",
            Self::Ustat => "USTAT",
            Self::Note => "NOTE",
            Self::Repair => "REPAIR",
        })
    }
}

/// Reason why octets are not a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeError {
    /// The segment ends within a part.
    Truncated {
        /// Part in which it ends.
        part: Part,
        /// Minimum octets of the next field.
        expected: usize,
        /// Octets left.
        found: usize,
    },
    /// Octets follow the end of the segment.
    Trailing {
        /// Their number.
        found: usize,
    },
    /// The checksum is wrong (published profile).
    Checksum {
        /// Computed checksum.
        expected: u16,
        /// Checksum in the header.
        found: u16,
    },
    /// The segment has other ports (published profile).
    Ports {
        /// Source and destination of this session.
        expected: (u16, u16),
        /// Source and destination in the header.
        found: (u16, u16),
    },
    /// The types cannot be combined, or there is none.
    Combination {
        /// Type bits.
        found: Kinds,
    },
    /// A field has an invalid value: another version, a reserved bit, an unknown code.
    Field {
        /// Part.
        part: Part,
        /// Field.
        field: &'static str,
        /// Only or maximum valid value.
        expected: u32,
        /// Value found.
        found: u32,
    },
    /// A variable-length integer is not in its shortest form, or exceeds 32 bits.
    Varint {
        /// Part.
        part: Part,
    },
    /// A list has an invalid number of elements.
    ListLength {
        /// STAT or USTAT.
        part: Part,
        /// Number of elements.
        found: usize,
    },
    /// Boundaries of a list do not increase, or exceed the maximum window.
    ListOrder {
        /// STAT or USTAT.
        part: Part,
        /// Minimum distance of the boundary from N(R).
        expected: u32,
        /// Its distance from N(R), modulo 2²⁴ for encoded sequence numbers.
        found: u64,
    },
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Truncated { part, expected, found } => {
                write!(f, "{part}: expected {expected} more octets, found {found}")
            }
            Self::Trailing { found } => write!(f, "expected the end, found {found} more octets"),
            Self::Checksum { expected, found } => {
                write!(f, "checksum: expected {expected:#06x}, found {found:#06x}")
            }
            Self::Ports { expected, found } => write!(
                f,
                "ports: expected {} to {}, found {} to {}",
                expected.0, expected.1, found.0, found.1
            ),
            Self::Combination { found } => {
                write!(f, "expected a valid combination of types, found {found}")
            }
            Self::Field { part, field, expected, found } => {
                write!(f, "{part}: {field}: expected at most {expected}, found {found}")
            }
            Self::Varint { part } => {
                write!(f, "{part}: expected the shortest form of a 32-bit integer")
            }
            Self::ListLength { part, found } => {
                write!(f, "{part}: a list of {found} elements is invalid")
            }
            Self::ListOrder { part, expected, found } => write!(
                f,
                "{part}: expected the next boundary {expected} to {} after N(R), found {found}",
                crate::seq::Seq24::HALF
            ),
        }
    }
}

impl core::error::Error for DecodeError {}

/// Reason why a segment was not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EncodeError {
    /// The buffer is too short.
    NoRoom {
        /// Octets of the segment.
        expected: usize,
        /// Octets of the buffer.
        found: usize,
    },
    /// The list has too many boundaries: the published profile counts them in one octet.
    ListLength {
        /// Maximum.
        expected: usize,
        /// Their number.
        found: usize,
    },
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NoRoom { expected, found } => {
                write!(f, "expected room for {expected} octets, found {found}")
            }
            Self::ListLength { expected, found } => {
                write!(f, "expected at most {expected} boundaries in a list, found {found}")
            }
        }
    }
}

impl core::error::Error for EncodeError {}
