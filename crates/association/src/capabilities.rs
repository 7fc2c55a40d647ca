//! Optional features that a side announces in the handshake (ASC-2.10).
//!
//! A set of eight bits, because releases without capabilities exist on both sides: their hubs drop
//! a Hello of another length, and ignore the octet that carries the set in a Hello; their terminals
//! ignore the octet that carries it in a Welcome.

/// A set of optional features. A feature is used only if both sides have announced it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities(u8);

impl Capabilities {
    /// No optional feature, as releases without capabilities announce.
    pub const NONE: Self = Self(0);
    /// Sessions end in order inside the association, with GOAWAY and END; extension frames are
    /// skipped; RST names a reason (RLY-10).
    pub const ORDERLY_END: Self = Self(0x01);
    /// Repair symbols are accepted (XSTP-15).
    pub const REPAIR: Self = Self(0x04);
    /// All features of this release.
    pub const ALL: Self = Self(Self::ORDERLY_END.0 | Self::REPAIR.0);

    /// The set that an octet of the handshake announces. Unknown features are kept out.
    pub(crate) const fn from_octet(octet: u8) -> Self {
        Self(octet & Self::ALL.0)
    }

    /// The octet that announces the set.
    pub(crate) const fn octet(self) -> u8 {
        self.0
    }

    /// Whether all features of `other` are in the set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The set without the features of `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The features that are in both sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ASC-2.10
    #[test]
    fn unknown_capabilities_are_ignored() {
        assert_eq!(Capabilities::from_octet(0xff), Capabilities::ALL);
        assert_eq!(Capabilities::from_octet(0xfa), Capabilities::NONE);
        let both = Capabilities::from_octet(0xff).and(Capabilities::NONE);
        assert!(!both.contains(Capabilities::ORDERLY_END));
    }
}
