//! Sent packets, and loss detection (RFC 9002, section 6 and section 7.6).

use super::round_trip::RoundTrip;
use crate::segment::Block;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use units::{Instant, Span};

/// kPacketThreshold (section 6.1.1).
const PACKET_THRESHOLD: u64 = 3;
/// kPersistentCongestionThreshold (section 7.6.1).
const PERSISTENT: u64 = 3;

/// What an ack-eliciting packet carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Content {
    /// Octets of the stream.
    pub(super) data: Option<Block>,
    pub(super) fin: bool,
    pub(super) crypto: bool,
    pub(super) max_stream_data: bool,
    /// The largest number in its ACK frame.
    pub(super) ack: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    InFlight,
    Acknowledged,
    Lost,
}

/// A sent ack-eliciting packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) number: u64,
    pub(super) at: Instant,
    pub(super) size: u64,
    pub(super) content: Content,
    fate: Fate,
}

/// What an ACK frame resulted in.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    pub(super) acknowledged: Vec<Sent>,
    /// The largest newly acknowledged packet, if it is the largest of the frame: it gives a sample.
    pub(super) largest: Option<Sent>,
}

/// The ack-eliciting packets of a connection, in the order of their numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct SentPackets {
    /// Starts with a packet in flight; acknowledged and lost ones behind it are kept.
    packets: VecDeque<Sent>,
    in_flight: u64,
    largest_acked: Option<u64>,
    /// When the next packet exceeds the time threshold.
    pub(super) loss_time: Option<Instant>,
    /// When the last ack-eliciting packet was sent.
    last_sent: Instant,
}

impl SentPackets {
    pub(super) fn on_sent(&mut self, now: Instant, number: u64, size: u64, content: Content) {
        self.packets.push_back(Sent { number, at: now, size, content, fate: Fate::InFlight });
        self.in_flight += size;
        self.last_sent = now;
    }

    /// Octets in flight.
    pub(super) fn in_flight(&self) -> u64 {
        self.in_flight
    }

    pub(super) fn last_sent(&self) -> Instant {
        self.last_sent
    }

    /// The packets in flight, oldest first.
    pub(super) fn outstanding(&self) -> impl Iterator<Item = &Sent> {
        self.packets.iter().filter(|packet| packet.fate == Fate::InFlight)
    }

    /// Handles the ranges of an ACK frame, highest first.
    pub(super) fn on_ack(&mut self, ranges: &[Block]) -> Outcome {
        let mut outcome = Outcome::default();
        let Some(largest) = ranges.first().map(|&(_, end)| end - 1) else { return outcome };
        self.largest_acked = Some(self.largest_acked.map_or(largest, |old| old.max(largest)));
        for &(start, end) in ranges.iter().rev() {
            let from = self.packets.partition_point(|packet| packet.number < start);
            for packet in self.packets.range_mut(from..).take_while(|packet| packet.number < end) {
                if packet.fate == Fate::InFlight {
                    self.in_flight -= packet.size;
                    outcome.acknowledged.push(*packet);
                }
                // A packet that was declared lost too early interrupts persistent congestion.
                packet.fate = Fate::Acknowledged;
            }
        }
        outcome.largest =
            outcome.acknowledged.last().copied().filter(|packet| packet.number == largest);
        outcome
    }

    /// Declares packets lost by the packet and the time threshold (section 6.1).
    pub(super) fn detect_lost(&mut self, now: Instant, round_trip: &RoundTrip) -> Vec<Sent> {
        self.loss_time = None;
        let mut lost = Vec::new();
        let Some(largest) = self.largest_acked else { return lost };
        let delay = round_trip.loss_delay();
        for packet in self.packets.iter_mut().take_while(|packet| packet.number <= largest) {
            if packet.fate != Fate::InFlight {
                continue;
            }
            if packet.at + delay <= now || largest >= packet.number + PACKET_THRESHOLD {
                packet.fate = Fate::Lost;
                self.in_flight -= packet.size;
                lost.push(*packet);
            } else {
                let at = packet.at + delay;
                self.loss_time = Some(self.loss_time.map_or(at, |earlier| earlier.min(at)));
            }
        }
        lost
    }

    /// Whether the lost packets establish persistent congestion (section 7.6.2): two of them, sent
    /// after the first sample, are further apart than `period`, and no packet between them was
    /// acknowledged. Packets that are not needed any more are forgotten then.
    pub(super) fn take_persistent(&mut self, first_sample: Option<Instant>, period: Span) -> bool {
        let mut run: Option<Instant> = None;
        let mut persistent = false;
        for packet in &self.packets {
            match packet.fate {
                Fate::Acknowledged => run = None,
                Fate::InFlight => {}
                Fate::Lost if first_sample.is_none_or(|first| packet.at <= first) => {}
                Fate::Lost => {
                    let start = *run.get_or_insert(packet.at);
                    persistent |= packet.at.since(start) > period;
                }
            }
        }
        if persistent {
            self.packets.retain(|packet| packet.fate == Fate::InFlight);
        }
        while self.packets.front().is_some_and(|packet| packet.fate != Fate::InFlight) {
            self.packets.pop_front();
        }
        persistent
    }

    /// The period of persistent congestion (section 7.6.1).
    pub(super) fn persistent_period(round_trip: &RoundTrip, max_ack_delay: Span) -> Span {
        round_trip.probe_timeout(max_ack_delay) * PERSISTENT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Span::from_millis(millis)
    }

    /// Packets from 0 on, one each `every` ms from 1 on, and a round trip of 100 ms.
    fn sent(count: u64, every: u64) -> (SentPackets, RoundTrip) {
        let mut packets = SentPackets::default();
        (0..count).for_each(|n| packets.on_sent(at(1 + n * every), n, 1_000, Content::default()));
        let mut round_trip = RoundTrip::new();
        round_trip.sample(Instant::ZERO, Span::from_millis(100), Span::ZERO);
        (packets, round_trip)
    }

    fn numbers(packets: &[Sent]) -> Vec<u64> {
        packets.iter().map(|packet| packet.number).collect()
    }

    #[test]
    fn rfc_9002_section_6_1_1_three_later_packets_make_a_loss() {
        let (mut packets, round_trip) = sent(10, 0);
        packets.on_ack(&[(2, 3)]);
        assert_eq!(numbers(&packets.detect_lost(at(50), &round_trip)), [0; 0]);
        packets.on_ack(&[(4, 5), (2, 3)]);
        assert_eq!(numbers(&packets.detect_lost(at(50), &round_trip)), [0, 1]);
        assert_eq!(packets.in_flight(), 6_000);
    }

    #[test]
    fn rfc_9002_section_6_1_2_time_threshold_and_loss_timer() {
        let (mut packets, round_trip) = sent(2, 0);
        packets.on_ack(&[(1, 2)]);
        assert!(packets.detect_lost(at(101), &round_trip).is_empty());
        // 9/8 of 100 ms after the transmission at 1 ms.
        let due = packets.loss_time.unwrap();
        assert_eq!(due, at(1) + Span::from_micros(112_500));
        assert_eq!(numbers(&packets.detect_lost(due, &round_trip)), [0]);
        assert_eq!(packets.loss_time, None);
    }

    #[test]
    fn rfc_9002_section_7_6_losses_over_three_timeouts_are_persistent() {
        // PTO: 100 + 4 × 50 + 25 ms; three are 975 ms.
        let period = SentPackets::persistent_period(&sent(0, 0).1, Span::from_millis(25));
        assert_eq!(period, Span::from_millis(975));
        let judge = |every, acked: &[Block], first: Option<Instant>| {
            let (mut packets, round_trip) = sent(12, every);
            packets.on_ack(acked);
            packets.detect_lost(at(5_000), &round_trip);
            packets.take_persistent(first, period)
        };
        assert!(judge(100, &[(11, 12)], Some(at(0))), "1000 ms");
        assert!(!judge(97, &[(11, 12)], Some(at(0))), "970 ms");
        assert!(!judge(100, &[(11, 12), (5, 6)], Some(at(0))), "one between them arrived");
        assert!(!judge(100, &[(11, 12)], Some(at(101))), "sent before the first sample");
        assert!(!judge(100, &[(11, 12)], None));
    }

    #[test]
    fn memory_is_released_behind_the_oldest_in_flight() {
        let (mut packets, round_trip) = sent(100, 0);
        packets.on_ack(&[(1, 100)]);
        packets.detect_lost(at(2), &round_trip);
        assert!(!packets.take_persistent(None, Span::MAX));
        assert!(packets.packets.is_empty());
    }
}
