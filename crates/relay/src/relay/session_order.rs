//! Which segments belong to an earlier session in the same association.
//!
//! Sealed segments without BGN, BGNAK, END, ENDAK or RST do not name their incarnation. When one
//! session follows another under the same keys, segments of the earlier one may still be in flight.
//! The counters of the association tell them apart: what the peer sealed before its BGN or BGNAK
//! belongs to the earlier session (RLY-10.8).

use association::SendOrder;
use xstp::wire::Segment;

/// Boundary between the running session and earlier ones.
#[derive(Debug, Default)]
pub(super) struct SessionOrder {
    /// Position of the peer's BGN or BGNAK among its datagrams.
    begun: Option<SendOrder>,
    /// A terminal's session that is not the first one, before BGNAK.
    awaits_begin_ack: bool,
}

impl SessionOrder {
    /// A terminal has begun another session in the same association.
    pub(super) fn awaiting_begin_ack() -> Self {
        Self { begun: None, awaits_begin_ack: true }
    }

    /// The datagram with the peer's BGN, or with its BGNAK.
    pub(super) fn on_begun(&mut self, order: SendOrder) {
        if self.begun.is_none() {
            *self = Self { begun: Some(order), awaits_begin_ack: false };
        }
    }

    /// Whether the session is waiting for its BGNAK to take segments that do not name it.
    pub(super) fn awaits_begin_ack(&self) -> bool {
        self.awaits_begin_ack
    }

    /// Whether this segment, in a datagram at this position, is one of an earlier session.
    pub(super) fn is_earlier(&self, order: SendOrder, segment: &[u8]) -> bool {
        let is_earlier = self.awaits_begin_ack || self.begun.is_some_and(|begun| order < begun);
        is_earlier && !Segment::names_incarnation(segment)
    }
}
