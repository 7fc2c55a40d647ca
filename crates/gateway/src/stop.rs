//! Requests to a running gateway to stop, drain or reload, by a signal or another thread.
//!
//! ```text
//!   SIGTERM, SIGINT   once: accept no new connections; running ones have time to finish
//!                     twice: end immediately
//!   SIGHUP            reload the configuration
//!   SIGUSR2           start the program again and leave new connections to it
//! ```

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR2};
use socket2::SockRef;
use std::io::{self, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// A handle that stops a gateway; clones stop the same one.
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

/// Requests are bytes in pipes, so that a signal handler can write them.
#[derive(Debug)]
struct Ends {
    /// Each byte is a request to stop; they stay in the pipe, so that every clone sees them.
    stop: (UnixStream, UnixStream),
    /// A byte is a request to reload; the reload removes it.
    reload: (UnixStream, UnixStream),
    /// As `reload`, for upgrades.
    upgrade: (UnixStream, UnixStream),
}

/// Requests so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Nothing.
    Nothing,
    /// Stop when running connections have finished.
    Drain,
    /// Stop immediately.
    Stop,
}

impl Stop {
    /// Creates a handle without requests.
    ///
    /// # Errors
    /// When the process has no descriptors left.
    pub fn new() -> io::Result<Self> {
        Ok(Self { ends: Arc::new(Ends { stop: pipe()?, reload: pipe()?, upgrade: pipe()? }) })
    }

    /// As [`Stop::new`], with handlers for SIGTERM and SIGINT, once to drain, twice to stop
    /// immediately, for SIGHUP to reload, and for SIGUSR2 to upgrade.
    ///
    /// # Errors
    /// When the process has no descriptors left, or a handler cannot be installed.
    pub fn on_signals() -> io::Result<Self> {
        let this = Self::new()?;
        for signal in [SIGTERM, SIGINT] {
            signal_hook::low_level::pipe::register(signal, this.ends.stop.1.try_clone()?)?;
        }
        signal_hook::low_level::pipe::register(SIGHUP, this.ends.reload.1.try_clone()?)?;
        signal_hook::low_level::pipe::register(SIGUSR2, this.ends.upgrade.1.try_clone()?)?;
        Ok(this)
    }

    /// Requests an immediate stop: running connections are reset.
    pub fn stop(&self) {
        // A full pipe holds enough requests.
        let _ = (&self.ends.stop.1).write(&[1, 1]);
    }

    /// Requests a drain: the gateway stops when running connections have finished or their time is
    /// over. A second request stops it immediately.
    pub fn drain(&self) {
        let _ = (&self.ends.stop.1).write(&[1]);
    }

    /// Requests a reload of the configuration.
    pub fn reload(&self) {
        let _ = (&self.ends.reload.1).write(&[1]);
    }

    /// Whether a stop or a drain was requested.
    pub fn is_stopped(&self) -> bool {
        self.asked() != Asked::Nothing
    }

    /// Returns the strongest request so far.
    pub(crate) fn asked(&self) -> Asked {
        let mut bytes = [MaybeUninit::uninit(); 2];
        match SockRef::from(&self.ends.stop.0).peek(&mut bytes) {
            Ok(2..) => Asked::Stop,
            Ok(1) => Asked::Drain,
            Ok(0) | Err(_) => Asked::Nothing,
        }
    }

    /// Whether a reload was requested since the last call.
    pub(crate) fn take_reload(&self) -> bool {
        take(&self.ends.reload.0)
    }

    /// Whether an upgrade was requested since the last call.
    pub(crate) fn take_upgrade(&self) -> bool {
        take(&self.ends.upgrade.0)
    }

    /// Returns the descriptors that become readable at a request.
    pub(crate) fn descriptors(&self) -> [BorrowedFd<'_>; 3] {
        let Ends { stop, reload, upgrade } = &*self.ends;
        [stop.0.as_fd(), reload.0.as_fd(), upgrade.0.as_fd()]
    }
}

/// Removes all requests; true if there were any.
fn take(mut requests: &UnixStream) -> bool {
    let mut bytes = [0; 16];
    let mut asked = false;
    while let Ok(1..) = requests.read(&mut bytes) {
        asked = true;
    }
    asked
}

/// Returns a nonblocking pipe.
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
    fn a_request_reaches_every_clone() {
        let stop = Stop::new().unwrap();
        let other = stop.clone();
        assert!(!stop.is_stopped());
        other.stop();
        assert!(stop.is_stopped() && other.is_stopped() && stop.is_stopped());
        assert_eq!(stop.asked(), Asked::Stop);
    }

    #[test]
    fn the_first_stop_drains_and_the_second_stops() {
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
