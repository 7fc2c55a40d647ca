//! Retransmission of Vegas (Brakmo & Peterson, IEEE JSAC 13(8), 1995, section III.A).
//!
//! ```text
//!   a duplicate                       the oldest is out for longer than the fine timeout, or this
//!   a duplicate                       retransmits the oldest if it has exceeded the fine timeout,
//!                                     or if this is the third
//!   the first and the second new ACK  retransmit the oldest if it has exceeded the fine timeout,
//!   after a retransmission            without any duplicate
//!   the window                        is reduced only for a segment that was sent after the last
//!                                     reduction
//!
//! The fine timeout is SRTT + 4 RTTVAR without the minimum of the coarse timer. Otherwise it
//! behaves as Reno: duplicates inflate the window, and a new acknowledgement ends that.

use super::{Deflate, Outstanding, Report, Verdict};
use crate::log::SentLog;
use crate::segment::Block;
use units::{Instant, Span};

/// Duplicates that indicate a loss regardless of the timeout.
const DUPLICATES: u32 = 3;
/// New acknowledgements after a retransmission that check the timeout.
const WATCHED: u32 = 2;

/// Vegas' state.
#[derive(Clone, Debug)]
pub(crate) struct Vegas {
    limited_transmit: bool,
    repairing: bool,
    duplicates: u32,
    inflation: u64,
    due: bool,
    watched: u32,
    reduced_at: Option<Instant>,
    /// SRTT and RTTVAR of a clock with fine granularity.
    clock: Option<(Span, Span)>,
}

impl Vegas {
    pub(crate) fn new(limited_transmit: bool) -> Self {
        let (repairing, due) = (false, false);
        let (duplicates, inflation, watched) = (0, 0, 0);
        let (reduced_at, clock) = (None, None);
        Self { limited_transmit, repairing, duplicates, inflation, due, watched, reduced_at, clock }
    }

    /// RFC 6298, section 2, for each segment.
    fn observe(&mut self, sample: Span) {
        self.clock = Some(match self.clock {
            None => (sample, sample / 2),
            Some((smoothed, variation)) => {
                let error = smoothed.max(sample) - smoothed.min(sample);
                ((smoothed * 7 + sample) / 8, (variation * 3 + error) / 4)
            }
        });
    }

    pub(super) fn inflation(&self) -> u64 {
        self.inflation
    }

    pub(super) fn is_repairing(&self) -> bool {
        self.repairing
    }

    pub(super) fn lost(&mut self, now: &Outstanding) -> Option<Block> {
        core::mem::take(&mut self.due)
            .then(|| (now.oldest, (now.oldest + now.segment).min(now.end)))
    }

    pub(super) fn on_timeout(&mut self) {
        *self = Self { clock: self.clock, ..Self::new(self.limited_transmit) };
    }

    pub(super) fn on_ack(
        &mut self,
        now: &Outstanding,
        report: &Report<'_>,
        log: Option<&SentLog>,
    ) -> Verdict {
        let sent = log.and_then(SentLog::oldest_sent).filter(|_| now.oldest < now.end);
        if let Some(sample) = report.delivery.round_trip {
            self.observe(sample);
        }
        let overdue = sent.is_some_and(|sent| {
            let out = report.now.since(sent);
            self.clock.is_some_and(|(smoothed, variation)| out > smoothed + variation * 4)
        });
        if now.oldest > report.before {
            let was_repairing = core::mem::take(&mut self.repairing);
            (self.duplicates, self.inflation, self.due) = (0, 0, false);
            if self.watched > 0 {
                self.watched -= 1;
                if overdue {
                    return self.send_again(report.now, sent, now);
                }
            }
            return if was_repairing {
                Verdict::Repaired { deflate: Deflate::Stays }
            } else {
                Verdict::Open
            };
        }
        if !report.duplicate {
            return if self.repairing {
                Verdict::Repairing { restart_timer: false }
            } else {
                Verdict::Open
            };
        }
        self.duplicates = self.duplicates.saturating_add(1);
        if self.repairing {
            self.inflation += now.segment;
            return Verdict::Repairing { restart_timer: false };
        }
        if overdue || self.duplicates == DUPLICATES {
            return self.send_again(report.now, sent, now);
        }
        if self.limited_transmit && now.next == now.end && self.duplicates < DUPLICATES {
            self.inflation = u64::from(self.duplicates) * now.segment;
        }
        Verdict::Open
    }

    fn send_again(&mut self, now: Instant, sent: Option<Instant>, flow: &Outstanding) -> Verdict {
        self.repairing = true;
        self.due = true;
        self.watched = WATCHED;
        self.inflation = u64::from(self.duplicates) * flow.segment;
        let earlier = |reduced| sent.is_some_and(|sent| sent < reduced);
        if self.reduced_at.is_some_and(earlier) {
            return Verdict::Repairing { restart_timer: true };
        }
        self.reduced_at = Some(now);
        Verdict::Loss
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Delivery;

    const MSS: u64 = 1_000;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Span::from_millis(millis)
    }

    /// Segments 0 to 9, one each 10 ms, on a path of 100 ms with a deviation of 10 ms.
    struct Harness {
        vegas: Vegas,
        log: SentLog,
    }

    impl Harness {
        fn new() -> Self {
            let mut vegas = Vegas::new(false);
            // RTTVAR of 50 ms falls to 50 × 0.75^6 = 8.9 ms.
            (0..7).for_each(|_| vegas.observe(Span::from_millis(100)));
            let mut log = SentLog::default();
            (0..10).for_each(|n| log.on_sent(at(10 * n), (n * MSS, (n + 1) * MSS)));
            Self { vegas, log }
        }

        fn ack(&mut self, millis: u64, before: u64, oldest: u64) -> Verdict {
            let now =
                Outstanding { oldest: oldest * MSS, next: 10 * MSS, end: 10 * MSS, segment: MSS };
            let delivery = self.log.on_ack(at(millis), now.oldest, &[]);
            let report = Report {
                now: at(millis),
                before: before * MSS,
                window: 10 * MSS,
                duplicate: before == oldest,
                sack: &[],
                delivery: &Delivery { bytes: delivery.bytes, ..Delivery::default() },
                smoothed: None,
            };
            self.vegas.on_ack(&now, &report, Some(&self.log))
        }
    }

    #[test]
    fn one_duplicate_is_enough_when_the_clock_agrees() {
        // Fine timeout: 100 + 4 × 8.9 = 136 ms. 0 was sent at 0 ms.
        let mut harness = Harness::new();
        assert_eq!(harness.ack(120, 0, 0), Verdict::Open, "not yet");
        assert_eq!(harness.ack(140, 0, 0), Verdict::Loss, "the second duplicate, after 140 ms");
        let mut plain = Harness::new();
        for millis in [110, 115] {
            assert_eq!(plain.ack(millis, 0, 0), Verdict::Open);
        }
        assert_eq!(plain.ack(120, 0, 0), Verdict::Loss, "the third in any case");
    }

    #[test]
    fn the_first_acknowledgements_after_a_retransmission_find_the_next_loss() {
        let mut harness = Harness::new();
        harness.ack(140, 0, 0);
        harness.ack(141, 0, 0);
        harness.log.on_sent(at(141), (0, MSS));
        // 0 to 3 have arrived; 4, sent at 40 ms, is outstanding for 200 ms, but was sent before the
        // window was reduced: it is retransmitted without another reduction.
        assert_eq!(harness.ack(240, 0, 4), Verdict::Repairing { restart_timer: true });
        let now = Outstanding { oldest: 4 * MSS, next: 10 * MSS, end: 10 * MSS, segment: MSS };
        assert_eq!(harness.vegas.lost(&now), Some((4 * MSS, 5 * MSS)));
    }
}
