//! Filters of the one-way delay: its minimum over a window of time, and its jitter.

use units::{Instant, Span};

/// Minimum length of the window of [`WindowedMin`]; its maximum length is twice that.
const WINDOW: Span = Span::from_secs(60);

/// Minimum of a value over the last 60 s to 120 s: the base delay (RFC 6817).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WindowedMin {
    previous: Option<i64>,
    current: Option<i64>,
    since: Instant,
}

impl WindowedMin {
    /// Enters a value.
    pub(super) fn update(&mut self, at: Instant, value: i64) {
        if at.since(self.since) >= WINDOW {
            (self.previous, self.current, self.since) = (self.current, None, at);
        }
        self.current = Some(self.current.map_or(value, |min| min.min(value)));
    }

    /// Discards all values but this one.
    pub(super) fn reset(&mut self, at: Instant, value: i64) {
        *self = Self { previous: None, current: Some(value), since: at };
    }

    /// The minimum, or zero before the first value.
    pub(super) fn value(&self) -> i64 {
        self.previous.into_iter().chain(self.current).min().unwrap_or(0)
    }
}

/// Delay variation (RFC 3393), smoothed over 16 samples, in 16ths of microseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct JitterFilter(i64);

impl JitterFilter {
    /// Enters the distance of the second of the `newest` values from the line through its
    /// neighbours: a growing queue is no jitter.
    pub(super) fn update(&mut self, mut newest: impl Iterator<Item = i64>) {
        if let (Some(last), Some(middle), Some(first)) =
            (newest.next(), newest.next(), newest.next())
        {
            let distance = (last - 2 * middle + first).abs().min(2_000_000) / 2;
            self.0 += distance - self.0 / 16;
        }
    }

    /// Jitter in microseconds.
    pub(super) fn value(self) -> i64 {
        self.0 / 16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minimum_expires_after_one_to_two_windows() {
        let at = |secs| Instant::ZERO + Span::from_secs(secs);
        let mut filter = WindowedMin::default();
        filter.update(at(60), 5);
        filter.update(at(119), 9);
        filter.update(at(120), 8);
        assert_eq!(filter.value(), 5, "still in the previous window");
        filter.update(at(180), 7);
        assert_eq!(filter.value(), 7);
        filter.reset(at(181), 11);
        assert_eq!(filter.value(), 11);
    }

    #[test]
    fn a_growing_queue_is_no_jitter() {
        let mut filter = JitterFilter::default();
        filter.update([3_000, 2_000, 1_000].into_iter());
        assert_eq!(filter.value(), 0);
        filter.update([1_000, 2_600, 1_000].into_iter());
        assert_eq!(filter.value(), 100);
    }
}
