//! Time-based loss detection: RACK (RFC 8985), as in Linux by default.
//!
//! ```text
//!   RACK.segment   the most recently sent of all delivered segments          section 6.2, step 2
//!   lost           sent before it, longer ago than its round trip plus the
//!                  reordering window                                         section 6.2, step 5
//!   window         none during a recovery or once three segments beyond a
//!                  gap have arrived, and no reordering was seen; otherwise
//!                  1/4 of min_rtt                                            section 6.2, step 4
//! ```
//!
//! A lost retransmission is thus detected when a segment sent after it arrives. After a timeout
//! everything not delivered is lost, and is retransmitted as the window opens (section 6.3). The
//! reordering timer and the tail loss probe (section 7) are not implemented: the retransmission
//! timer replaces them.

use super::{Deflate, Outstanding, Report, Verdict};
use crate::log::SentLog;
use crate::segment::Block;
use units::{Instant, Span};

/// Segments beyond a gap that indicate a loss without reordering (DupThresh).
const DUPLICATES: u64 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Calm,
    /// Recovery up to this number.
    Repairing(u64),
    /// The same after a timeout.
    TimedOut(u64),
}

/// RACK's state.
#[derive(Clone, Debug)]
pub(crate) struct Rack {
    state: State,
    /// The first segment of a recovery is sent regardless of the window.
    first: bool,
    /// RACK.xmit_ts, RACK.end_seq and RACK.rtt.
    newest: Option<(Instant, u64, Span)>,
    least: Option<Span>,
    reordered: bool,
}

impl Rack {
    pub(crate) fn new() -> Self {
        let (newest, least) = (None, None);
        Self { state: State::Calm, first: false, newest, least, reordered: false }
    }

    pub(super) fn is_repairing(&self) -> bool {
        matches!(self.state, State::Repairing(_))
    }

    pub(super) fn lost(&mut self, now: &Outstanding, log: &SentLog, room: u64) -> Option<Block> {
        let (start, end) = log.first_lost()?;
        let end = end.min(start + now.segment);
        let goes = core::mem::take(&mut self.first) || room >= end - start;
        goes.then_some((start, end))
    }

    pub(super) fn on_timeout(&mut self, now: &Outstanding, log: &mut SentLog) {
        log.lose(|_| true);
        self.state = State::TimedOut(now.end);
        self.first = true;
    }

    pub(super) fn on_ack(
        &mut self,
        now: &Outstanding,
        report: &Report<'_>,
        log: &mut SentLog,
    ) -> Verdict {
        self.update(report);
        let over = match self.state {
            State::Calm => false,
            State::Repairing(point) | State::TimedOut(point) => now.oldest >= point,
        };
        let was_repairing = self.is_repairing();
        if over {
            self.state = State::Calm;
        }
        let newly = self.detect(report, now, log);
        match self.state {
            State::Calm if newly > 0 => {
                self.state = State::Repairing(now.end);
                self.first = true;
                Verdict::Loss
            }
            State::Calm if was_repairing => Verdict::Repaired { deflate: Deflate::Stays },
            State::Calm | State::TimedOut(_) => Verdict::Open,
            State::Repairing(_) => Verdict::Repairing { restart_timer: report.delivery.bytes > 0 },
        }
    }

    fn update(&mut self, report: &Report<'_>) {
        let delivery = report.delivery;
        if let Some(round_trip) = delivery.round_trip {
            self.least = Some(self.least.map_or(round_trip, |old| old.min(round_trip)));
        }
        self.reordered |= delivery.reordered;
        let Some(newest) = delivery.newest else { return };
        let round_trip = report.now.since(newest.at);
        // A faster acknowledgement than min_rtt is of the first transmission.
        if newest.times > 1 && self.least.is_some_and(|least| round_trip < least) {
            return;
        }
        if self.newest.is_none_or(|(at, end, _)| (at, end) < (newest.at, newest.end)) {
            self.newest = Some((newest.at, newest.end, round_trip));
        }
    }

    /// Marks losses; returns their octets that were not marked before.
    fn detect(&self, report: &Report<'_>, now: &Outstanding, log: &mut SentLog) -> u64 {
        let gap = log.arrived() > 0;
        let Some((at, end, round_trip)) = self.newest.filter(|_| gap || self.state != State::Calm)
        else {
            return 0;
        };
        let certain = self.state != State::Calm || log.arrived() >= DUPLICATES * now.segment;
        let window = if certain && !self.reordered {
            Span::ZERO
        } else {
            let quarter = self.least.unwrap_or(Span::ZERO) / 4;
            report.smoothed.map_or(quarter, |smoothed| quarter.min(smoothed))
        };
        log.lose(|record| {
            let before = (record.at, record.end) < (at, end);
            before && record.at + round_trip + window <= report.now
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::tests_report;

    const MSS: u64 = 1_000;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Span::from_millis(millis)
    }

    struct Harness {
        rack: Rack,
        log: SentLog,
        end: u64,
        oldest: u64,
    }

    impl Harness {
        /// Sends so many segments, one each millisecond from 0 on.
        fn new(end: u64) -> Self {
            let mut log = SentLog::default();
            (0..end).for_each(|n| log.on_sent(at(n), (n * MSS, (n + 1) * MSS)));
            Self { rack: Rack::new(), log, end, oldest: 0 }
        }

        fn ack(&mut self, millis: u64, oldest: u64, blocks: &[Block]) -> Verdict {
            let scaled: std::vec::Vec<Block> =
                blocks.iter().map(|&(start, end)| (start * MSS, end * MSS)).collect();
            let delivery = self.log.on_ack(at(millis), oldest * MSS, &scaled);
            let end = self.end * MSS;
            let now = Outstanding { oldest: oldest * MSS, next: end, end, segment: MSS };
            let report = Report {
                now: at(millis),
                before: self.oldest * MSS,
                sack: &scaled,
                delivery: &delivery,
                ..tests_report()
            };
            self.oldest = oldest;
            self.rack.on_ack(&now, &report, &mut self.log)
        }

        fn again(&mut self, millis: u64, room: u64) -> Option<u64> {
            let now = Outstanding { oldest: 0, next: 0, end: 0, segment: MSS };
            let block = self.rack.lost(&now, &self.log, room)?;
            self.log.on_sent(at(millis), block);
            Some(block.0 / MSS)
        }
    }

    #[test]
    fn three_segments_beyond_a_gap_mark_all_before_them_as_lost() {
        let mut harness = Harness::new(10);
        // 0 and 2 are lost. With two arrived the reordering window is 1/4 of 100 ms.
        assert_eq!(harness.ack(101, 0, &[(1, 2)]), Verdict::Open);
        assert_eq!(harness.ack(103, 0, &[(3, 4), (1, 2)]), Verdict::Open);
        assert_eq!(harness.ack(104, 0, &[(3, 5), (1, 2)]), Verdict::Loss);
        assert_eq!((harness.log.lost(), harness.log.on_way()), (2 * MSS, 5 * MSS));
        assert_eq!(harness.again(104, 0), Some(0), "the first whatever the window says");
        assert_eq!((harness.again(104, 0), harness.again(104, MSS)), (None, Some(2)));
    }

    #[test]
    fn lost_retransmission_is_detected_when_a_later_segment_arrives() {
        let mut harness = Harness::new(6);
        harness.ack(105, 0, &[(1, 5)]);
        assert_eq!(harness.again(105, 0), Some(0));
        harness.log.on_sent(at(110), (6 * MSS, 7 * MSS));
        harness.end = 7;
        harness.ack(106, 0, &[(1, 6)]);
        assert_eq!(harness.again(200, 9 * MSS), None, "it is on its way");
        // 6 was sent after 0 was retransmitted, and has arrived.
        let verdict = harness.ack(210, 0, &[(1, 7)]);
        assert_eq!(verdict, Verdict::Repairing { restart_timer: true });
        assert_eq!(harness.again(210, MSS), Some(0));
        assert_eq!(harness.ack(310, 7, &[]), Verdict::Repaired { deflate: Deflate::Stays });
    }

    #[test]
    fn everything_is_retransmitted_after_a_timeout_as_the_window_opens() {
        let mut harness = Harness::new(5);
        harness.ack(104, 0, &[(3, 4)]);
        let end = harness.end * MSS;
        let now = Outstanding { oldest: 0, next: end, end, segment: MSS };
        harness.rack.on_timeout(&now, &mut harness.log);
        assert_eq!((harness.log.lost(), harness.log.on_way()), (4 * MSS, 0));
        assert_eq!((harness.again(1_000, 0), harness.again(1_000, 0)), (Some(0), None));
        assert_eq!(harness.ack(1_100, 1, &[]), Verdict::Open, "slow start");
        assert_eq!((harness.again(1_100, 2 * MSS), harness.again(1_100, MSS)), (Some(1), Some(2)));
        assert_eq!(harness.again(1_100, MSS), Some(4), "3 had arrived");
    }
}
