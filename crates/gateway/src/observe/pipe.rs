//! A client's connection, nonblocking with bounded input and output.

use mio::event::Source;
use mio::{Interest, Registry, Token};
use std::io::{self, ErrorKind, Read, Write};

/// Size of one read in bytes.
const READ: usize = 4096;

/// A connection whose readiness is stored, because it is reported only once.
#[derive(Debug)]
pub(super) struct Pipe<S> {
    stream: S,
    readable: bool,
    writable: bool,
    /// Whether the client has finished sending.
    ended: bool,
    /// Received octets that were not parsed yet.
    pub(super) input: Vec<u8>,
    output: Vec<u8>,
    written: usize,
}

impl<S: Read + Write + Source> Pipe<S> {
    pub(super) fn new(mut stream: S, registry: &Registry, token: Token) -> io::Result<Self> {
        registry.register(&mut stream, token, Interest::READABLE | Interest::WRITABLE)?;
        Ok(Self {
            stream,
            readable: true,
            writable: true,
            ended: false,
            input: Vec::new(),
            output: Vec::new(),
            written: 0,
        })
    }

    pub(super) fn is_ready(&mut self, event: &mio::event::Event) {
        self.readable |= event.is_readable() || event.is_read_closed();
        self.writable |= event.is_writable() || event.is_write_closed();
    }

    pub(super) fn stream(&self) -> &S {
        &self.stream
    }

    /// Whether reading or writing is possible now.
    pub(super) fn has_work(&self) -> bool {
        self.readable || (self.writable && self.pending() > 0)
    }

    /// Whether the client has finished sending.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Returns the number of pending output bytes.
    pub(super) fn pending(&self) -> usize {
        self.output.len() - self.written
    }

    /// Reads until there are `most` bytes of input, or no more are available.
    pub(super) fn fill(&mut self, most: usize) -> io::Result<()> {
        let mut chunk = [0; READ];
        while self.readable && !self.ended && self.input.len() < most {
            let room = (most - self.input.len()).min(READ);
            match self.stream.read(&mut chunk[..room]) {
                Ok(0) => self.ended = true,
                Ok(count) => self.input.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.readable = false,
                Err(error) => return Err(error),
            }
        }
        self.readable &= !self.ended;
        Ok(())
    }

    /// Discards the input.
    pub(super) fn ignore(&mut self) -> io::Result<()> {
        self.fill(READ)?;
        self.input.clear();
        Ok(())
    }

    /// Returns the output buffer.
    pub(super) fn output(&mut self) -> &mut Vec<u8> {
        if self.written == self.output.len() {
            self.output.clear();
            self.written = 0;
        } else if self.written >= 64 * 1024 {
            // Written bytes are removed, rarely enough to cost little.
            self.output.drain(..self.written);
            self.written = 0;
        }
        &mut self.output
    }

    /// Writes pending output.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        while self.writable && self.pending() > 0 {
            match self.stream.write(&self.output[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.writable = false,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
