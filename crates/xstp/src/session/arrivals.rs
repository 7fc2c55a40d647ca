//! Measurements of the receiver for the controller, and estimates of them for a receiver whose
//! STATs leave the A block out.
//!
//! ```text
//!   with A:      arrival time and octets as the STAT reports them
//!   without A:   arrival time = arrival of the STAT on the own clock
//!                octets       = octets sent up to the POLL − octets reported missing so far
//! ```
//!
//! The first list without the block starts the estimates, and they are used to the end of the
//! session (XSTP-5.3.6): a receiver that left the block out of some of its STATs would otherwise
//! keep the sender from ever learning the rate of the path. The estimates continue from the last
//! reported values, so that the controller sees no jump of either.

use crate::wire::{Arrival, Stat};
use alloc::collections::VecDeque;
use units::Instant;

/// Maximum number of unanswered POLLs that are stored.
const MAX_SENT_POLLS: usize = 256;

/// A POLL that was sent, and the octets of the session up to it.
#[derive(Clone, Copy, Debug)]
struct SentPoll {
    seq: u32,
    octets: u64,
}

/// Arrival measurements of one session.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrivals {
    sent_polls: VecDeque<SentPoll>,
    /// A STAT left the block out.
    is_estimating: bool,
    /// Difference of the last reported values from their estimates.
    offset: Arrival,
    /// Octets of the last measurement: their number does not decrease.
    last_octets: Option<u32>,
    /// Octets reported missing so far, headers included.
    missing: u64,
}

impl Arrivals {
    /// A POLL was sent; `octets` were sent in this session with it and before it.
    pub(super) fn on_poll_sent(&mut self, seq: u32, octets: u64) {
        if self.sent_polls.len() == MAX_SENT_POLLS {
            self.sent_polls.pop_front();
        }
        self.sent_polls.push_back(SentPoll { seq, octets });
    }

    /// Packets of `octets` in all, headers included, were reported missing.
    pub(super) fn on_missing(&mut self, octets: u64) {
        self.missing = self.missing.saturating_add(octets);
    }

    /// Octets sent up to the POLL `seq`, if it is stored.
    pub(super) fn sent_up_to(&self, seq: u32) -> Option<u64> {
        self.sent_polls.iter().find(|poll| poll.seq == seq).map(|poll| poll.octets)
    }

    /// Returns the measurements for the POLL whose first STAT, `stat`, arrived at `now`. The
    /// continuation of a list, which may overtake its beginning or outlive it, has none.
    pub(super) fn measure(&mut self, now: Instant, stat: &Stat<'_>) -> Option<Arrival> {
        let (seq, reported) = (stat.echo.seq, stat.arrival);
        if reported.is_none() && stat.runs.skip() > 0 {
            return None;
        }
        let ahead = |poll: &SentPoll| seq.wrapping_sub(poll.seq) as i32;
        while self.sent_polls.front().is_some_and(|poll| ahead(poll) > 0) {
            self.sent_polls.pop_front();
        }
        let poll = self.sent_polls.pop_front_if(|poll| ahead(poll) == 0);
        let estimate = poll.map(|poll| Arrival {
            at: now.since(Instant::ZERO).as_micros() as u32,
            octets: poll.octets.saturating_sub(self.missing) as u32,
        });
        if let Some(reported) = reported.filter(|_| !self.is_estimating) {
            if let Some(estimate) = estimate {
                self.offset = Arrival {
                    at: reported.at.wrapping_sub(estimate.at),
                    octets: reported.octets.wrapping_sub(estimate.octets),
                };
            }
            self.last_octets = Some(reported.octets);
            return Some(reported);
        }
        self.is_estimating = true;
        let estimate = estimate?;
        let octets = estimate.octets.wrapping_add(self.offset.octets);
        let last = self.last_octets.unwrap_or(octets);
        let octets = if (octets.wrapping_sub(last) as i32) < 0 { last } else { octets };
        self.last_octets = Some(octets);
        Some(Arrival { at: estimate.at.wrapping_add(self.offset.at), octets })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seq::Seq24;
    use crate::wire::{Echo, RunList};
    use units::Span;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Span::from_millis(millis)
    }

    /// The first STAT of the POLL `seq`, whose list begins `skip` packets after N(R).
    fn stat(seq: u32, skip: u32, arrival: Option<Arrival>) -> Stat<'static> {
        Stat {
            echo: Echo { seq, timestamp: 0 },
            received_below: Seq24::ZERO,
            window: 100,
            arrival,
            runs: RunList::new(skip, &[1]).expect("within the window"),
        }
    }

    /// XSTP-5.3.6
    #[test]
    fn estimates_count_what_was_sent_and_not_reported_missing() {
        let mut arrivals = Arrivals::default();
        for (seq, octets) in [(1, 1_000), (2, 5_000), (3, 9_000)] {
            arrivals.on_poll_sent(seq, octets);
        }
        assert_eq!(
            arrivals.measure(at(600), &stat(1, 0, None)),
            Some(Arrival { at: 600_000, octets: 1_000 })
        );
        arrivals.on_missing(1_500);
        assert_eq!(
            arrivals.measure(at(700), &stat(2, 0, None)),
            Some(Arrival { at: 700_000, octets: 3_500 })
        );
        // Later reports of losses do not make the count smaller.
        arrivals.on_missing(6_000);
        assert_eq!(
            arrivals.measure(at(800), &stat(3, 0, None)),
            Some(Arrival { at: 800_000, octets: 3_500 })
        );
        assert_eq!(arrivals.measure(at(900), &stat(3, 0, None)), None, "it was answered before");
    }

    /// XSTP-5.3.6
    #[test]
    fn estimates_continue_from_what_was_reported_last() {
        let mut arrivals = Arrivals::default();
        for (seq, octets) in [(1, 1_000), (2, 5_000), (3, 9_000)] {
            arrivals.on_poll_sent(seq, octets);
        }
        let reported = Arrival { at: 4_000_000_000, octets: 77_000 };
        assert_eq!(arrivals.measure(at(600), &stat(1, 0, Some(reported))), Some(reported));
        let expected = Arrival { at: 4_000_100_000, octets: 81_000 };
        assert_eq!(arrivals.measure(at(700), &stat(2, 0, None)), Some(expected));
        // They are used from then on, whatever is reported.
        let expected = Arrival { at: 4_000_200_000, octets: 85_000 };
        assert_eq!(arrivals.measure(at(800), &stat(3, 0, Some(reported))), Some(expected));
    }

    /// XSTP-5.3.5, XSTP-5.3.6: the first segment of the list was lost, or arrives later.
    #[test]
    fn the_continuation_of_a_list_starts_no_estimates() {
        let mut arrivals = Arrivals::default();
        arrivals.on_poll_sent(1, 1_000);
        arrivals.on_poll_sent(2, 5_000);
        assert_eq!(arrivals.measure(at(600), &stat(1, 7, None)), None);
        let reported = Arrival { at: 4_000_000_000, octets: 77_000 };
        assert_eq!(arrivals.measure(at(700), &stat(2, 0, Some(reported))), Some(reported));
    }
}
