//! Loss recovery by SACK (RFC 6675), with its names in brackets.
//!
//! ```text
//!   lost        three runs above it are acknowledged, or more than two segments   [IsLost]
//!   pipe        neither acknowledged nor lost, and retransmissions            [SetPipe]
//!   sent next   1 lost data  2 new data  3 gaps below the highest acknowledged
//!               4 the last segment, once                                          [NextSeg]
//! ```
//!
//! Three acknowledgements with new blocks, or a lost oldest segment, start a recovery. The oldest
//! is retransmitted immediately, the rest as pipe falls below the window. The recovery ends when
//! everything outstanding at its start is acknowledged. After a timeout selective acknowledgements
//! are kept (section 5.1), and no recovery starts before the same point.

use super::{Deflate, Outstanding, Report, Verdict};
use crate::ranges::Ranges;
use crate::segment::Block;

/// Duplicates, or runs, that indicate a loss [DupThresh].
const DUPLICATES: u32 = 3;

/// The scoreboard and the current recovery.
#[derive(Clone, Debug)]
pub(crate) struct Sack {
    limited_transmit: bool,
    /// Data selectively acknowledged.
    board: Ranges,
    duplicates: u32,
    /// No recovery starts while the oldest is below this [RecoveryPoint].
    point: u64,
    repair: Option<Repair>,
}

/// A recovery in progress.
#[derive(Clone, Copy, Debug)]
struct Repair {
    /// The number after the highest that was retransmitted [HighRxt].
    high: u64,
    /// The oldest was retransmitted, regardless of the window (step 4.3).
    begun: bool,
    /// The last segment has been retransmitted up to this point [RescueRxt].
    rescued: Option<u64>,
    /// Everything below is considered lost, unless it is on the scoreboard.
    lost_below: u64,
    /// [pipe], updated between acknowledgements.
    pipe: u64,
    /// The end of the data outstanding when pipe was computed; data sent since is added.
    counted_to: u64,
}

impl Sack {
    pub(crate) fn new(limited_transmit: bool) -> Self {
        Self { limited_transmit, board: Ranges::default(), duplicates: 0, point: 0, repair: None }
    }

    pub(super) fn is_repairing(&self) -> bool {
        self.repair.is_some()
    }

    pub(super) fn on_ack(&mut self, now: &Outstanding, report: &Report<'_>) -> Verdict {
        let mut fresh = 0;
        for &(start, end) in report.sack {
            // Only outstanding data can be acknowledged; blocks below the oldest are D-SACK.
            if start >= now.oldest && end <= now.end {
                fresh += self.board.insert((start, end)).0;
            }
        }
        self.board.remove_below(now.oldest);
        let advanced = now.oldest > report.before;
        if advanced {
            self.duplicates = 0;
        }
        if self.repair.is_some() {
            if now.oldest >= self.point {
                self.repair = None;
                return Verdict::Repaired { deflate: Deflate::Stays };
            }
            self.count(now);
            return Verdict::Repairing { restart_timer: advanced };
        }
        if fresh > 0 {
            self.duplicates += 1;
        }
        let lost = fresh > 0
            && now.oldest >= self.point
            && now.oldest < now.end
            && (self.duplicates >= DUPLICATES || self.lost_below(now) > now.oldest);
        if !lost {
            return Verdict::Open;
        }
        self.point = now.end;
        self.repair = Some(Repair {
            high: now.oldest,
            begun: false,
            rescued: None,
            lost_below: now.oldest,
            pipe: 0,
            counted_to: now.end,
        });
        self.count(now);
        Verdict::Loss
    }

    pub(super) fn on_timeout(&mut self, now: &Outstanding) {
        self.point = now.end;
        self.repair = None;
        self.duplicates = 0;
    }

    /// Octets estimated to be in flight [SetPipe].
    pub(super) fn pipe(&self, now: &Outstanding) -> u64 {
        match &self.repair {
            Some(repair) => repair.pipe + (now.end - repair.counted_to),
            // The first duplicates allow new data only with limited transmit (RFC 3042).
            None if !self.limited_transmit && now.next == now.end => now.end - now.oldest,
            None => (now.next - now.oldest) - self.board.total_below(now.next),
        }
    }

    /// Everything below is lost unless it is on the scoreboard [IsLost].
    fn lost_below(&self, now: &Outstanding) -> u64 {
        let (mut runs, mut bytes) = (0, 0);
        for (start, end) in self.board.iter().rev() {
            runs += 1;
            bytes += end - start;
            if runs >= DUPLICATES || bytes > u64::from(DUPLICATES - 1) * now.segment {
                return start;
            }
        }
        now.oldest
    }

    fn count(&mut self, now: &Outstanding) {
        let lost_below = self.lost_below(now);
        let Some(repair) = &mut self.repair else { return };
        repair.lost_below = lost_below.max(now.oldest);
        repair.high = repair.high.max(now.oldest);
        let below = self.board.total_below(repair.lost_below);
        let above = self.board.total() - below;
        let waiting = (now.end - repair.lost_below) - above;
        let again = if repair.high == now.oldest {
            0
        } else {
            (repair.high - now.oldest) - self.board.total_below(repair.high)
        };
        repair.pipe = waiting + again;
        repair.counted_to = now.end;
    }

    /// Rule 1 of NextSeg, and the first segment of a recovery.
    pub(super) fn lost(&mut self, now: &Outstanding, room: u64) -> Option<Block> {
        let repair = self.repair.as_mut()?;
        let (from, below) = if repair.begun {
            if room < now.segment {
                return None;
            }
            (repair.high, repair.lost_below)
        } else {
            (now.oldest, now.end)
        };
        let (start, end) = self.board.gap_from(from, below)?;
        repair.begun = true;
        Some(repair.sends(start, end.min(start + now.segment)))
    }

    /// Rules 3 and 4 of NextSeg.
    pub(super) fn perhaps_lost(&mut self, now: &Outstanding) -> Option<Block> {
        let repair = self.repair.as_mut()?;
        let highest = self.board.last().map_or(now.oldest, |run| run.1);
        if let Some((start, end)) = self.board.gap_from(repair.high, highest) {
            return Some(repair.sends(start, end.min(start + now.segment)));
        }
        if repair.rescued.is_some_and(|rescued| now.oldest <= rescued) {
            return None;
        }
        repair.rescued = Some(self.point);
        // The last unacknowledged segment: above the highest block, or below it.
        let (start, end) = if highest < now.end {
            (highest.max(now.end.saturating_sub(now.segment)), now.end)
        } else {
            let mut runs = self.board.iter().rev();
            let end = runs.next().map(|run| run.0).filter(|&end| end > now.oldest)?;
            let below = runs.next().map_or(now.oldest, |run| run.1);
            (end.saturating_sub(now.segment).max(below), end)
        };
        repair.pipe += end - start;
        Some((start, end))
    }

    pub(super) fn again(&self, now: &Outstanding) -> Option<Block> {
        self.board.gap_from(now.next, now.end)
    }
}

impl Repair {
    fn sends(&mut self, start: u64, end: u64) -> Block {
        self.high = end;
        self.pipe += end - start;
        (start, end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_000;

    fn outstanding(oldest: u64, end: u64) -> Outstanding {
        Outstanding { oldest: oldest * MSS, next: end * MSS, end: end * MSS, segment: MSS }
    }

    fn feed(sack: &mut Sack, now: &Outstanding, before: u64, blocks: &[Block]) -> Verdict {
        let scaled: std::vec::Vec<Block> =
            blocks.iter().map(|&(start, end)| (start * MSS, end * MSS)).collect();
        let before = before * MSS;
        sack.on_ack(
            now,
            &Report {
                before,
                window: 10 * MSS,
                duplicate: true,
                sack: &scaled,
                ..super::super::tests_report()
            },
        )
    }

    #[test]
    fn lost_segments_are_sent_as_pipe_falls_below_the_window() {
        let mut sack = Sack::new(true);
        // 0 to 19 are outstanding; 0, 5 and 6 are lost.
        let now = outstanding(0, 20);
        assert_eq!(feed(&mut sack, &now, 0, &[(1, 2)]), Verdict::Open);
        assert_eq!(sack.pipe(&now), 19 * MSS);
        assert_eq!(feed(&mut sack, &now, 0, &[(1, 3)]), Verdict::Open);
        assert_eq!(feed(&mut sack, &now, 0, &[(1, 4)]), Verdict::Loss);
        // Lost: 0. In flight: 4 to 19.
        assert_eq!(sack.pipe(&now), 16 * MSS);
        assert_eq!(sack.lost(&now, 0), Some((0, MSS)), "the first goes at once (step 4.3)");
        assert_eq!(sack.pipe(&now), 17 * MSS);
        // Up to 9 but for 5 and 6: both lost, as three above are acknowledged.
        for top in 8..=10 {
            feed(&mut sack, &now, 0, &[(7, top), (1, 5)]);
        }
        // 10 to 19, and the retransmission of the first.
        assert_eq!(sack.pipe(&now), 11 * MSS);
        assert_eq!(sack.lost(&now, MSS - 1), None);
        assert_eq!(sack.lost(&now, MSS), Some((5 * MSS, 6 * MSS)));
        assert_eq!(sack.lost(&now, MSS), Some((6 * MSS, 7 * MSS)));
        assert_eq!(sack.lost(&now, MSS), None);
        assert_eq!(sack.pipe(&now), 13 * MSS);
        // The first arrives: a partial acknowledgement; then all that was outstanding at the start.
        let partial = outstanding(5, 20);
        let verdict = feed(&mut sack, &partial, 0, &[(7, 11)]);
        assert_eq!(verdict, Verdict::Repairing { restart_timer: true });
        assert_eq!(sack.pipe(&partial), 11 * MSS, "5, 6 again, and 11 to 19");
        let full = outstanding(20, 25);
        assert_eq!(feed(&mut sack, &full, 5, &[]), Verdict::Repaired { deflate: Deflate::Stays });
    }

    #[test]
    fn gaps_and_the_last_segment_fill_a_window_without_new_data() {
        let mut sack = Sack::new(true);
        let now = outstanding(0, 10);
        for top in 2..=4 {
            feed(&mut sack, &now, 0, &[(1, top)]);
        }
        sack.lost(&now, 0);
        feed(&mut sack, &now, 0, &[(6, 7), (1, 4)]);
        // 4 and 5 have only one segment above them: not lost, but gaps (rule 3).
        assert_eq!(sack.lost(&now, MSS), None);
        assert_eq!(sack.perhaps_lost(&now), Some((4 * MSS, 5 * MSS)));
        assert_eq!(sack.perhaps_lost(&now), Some((5 * MSS, 6 * MSS)));
        assert_eq!(sack.perhaps_lost(&now), Some((9 * MSS, 10 * MSS)), "rescue (rule 4)");
        assert_eq!(sack.perhaps_lost(&now), None, "once");
    }

    #[test]
    fn sacked_data_is_not_retransmitted_after_a_timeout() {
        let mut sack = Sack::new(true);
        let now = outstanding(0, 10);
        feed(&mut sack, &now, 0, &[(3, 5), (7, 9)]);
        sack.on_timeout(&now);
        let back = Outstanding { next: 0, ..now };
        assert_eq!(sack.pipe(&back), 0);
        assert_eq!(sack.again(&back), Some((0, 3 * MSS)));
        let on = Outstanding { next: 3 * MSS, ..now };
        assert_eq!(sack.again(&on), Some((5 * MSS, 7 * MSS)));
        // Later blocks start no recovery: the oldest is below the point.
        let verdict = feed(&mut sack, &outstanding(0, 10), 0, &[(9, 10)]);
        assert_eq!(verdict, Verdict::Open);
    }
}
