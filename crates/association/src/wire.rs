//! The header of every datagram: its first eight octets.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-------+-------+-----------------------------------------------+
//! |version| kind  |        index (of the one who receives)        |
//! +-------+-------+-----------------------------------------------+
//! |          counter, low 32 bits (Hello: see handshake)          |
//! +---------------------------------------------------------------+
//! ```

use crate::error::OpenError;

/// Octets before the payload of each datagram.
pub const HEADER_LEN: usize = 8;
/// Octets after the payload of each datagram.
pub const TAG_LEN: usize = 16;
/// Octets that an association adds to each payload.
pub const OVERHEAD: usize = HEADER_LEN + TAG_LEN;

/// The version of the format that this crate implements.
pub(crate) const VERSION: u8 = 1;
/// Maximum index: indices have 24 bits.
pub(crate) const INDEX_MASK: u32 = 0x00ff_ffff;

/// Kind of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A terminal requests an association.
    Hello = 1,
    /// The hub accepts it.
    Welcome = 2,
    /// An encrypted payload.
    Data = 3,
    /// The index of an encrypted payload is unknown to its receiver.
    Unknown = 4,
    /// The hub is under load and requests a Hello with this cookie.
    Cookie = 5,
    /// An encrypted payload that probes the path MTU.
    Probe = 6,
    /// An encrypted response to a probe.
    ProbeAck = 7,
}

/// Kind of an encrypted payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sealed {
    /// Data of the upper layer.
    Data,
    /// A probe of the path MTU.
    Probe,
    /// The response to a probe.
    ProbeAck,
}

impl From<Sealed> for Kind {
    fn from(sealed: Sealed) -> Self {
        match sealed {
            Sealed::Data => Self::Data,
            Sealed::Probe => Self::Probe,
            Sealed::ProbeAck => Self::ProbeAck,
        }
    }
}

/// The decoded header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    pub(crate) index: u32,
    pub(crate) counter: u32,
}

impl Header {
    pub(crate) fn decode(datagram: &[u8]) -> Result<Self, OpenError> {
        if datagram.len() < OVERHEAD {
            return Err(OpenError::Truncated { found: datagram.len(), expected: OVERHEAD });
        }
        let first = datagram[0];
        if first >> 4 != VERSION {
            return Err(OpenError::Version { found: first >> 4, expected: VERSION });
        }
        let kind = match first & 0x0f {
            1 => Kind::Hello,
            2 => Kind::Welcome,
            3 => Kind::Data,
            4 => Kind::Unknown,
            5 => Kind::Cookie,
            6 => Kind::Probe,
            7 => Kind::ProbeAck,
            other => return Err(OpenError::Kind { found: other }),
        };
        let index = u32::from_be_bytes([0, datagram[1], datagram[2], datagram[3]]);
        let counter = u32::from_be_bytes([datagram[4], datagram[5], datagram[6], datagram[7]]);
        Ok(Self { kind, index, counter })
    }

    /// Writes the header to the start of `datagram`.
    pub(crate) fn encode(self, datagram: &mut [u8]) {
        datagram[..4].copy_from_slice(&(self.index & INDEX_MASK).to_be_bytes());
        datagram[0] = VERSION << 4 | self.kind as u8;
        datagram[4..8].copy_from_slice(&self.counter.to_be_bytes());
    }
}
