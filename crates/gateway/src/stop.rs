//! How a running gateway is told what to do from outside: by a signal, or by another thread.
//!
//! ```text
//!   SIGTERM, SIGINT   once: take no new connections, let the running ones finish for a while
//!                     again: end at once
//!   SIGHUP            read the configuration again
//! ```

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use socket2::SockRef;
use std::io::{self, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// A request to stop that a gateway waits for; clones stop the same gateway.
///
/// ```
/// let stop = gateway::Stop::new().unwrap();
/// let handle = stop.clone();
/// handle.stop();
/// assert!(stop.is_stopped());
/// ```
#[derive(Clone, Debug)]
pub struct Stop {
    ends: Arc<Ends>,
}

/// Requests are bytes in pipes, so that a signal handler can make them.
#[derive(Debug)]
struct Ends {
    /// Each byte is a request to stop; they stay there, so that every clone sees them.
    stop: (UnixStream, UnixStream),
    /// A byte asks for a new look at the configuration, and is taken out by whoever does it.
    reload: (UnixStream, UnixStream),
}

/// What was asked for so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Nothing.
    Nothing,
    /// To stop as soon as what runs has finished.
    Drain,
    /// To stop at once.
    Stop,
}

impl Stop {
    /// Nobody has asked yet.
    ///
    /// # Errors
    /// When the process has no descriptors left.
    pub fn new() -> io::Result<Self> {
        Ok(Self { ends: Arc::new(Ends { stop: pipe()?, reload: pipe()? }) })
    }

    /// As [`Stop::new`], and asked for by SIGTERM and SIGINT: once to drain, twice to stop at
    /// once. SIGHUP asks for a reload.
    ///
    /// # Errors
    /// When the process has no descriptors left, or the signals cannot be had.
    pub fn on_signals() -> io::Result<Self> {
        let this = Self::new()?;
        for signal in [SIGTERM, SIGINT] {
            signal_hook::low_level::pipe::register(signal, this.ends.stop.1.try_clone()?)?;
        }
        signal_hook::low_level::pipe::register(SIGHUP, this.ends.reload.1.try_clone()?)?;
        Ok(this)
    }

    /// Asks the gateway to stop at once: connections that run are reset.
    pub fn stop(&self) {
        // A full pipe holds requests enough.
        let _ = (&self.ends.stop.1).write(&[1, 1]);
    }

    /// Asks the gateway to stop as soon as what runs has finished, or the time for that is over.
    /// Asked for again, it stops at once.
    pub fn drain(&self) {
        let _ = (&self.ends.stop.1).write(&[1]);
    }

    /// Asks the gateway to read its configuration again.
    pub fn reload(&self) {
        let _ = (&self.ends.reload.1).write(&[1]);
    }

    /// Whether somebody has asked to stop, at once or not.
    pub fn is_stopped(&self) -> bool {
        self.asked() != Asked::Nothing
    }

    /// What was asked for so far; at a stop the process ends, so this only ever grows.
    pub(crate) fn asked(&self) -> Asked {
        let mut bytes = [MaybeUninit::uninit(); 2];
        match SockRef::from(&self.ends.stop.0).peek(&mut bytes) {
            Ok(2..) => Asked::Stop,
            Ok(1) => Asked::Drain,
            Ok(0) | Err(_) => Asked::Nothing,
        }
    }

    /// Whether a reload was asked for since the last call.
    pub(crate) fn take_reload(&self) -> bool {
        let mut bytes = [0; 16];
        let mut asked = false;
        while let Ok(1..) = (&self.ends.reload.0).read(&mut bytes) {
            asked = true;
        }
        asked
    }

    /// What becomes readable when somebody asks for something.
    pub(crate) fn descriptors(&self) -> [BorrowedFd<'_>; 2] {
        [self.ends.stop.0.as_fd(), self.ends.reload.0.as_fd()]
    }
}

/// Two ends that never wait.
fn pipe() -> io::Result<(UnixStream, UnixStream)> {
    let (reader, writer) = UnixStream::pair()?;
    reader.set_nonblocking(true)?;
    writer.set_nonblocking(true)?;
    Ok((reader, writer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_seen_by_every_clone_and_stays() {
        let stop = Stop::new().unwrap();
        let other = stop.clone();
        assert!(!stop.is_stopped());
        other.stop();
        assert!(stop.is_stopped() && other.is_stopped() && stop.is_stopped());
        assert_eq!(stop.asked(), Asked::Stop);
    }

    #[test]
    fn asked_once_it_drains_and_asked_twice_it_stops() {
        let stop = Stop::new().unwrap();
        stop.drain();
        assert_eq!((stop.asked(), stop.asked()), (Asked::Drain, Asked::Drain));
        stop.drain();
        assert_eq!(stop.asked(), Asked::Stop);
    }

    #[test]
    fn signals_are_requests() {
        let stop = Stop::on_signals().unwrap();
        signal_hook::low_level::raise(SIGHUP).unwrap();
        assert!(!stop.is_stopped());
        assert!(stop.take_reload() && !stop.take_reload());
        signal_hook::low_level::raise(SIGTERM).unwrap();
        assert_eq!(stop.asked(), Asked::Drain);
        signal_hook::low_level::raise(SIGINT).unwrap();
        assert_eq!(stop.asked(), Asked::Stop);
    }
}
