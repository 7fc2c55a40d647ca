//! What can be wrong with octets, and with the room for them.

use super::Kinds;
use core::fmt;

/// The part of a segment in which something was found.
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
    /// The sender's clock.
    Stamp,
    /// POLL.
    Poll,
    /// STAT.
    Stat,
    /// USTAT.
    Ustat,
    /// NOTE.
    Note,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Header => "header",
            Self::Begin => "BGN",
            Self::End => "END",
            Self::Reset => "RST",
            Self::Stamp => "stamp",
            Self::Poll => "POLL",
            Self::Stat => "STAT",
            Self::Ustat => "USTAT",
            Self::Note => "NOTE",
        })
    }
}

/// Why octets are not a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeError {
    /// The segment ends within a part.
    Truncated {
        /// Where it ends.
        part: Part,
        /// Octets that the next field takes, at least.
        expected: usize,
        /// Octets that are left.
        found: usize,
    },
    /// Octets follow where the segment should end.
    Trailing {
        /// How many.
        found: usize,
    },
    /// The checksum is wrong (published profile).
    Checksum {
        /// What the octets add up to.
        expected: u16,
        /// What the header says.
        found: u16,
    },
    /// The segment is between other ports (published profile).
    Ports {
        /// Source and destination of this connection.
        expected: (u16, u16),
        /// Source and destination in the header.
        found: (u16, u16),
    },
    /// These types do not go together, or there is none.
    Combination {
        /// The type bits.
        found: Kinds,
    },
    /// A field holds what its kind never holds: another version, a reserved bit, an unknown code.
    Field {
        /// Where.
        part: Part,
        /// Which field.
        field: &'static str,
        /// The only or the highest value that it may hold.
        expected: u32,
        /// What it holds.
        found: u32,
    },
    /// A variable-length integer is longer than its value needs, or than 32 bits.
    Varint {
        /// Where.
        part: Part,
    },
    /// A list has a number of elements that no such list has.
    ListLength {
        /// STAT or USTAT.
        part: Part,
        /// Elements.
        found: usize,
    },
    /// A list's boundaries do not rise, or leave the widest window.
    ListOrder {
        /// STAT or USTAT.
        part: Part,
        /// The least distance from N(R) that the boundary may have.
        expected: u32,
        /// Its distance from N(R), modulo 2²⁴ where the wire holds numbers.
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
                write!(f, "expected types that go together, found {found}")
            }
            Self::Field { part, field, expected, found } => {
                write!(f, "{part}: {field}: expected at most {expected}, found {found}")
            }
            Self::Varint { part } => {
                write!(f, "{part}: expected the shortest form of a 32-bit integer")
            }
            Self::ListLength { part, found } => {
                write!(f, "{part}: no such list has {found} elements")
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

/// Why a segment was not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EncodeError {
    /// The buffer is too short.
    NoRoom {
        /// Octets that the segment takes.
        expected: usize,
        /// Octets that there are.
        found: usize,
    },
    /// The published profile counts a list's boundaries in one octet.
    ListLength {
        /// The most.
        expected: usize,
        /// How many there are.
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
