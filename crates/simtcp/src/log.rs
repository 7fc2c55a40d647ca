//! What was sent when, and what the network delivered of it, and how fast.
//!
//! ```text
//!   a segment leaves    it remembers: delivered so far and when, and when the first of its flight
//!                       left                                                        section 3.1
//!   it is delivered     delivered += its length                                     section 3.2
//!   sample              (delivered - what it remembers) / the longer of: the time in which that
//!                       was sent, the time in which that was acknowledged           section 3.3
//! ```
//!
//! Sections are those of draft-cheng-iccrg-delivery-rate-estimation-02, with its names in
//! brackets. Kept only where a window or a recovery asks for it.

use crate::ranges::Ranges;
use crate::segment::Block;
use alloc::collections::VecDeque;
use units::{Instant, Span};

/// A segment that is not acknowledged in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// When it was last sent.
    pub(crate) at: Instant,
    /// How often it was sent.
    pub(crate) times: u32,
    /// A block has named it.
    pub(crate) arrived: bool,
    /// It is taken to be lost, and was not retransmitted since.
    pub(crate) lost: bool,
    /// [P.first_sent_time], [P.delivered], [P.delivered_time], [P.is_app_limited].
    first: Instant,
    delivered: u64,
    delivered_at: Instant,
    limited: bool,
}

impl Sent {
    fn len(&self) -> u64 {
        self.end - self.start
    }
}

/// What an acknowledgement delivered.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Delivery {
    /// Bytes that are acknowledged for the first time, in order or by blocks.
    pub(crate) bytes: u64,
    /// The one of them that was sent last.
    pub(crate) newest: Option<Sent>,
    /// The round trip of the one that was sent last of those that were sent once.
    pub(crate) round_trip: Option<Span>,
    /// One that was sent once came after a later one: the network changes the order.
    pub(crate) reordered: bool,
}

/// The delivery rate that a segment has seen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rate {
    /// In bytes per second.
    pub(crate) bytes_per_second: f64,
    /// What was delivered when the segment left.
    pub(crate) prior_delivered: u64,
    /// The sender had nothing more to send: the network may do better.
    pub(crate) limited: bool,
}

/// The segments on the way.
#[derive(Clone, Debug, Default)]
pub(crate) struct SentLog {
    records: VecDeque<Sent>,
    board: Ranges,
    /// [C.delivered] and [C.delivered_time].
    delivered: u64,
    delivered_at: Instant,
    /// [C.first_sent_time].
    first: Instant,
    /// [C.app_limited].
    limited_until: u64,
    /// Bytes neither delivered nor lost; and those that are lost.
    on_way: u64,
    lost: u64,
}

impl SentLog {
    /// Bytes delivered so far.
    pub(crate) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Bytes neither delivered nor taken to be lost.
    pub(crate) fn on_way(&self) -> u64 {
        self.on_way
    }

    /// Bytes that are taken to be lost and wait to be retransmitted.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Bytes that blocks have named.
    pub(crate) fn arrived(&self) -> u64 {
        self.board.total()
    }

    /// When the oldest was last sent.
    pub(crate) fn oldest_sent(&self) -> Option<Instant> {
        self.records.front().map(|record| record.at)
    }

    /// There is nothing more to send although there would be room.
    pub(crate) fn limit(&mut self) {
        self.limited_until = (self.delivered + self.on_way).max(1);
    }

    /// A segment leaves, for the first time or again.
    pub(crate) fn on_sent(&mut self, now: Instant, (start, end): Block) {
        if self.on_way == 0 {
            (self.first, self.delivered_at) = (now, now);
        }
        if self.records.back().is_none_or(|last| start >= last.end) {
            self.records.push_back(Sent {
                start,
                end,
                at: now,
                times: 1,
                arrived: false,
                lost: false,
                first: self.first,
                delivered: self.delivered,
                delivered_at: self.delivered_at,
                limited: self.limited_until != 0,
            });
            self.on_way += end - start;
            return;
        }
        self.split(start);
        self.split(end);
        let mut index = self.place(start);
        while let Some(record) = self.records.get_mut(index).filter(|record| record.start < end) {
            if core::mem::take(&mut record.lost) {
                self.lost -= record.len();
                self.on_way += record.len();
            }
            record.times = record.times.saturating_add(1);
            record.at = now;
            record.first = self.first;
            record.delivered = self.delivered;
            record.delivered_at = self.delivered_at;
            record.limited = self.limited_until != 0;
            index += 1;
        }
    }

    /// Everything below `oldest` and within `blocks` has arrived.
    pub(crate) fn on_ack(&mut self, now: Instant, oldest: u64, blocks: &[Block]) -> Delivery {
        let mut delivery = Delivery::default();
        let highest = self.board.last().map_or(0, |run| run.1);
        self.split(oldest);
        while let Some(record) = self.records.front().filter(|record| record.end <= oldest) {
            let record = *record;
            self.records.pop_front();
            if !record.arrived {
                self.deliver(now, record, highest, &mut delivery);
            }
        }
        self.board.remove_below(oldest);
        let end = self.records.back().map_or(oldest, |last| last.end);
        for &(start, stop) in blocks.iter().filter(|run| run.0 >= oldest && run.1 <= end) {
            self.mark(now, (start, stop), highest, &mut delivery);
            self.board.insert((start, stop));
        }
        if self.limited_until != 0 && self.delivered > self.limited_until {
            self.limited_until = 0;
        }
        delivery
    }

    /// A block names what has arrived.
    fn mark(&mut self, now: Instant, block: Block, highest: u64, delivery: &mut Delivery) {
        let mut from = block.0;
        while let Some((start, stop)) = self.board.gap_from(from, block.1) {
            let mut index = self.place(start);
            while let Some(&record) = self.records.get(index).filter(|record| record.end <= stop) {
                if !record.arrived && record.start >= start {
                    self.records[index].arrived = true;
                    self.records[index].lost = false;
                    self.deliver(now, record, highest, delivery);
                }
                index += 1;
            }
            from = stop;
        }
    }

    fn deliver(&mut self, now: Instant, record: Sent, highest: u64, delivery: &mut Delivery) {
        self.delivered += record.len();
        self.delivered_at = now;
        if record.lost {
            self.lost -= record.len();
        } else {
            self.on_way -= record.len();
        }
        delivery.bytes += record.len();
        let later = |old: Sent| (old.at, old.end) < (record.at, record.end);
        if delivery.newest.is_none_or(later) {
            delivery.newest = Some(record);
        }
        if record.times == 1 {
            let round_trip = now.since(record.at);
            delivery.round_trip =
                Some(delivery.round_trip.map_or(round_trip, |old| old.min(round_trip)));
            delivery.reordered |= record.end < highest;
        }
    }

    /// The rate that the newest of `delivery` has seen; None below `least`, the shortest round
    /// trip, which is too short a time to tell (section 3.3).
    pub(crate) fn rate(&mut self, delivery: &Delivery, least: Option<Span>) -> Option<Rate> {
        let newest = delivery.newest?;
        let sending = newest.at.since(newest.first);
        let acknowledging = self.delivered_at.since(newest.delivered_at);
        self.first = newest.at;
        let interval = sending.max(acknowledging);
        if interval.is_zero() || least.is_some_and(|least| interval < least) {
            return None;
        }
        let bytes = self.delivered - newest.delivered;
        Some(Rate {
            bytes_per_second: bytes as f64 / interval.as_secs_f64(),
            prior_delivered: newest.delivered,
            limited: newest.limited,
        })
    }

    /// Takes those for lost of which `is_lost` says so; returns how many bytes they have.
    pub(crate) fn lose(&mut self, mut is_lost: impl FnMut(&Sent) -> bool) -> u64 {
        let mut bytes = 0;
        for record in self.records.iter_mut().filter(|record| !record.arrived && !record.lost) {
            if is_lost(record) {
                record.lost = true;
                bytes += record.len();
            }
        }
        self.on_way -= bytes;
        self.lost += bytes;
        bytes
    }

    /// The first that is taken to be lost.
    pub(crate) fn first_lost(&self) -> Option<Block> {
        if self.lost == 0 {
            return None;
        }
        self.records.iter().find(|record| record.lost).map(|record| (record.start, record.end))
    }

    /// The first record that ends above `number`.
    fn place(&self, number: u64) -> usize {
        self.records.partition_point(|record| record.end <= number)
    }

    /// Makes `number` a boundary.
    fn split(&mut self, number: u64) {
        let index = self.place(number);
        let Some(record) = self.records.get_mut(index).filter(|record| record.start < number)
        else {
            return;
        };
        let upper = Sent { start: number, ..*record };
        record.end = number;
        self.records.insert(index + 1, upper);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_000;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Span::from_millis(millis)
    }

    fn block(start: u64, end: u64) -> Block {
        (start * MSS, end * MSS)
    }

    #[test]
    fn a_flow_at_ten_segments_in_a_hundred_milliseconds_shows_that() {
        let mut log = SentLog::default();
        // One each 10 ms, acknowledged 100 ms later.
        let mut rates = std::vec::Vec::new();
        for step in 0..30 {
            log.on_sent(at(10 * step), block(step, step + 1));
            if step >= 10 {
                let delivery = log.on_ack(at(10 * step), (step - 9) * MSS, &[]);
                assert_eq!(delivery.round_trip, Some(Span::from_millis(100)));
                rates.extend(log.rate(&delivery, Some(Span::from_millis(50))));
            }
        }
        // The first ten saw nothing delivered when they left: 1000 to 10,000 bytes in 100 ms
        // from the first transmission on, later 10 in 100.
        assert!((rates[0].bytes_per_second - 10_000.0).abs() < 1.0, "{:?}", rates[0]);
        let last = rates.last().unwrap();
        assert!((last.bytes_per_second - 100_000.0).abs() < 1.0, "{last:?}");
        // It left at 190 ms, when those that left up to 80 ms had been acknowledged.
        assert_eq!(last.prior_delivered, 9 * MSS);
    }

    #[test]
    fn what_blocks_name_is_delivered_once_and_what_is_lost_leaves_the_way() {
        let mut log = SentLog::default();
        (0..10).for_each(|n| log.on_sent(at(n), block(n, n + 1)));
        assert_eq!(log.on_ack(at(100), 0, &[block(2, 5)]).bytes, 3 * MSS);
        let delivery = log.on_ack(at(101), 0, &[block(7, 8), block(2, 5)]);
        assert_eq!((delivery.bytes, log.on_way(), log.arrived()), (MSS, 6 * MSS, 4 * MSS));
        assert_eq!(log.lose(|record| record.at < at(7)), 4 * MSS);
        assert_eq!(
            (log.first_lost(), log.on_way(), log.lost()),
            (Some(block(0, 1)), 2 * MSS, 4 * MSS)
        );
        log.on_sent(at(102), block(0, 1));
        assert_eq!((log.first_lost(), log.on_way()), (Some(block(1, 2)), 3 * MSS));
        // Of what was sent twice there is no round trip (Karn); up to 5 the rest was known.
        let delivery = log.on_ack(at(200), 5 * MSS, &[]);
        assert_eq!((delivery.bytes, log.delivered()), (2 * MSS, 6 * MSS));
        assert_eq!(delivery.newest.map(|newest| newest.start), Some(0));
        assert!(delivery.reordered, "1 came, sent once, after 7");
        assert_eq!(log.lost(), 2 * MSS);
    }

    #[test]
    fn a_segment_may_be_sent_again_in_parts() {
        let mut log = SentLog::default();
        log.on_sent(at(0), (0, 1_000));
        log.lose(|_| true);
        log.on_sent(at(5), (0, 400));
        assert_eq!((log.on_way(), log.lost(), log.first_lost()), (400, 600, Some((400, 1_000))));
        assert_eq!(log.on_ack(at(10), 400, &[]).bytes, 400);
        assert_eq!((log.on_way(), log.lost()), (0, 600));
    }
}
