//! The first axis: what goes before the data.

/// How a connection opens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Opening {
    /// SYN, SYN and ACK, ACK; data from then on (RFC 9293, section 3.5).
    #[default]
    ThreeWay,
}

impl Opening {
    /// Bytes of data that may go with the first SYN.
    pub(crate) fn data_with_syn(self) -> u64 {
        match self {
            Self::ThreeWay => 0,
        }
    }
}
