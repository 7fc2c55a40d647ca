//! Waking up on time: one kernel timer for the loop.

use mio::event::Source;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use units::Instant;

/// A kernel timer that makes the readiness loop wake at an instant of `rt::Clock::new()`.
///
/// The loop's own time limit counts in milliseconds and rounds up, which is a packet late at
/// 10 Mbit/s; this counts in nanoseconds and knows no timer slack.
#[derive(Debug)]
pub(super) struct Alarm {
    timer: OwnedFd,
    /// When it goes off; `None` when it does not.
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

    /// Goes off at `due` and no other time; never for `None`.
    pub(super) fn set(&mut self, due: Option<Instant>) {
        // Setting a time again costs a call into the kernel; most rounds of the loop change none.
        if self.due == due {
            return;
        }
        self.due = due;
        // Zero would disarm it, and the past goes off at once: one nanosecond is the past.
        let nanos = match due {
            None | Some(Instant::FAR_FUTURE) => 0,
            Some(due) => due.as_nanos().max(1),
        };
        let value = libc::timespec {
            tv_sec: (nanos / 1_000_000_000) as libc::time_t,
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

    /// Forgets the time that has passed, so that setting the same one goes off again.
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
    fn the_alarm_wakes_the_loop_at_its_time_each_time() {
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
        // The past goes off at once, also when it is the same past.
        let past = Some(Instant::ZERO);
        for _ in 0..2 {
            alarm.set(past);
            poll.poll(&mut events, None).unwrap();
            assert!(!events.is_empty());
            alarm.expired();
        }
    }
}
