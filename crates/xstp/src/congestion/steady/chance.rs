//! What delays are without a queue: the least of them, and by how much they differ by chance.

use units::{Instant, Span};

/// Time over which the least delay holds, at least; at most twice that.
const MEMORY: Span = Span::from_secs(60);

/// By how much values differ by chance, in 16ths of microseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Jitter(i64);

impl Jitter {
    /// Takes in by how much the second of the `newest` is off the line between its neighbours.
    pub(super) fn take(&mut self, mut newest: impl Iterator<Item = i64>) {
        if let (Some(last), Some(middle), Some(first)) =
            (newest.next(), newest.next(), newest.next())
        {
            let off = (last - 2 * middle + first).abs().min(2_000_000) / 2;
            self.0 += off - self.0 / 16;
        }
    }

    /// Microseconds.
    pub(super) fn value(self) -> i64 {
        self.0 / 16
    }
}

/// The least delay over one to two times [`MEMORY`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Least {
    before: Option<i64>,
    now: Option<i64>,
    since: Instant,
}

impl Least {
    pub(super) fn take(&mut self, at: Instant, delay: i64) {
        if at.since(self.since) >= MEMORY {
            (self.before, self.now, self.since) = (self.now, None, at);
        }
        self.now = Some(self.now.map_or(delay, |least| least.min(delay)));
    }

    pub(super) fn forget(&mut self, at: Instant, delay: i64) {
        *self = Self { before: None, now: Some(delay), since: at };
    }

    pub(super) fn value(&self) -> i64 {
        self.before.into_iter().chain(self.now).min().unwrap_or(0)
    }
}
