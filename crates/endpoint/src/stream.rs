//! Streams.

use crate::endpoint::span;
use crate::shared::{Access, Streams};
use std::fmt;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::time::Duration;

/// A byte stream to a peer, like a TCP connection.
///
/// Dropping it finishes this side: written data is delivered. Data of the peer that was not read
/// resets the stream.
pub struct Stream {
    pub(crate) shared: Arc<dyn Access>,
    pub(crate) number: u64,
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("number", &self.number).finish_non_exhaustive()
    }
}

impl Stream {
    pub(crate) fn new(shared: Arc<dyn Access>, number: u64) -> Self {
        Self { shared, number }
    }

    /// Reads what has arrived, without waiting; 0 at the end of the stream.
    ///
    /// # Errors
    /// `WouldBlock` if nothing has arrived, or the reason for which the stream is closed.
    pub fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.shared.change(&mut |state, now| state.read(now, self.number, buffer))
    }

    /// Writes as much of `data` as there is room for, without waiting.
    ///
    /// # Errors
    /// `WouldBlock` if there is none, or the reason for which the stream is closed.
    pub fn try_write(&self, data: &[u8]) -> io::Result<usize> {
        self.shared.change(&mut |state, now| state.write(now, self.number, data))
    }

    /// Waits until [`try_read`](Self::try_read) or [`try_write`](Self::try_write) would not return
    /// `WouldBlock`, as far as `interest` has them, or for `limit`.
    pub fn wait_ready(&self, interest: (bool, bool), limit: Duration) {
        let by = self.shared.now() + span(limit);
        // A timeout is no error here.
        let _ = self.shared.block(Some(by), &mut |state, _| match state
            .is_ready(self.number, interest)
        {
            true => Ok(0),
            false => Err(io::ErrorKind::WouldBlock.into()),
        });
    }

    /// Finishes this side (`Write`, `Both`); the peer can continue to send. `Read` has no effect.
    ///
    /// # Errors
    /// If the stream is closed.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        match how {
            Shutdown::Read => Ok(()),
            Shutdown::Write | Shutdown::Both => {
                let finish =
                    &mut |state: &mut dyn Streams, now| state.finish(now, self.number).map(|()| 0);
                self.shared.change(finish).map(|_| ())
            }
        }
    }

    /// Waits until the peer has acknowledged all written data.
    ///
    /// # Errors
    /// `TimedOut` after `limit`, or the reason for which the stream is closed.
    pub fn wait_acknowledged(&self, limit: Duration) -> io::Result<()> {
        let by = self.shared.now() + span(limit);
        let all =
            self.shared.block(Some(by), &mut |state, _| match state.unacknowledged(self.number)? {
                0 => Ok(0),
                _ => Err(io::ErrorKind::WouldBlock.into()),
            });
        all.map(|_| ())
    }
}

impl Read for &Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.shared.block(None, &mut |state, now| state.read(now, self.number, buffer))
    }
}

impl Write for &Stream {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.shared.block(None, &mut |state, now| state.write(now, self.number, data))
    }

    /// Does nothing: written data is sent as soon as the rate permits.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*self).read(buffer)
    }
}

impl Write for Stream {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        (&*self).write(data)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let _ = self.shared.change(&mut |state, now| {
            state.drop_stream(now, self.number);
            Ok(0)
        });
    }
}
