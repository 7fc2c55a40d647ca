//! A relay's stream as an end of a connection.

use crate::engine::peers::peer::StreamKey;
use crate::engine::peers::relay_set::RelaySet;
use crate::engine::transfer::last_bytes::LastSink;
use crate::engine::transfer::pipe::Sink;
use crate::engine::transfer::splice::Stream;
use std::io::{self, Read, Write};
use units::{Instant, Span};

/// A stream of the relays.
#[derive(Debug)]
pub(crate) struct StreamEndpoint<'a> {
    relays: &'a mut RelaySet,
    key: StreamKey,
    now: Instant,
    /// Maximum time for which the link counts as a reason to wait.
    longest_outage: Span,
    /// Octets that the stream has taken, and those that were taken from it.
    pub(crate) written: u64,
    pub(crate) read: u64,
}

impl<'a> StreamEndpoint<'a> {
    /// The stream `key` of `relays`.
    pub(crate) fn new(
        relays: &'a mut RelaySet,
        key: StreamKey,
        now: Instant,
        longest_outage: Span,
    ) -> Self {
        Self { relays, key, now, longest_outage, written: 0, read: 0 }
    }
}

impl Stream for StreamEndpoint<'_> {
    fn room(&mut self) -> usize {
        self.relays.ample_room(self.key)
    }

    fn write(&mut self, bytes: &[u8]) -> usize {
        let count = self.relays.write(self.now, self.key, bytes);
        self.written += count as u64;
        count
    }

    fn end(&mut self) {
        self.relays.end(self.key);
    }

    fn peek_pieces<'a>(&'a mut self, pieces: &mut [&'a [u8]]) {
        self.relays.peek_pieces(self.key, pieces);
    }

    fn consume(&mut self, count: usize) {
        self.relays.consume(self.now, self.key, count);
        self.read += count as u64;
    }
}

impl Read for StreamEndpoint<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.relays.peek(self.key);
        if bytes.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let count = bytes.len().min(buffer.len());
        buffer[..count].copy_from_slice(&bytes[..count]);
        self.consume(count);
        Ok(count)
    }
}

impl Write for StreamEndpoint<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match Stream::write(self, bytes) {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            count => Ok(count),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Sink for StreamEndpoint<'_> {
    fn end(&mut self) -> io::Result<()> {
        Stream::end(self);
        Ok(())
    }
}

impl LastSink for StreamEndpoint<'_> {
    fn undelivered(&mut self) -> u64 {
        self.relays.held(self.key)
    }

    /// While the link is out, or slow and shared by many streams, no octet is acknowledged.
    fn waits_for_link(&mut self, stalled: Span) -> bool {
        stalled < self.longest_outage && self.relays.waits_for_link(self.key)
    }
}
