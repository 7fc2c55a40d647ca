//! Reading and writing octets, and variable-length integers.
//!
//! ```text
//!  a variable-length integer, seven bits an octet, lowest first:
//!  +-+-------+ +-+-------+     +-+-------+
//!  |1| 6 - 0 | |1| 13 - 7| ... |0| rest  |      1 to 5 octets, 32 bits, the shortest form only
//!  +-+-------+ +-+-------+     +-+-------+
//! ```

use super::{DecodeError, Part};
use crate::seq::Seq24;

/// Reads the fields of a part in order.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    left: &'a [u8],
    part: Part,
}

impl<'a> Reader<'a> {
    pub(super) const fn new(octets: &'a [u8], part: Part) -> Self {
        Self { left: octets, part }
    }

    /// Continues with `part`, to which later errors refer.
    pub(super) fn in_part(&mut self, part: Part) -> &mut Self {
        self.part = part;
        self
    }

    pub(super) const fn part(&self) -> Part {
        self.part
    }

    pub(super) const fn left(&self) -> &'a [u8] {
        self.left
    }

    pub(super) fn take(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, left) = self.left.split_at_checked(len).ok_or(DecodeError::Truncated {
            part: self.part,
            expected: len,
            found: self.left.len(),
        })?;
        self.left = left;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub(super) fn octet(&mut self) -> Result<u8, DecodeError> {
        self.array().map(|[octet]| octet)
    }

    pub(super) fn u16(&mut self) -> Result<u16, DecodeError> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, DecodeError> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn number(&mut self) -> Result<Seq24, DecodeError> {
        self.array().map(Seq24::from_octets)
    }

    pub(super) fn varint(&mut self) -> Result<u32, DecodeError> {
        let mut value = 0u32;
        for position in 0..5 {
            let octet = self.octet()?;
            let bits = u32::from(octet & 0x7f);
            let overlong = position > 0 && octet == 0;
            if overlong || (position == 4 && octet > 0x0f) {
                break;
            }
            value |= bits << (7 * position);
            if octet & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(DecodeError::Varint { part: self.part })
    }

    /// Reads a variable-length integer of at most `limit`.
    pub(super) fn varint_up_to(
        &mut self,
        limit: u32,
        field: &'static str,
    ) -> Result<u32, DecodeError> {
        let found = self.varint()?;
        self.check(found, limit, field)?;
        Ok(found)
    }

    /// Returns an error if `found` is above `limit`.
    pub(super) fn check(
        &self,
        found: u32,
        limit: u32,
        field: &'static str,
    ) -> Result<(), DecodeError> {
        if found > limit {
            return Err(DecodeError::Field { part: self.part, field, expected: limit, found });
        }
        Ok(())
    }
}

/// Destination of encoded octets: a buffer or a counter.
pub(super) trait Sink {
    fn put(&mut self, octets: &[u8]);

    fn octet(&mut self, octet: u8) {
        self.put(&[octet]);
    }

    fn u16(&mut self, value: u16) {
        self.put(&value.to_be_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.put(&value.to_be_bytes());
    }

    fn number(&mut self, number: Seq24) {
        self.put(&number.octets());
    }

    fn varint(&mut self, mut value: u32) {
        while value >= 0x80 {
            self.octet(value as u8 | 0x80);
            value >>= 7;
        }
        self.octet(value as u8);
    }
}

/// Counts octets.
#[derive(Default)]
pub(super) struct Counter(pub(super) usize);

impl Sink for Counter {
    fn put(&mut self, octets: &[u8]) {
        self.0 += octets.len();
    }
}

/// Writes octets to a buffer that is long enough according to a [`Counter`].
pub(super) struct Writer<'a> {
    pub(super) out: &'a mut [u8],
    pub(super) at: usize,
}

impl Sink for Writer<'_> {
    fn put(&mut self, octets: &[u8]) {
        let end = self.at + octets.len();
        self.out[self.at..end].copy_from_slice(octets);
        self.at = end;
    }
}

/// Length of a value as a variable-length integer, in octets.
pub(super) const fn varint_len(value: u32) -> usize {
    match value {
        0..0x80 => 1,
        0x80..0x4000 => 2,
        0x4000..0x20_0000 => 3,
        0x20_0000..0x1000_0000 => 4,
        0x1000_0000.. => 5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(octets: &[u8]) -> Result<u32, DecodeError> {
        Reader::new(octets, Part::Header).varint()
    }

    // XSTP-3.1.2
    #[test]
    fn integers_are_canonical() {
        assert_eq!(read(&[0x00]), Ok(0));
        assert_eq!(read(&[0x7f]), Ok(127));
        assert_eq!(read(&[0x80, 0x01]), Ok(128));
        assert_eq!(read(&[0xac, 0x02]), Ok(300));
        assert_eq!(read(&[0xff, 0xff, 0xff, 0xff, 0x0f]), Ok(u32::MAX));
        let wrong = Err(DecodeError::Varint { part: Part::Header });
        assert_eq!(read(&[0x80, 0x00]), wrong, "longer than needed");
        assert_eq!(read(&[0xff, 0xff, 0xff, 0xff, 0x1f]), wrong, "33 bits");
        assert_eq!(read(&[0xff, 0xff, 0xff, 0xff, 0xff, 0x01]), wrong, "six octets");
        let cut = DecodeError::Truncated { part: Part::Header, expected: 1, found: 0 };
        assert_eq!(read(&[0x80]), Err(cut));
    }

    proptest! {
        #[test]
        fn integers_survive_encoding(value: u32, shift in 0..32) {
            let value = value >> shift;
            let mut out = [0; 5];
            let mut writer = Writer { out: &mut out, at: 0 };
            writer.varint(value);
            let len = writer.at;
            prop_assert_eq!(len, varint_len(value));
            prop_assert_eq!(read(&out[..len]), Ok(value));
        }
    }
}
