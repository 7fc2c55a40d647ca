//! Transmission log: delivery and delivery rate of segments.
//!
//! ```text
//!   sent             stores: delivered so far and when, and when the first of its flight was
//!                    sent                                                        section 3.1
//!   delivered        delivered += its length                                     section 3.2
//!   sample           (delivered - stored) / max(time in which that was sent, time in which
//!                    that was acknowledged)                                      section 3.3
//! ```
//! Sections are those of draft-cheng-iccrg-delivery-rate-estimation-02, with its names in brackets.
//! Maintained only if a window or a recovery needs it.

use crate::ranges::Ranges;
use crate::segment::Block;
use alloc::collections::VecDeque;
use units::{Instant, Span};

/// A segment that is not cumulatively acknowledged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// When it was last sent.
    pub(crate) at: Instant,
    /// How often it was sent.
    pub(crate) times: u32,
    /// It is selectively acknowledged.
    pub(crate) arrived: bool,
    /// It is considered lost, and was not retransmitted since.
    pub(crate) lost: bool,
    /// [P.first_sent_time], [P.delivered], [P.delivered_time], [P.is_app_limited].
    first: Instant,
    delivered: u64,
    delivered_at: Instant,
    limited: bool,
    /// [P.tx_in_flight] and [P.lost]: octets in flight with it, and lost before it.
    in_flight: u64,
    lost_before: u64,
}

impl Sent {
    fn len(&self) -> u64 {
        self.end - self.start
    }
}

/// The data delivered by an acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Delivery {
    /// Octets acknowledged for the first time, cumulatively or selectively.
    pub(crate) bytes: u64,
    /// The segment of them that was sent last.
    pub(crate) newest: Option<Sent>,
    /// The round trip of the most recently sent of those transmitted once.
    pub(crate) round_trip: Option<Span>,
    /// A segment transmitted once was delivered after a later one: the network reorders.
    pub(crate) reordered: bool,
}

/// The delivery rate sampled by a segment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rate {
    /// In bytes per second.
    pub(crate) bytes_per_second: f64,
    /// Octets delivered when the segment was sent.
    pub(crate) prior_delivered: u64,
    /// The sender was application-limited: the path may be faster.
    pub(crate) limited: bool,
}

/// The flight of a segment (draft-ietf-ccwg-bbr, section 5.5.10.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flight {
    /// Octets in flight when it was sent, itself included.
    pub(crate) in_flight: u64,
    /// Octets lost since then.
    pub(crate) lost: u64,
    /// Octets delivered since then.
    pub(crate) delivered: u64,
    /// Its own octets.
    pub(crate) len: u64,
    /// The sender was application-limited.
    pub(crate) limited: bool,
}

/// Share of a flight whose loss is too much: 1/50 (BBR.LossThresh).
pub(crate) const HEAVY_LOSS: u64 = 50;

/// The outstanding segments.
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
    /// Octets neither delivered nor lost; and octets lost.
    on_way: u64,
    lost: u64,
    /// Octets lost so far; and the first segment whose flight lost too much, until it is taken.
    lost_ever: u64,
    heavy_loss: Option<Flight>,
}

impl SentLog {
    /// Bytes delivered so far.
    pub(crate) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Octets neither delivered nor considered lost.
    pub(crate) fn on_way(&self) -> u64 {
        self.on_way
    }

    /// Octets considered lost and not yet retransmitted.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Octets selectively acknowledged.
    pub(crate) fn arrived(&self) -> u64 {
        self.board.total()
    }

    /// When the oldest was last sent.
    pub(crate) fn oldest_sent(&self) -> Option<Instant> {
        self.records.front().map(|record| record.at)
    }

    /// Marks the flow as application-limited.
    pub(crate) fn limit(&mut self) {
        self.limited_until = (self.delivered + self.on_way).max(1);
    }

    /// Records a transmission or retransmission.
    pub(crate) fn on_sent(&mut self, now: Instant, (start, end): Block) {
        if self.on_way == 0 {
            (self.first, self.delivered_at) = (now, now);
        }
        if self.records.back().is_none_or(|last| start >= last.end) {
            self.on_way += end - start;
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
                in_flight: self.on_way,
                lost_before: self.lost_ever,
            });
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
            record.in_flight = self.on_way;
            record.lost_before = self.lost_ever;
            index += 1;
        }
    }

    /// Handles the acknowledgement of everything below `oldest` and within `blocks`.
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

    /// Handles a SACK block.
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

    /// The rate sampled by the newest of `delivery`; `None` if the interval is below `least`, the
    /// minimum round trip (section 3.3).
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

    /// Marks as lost the segments for which `is_lost` returns true; returns their octets.
    pub(crate) fn lose(&mut self, mut is_lost: impl FnMut(&Sent) -> bool) -> u64 {
        let mut bytes = 0;
        for record in self.records.iter_mut().filter(|record| !record.arrived && !record.lost) {
            if is_lost(record) {
                record.lost = true;
                bytes += record.len();
                self.lost_ever += record.len();
                let flight = flight_of(record, self.lost_ever, self.delivered);
                if self.heavy_loss.is_none() && flight.lost * HEAVY_LOSS > flight.in_flight {
                    self.heavy_loss = Some(flight);
                }
            }
        }
        self.on_way -= bytes;
        self.lost += bytes;
        bytes
    }

    /// The flight of the newest segment of `delivery`.
    pub(crate) fn flight(&self, delivery: &Delivery) -> Option<Flight> {
        delivery.newest.map(|newest| flight_of(&newest, self.lost_ever, self.delivered))
    }

    /// Takes the first segment whose loss was too much for its flight since the last call.
    pub(crate) fn take_heavy_loss(&mut self) -> Option<Flight> {
        self.heavy_loss.take()
    }

    /// The first segment considered lost.
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

    /// Splits a record at `number`.
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

fn flight_of(record: &Sent, lost_ever: u64, delivered: u64) -> Flight {
    Flight {
        in_flight: record.in_flight,
        lost: lost_ever - record.lost_before,
        delivered: delivered - record.delivered,
        len: record.len(),
        limited: record.limited,
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
        // One segment each 10 ms, acknowledged 100 ms later.
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
        // It was sent at 190 ms, when those sent up to 80 ms had been acknowledged.
        assert_eq!(last.prior_delivered, 9 * MSS);
    }

    #[test]
    fn sacked_data_is_delivered_once_and_lost_data_is_not_in_flight() {
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
        // Retransmitted data has no round trip (Karn); up to 5 the rest was already delivered.
        let delivery = log.on_ack(at(200), 5 * MSS, &[]);
        assert_eq!((delivery.bytes, log.delivered()), (2 * MSS, 6 * MSS));
        assert_eq!(delivery.newest.map(|newest| newest.start), Some(0));
        assert!(delivery.reordered, "1 came, sent once, after 7");
        assert_eq!(log.lost(), 2 * MSS);
    }

    #[test]
    fn segment_may_be_retransmitted_in_parts() {
        let mut log = SentLog::default();
        log.on_sent(at(0), (0, 1_000));
        log.lose(|_| true);
        log.on_sent(at(5), (0, 400));
        assert_eq!((log.on_way(), log.lost(), log.first_lost()), (400, 600, Some((400, 1_000))));
        assert_eq!(log.on_ack(at(10), 400, &[]).bytes, 400);
        assert_eq!((log.on_way(), log.lost()), (0, 600));
    }
}
