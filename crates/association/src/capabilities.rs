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
    /// Datagrams are sealed by AES-256-GCM in place of ChaCha20-Poly1305 (ASC-6.6). A side announces
    /// it where its processor has instructions for it: without, it is slower.
    pub const AES_256_GCM: Self = Self(0x02);
    /// Repair symbols are accepted (XSTP-15).
    pub const REPAIR: Self = Self(0x04);
    /// A terminal continues in a new association beside one that ends, and a hub keeps both
    /// (ASC-2.11).
    pub const OVERLAP: Self = Self(0x08);
    /// A terminal reports its state to the hub (RLY-11).
    pub const REPORTS: Self = Self(0x10);
    /// In a Hello: the association that it names may be that of another path of the terminal. In a
    /// Welcome: the hub has joined the new association to that one (ASC-2.12).
    pub const JOINS: Self = Self(0x20);
    /// Compressed halves of streams are accepted (RLY-13).
    pub const COMPRESSION: Self = Self(0x40);
    /// All features of this release that every machine has.
    pub const ALL: Self = Self::ORDERLY_END
        .or(Self::REPAIR)
        .or(Self::OVERLAP)
        .or(Self::REPORTS)
        .or(Self::JOINS)
        .or(Self::COMPRESSION);
    /// All features that this release knows.
    const KNOWN: Self = Self::ALL.or(Self::AES_256_GCM);

    /// All features that this release has on this machine.
    pub fn of_this_machine() -> Self {
        if has_aes() { Self::KNOWN } else { Self::ALL }
    }

    /// The set that an octet of the handshake announces. Unknown features are kept out.
    pub(crate) const fn from_octet(octet: u8) -> Self {
        Self(octet & Self::KNOWN.0)
    }

    /// The octet that announces the set.
    pub(crate) const fn octet(self) -> u8 {
        self.0
    }

    /// Whether all features of `other` are in the set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The features that are in one of the sets.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
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

/// Whether the processor has the instructions by which AES-GCM is faster than ChaCha20-Poly1305.
fn has_aes() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("aes")
        && std::arch::is_x86_feature_detected!("pclmulqdq")
        && std::arch::is_x86_feature_detected!("avx");
    #[cfg(target_arch = "aarch64")]
    return std::arch::is_aarch64_feature_detected!("aes")
        && std::arch::is_aarch64_feature_detected!("pmull");
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    return false;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ASC-2.10
    #[test]
    fn unknown_capabilities_are_ignored() {
        assert_eq!(Capabilities::from_octet(0xff), Capabilities::KNOWN);
        assert_eq!(Capabilities::from_octet(0x80), Capabilities::NONE);
        assert!(Capabilities::of_this_machine().contains(Capabilities::ALL));
        let both = Capabilities::from_octet(0xff).and(Capabilities::NONE);
        assert!(!both.contains(Capabilities::ORDERLY_END));
    }
}
