//! Minimum interval between the STATs of a session.

use units::{Instant, Span};

/// Spacing of STATs. A list that does not fit one segment is sent in several STATs back to back;
/// the next list then waits for as many intervals.
#[derive(Clone, Debug, Default)]
pub(super) struct StatSchedule {
    last_sent: Option<Instant>,
    /// Further segments of the last list are due.
    is_incomplete: bool,
    /// Number of segments of the last list.
    segments: u64,
}

impl StatSchedule {
    /// Time of the last STAT.
    pub(super) fn last_sent(&self) -> Option<Instant> {
        self.last_sent
    }

    pub(super) fn is_incomplete(&self) -> bool {
        self.is_incomplete
    }

    /// Earliest time of the next STAT.
    pub(super) fn earliest(&self, spacing: Span) -> Instant {
        match self.last_sent {
            Some(last) if !self.is_incomplete => last + spacing * self.segments,
            Some(_) | None => Instant::ZERO,
        }
    }

    /// A STAT was sent; `more` segments of its list follow or none.
    pub(super) fn on_sent(&mut self, now: Instant, more: bool) {
        self.last_sent = Some(now);
        self.segments = if self.is_incomplete { self.segments + 1 } else { 1 };
        self.is_incomplete = more;
    }

    /// A new POLL starts a new list.
    pub(super) fn on_poll(&mut self) {
        self.is_incomplete = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_three_segments_delays_the_next_one_by_three_intervals() {
        let spacing = Span::from_millis(5);
        let at = |millis| Instant::ZERO + Span::from_millis(millis);
        let mut schedule = StatSchedule::default();
        assert_eq!(schedule.earliest(spacing), Instant::ZERO);
        for more in [true, true, false] {
            assert_eq!(schedule.earliest(spacing), Instant::ZERO);
            schedule.on_sent(at(10), more);
        }
        assert_eq!(schedule.earliest(spacing), at(25));
        schedule.on_sent(at(30), false);
        assert_eq!(schedule.earliest(spacing), at(35), "one segment again");
    }

    #[test]
    fn a_new_poll_ends_an_incomplete_list() {
        let at = Instant::from_nanos(1_000);
        let mut schedule = StatSchedule::default();
        schedule.on_sent(at, true);
        schedule.on_poll();
        assert_eq!(schedule.earliest(Span::from_millis(1)), at + Span::from_millis(1));
    }
}
