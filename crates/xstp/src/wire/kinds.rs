//! Type bits of a segment, and their valid combinations.
//!
//! ```text
//!    7     6     5     4     3     2     1     0
//! +-----+-----+-----+-----+-----+-----+-----+-----+
//! | RST | AK  | END | BGN |USTAT|STAT |POLL | SD  |
//! +-----+-----+-----+-----+-----+-----+-----+-----+
//! ```

use core::fmt;

/// Types that a segment combines.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Kinds(u8);

impl Kinds {
    /// Sequenced data.
    pub const SD: Self = Self(0x01);
    /// Requests a STAT.
    pub const POLL: Self = Self(0x02);
    /// State of the receiver, in response to a POLL.
    pub const STAT: Self = Self(0x04);
    /// Gaps that the receiver has just detected.
    pub const USTAT: Self = Self(0x08);
    /// Opens a session; with AK, accepts it.
    pub const BGN: Self = Self(0x10);
    /// Closes one direction; with AK, confirms that.
    pub const END: Self = Self(0x20);
    /// Turns BGN into BGNAK and END into ENDAK.
    pub const AK: Self = Self(0x40);
    /// Repair symbol: AK alone, in the sealed profile.
    pub const REPAIR: Self = Self::AK;
    /// Resets the session.
    pub const RST: Self = Self(0x80);

    /// Types with these bits, if they can be combined.
    pub const fn from_bits(bits: u8) -> Option<Self> {
        let kinds = Self(bits);
        if kinds.is_legal() { Some(kinds) } else { None }
    }

    /// Types with these bits, unchecked.
    pub(super) const fn unchecked(bits: u8) -> Self {
        Self(bits)
    }

    /// Type bits.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Union of both sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all types of `other` are in this set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any type of `other` is in this set.
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether the types can be combined: the table of XSTP-3.2.2.
    pub const fn is_legal(self) -> bool {
        let traffic = self.0 & 0x0f;
        let combinable = match self.0 & 0xf0 {
            0x00 => return traffic != 0,
            0x10 => Self::SD.and(Self::POLL),
            0x50 => Self(0x0f),
            0x20 | 0x60 => Self::STAT,
            // REPAIR, RST
            0x40 | 0x80 => Self(0),
            _ => return false,
        };
        traffic & !combinable.0 == 0
    }
}

impl fmt::Debug for Kinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Kinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 8] = ["SD", "POLL", "STAT", "USTAT", "BGN", "END", "AK", "RST"];
        if self.0 == 0 {
            return f.write_str("none");
        }
        if *self == Self::REPAIR {
            return f.write_str("REPAIR");
        }
        let mut separator = "";
        for (bit, name) in NAMES.iter().enumerate() {
            if self.0 & (1 << bit) != 0 {
                write!(f, "{separator}{name}")?;
                separator = "+";
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;

    // XSTP-3.2.1, XSTP-3.2.2
    #[test]
    fn the_valid_combinations_of_types() {
        let legal: std::vec::Vec<u8> =
            (0..=255).filter(|&bits| Kinds::from_bits(bits).is_some()).collect();
        let expected: std::vec::Vec<u8> = (0x01..=0x0f)
            .chain([0x10, 0x11, 0x12, 0x13])
            .chain([0x20, 0x24, 0x40])
            .chain(0x50..=0x5f)
            .chain([0x60, 0x64, 0x80])
            .collect();
        assert_eq!(legal, expected);
    }

    #[test]
    fn types_are_displayed_by_name() {
        assert_eq!(format!("{}", Kinds::unchecked(0x53)), "SD+POLL+BGN+AK");
        assert_eq!(format!("{}", Kinds::unchecked(0)), "none");
        assert_eq!(format!("{}", Kinds::REPAIR), "REPAIR");
    }
}
