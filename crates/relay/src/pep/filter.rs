//! Filtering of acknowledgements in a queue (RFC 3135, 3.1.4; RFC 3449, 5.2.1).

use super::segment::Segment;
use super::serial::{after, before};
use std::net::SocketAddr;

/// A pure acknowledgement: no payload, no flag but ACK, only timestamps and SACK as options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlainAck {
    ends: (SocketAddr, SocketAddr),
    segment: Segment,
}

impl PlainAck {
    /// Returns `packet` as a pure acknowledgement, if it is one that a filter may remove or that
    /// may make another one redundant. Acknowledgements with ECN marks or feedback are none.
    pub(crate) fn of(packet: &[u8]) -> Option<Self> {
        // The longest one: 40 octets of IPv6, 60 of TCP.
        if packet.len() > 100 {
            return None;
        }
        let segment = Segment::parse(packet)?;
        let is_plain = segment.is_plain_ack()
            && !segment.options.other
            && segment.ecn == 0
            && segment.is_intact(packet);
        is_plain.then_some(Self { ends: (segment.source, segment.destination), segment })
    }

    /// Whether it is of the same direction of the same connection.
    pub(crate) fn is_of_connection(&self, other: &Self) -> bool {
        self.ends == other.ends
    }

    /// Whether it has the same number as `former` of the same connection: senders count these.
    pub(crate) fn is_duplicate_of(&self, former: &Self) -> bool {
        self.ends == former.ends && self.segment.ack == former.segment.ack
    }

    /// Whether it makes `old` redundant: it acknowledges more, and contains all that the SACK
    /// blocks of `old` say. A block below the number of `old` reports a duplicate (RFC 2883), which
    /// no later one repeats.
    pub(crate) fn supersedes(&self, old: &Self) -> bool {
        let (new, old_segment) = (&self.segment, &old.segment);
        let is_contained = |&(first, end): &(u32, u32)| {
            let by_number = !after(end, new.ack);
            let by_block = |&(from, to): &(u32, u32)| !before(first, from) && !after(end, to);
            after(first, old_segment.ack)
                && (by_number || new.options.sack.blocks().iter().any(by_block))
        };
        self.ends == old.ends
            && after(new.ack, old_segment.ack)
            && !before(new.seq, old_segment.seq)
            && old_segment.options.sack.blocks().iter().all(is_contained)
    }
}
