//! Detection of segments of an earlier session in the same association.
//!
//! Sealed segments other than BGN, BGNAK, END, ENDAK and RST do not contain their incarnation. When
//! one session follows another under the same keys, segments of the earlier one may still be in
//! flight. They are distinguished by the counters of the association: datagrams that the peer
//! sealed before its BGN or BGNAK belong to the earlier session (RLY-10.8).

use association::SendOrder;
use xstp::wire::Segment;

/// Boundary between the present session and earlier ones.
#[derive(Debug, Default)]
pub(super) struct SessionOrder {
    /// Position of the peer's BGN or BGNAK among its datagrams.
    begun: Option<SendOrder>,
    /// A terminal's session that is not the first one, before BGNAK.
    awaits_begin_ack: bool,
}

impl SessionOrder {
    /// A terminal has started another session in the same association.
    pub(super) fn awaiting_begin_ack() -> Self {
        Self { begun: None, awaits_begin_ack: true }
    }

    /// Records the datagram with the peer's BGN or BGNAK.
    pub(super) fn on_begun(&mut self, order: SendOrder) {
        if self.begun.is_none() {
            *self = Self { begun: Some(order), awaits_begin_ack: false };
        }
    }

    /// Returns whether the session waits for its BGNAK before it accepts segments without
    /// incarnation.
    pub(super) fn awaits_begin_ack(&self) -> bool {
        self.awaits_begin_ack
    }

    /// Returns whether this segment, in a datagram at this position, belongs to an earlier session.
    pub(super) fn is_earlier(&self, order: SendOrder, segment: &[u8]) -> bool {
        let is_earlier = self.awaits_begin_ack || self.begun.is_some_and(|begun| order < begun);
        is_earlier && !Segment::names_incarnation(segment)
    }
}
