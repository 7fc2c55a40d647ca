//! Waking up on time: one kernel timer for the loop, and the deadlines of the connections.

use mio::event::Source;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use std::collections::BTreeSet;
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
        // SAFETY: the descriptor is new and nobody else's.
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
        // SAFETY: `setting` is valid to read, and the old setting is not asked for.
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

/// Which of many things is due first.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    ordered: BTreeSet<(Instant, usize)>,
}

impl Deadlines {
    /// Moves the deadline of `key` from `*held` to `new`; `held` is kept by the one it is for.
    pub(super) fn set(&mut self, key: usize, held: &mut Option<Instant>, new: Option<Instant>) {
        if let Some(old) = held.take() {
            self.ordered.remove(&(old, key));
        }
        if let Some(due) = new {
            self.ordered.insert((due, key));
        }
        *held = new;
    }

    /// When the first is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.ordered.first().map(|&(due, _)| due)
    }

    /// The first that is due at `now`; it stays until its deadline is moved.
    pub(super) fn due(&self, now: Instant) -> Option<usize> {
        self.ordered.first().filter(|&&(due, _)| due <= now).map(|&(_, key)| key)
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

    #[test]
    fn deadlines_come_in_order_and_can_move() {
        let mut deadlines = Deadlines::default();
        let at = Instant::from_nanos;
        let (mut one, mut two) = (None, None);
        deadlines.set(1, &mut one, Some(at(10)));
        deadlines.set(2, &mut two, Some(at(5)));
        assert_eq!(deadlines.next(), Some(at(5)));
        assert_eq!(deadlines.due(at(4)), None);
        assert_eq!(deadlines.due(at(5)), Some(2));
        deadlines.set(2, &mut two, None);
        assert_eq!(deadlines.due(at(99)), Some(1));
        deadlines.set(1, &mut one, None);
        assert_eq!((deadlines.next(), one, two), (None, None, None));
    }
}
