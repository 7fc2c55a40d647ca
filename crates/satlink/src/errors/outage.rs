//! Outages of a link.

use crate::Direction;
use units::{Instant, Span};

/// An outage, once or periodic. A frame that overlaps it is lost; the transmitter continues to
/// send, because it does not detect the outage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// Start of the (first) outage, from the link's epoch.
    pub at: Span,
    /// Duration.
    pub length: Span,
    /// Period between starts; `None`: it occurs once.
    pub every: Option<Span>,
    /// Direction; `None`: both.
    pub direction: Option<Direction>,
}

impl Outage {
    /// Whether it overlaps the interval from `from` to `to`, both relative to the link's epoch.
    pub(crate) fn touches(&self, direction: Direction, from: Span, to: Span) -> bool {
        if self.direction.is_some_and(|only| only != direction) || to < self.at {
            return false;
        }
        match self.every {
            None => from < self.at + self.length,
            Some(period) => {
                // The last one that has started by `to`.
                let passed = (to - self.at).as_nanos();
                let began = self.at + Span::from_nanos(passed - passed % period.as_nanos());
                from < began + self.length
            }
        }
    }

    /// Whether it is active at `now` for `direction`, relative to the link's `epoch`.
    pub fn is_on(&self, direction: Direction, epoch: Instant, now: Instant) -> bool {
        now >= epoch && self.touches(direction, now.since(epoch), now.since(epoch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outage(every: Option<u64>) -> Outage {
        Outage {
            at: Span::from_secs(20),
            length: Span::from_secs(10),
            every: every.map(Span::from_secs),
            direction: None,
        }
    }

    #[test]
    fn frame_that_overlaps_an_outage_is_lost() {
        let once = outage(None);
        let ms = Span::from_millis;
        assert!(!once.touches(Direction::Forward, ms(19_990), ms(19_999)));
        assert!(once.touches(Direction::Forward, ms(19_990), ms(20_000)));
        assert!(once.touches(Direction::Forward, ms(29_999), ms(30_010)));
        assert!(!once.touches(Direction::Forward, ms(30_000), ms(30_010)));
        assert!(once.touches(Direction::Return, ms(10_000), ms(90_000)));
    }

    #[test]
    fn periodic_outage_repeats() {
        let periodic = outage(Some(60));
        let s = Span::from_secs;
        assert!(periodic.touches(Direction::Forward, s(81), s(81)));
        assert!(!periodic.touches(Direction::Forward, s(79), s(79)));
        assert!(periodic.touches(Direction::Forward, s(79), s(80)));
        assert!(!periodic.touches(Direction::Forward, s(90), s(139)));
    }

    #[test]
    fn outage_may_affect_one_direction() {
        let forward = Outage { direction: Some(Direction::Forward), ..outage(None) };
        let now = Instant::ZERO + Span::from_secs(25);
        assert!(forward.is_on(Direction::Forward, Instant::ZERO, now));
        assert!(!forward.is_on(Direction::Return, Instant::ZERO, now));
    }
}
