//! Rate limit for log messages that peers and clients can cause.

use units::{Instant, Span};

/// Maximum number of messages in one window.
const MOST: u32 = 10;
const WINDOW: Span = Span::from_secs(10);

/// Number of messages in the present window, and of suppressed ones.
#[derive(Debug, Default)]
pub(crate) struct LogBudget {
    until: Instant,
    logged: u32,
    suppressed: u64,
}

impl LogBudget {
    /// Returns whether one more message may be logged. Logs the number of suppressed messages
    /// first, if there were any.
    pub(crate) fn allow(&mut self, now: Instant) -> bool {
        if now >= self.until {
            if self.suppressed > 0 {
                tracing::warn!(refusals = self.suppressed, "further refusals not logged");
            }
            *self = Self { until: now + WINDOW, logged: 0, suppressed: 0 };
        }
        if self.logged < MOST {
            self.logged += 1;
            return true;
        }
        self.suppressed += 1;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_not_filled() {
        let mut log_budget = LogBudget::default();
        let logged = |ms: u64, log_budget: &mut LogBudget| {
            let now = Instant::ZERO + Span::from_millis(ms);
            (0..1000).filter(|_| log_budget.allow(now)).count()
        };
        assert_eq!(logged(0, &mut log_budget), MOST as usize);
        assert_eq!(logged(9_999, &mut log_budget), 0);
        assert_eq!(log_budget.suppressed, 1990);
        assert_eq!(logged(10_000, &mut log_budget), MOST as usize);
    }
}
