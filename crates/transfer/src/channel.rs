//! The stream of a transfer.

use endpoint::Stream;
use std::io;
use std::time::Duration;

/// A byte stream that is read and written without waiting.
pub trait Channel {
    /// Reads what has arrived; 0 at the end.
    ///
    /// # Errors
    /// `WouldBlock` if nothing has arrived; other errors end the stream.
    fn try_read(&mut self, buffer: &mut [u8]) -> io::Result<usize>;

    /// Writes as much as there is room for.
    ///
    /// # Errors
    /// `WouldBlock` if there is none; other errors end the stream.
    fn try_write(&mut self, data: &[u8]) -> io::Result<usize>;

    /// Waits until it can be read, or written if `write`; it may return early.
    fn wait(&mut self, write: bool);
}

impl Channel for Stream {
    fn try_read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Self::try_read(self, buffer)
    }

    fn try_write(&mut self, data: &[u8]) -> io::Result<usize> {
        Self::try_write(self, data)
    }

    fn wait(&mut self, write: bool) {
        self.wait_ready((true, write), Duration::from_secs(10));
    }
}

/// Result of reading or writing as far as possible.
pub(crate) fn progress(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Ok(len) => Ok(Some(len)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}
