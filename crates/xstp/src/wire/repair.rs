//! REPAIR: a repair symbol over consecutive packets.
//!
//! ```text
//! +---------------+-----------------------------------------------+
//! |0 1 0 0 0 0 0 0|            first packet covered               |   header
//! +---------------+---------------+-------------------------------+
//! |0| packets - 1 |0|     key     |  symbol, 2 octets or more
//! +---------------+---------------+-------------------------
//! ```

use super::octets::{Reader, Sink};
use super::{DecodeError, Part};

/// Repair symbol of a segment. The number of the segment is that of the first packet covered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repair<'a> {
    /// Number of packets covered, 1 to 128.
    pub count: u8,
    /// Key of the coefficients, below 128.
    pub key: u8,
    /// The symbol: at least 2 octets, which stand for the length of a packet.
    pub symbol: &'a [u8],
}

/// Maximum value of both fields.
const MAX: u8 = 0x7f;

impl<'a> Repair<'a> {
    /// Octets of a REPAIR segment beside its symbol.
    pub(crate) const OVERHEAD: usize = 4 + 2;

    pub(super) fn encode(&self, sink: &mut impl Sink) {
        sink.octet(self.count.wrapping_sub(1) & MAX);
        sink.octet(self.key & MAX);
        sink.put(self.symbol);
    }

    pub(super) fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let count = reader.octet()?;
        reader.check(u32::from(count), u32::from(MAX), "count")?;
        let key = reader.octet()?;
        reader.check(u32::from(key), u32::from(MAX), "key")?;
        let found = reader.left().len();
        if found < 2 {
            return Err(DecodeError::Truncated { part: Part::Repair, expected: 2, found });
        }
        let symbol = reader.take(found)?;
        Ok(Self { count: count + 1, key, symbol })
    }
}
