//! Sequence numbers of 24 bits (serial number arithmetic, RFC 1982).

use core::fmt;

/// Sequence number of a packet: 24 bits that wrap.
///
/// Sequence numbers have no total order: 1 is both before and after 16,777,215. Therefore there is
/// no `Ord`, only [`distance`](Seq24::distance) and [`in_window`](Seq24::in_window) from a known
/// number; no window is wider than [`HALF`](Seq24::HALF).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Seq24(u32);

impl Seq24 {
    /// First sequence number of each direction.
    pub const ZERO: Self = Self(0);
    /// Size of the number space.
    pub const MODULUS: u32 = 1 << 24;
    /// Maximum window in which sequence numbers are unambiguous.
    pub const HALF: u32 = 1 << 23;

    /// The sequence number `value` modulo 2²⁴.
    pub const fn new(value: u32) -> Self {
        Self(value % Self::MODULUS)
    }

    /// The value below 2²⁴.
    pub const fn value(self) -> u32 {
        self.0
    }

    /// Decodes three octets in network byte order.
    pub const fn from_octets(octets: [u8; 3]) -> Self {
        Self(u32::from_be_bytes([0, octets[0], octets[1], octets[2]]))
    }

    /// Encodes three octets in network byte order.
    pub const fn octets(self) -> [u8; 3] {
        let [_, high, middle, low] = self.0.to_be_bytes();
        [high, middle, low]
    }

    /// The next sequence number.
    #[must_use]
    pub const fn next(self) -> Self {
        self.add(1)
    }

    /// The sequence number `count` after this one.
    #[must_use]
    pub const fn add(self, count: u32) -> Self {
        Self(self.0.wrapping_add(count) % Self::MODULUS)
    }

    /// Number of steps from `from` forward to this one.
    pub const fn distance(self, from: Self) -> u32 {
        self.0.wrapping_sub(from.0) % Self::MODULUS
    }

    /// Whether this is one of the `len` sequence numbers from `base` on.
    pub const fn in_window(self, base: Self, len: u32) -> bool {
        self.distance(base) < len
    }

    /// Extended sequence number (64 bits) that is nearest to `near`, of those whose lower 24 bits
    /// are this number.
    ///
    /// Returns `None` if it would be negative. A number at a distance of exactly
    /// [`HALF`](Seq24::HALF) is before `near`.
    pub fn extend(self, near: u64) -> Option<u64> {
        let ahead = self.distance(Self::from_extended(near));
        if ahead < Self::HALF {
            near.checked_add(u64::from(ahead))
        } else {
            near.checked_sub(u64::from(Self::MODULUS - ahead))
        }
    }

    /// Lower 24 bits of an extended sequence number.
    pub const fn from_extended(seq: u64) -> Self {
        Self((seq % Self::MODULUS as u64) as u32)
    }
}

impl fmt::Debug for Seq24 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

impl fmt::Display for Seq24 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LAST: Seq24 = Seq24::new(Seq24::MODULUS - 1);

    // XSTP-2.1.1
    #[test]
    fn numbers_wrap_at_24_bits() {
        assert_eq!(LAST.next(), Seq24::ZERO);
        assert_eq!(Seq24::new(Seq24::MODULUS + 5), Seq24::new(5));
        assert_eq!(Seq24::new(3).add(u32::MAX), Seq24::new(2));
        assert_eq!(Seq24::from_octets([0x01, 0x02, 0x03]).value(), 0x01_0203);
        assert_eq!(Seq24::new(0xfe_dcba).octets(), [0xfe, 0xdc, 0xba]);
    }

    // XSTP-2.1.2
    #[test]
    fn distance_counts_forward_over_the_wrap() {
        assert_eq!(Seq24::new(2).distance(LAST), 3);
        assert_eq!(LAST.distance(Seq24::new(2)), Seq24::MODULUS - 3);
        assert!(Seq24::new(1).in_window(LAST, 3));
        assert!(!Seq24::new(2).in_window(LAST, 3));
        assert!(!LAST.in_window(Seq24::ZERO, 3));
        assert!(!LAST.in_window(LAST, 0));
    }

    #[test]
    fn extend_returns_the_nearest_number() {
        let near = 5 * u64::from(Seq24::MODULUS) + 1;
        assert_eq!(Seq24::new(4).extend(near), Some(near + 3));
        assert_eq!(LAST.extend(near), Some(near - 2));
        assert_eq!(Seq24::new(1 + Seq24::HALF).extend(near), Some(near - u64::from(Seq24::HALF)));
        assert_eq!(LAST.extend(1), None);
    }

    proptest! {
        #[test]
        fn distance_is_the_inverse_of_add(base: u32, count in 0..Seq24::MODULUS) {
            let base = Seq24::new(base);
            prop_assert_eq!(base.add(count).distance(base), count);
        }

        #[test]
        fn extend_inverts_truncation(
            near in u64::from(Seq24::MODULUS)..1 << 40,
            step in -i64::from(Seq24::HALF)..i64::from(Seq24::HALF),
        ) {
            let count = near.checked_add_signed(step).unwrap();
            prop_assert_eq!(Seq24::from_extended(count).extend(near), Some(count));
        }
    }
}
