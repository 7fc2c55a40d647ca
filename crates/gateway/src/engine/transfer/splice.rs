//! One TCP socket and one relay stream, made into one connection.
//!
//! ```text
//!             take in                       
//!   socket ────────────▶ stream      read until the stream is full, then leave the rest to TCP
//!          ◀────────────             write until the socket is full, then leave it to credit
//!            hand out                
//! ```
//!
//! The two halves end by themselves, each after its last byte. Sockets are registered
//! edge-triggered, so readiness is remembered here until a call says that it is over.

use crate::engine::defect::{self, Defect};
use crate::engine::host::TcpSocket;
use crate::engine::transfer::unresponsive;
use std::io;

/// Bytes that one connection moves in each direction before others have their turn.
const BUDGET: usize = 64 * 1024;

/// What a splice asks of a relay's stream.
pub(crate) trait Stream {
    /// Takes bytes; fewer than given when it is full, and then says when there is room.
    fn write(&mut self, bytes: &[u8]) -> usize;
    /// Nothing more will be written.
    fn end(&mut self);
    /// The next bytes for the socket; empty when none have come.
    fn peek(&mut self) -> &[u8];
    /// The first `count` bytes of what was peeked at have found their way.
    fn consume(&mut self, count: usize);
}

/// A stream that is gone.
#[derive(Debug)]
pub(crate) struct NoStream;

impl Stream for NoStream {
    fn write(&mut self, _: &[u8]) -> usize {
        0
    }

    fn end(&mut self) {}

    fn peek(&mut self) -> &[u8] {
        &[]
    }

    fn consume(&mut self, _: usize) {}
}

/// What a splice remembers between two turns.
#[derive(Debug)]
pub(crate) struct Splice {
    /// The socket may have bytes, or its end.
    readable: bool,
    /// The socket may have room.
    writable: bool,
    /// The socket's end was passed on.
    taken_in: bool,
    /// The stream's end was announced; bytes may still wait.
    stream_ended: bool,
    /// The stream's end was passed on.
    handed_out: bool,
    /// Read from the socket and not taken by the stream yet; at most one read's worth.
    kept: Vec<u8>,
    /// For the socket, before anything of the stream: a proxy's answer.
    preface: Vec<u8>,
}

/// What a turn came to.
#[derive(Debug)]
pub(crate) enum Turn {
    /// Nothing more to do until the socket or the stream says so.
    Wait,
    /// There is more to do, and others wait.
    More,
    /// Both halves are over, and every byte is where it belongs.
    Done,
    /// The socket broke.
    Broken(io::Error),
}

impl Splice {
    /// A splice that first takes in `kept`, which was read from the socket already, and first
    /// hands out `preface`.
    pub(crate) fn new(kept: Vec<u8>, preface: Vec<u8>) -> Self {
        Self {
            readable: true,
            writable: true,
            taken_in: false,
            stream_ended: false,
            handed_out: false,
            kept,
            preface,
        }
    }

    /// The socket has bytes, or its end.
    pub(crate) fn socket_is_readable(&mut self) {
        self.readable = true;
    }

    /// The socket has room.
    pub(crate) fn socket_is_writable(&mut self) {
        self.writable |= !defect::has(Defect::LostWakeup);
    }

    /// The stream has an end, after what can be peeked at.
    pub(crate) fn stream_has_ended(&mut self) {
        self.stream_ended = true;
    }

    /// Whether something is to be handed out that is not the stream's.
    pub(crate) fn has_preface(&self) -> bool {
        !self.preface.is_empty()
    }

    /// What was read from the socket and not taken by the stream, and whether the socket's end
    /// was passed on.
    pub(crate) fn into_kept(self) -> (Vec<u8>, bool) {
        (self.kept, self.taken_in)
    }

    /// Moves what can be moved, both ways. `scratch` is room for one read.
    pub(crate) fn turn(
        &mut self,
        socket: &dyn TcpSocket,
        stream: &mut impl Stream,
        scratch: &mut [u8],
    ) -> Turn {
        let more = match self.take_in(socket, stream, scratch) {
            Ok(more) => more,
            Err(error) => return Turn::Broken(error),
        };
        match self.hand_out(socket, stream) {
            Ok(false) if self.taken_in && self.handed_out => Turn::Done,
            Ok(false) if !more => Turn::Wait,
            Ok(_) => Turn::More,
            Err(error) => Turn::Broken(error),
        }
    }

    /// From the socket into the stream; true when there is more to do.
    fn take_in(
        &mut self,
        socket: &dyn TcpSocket,
        stream: &mut impl Stream,
        scratch: &mut [u8],
    ) -> io::Result<bool> {
        if self.taken_in {
            return Ok(false);
        }
        if !self.kept.is_empty() {
            let taken = stream.write(&self.kept);
            if taken < self.kept.len() {
                self.kept.drain(..taken);
                return Ok(false);
            }
            self.kept = Vec::new();
        }
        let mut budget = BUDGET;
        while self.readable {
            if budget == 0 {
                return Ok(true);
            }
            match socket.read(scratch) {
                Ok(0) => {
                    self.readable = false;
                    self.taken_in = true;
                    stream.end();
                }
                Ok(count) => {
                    budget = budget.saturating_sub(count);
                    let taken = stream.write(&scratch[..count]);
                    if taken < count && !defect::has(Defect::LostBytes) {
                        self.kept.extend_from_slice(&scratch[taken..count]);
                        return Ok(false);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if unresponsive::is_later(&error) => self.readable = false,
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// From the stream into the socket; true when there is more to do.
    pub(crate) fn hand_out(
        &mut self,
        socket: &dyn TcpSocket,
        stream: &mut impl Stream,
    ) -> io::Result<bool> {
        let mut budget = BUDGET;
        while self.writable && !self.handed_out {
            let from_stream = self.preface.is_empty();
            let bytes = if from_stream { stream.peek() } else { &self.preface };
            if bytes.is_empty() || self.stream_ended && defect::has(Defect::EarlyShutdown) {
                if self.stream_ended {
                    self.handed_out = true;
                    socket.shutdown_write()?;
                }
                return Ok(false);
            }
            if budget == 0 {
                return Ok(true);
            }
            match socket.write(bytes) {
                Ok(count) => {
                    budget = budget.saturating_sub(count);
                    if from_stream {
                        stream.consume(count);
                    } else {
                        self.preface.drain(..count);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if unresponsive::is_later(&error) => self.writable = false,
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests;
