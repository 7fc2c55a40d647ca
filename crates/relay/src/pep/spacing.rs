//! Regeneration and spacing of acknowledgements (RFC 3135, 3.1.1 and 3.1.4; RFC 3449, 5.2.2).
//!
//! Of one acknowledgement of many segments, several are made, one for each two segments, spread
//! over the time since the one before. So a sender that counts acknowledgements opens its window as
//! if none had been filtered, and none sends a burst.

use super::segment::Segment;
use super::serial::{before, distance};
use units::{Instant, Span};

/// Maximum time over which the acknowledgements made of one are spread.
const MAX_SPREAD: Span = Span::from_millis(100);
/// Maximum number of acknowledgements that are made of one.
const MOST: u32 = 64;

/// An acknowledgement that is sent in steps.
#[derive(Debug)]
struct Pending {
    segment: Segment,
    packet: Vec<u8>,
    /// The number that was sent last.
    sent: u32,
    stride: u32,
    gap: Span,
    next: Instant,
}

/// Acknowledgements to the near end of one connection.
#[derive(Debug)]
pub(super) struct Spacing {
    /// Greatest number that arrived, when, and the end of its window.
    number: u32,
    at: Option<Instant>,
    window_end: u32,
    /// Greatest payload of the near end's segments.
    segment: u32,
    pending: Option<Pending>,
}

impl Spacing {
    pub(super) fn new(number: u32) -> Self {
        Self { number, at: None, window_end: number, segment: 0, pending: None }
    }

    /// Notes the size of a segment of the near end.
    pub(super) fn note_payload(&mut self, octets: usize) {
        self.segment = self.segment.max(octets as u32);
    }

    pub(super) fn clear(&mut self) {
        self.pending = None;
    }

    /// Takes a segment to the near end, with the far end's window scale; true if it will be sent in
    /// steps. Only a pure acknowledgement of more than two segments is; every other segment passes
    /// at once, and ends the steps of an acknowledgement that it repeats.
    pub(super) fn take(
        &mut self,
        now: Instant,
        segment: &Segment,
        packet: &[u8],
        scale: u8,
    ) -> bool {
        let (former, former_end) = (self.number, self.window_end);
        let (interval, stride) = (self.at.map(|at| now.since(at)), 2 * self.segment);
        if before(segment.ack, former) {
            return false;
        }
        self.number = segment.ack;
        self.window_end = segment.ack.wrapping_add(u32::from(segment.window) << scale);
        self.at = Some(now);
        // What is left of an earlier one is contained in this one.
        let sent = self.pending.take().map_or(former, |pending| pending.sent);
        let advance = distance(sent, segment.ack);
        let is_plain = segment.is_plain_ack() && segment.options.sack.blocks().is_empty();
        let Some(interval) = interval.filter(|_| is_plain && stride > 0 && advance > stride) else {
            return false;
        };
        // The same window field with a smaller number must not take back what was offered.
        if before(self.window_end.wrapping_sub(advance), former_end) {
            return false;
        }
        let stride = stride.max(advance.div_ceil(MOST));
        let steps = u64::from(advance.div_ceil(stride));
        let gap = interval.min(MAX_SPREAD) / steps;
        let packet = packet.to_vec();
        self.pending = Some(Pending { segment: *segment, packet, sent, stride, gap, next: now });
        true
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout).
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.pending.as_ref().map(|pending| pending.next)
    }

    /// Returns the acknowledgement that is due, and whether it was made here.
    pub(super) fn handle_timeout(&mut self, now: Instant) -> Option<(Vec<u8>, bool)> {
        let pending = self.pending.as_mut().filter(|pending| pending.next <= now)?;
        let number = pending.sent.wrapping_add(pending.stride);
        if !before(number, pending.segment.ack) {
            return self.pending.take().map(|pending| (pending.packet, false));
        }
        pending.sent = number;
        pending.next = now + pending.gap;
        let mut packet = pending.packet.clone();
        let places = pending.segment.places();
        places.set_ack(&mut packet, number, pending.segment.window);
        places.seal(&mut packet);
        Some((packet, true))
    }
}
