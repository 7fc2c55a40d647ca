//! Words for the log about what others do, so few that they cannot fill it.

use units::{Instant, Span};

/// Lines in one window.
const MOST: u32 = 10;
const WINDOW: Span = Span::from_secs(10);

/// Whether to say something, and how often nothing was said.
#[derive(Debug, Default)]
pub(crate) struct Complaints {
    until: Instant,
    said: u32,
    withheld: u64,
}

impl Complaints {
    /// True when there is room for one more line; says first how many were left out before.
    pub(crate) fn may_say(&mut self, now: Instant) -> bool {
        if now >= self.until {
            if self.withheld > 0 {
                tracing::warn!(refusals = self.withheld, "more were refused, and not named here");
            }
            *self = Self { until: now + WINDOW, said: 0, withheld: 0 };
        }
        if self.said < MOST {
            self.said += 1;
            return true;
        }
        self.withheld += 1;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_not_filled() {
        let mut complaints = Complaints::default();
        let said = |ms: u64, complaints: &mut Complaints| {
            let now = Instant::ZERO + Span::from_millis(ms);
            (0..1000).filter(|_| complaints.may_say(now)).count()
        };
        assert_eq!(said(0, &mut complaints), MOST as usize);
        assert_eq!(said(9_999, &mut complaints), 0);
        assert_eq!(complaints.withheld, 1990);
        assert_eq!(said(10_000, &mut complaints), MOST as usize);
    }
}
