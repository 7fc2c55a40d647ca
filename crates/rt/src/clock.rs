//! The one place that reads the machine's clocks.

use std::time::Duration;
use units::{Instant, Span};

/// The machine's monotonic clock, read as [`Instant`].
///
/// [`Clock::new`] counts from the machine's start, so all such clocks on one machine agree, also
/// across processes; [`Clock::from_here`] counts from its own making.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// CLOCK_MONOTONIC at this clock's [`Instant::ZERO`], nanoseconds.
    epoch_ns: u64,
}

impl Clock {
    /// A clock that counts from the machine's start.
    pub const fn new() -> Self {
        Self { epoch_ns: 0 }
    }

    /// A clock whose epoch is this call.
    pub fn from_here() -> Self {
        Self { epoch_ns: read(libc::CLOCK_MONOTONIC) }
    }

    /// The time now.
    pub fn now(&self) -> Instant {
        Instant::from_nanos(read(libc::CLOCK_MONOTONIC).saturating_sub(self.epoch_ns))
    }

    /// What a clock that counts from the machine's start shows when this one shows `at`.
    pub fn machine_time(&self, at: Instant) -> Instant {
        at + Span::from_nanos(self.epoch_ns)
    }

    /// Blocks the calling thread until `due`, and not a nanosecond less; not at all if it has
    /// passed.
    pub fn sleep_until(&self, due: Instant) {
        loop {
            let left = due.since(self.now());
            if left.is_zero() {
                return;
            }
            #[expect(clippy::disallowed_methods, reason = "this is where real waiting is done")]
            std::thread::sleep(Duration::from_nanos(left.as_nanos()));
        }
    }

    /// Nanoseconds since 1970 at this clock's [`Instant::ZERO`]: what turns this clock's time
    /// into the world's. Another answer than last time means that somebody set the world's.
    pub fn epoch_unix_ns(&self) -> u64 {
        // The kernel can interrupt between the readings: the tightest of a few is the truth.
        let (mut tightest, mut best) = (u64::MAX, 0);
        for _ in 0..4 {
            let before = read(libc::CLOCK_MONOTONIC);
            let world = read(libc::CLOCK_REALTIME);
            let width = read(libc::CLOCK_MONOTONIC) - before;
            if width < tightest {
                tightest = width;
                // A clock that was set to its beginning is behind the machine's own.
                best = world.saturating_sub(before + width / 2);
            }
        }
        best + self.epoch_ns
    }

    /// How long this thread has had a processor.
    pub fn thread_time() -> Span {
        Span::from_nanos(read(libc::CLOCK_THREAD_CPUTIME_ID))
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec to write to.
    let status = unsafe { libc::clock_gettime(clock, &raw mut time) };
    assert!(status == 0, "the kernel has no clock {clock}");
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeping_ends_at_the_time_or_later() {
        let clock = Clock::from_here();
        let due = clock.now() + Span::from_micros(300);
        clock.sleep_until(due);
        assert!(clock.now() >= due);
        clock.sleep_until(Instant::ZERO);
    }

    #[test]
    fn clocks_agree_on_the_present() {
        let (machine, here) = (Clock::new(), Clock::from_here());
        let unix = |clock: Clock| clock.epoch_unix_ns() + clock.now().as_nanos();
        assert!(here.now() < machine.now());
        let before = machine.now();
        let between = here.machine_time(here.now());
        assert!(before <= between && between <= machine.now());
        // Not a speed: two readings of the same world's time, in either order.
        assert!(unix(machine).abs_diff(unix(here)) < 1_000_000_000);
        assert!(unix(here) > 1_700_000_000_000_000_000);
    }
}
