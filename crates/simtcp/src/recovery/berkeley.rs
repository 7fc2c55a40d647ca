//! Fast recovery of the Berkeley TCPs of the 1990s in four variants: Reno, and the rules of the
//! appendix of Henderson & Katz (IEEE JSAC 17(2), 1999) with and without SACK.
//!
//! ```text
//!                        Reno             SACK-Reno            SACK-NewReno
//!   starts               third duplicate  third duplicate      third duplicate of a number at or
//!                                                              above snd_recover          rules 1, 2
//!   ends                 any new ACK,     any new ACK,         ACK of snd_recover: cwnd =
//!                        cwnd = ssthresh  cwnd = ssthresh      min(ssthresh, flight + 1)     rule 3
//!   partial ACK          –                –                    cwnd less the acknowledged data,
//!                                                              plus 1 segment                rule 4
//!   other ACKs           cwnd + 1         retransmit an eligible segment, otherwise cwnd + 1  rules 5, 6
//!   retransmitted        the oldest       eligible: not yet retransmitted, and lost by three
//!                                         duplicates or a block three segments beyond it      rule 5
//!   after a timeout      all              all that no block covers                            rule 7
//! ```
//!
//! Without SACK at the peer SACK-NewReno uses rules 1 to 4 and retransmits the oldest segment at
//! each partial acknowledgement. The additional segment of rule 4 is also that of rule 6. The rules
//! do not change `snd_recover` at a timeout.

use super::{Deflate, Outstanding, Report, Verdict, deflated};
use crate::ranges::Ranges;
use crate::segment::Block;

/// Duplicates that indicate a loss (RFC 2001, section 3).
const DUPLICATES: u32 = 3;

/// State of one of these recoveries.
#[derive(Clone, Debug)]
pub(crate) struct Berkeley {
    /// Rules 1 to 4.
    newreno: bool,
    /// Rules 5 to 7.
    sack: bool,
    limited_transmit: bool,
    /// `snd_recover`; 0 is below every number of data.
    recover: u64,
    repairing: bool,
    duplicates: u32,
    /// Octets by which the window is inflated; negative below the threshold.
    inflation: i64,
    /// Number of segments to be retransmitted.
    due: u32,
    /// Data selectively acknowledged.
    board: Ranges,
    /// The same, and retransmissions.
    settled: Ranges,
}

impl Berkeley {
    pub(crate) fn new(newreno: bool, sack: bool, limited_transmit: bool) -> Self {
        Self {
            newreno,
            sack,
            limited_transmit,
            recover: 0,
            repairing: false,
            duplicates: 0,
            inflation: 0,
            due: 0,
            board: Ranges::default(),
            settled: Ranges::default(),
        }
    }

    pub(super) fn inflation(&self) -> i64 {
        self.inflation
    }

    pub(super) fn is_repairing(&self) -> bool {
        self.repairing
    }

    pub(super) fn lost(&mut self, now: &Outstanding) -> Option<Block> {
        self.due = self.due.checked_sub(1)?;
        let (start, end) = if self.sack { self.eligible(now)? } else { (now.oldest, now.end) };
        let block = (start, end.min(start + now.segment));
        if self.sack {
            self.settled.insert(block);
        }
        Some(block)
    }

    pub(super) fn on_timeout(&mut self) {
        self.repairing = false;
        self.duplicates = 0;
        self.inflation = 0;
        self.due = 0;
        // The receiver may have discarded the data (RFC 2018, section 5.1).
        self.board = Ranges::default();
        self.settled = Ranges::default();
    }

    /// Rule 7.
    pub(super) fn again(&self, now: &Outstanding) -> Option<Block> {
        self.board.gap_from(now.next, now.end)
    }

    pub(super) fn on_ack(&mut self, now: &Outstanding, report: &Report<'_>) -> Verdict {
        for &(start, end) in report.sack.iter().filter(|_| self.sack) {
            // Only outstanding data can be acknowledged; blocks below the oldest are D-SACK.
            if start >= now.oldest && end <= now.end {
                self.board.insert((start, end));
                self.settled.insert((start, end));
            }
        }
        self.board.remove_below(now.oldest);
        self.settled.remove_below(now.oldest);
        let acked = now.oldest - report.before;
        if acked > 0 {
            self.on_progress(now, acked, report.window)
        } else if report.duplicate {
            self.on_duplicate(now)
        } else if self.repairing {
            Verdict::Repairing { restart_timer: false }
        } else {
            Verdict::Open
        }
    }

    fn on_progress(&mut self, now: &Outstanding, acked: u64, window: u64) -> Verdict {
        self.duplicates = 0;
        if !self.repairing {
            self.inflation = 0;
            return Verdict::Open;
        }
        if !self.newreno || now.oldest >= self.recover {
            self.repairing = false;
            self.inflation = 0;
            self.due = 0;
            let deflate = if self.newreno { Deflate::ToFlightBare } else { Deflate::Stays };
            return Verdict::Repaired { deflate };
        }
        self.inflation = deflated(window, self.inflation, acked, now.segment);
        self.due = if self.sack { self.due + u32::from(self.eligible(now).is_some()) } else { 1 };
        // 4.4BSD restarts the timer at each new acknowledgement.
        Verdict::Repairing { restart_timer: true }
    }

    fn on_duplicate(&mut self, now: &Outstanding) -> Verdict {
        self.duplicates = self.duplicates.saturating_add(1);
        if self.repairing {
            if self.sack && self.eligible(now).is_some() {
                self.due += 1;
            } else {
                self.inflation += now.segment.cast_signed();
            }
            return Verdict::Repairing { restart_timer: false };
        }
        let blocked = self.newreno && now.oldest < self.recover;
        if self.duplicates < DUPLICATES {
            if self.limited_transmit && now.next == now.end {
                self.inflation = i64::from(self.duplicates) * now.segment.cast_signed();
            }
            return Verdict::Open;
        }
        if self.duplicates > DUPLICATES || blocked {
            return Verdict::Open;
        }
        self.recover = now.end;
        self.repairing = true;
        self.due = 1;
        self.inflation = i64::from(DUPLICATES) * now.segment.cast_signed();
        Verdict::Loss
    }

    /// Rule 5: the first run eligible for retransmission.
    fn eligible(&self, now: &Outstanding) -> Option<Block> {
        let (start, end) = self.settled.gap_from(now.oldest, now.end)?;
        let by_duplicates = self.duplicates >= DUPLICATES && start == now.oldest;
        let by_blocks =
            self.board.last().is_some_and(|highest| highest.1 > start + 3 * now.segment);
        (by_duplicates || by_blocks).then_some((start, end))
    }
}

#[cfg(test)]
mod tests;
