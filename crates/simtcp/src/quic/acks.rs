//! Received packet numbers, and when they are acknowledged (RFC 9000, section 13.2).

use super::wire::{Ack, MAX_RANGES};
use crate::ranges::Ranges;
use units::{Instant, Span};

/// The receiver's record of packet numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Received {
    numbers: Ranges,
    /// Numbers below are not recorded any more, and rejected (section 13.2.3).
    floor: u64,
    /// When the packet with the largest number arrived.
    largest_at: Instant,
    /// Ack-eliciting packets since the last ACK frame.
    unacknowledged: u32,
    /// An ACK is to be sent at once.
    at_once: bool,
    /// The delayed ACK.
    due: Option<Instant>,
}

impl Received {
    /// Records a packet; returns whether it is new.
    pub(super) fn on_packet(
        &mut self,
        now: Instant,
        number: u64,
        eliciting: bool,
        max_delay: Span,
    ) -> bool {
        if number < self.floor {
            return false;
        }
        let expected = self.numbers.last().map_or(0, |(_, end)| end);
        let (fresh, _) = self.numbers.insert((number, number + 1));
        if fresh == 0 {
            // The ACK of the first copy may be lost.
            self.at_once |= eliciting;
            return false;
        }
        if number >= expected {
            self.largest_at = now;
        }
        while self.numbers.iter().count() > 2 * MAX_RANGES {
            let Some((_, end)) = self.numbers.first() else { break };
            self.forget_below(end);
        }
        if eliciting {
            self.unacknowledged += 1;
            // Section 13.2.1: out of order at once; 13.2.2: every second packet.
            self.at_once |= number != expected || self.unacknowledged >= 2;
            self.due.get_or_insert(now + max_delay);
        }
        true
    }

    /// Whether an ACK frame is to be sent.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.at_once || self.due.is_some_and(|at| at <= now)
    }

    /// Whether an ACK frame would acknowledge something new.
    pub(super) fn has_news(&self) -> bool {
        self.at_once || self.due.is_some()
    }

    /// When the delayed ACK is due.
    pub(super) fn timer(&self) -> Option<Instant> {
        if self.at_once { Some(Instant::ZERO) } else { self.due }
    }

    /// The ACK frame to be sent now, with the delay in units of 2^`exponent` µs (section 19.3).
    pub(super) fn ack(&mut self, now: Instant, exponent: u64) -> Option<Ack> {
        self.numbers.last()?;
        (self.unacknowledged, self.at_once, self.due) = (0, false, None);
        let ranges = self.numbers.iter().rev().take(MAX_RANGES).collect();
        Some(Ack { ranges, delay: now.since(self.largest_at).as_micros() >> exponent })
    }

    /// Handles the acknowledgement of an ACK frame with this largest number (section 13.2.4).
    pub(super) fn on_ack_acknowledged(&mut self, largest: u64) {
        self.forget_below(largest);
    }

    fn forget_below(&mut self, bound: u64) {
        self.numbers.remove_below(bound);
        self.floor = self.floor.max(bound);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELAY: Span = Span::from_millis(25);

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Span::from_millis(millis)
    }

    #[test]
    fn rfc_9000_section_13_2_every_second_packet_and_max_ack_delay() {
        let mut received = Received::default();
        assert!(received.on_packet(at(0), 0, true, DELAY));
        assert!(!received.is_due(at(24)) && received.is_due(at(25)));
        assert!(received.on_packet(at(5), 1, true, DELAY));
        assert!(received.is_due(at(5)), "the second");
        let ack = received.ack(at(13), 3).unwrap();
        assert_eq!((ack.ranges, ack.delay), (alloc::vec![(0, 2)], 1_000), "8 ms in 8 µs");
        assert!(received.on_packet(at(20), 2, false, DELAY));
        assert!(!received.has_news(), "an ACK is not acknowledged");
        assert!(received.on_packet(at(30), 5, true, DELAY));
        assert!(received.is_due(at(30)), "a gap is reported at once");
    }

    #[test]
    fn rfc_9000_section_13_2_3_ranges_are_more_than_four_and_bounded() {
        let mut received = Received::default();
        for number in 0..1_000 {
            assert!(received.on_packet(at(number), 2 * number, true, DELAY));
        }
        let ack = received.ack(at(1_000), 3).unwrap();
        assert_eq!(ack.ranges.len(), MAX_RANGES);
        assert_eq!(ack.ranges[0], (1_998, 1_999));
        assert!(received.numbers.len() <= 2 * MAX_RANGES);
        assert!(!received.on_packet(at(1_001), 1, true, DELAY), "below the floor");
        received.on_ack_acknowledged(1_990);
        assert_eq!(received.ack(at(1_001), 3).unwrap().ranges.len(), 5);
    }
}
