//! Address families that a hub reaches (RLY-9).

/// How much of an address family's Internet a hub reaches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FamilyReach {
    /// The hub reaches no global destination: it has neither a route nor an address for that.
    None,
    /// The hub has a route to the Internet or a global address, but not both: it may reach some
    /// destinations.
    Partial,
    /// The hub has a route and a source address to the Internet. Assumed where nothing was
    /// announced.
    #[default]
    Global,
}

/// The address families that a hub reaches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Families {
    /// IPv4.
    pub ipv4: FamilyReach,
    /// IPv6.
    pub ipv6: FamilyReach,
}

impl Families {
    /// Returns the bits of a FAMILIES frame: two for IPv4, then two for IPv6.
    pub(crate) fn bits(self) -> u64 {
        self.ipv4.bits() | self.ipv6.bits() << 2
    }

    /// Returns the meaning of these bits. Unassigned bits are ignored.
    pub(crate) fn from_bits(bits: u64) -> Self {
        Self { ipv4: FamilyReach::from_bits(bits), ipv6: FamilyReach::from_bits(bits >> 2) }
    }
}

impl FamilyReach {
    fn bits(self) -> u64 {
        match self {
            Self::None => 0,
            Self::Partial => 1,
            Self::Global => 2,
        }
    }

    fn from_bits(bits: u64) -> Self {
        match bits & 3 {
            0 => Self::None,
            1 => Self::Partial,
            // The value 3 is reserved and causes no refusal.
            _ => Self::Global,
        }
    }
}
