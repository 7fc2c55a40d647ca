//! How a running gateway is told to stop: by a signal, or by another thread.

use std::io::{self, Read, Write};
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
    /// A byte in the pipe is the request, so that a signal handler can make it.
    ends: Arc<(UnixStream, UnixStream)>,
}

impl Stop {
    /// Nobody has asked yet.
    ///
    /// # Errors
    /// When the process has no descriptors left.
    pub fn new() -> io::Result<Self> {
        let (reader, writer) = UnixStream::pair()?;
        reader.set_nonblocking(true)?;
        writer.set_nonblocking(true)?;
        Ok(Self { ends: Arc::new((reader, writer)) })
    }

    /// As [`Stop::new`], and asked for by SIGTERM and SIGINT.
    ///
    /// # Errors
    /// When the process has no descriptors left, or the signals cannot be had.
    pub fn on_signals() -> io::Result<Self> {
        let stop = Self::new()?;
        for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
            signal_hook::low_level::pipe::register(signal, stop.ends.1.try_clone()?)?;
        }
        Ok(stop)
    }

    /// Asks the gateway to stop.
    pub fn stop(&self) {
        // A full pipe holds requests enough.
        let _ = (&self.ends.1).write(&[1]);
    }

    /// Whether somebody has asked.
    pub fn is_stopped(&self) -> bool {
        // The byte is put back: every clone must see the request.
        let mut byte = [0];
        match (&self.ends.0).read(&mut byte) {
            Ok(1..) => {
                self.stop();
                true
            }
            Ok(0) | Err(_) => false,
        }
    }

    /// What becomes readable when somebody asks.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.ends.0.as_fd()
    }
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
    }

    #[test]
    fn a_signal_is_a_request() {
        let stop = Stop::on_signals().unwrap();
        signal_hook::low_level::raise(signal_hook::consts::SIGTERM).unwrap();
        assert!(stop.is_stopped());
    }
}
