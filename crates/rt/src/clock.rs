//! The only place that reads the system clocks.

use std::time::Duration;
use units::{Instant, Span};

/// The system's monotonic clock, read as [`Instant`].
///
/// [`Clock::new`] counts from the start of the system, so all such clocks agree, also across
/// processes; [`Clock::from_here`] counts from its creation.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// CLOCK_MONOTONIC at this clock's [`Instant::ZERO`], nanoseconds.
    epoch_ns: u64,
}

impl Clock {
    /// A clock that counts from the start of the system.
    pub const fn new() -> Self {
        Self { epoch_ns: 0 }
    }

    /// A clock whose epoch is this call.
    pub fn from_here() -> Self {
        Self { epoch_ns: read(libc::CLOCK_MONOTONIC) }
    }

    /// The current time.
    pub fn now(&self) -> Instant {
        Instant::from_nanos(read(libc::CLOCK_MONOTONIC).saturating_sub(self.epoch_ns))
    }

    /// The reading of a clock of [`Clock::new`] when this one reads `at`.
    pub fn machine_time(&self, at: Instant) -> Instant {
        at + Span::from_nanos(self.epoch_ns)
    }

    /// Blocks the calling thread until `due`; returns immediately if that has passed.
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

    /// Nanoseconds since 1970 at this clock's [`Instant::ZERO`], for conversion to wall-clock time.
    /// A change between two calls means that the wall clock was stepped.
    pub fn epoch_unix_ns(&self) -> u64 {
        // The thread can be preempted between the readings, so the tightest of several is used.
        let (mut tightest, mut best) = (u64::MAX, 0);
        for _ in 0..4 {
            let before = read(libc::CLOCK_MONOTONIC);
            let world = read(libc::CLOCK_REALTIME);
            let width = read(libc::CLOCK_MONOTONIC) - before;
            if width < tightest {
                tightest = width;
                // A wall clock set to its beginning may be behind the monotonic one.
                best = world.saturating_sub(before + width / 2);
            }
        }
        best + self.epoch_ns
    }

    /// Seconds since 1970, by the wall clock.
    pub fn unix_s() -> u64 {
        read(libc::CLOCK_REALTIME) / 1_000_000_000
    }

    /// Processor time of this thread.
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
        // Two readings of the same wall clock, in either order.
        assert!(unix(machine).abs_diff(unix(here)) < 1_000_000_000);
        assert!(unix(here) > 1_700_000_000_000_000_000);
    }
}
