//! The kernel timer of the readiness loop.

use mio::event::Source;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use units::Instant;

/// A kernel timer that makes the readiness loop wake at an instant of `rt::Clock::new()`.
///
/// The time limit of the loop's own wait is in milliseconds, rounded up: at 10 Mbit/s this is the
/// serialization time of a packet. This timer counts in nanoseconds and has no timer slack.
#[derive(Debug)]
pub(super) struct Alarm {
    timer: OwnedFd,
    /// The time that is set; `None` when disarmed.
    due: Option<Instant>,
}

impl Alarm {
    pub(super) fn new() -> io::Result<Self> {
        let flags = libc::TFD_NONBLOCK | libc::TFD_CLOEXEC;
        // SAFETY: no pointers are passed.
        let fd = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, flags) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and has no other owner.
        let timer = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self { timer, due: None })
    }

    pub(super) fn register(&self, registry: &Registry, token: Token) -> io::Result<()> {
        SourceFd(&self.timer.as_raw_fd()).register(registry, token, Interest::READABLE)
    }

    /// Sets the timer to `due`, or disarms it with `None`.
    pub(super) fn set(&mut self, due: Option<Instant>) {
        // Setting the timer costs a system call, and in most rounds the time does not change.
        if self.due == due {
            return;
        }
        self.due = due;
        // Zero would disarm it. A time in the past, such as one nanosecond, expires immediately.
        let nanos = match due {
            None | Some(Instant::FAR_FUTURE) => 0,
            Some(due) => due.as_nanos().max(1),
        };
        let value = libc::timespec {
            tv_sec: (nanos / 1_000_000_000) as _,
            tv_nsec: (nanos % 1_000_000_000) as libc::c_long,
        };
        let zero = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let setting = libc::itimerspec { it_interval: zero, it_value: value };
        // SAFETY: `setting` is valid to read, and the old setting is not requested.
        let status = unsafe {
            libc::timerfd_settime(
                self.timer.as_raw_fd(),
                libc::TFD_TIMER_ABSTIME,
                &raw const setting,
                std::ptr::null_mut(),
            )
        };
        assert!(status == 0, "a valid time was refused: {}", io::Error::last_os_error());
    }

    /// Discards the expired time, so that setting the same one arms the timer again.
    pub(super) fn expired(&mut self) {
        self.due = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mio::{Events, Poll};
    use rt::Clock;
    use units::Span;

    #[test]
    fn the_alarm_wakes_the_loop_each_time() {
        let clock = Clock::new();
        let mut poll = Poll::new().unwrap();
        let mut events = Events::with_capacity(4);
        let mut alarm = Alarm::new().unwrap();
        alarm.register(poll.registry(), Token(7)).unwrap();
        for _ in 0..3 {
            let due = clock.now() + Span::from_micros(300);
            alarm.set(Some(due));
            poll.poll(&mut events, None).unwrap();
            assert!(events.iter().any(|event| event.token() == Token(7)));
            assert!(clock.now() >= due);
            alarm.expired();
        }
        // A time in the past expires immediately, also when it is set twice.
        let past = Some(Instant::ZERO);
        for _ in 0..2 {
            alarm.set(past);
            poll.poll(&mut events, None).unwrap();
            assert!(!events.is_empty());
            alarm.expired();
        }
    }
}
