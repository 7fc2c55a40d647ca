//! What the thread of an endpoint shares with the program's threads and tasks.

use crate::wait::Waker;
use rt::Clock;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;
use units::{Instant, Span};

/// Maximum time after the drop of an endpoint until its thread ends.
pub(crate) const MAX_LINGER: Span = Span::from_secs(60);
/// Maximum time for which the thread waits for room in a socket, regardless of timers.
const FULL_WAIT: Span = Span::from_secs(1);

/// When the thread of an endpoint wakes and ends.
#[derive(Debug, Default)]
pub(crate) struct Lifetime {
    /// When the thread wakes by itself.
    sleeps_until: Option<Instant>,
    /// When the thread ends at the latest, once the endpoint is closed.
    pub(crate) ends_by: Option<Instant>,
    /// Set when the thread has ended.
    pub(crate) is_over: bool,
    /// Whether nothing remained to be sent then.
    has_drained: bool,
}

/// The state of an endpoint, which its thread drives.
pub(crate) trait Driven: Streams {
    /// Returns a descriptor of its socket.
    fn descriptor(&self) -> io::Result<OwnedFd>;

    /// Receives and sends what is due; returns whether the socket's send buffer is full.
    fn exchange(&mut self, now: Instant, buffer: &mut [u8]) -> io::Result<bool>;

    /// Ends the sessions in order from now on.
    fn drain(&mut self);

    /// Whether nothing remains to be sent to a peer.
    fn is_drained(&self) -> bool;

    /// Handles the end of the thread: sessions that remain are reset, so that the peers detect it
    /// immediately.
    fn end(&mut self, now: Instant, buffer: &mut [u8]);
}

/// The streams of an endpoint, by number.
pub(crate) trait Streams: Send {
    fn lifetime(&mut self) -> &mut Lifetime;

    /// Processes the events of the sessions; returns whether there were any.
    fn take_events(&mut self) -> bool;

    /// When to call [`Driven::exchange`].
    fn poll_timeout(&self) -> Option<Instant>;

    /// As [`poll_timeout`](Self::poll_timeout), with the end of the thread.
    fn due(&mut self) -> Option<Instant> {
        let timeout = self.poll_timeout();
        timeout.into_iter().chain(self.lifetime().ends_by).min()
    }

    fn read(&mut self, now: Instant, number: u64, buffer: &mut [u8]) -> io::Result<usize>;

    fn write(&mut self, now: Instant, number: u64, data: &[u8]) -> io::Result<usize>;

    /// Whether reading (first), or writing (second), would not have to wait.
    fn is_ready(&mut self, number: u64, interest: (bool, bool)) -> bool;

    /// Finishes this side of the stream.
    fn finish(&mut self, now: Instant, number: u64) -> io::Result<()>;

    /// Number of written octets that the peer has not acknowledged.
    fn unacknowledged(&mut self, number: u64) -> io::Result<u64>;

    /// Handles that the program has dropped the stream: written data is delivered; data that the
    /// peer sends from now on resets the stream.
    fn drop_stream(&mut self, now: Instant, number: u64);

    /// Registers the task that waits for a change of the stream.
    #[cfg(feature = "tokio")]
    fn set_waker(&mut self, number: u64, waker: &std::task::Waker);
}

/// An operation on the streams, with a number as its result.
pub(crate) type Operation<'a> = dyn FnMut(&mut dyn Streams, Instant) -> io::Result<usize> + 'a;

/// A [`Shared`] of any state, as a stream has it.
pub(crate) trait Access: Send + Sync {
    fn now(&self) -> Instant;

    /// See [`Shared::change`].
    fn change(&self, operation: &mut Operation<'_>) -> io::Result<usize>;

    /// See [`Shared::block`].
    fn block(&self, by: Option<Instant>, attempt: &mut Operation<'_>) -> io::Result<usize>;
}

impl<S: Streams> Access for Shared<S> {
    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn change(&self, operation: &mut Operation<'_>) -> io::Result<usize> {
        self.change(|state, now| operation(state, now))
    }

    fn block(&self, by: Option<Instant>, attempt: &mut Operation<'_>) -> io::Result<usize> {
        self.block(by, |state, now| attempt(state, now))
    }
}

/// A state behind a mutex, and the ways to wake its users.
#[derive(Debug)]
pub(crate) struct Shared<S> {
    state: Mutex<S>,
    /// Signalled after every event.
    changed: Condvar,
    waker: Waker,
    pub(crate) clock: Clock,
}

impl<S: Driven + 'static> Shared<S> {
    /// Starts the thread of `state`.
    ///
    /// # Errors
    /// If the thread cannot be created.
    pub(crate) fn start(clock: Clock, state: S) -> io::Result<Arc<Self>> {
        let shared = Arc::new(Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
            waker: Waker::new()?,
            clock,
        });
        let thread_shared = Arc::clone(&shared);
        thread::Builder::new().name("xstp".to_owned()).spawn(move || thread_shared.run())?;
        Ok(shared)
    }

    /// The thread: exchanges packets until the endpoint is closed and has drained.
    fn run(&self) {
        let mut buffer = vec![0; 65_536];
        let socket = self.lock().descriptor();
        while let Ok(socket) = &socket {
            let mut state = self.lock();
            let now = self.clock.now();
            let Ok(is_full) = state.exchange(now, &mut buffer) else { break };
            if state.take_events() {
                self.changed.notify_all();
            }
            if let Some(by) = state.lifetime().ends_by {
                let has_drained = state.is_drained();
                state.lifetime().has_drained = has_drained;
                if now >= by || has_drained {
                    break;
                }
            }
            let due = state.due();
            state.lifetime().sleeps_until = due;
            drop(state);
            let time = due.map(|due| due.since(self.clock.now()));
            // A full send buffer is retried when it has room, not when a timer is due.
            let time = if is_full { Some(FULL_WAIT) } else { time };
            if self.waker.wait(&socket, is_full, time).is_err() {
                break;
            }
        }
        let mut state = self.lock();
        state.lifetime().is_over = true;
        state.end(self.clock.now(), &mut buffer);
        self.changed.notify_all();
    }

    /// Ends the sessions in order, at `by` at the latest.
    pub(crate) fn drain(&self, by: Instant) {
        self.change(|state, _| {
            if state.lifetime().ends_by.is_none() {
                state.lifetime().ends_by = Some(by);
                state.drain();
            }
        });
    }

    /// As [`drain`](Self::drain), and waits for the end of the thread.
    ///
    /// # Errors
    /// `TimedOut` if something remained to be sent at `by`.
    pub(crate) fn close(&self, by: Instant) -> io::Result<()> {
        self.drain(by);
        self.block(None, |state, _| match state.lifetime() {
            Lifetime { is_over: false, .. } => Err(ErrorKind::WouldBlock.into()),
            Lifetime { has_drained: true, .. } => Ok(()),
            Lifetime { has_drained: false, .. } => Err(ErrorKind::TimedOut.into()),
        })
    }
}

impl<S: Streams> Shared<S> {
    fn lock(&self) -> MutexGuard<'_, S> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `operation` on the state; wakes the endpoint's thread if it has something to do earlier
    /// than planned, and those that wait for an event.
    pub(crate) fn change<T>(&self, operation: impl FnOnce(&mut S, Instant) -> T) -> T {
        self.apply(&mut self.lock(), operation)
    }

    fn apply<T>(&self, state: &mut S, operation: impl FnOnce(&mut S, Instant) -> T) -> T {
        let now = self.clock.now();
        let result = operation(state, now);
        if state.take_events() {
            self.changed.notify_all();
        }
        let due = state.due();
        let planned = &mut state.lifetime().sleeps_until;
        if due.is_some_and(|due| planned.is_none_or(|planned| due < planned)) {
            // The next change need not wake it again.
            *planned = due;
            self.waker.wake();
        }
        result
    }

    /// Calls `attempt` until it does not return `WouldBlock`, or until `by`.
    pub(crate) fn block<T>(
        &self,
        by: Option<Instant>,
        mut attempt: impl FnMut(&mut S, Instant) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut state = self.lock();
        loop {
            match self.apply(&mut state, &mut attempt) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                other => return other,
            }
            let left = by.map(|by| by.since(self.clock.now()));
            if left.is_some_and(Span::is_zero) {
                return Err(ErrorKind::TimedOut.into());
            }
            state = match left {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(left) => {
                    let limit = Duration::from_nanos(left.as_nanos());
                    let waited = self.changed.wait_timeout(state, limit);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}
