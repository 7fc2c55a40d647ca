//! Streams.

use crate::endpoint::span;
use crate::state::Shared;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::time::Duration;

/// A byte stream to a peer, like a TCP connection.
///
/// Dropping it finishes this side: written data is delivered. Data of the peer that was not read
/// resets the stream.
#[derive(Debug)]
pub struct Stream {
    pub(crate) shared: Arc<Shared>,
    pub(crate) number: u64,
}

impl Stream {
    pub(crate) fn new(shared: Arc<Shared>, number: u64) -> Self {
        Self { shared, number }
    }

    /// Reads what has arrived, without waiting; 0 at the end of the stream.
    ///
    /// # Errors
    /// `WouldBlock` if nothing has arrived, or the reason for which the stream is closed.
    pub fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.shared.change(|state, now| state.read(now, self.number, buffer))
    }

    /// Writes as much of `data` as there is room for, without waiting.
    ///
    /// # Errors
    /// `WouldBlock` if there is none, or the reason for which the stream is closed.
    pub fn try_write(&self, data: &[u8]) -> io::Result<usize> {
        self.shared.change(|state, now| state.write(now, self.number, data))
    }

    /// Waits until [`try_read`](Self::try_read) or [`try_write`](Self::try_write) would not return
    /// `WouldBlock`, as far as `interest` has them, or for `limit`.
    pub fn wait_ready(&self, interest: (bool, bool), limit: Duration) {
        let by = self.shared.clock.now() + span(limit);
        // A timeout is no error here.
        let _ =
            self.shared.block(Some(by), |state, _| match state.is_ready(self.number, interest) {
                true => Ok(()),
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
                self.shared.change(|state, _| state.finish(self.number))
            }
        }
    }

    /// Waits until the peer has acknowledged all written data.
    ///
    /// # Errors
    /// `TimedOut` after `limit`, or the reason for which the stream is closed.
    pub fn wait_acknowledged(&self, limit: Duration) -> io::Result<()> {
        let by = self.shared.clock.now() + span(limit);
        self.shared.block(Some(by), |state, _| match state.unacknowledged(self.number)? {
            0 => Ok(()),
            _ => Err(io::ErrorKind::WouldBlock.into()),
        })
    }
}

impl Read for &Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.shared.block(None, |state, now| state.read(now, self.number, buffer))
    }
}

impl Write for &Stream {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.shared.block(None, |state, now| state.write(now, self.number, data))
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
        self.shared.change(|state, _| state.drop_stream(self.number));
    }
}
