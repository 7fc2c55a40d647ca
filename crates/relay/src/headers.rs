//! Header compression of forwarded packets (`docs/spec/headers.md`).
//!
//! ```text
//!   first packets of a flow   DATAGRAM                          the packet as it is
//!   one of them               DEFINE context, rule; DATAGRAM    its header becomes the context
//!   after its acknowledgement COMPRESSED context, CRC, changes  instead of 28 to 60 octets
//! ```
//!
//! A context is a header that does not change: each compressed header refers to it alone, and not
//! to the packet before. It is used only when the session has acknowledged the packet that defined
//! it, and defined again only when all packets that refer to it are acknowledged. So loss and
//! reordering damage no other packet (the secure reference principle of RFC 3095, section 5.5.1).

mod codec;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod layout;
mod receiver;
mod sender;

pub(crate) use receiver::{Receiver, Restored};
pub(crate) use sender::{ContextUse, Outgoing, Sender};

/// Number of contexts in one direction of a session: their numbers have 7 bits.
pub(crate) const CONTEXTS: usize = 128;

/// How a packet's header follows from that of its context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) profile: Profile,
    pub(crate) id: IdRule,
    /// Difference of the RTP timestamps of consecutive packets.
    pub(crate) stride: u32,
}

/// The headers that are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Profile {
    /// That of IPv4 or IPv6.
    Ip,
    /// And that of UDP.
    Udp,
    /// And that of RTP.
    Rtp,
}

/// How the identification of an IPv4 header follows from that of the context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdRule {
    /// It is the same.
    Constant,
    /// It has grown by the counter.
    Sequential,
    /// It is written in each packet.
    Written,
}

impl Rule {
    /// Decodes the octet of a DEFINE; `None` if it has an undefined value.
    pub(crate) fn from_octet(octet: u8, stride: u32) -> Option<Self> {
        let profile = match octet & 3 {
            0 => Profile::Ip,
            1 => Profile::Udp,
            2 => Profile::Rtp,
            _ => return None,
        };
        let id = match octet >> 2 {
            0 => IdRule::Constant,
            1 => IdRule::Sequential,
            2 => IdRule::Written,
            _ => return None,
        };
        Some(Self { profile, id, stride })
    }

    /// The octet of a DEFINE.
    pub(crate) fn octet(self) -> u8 {
        let profile = match self.profile {
            Profile::Ip => 0,
            Profile::Udp => 1,
            Profile::Rtp => 2,
        };
        let id = match self.id {
            IdRule::Constant => 0,
            IdRule::Sequential => 1,
            IdRule::Written => 2,
        };
        profile | id << 2
    }

    /// Whether compressed headers have a counter.
    fn counts(self) -> bool {
        self.profile == Profile::Rtp || self.id == IdRule::Sequential
    }
}

#[cfg(test)]
mod tests;
