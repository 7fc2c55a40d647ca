//! Copying between a TCP socket and a relay stream.
//!
//! ```text
//!   socket ──read──▶ stream      until the stream is full, then leave the rest to TCP
//!          ◀─write──             until the socket is full, then leave it to credit
//! ```
//!
//! Each direction ends by itself after its last byte. Sockets are watched edge-triggered, so
//! readiness is stored here until a call returns [`io::ErrorKind::WouldBlock`].

use crate::engine::defect::{self, Defect};
use crate::engine::host::TcpSocket;
use crate::engine::transfer::pipe::{BUDGET, Pipe};
use crate::engine::transfer::unresponsive;
use std::io::{self, IoSlice};

/// Pieces of a stream that are written by one call.
const PIECES: usize = 5;

/// A relay's stream, as a splice uses it.
pub(crate) trait Stream {
    /// Returns the number of bytes that are worth reading for the stream now; 0 when it is full,
    /// which an event follows when there is room.
    fn room(&mut self) -> usize;
    /// Takes bytes; fewer than given when it is full, which an event follows when there is room.
    fn write(&mut self, bytes: &[u8]) -> usize;
    /// Ends the written direction.
    fn end(&mut self);
    /// Puts the next bytes for the socket into `pieces`; those that are not needed stay empty.
    fn peek_pieces<'a>(&'a mut self, pieces: &mut [&'a [u8]]);
    /// Removes the first `count` bytes of what was peeked at.
    fn consume(&mut self, count: usize);
}

/// State of a splice.
#[derive(Debug)]
pub(crate) struct Splice {
    /// The socket may have bytes or an end to read.
    readable: bool,
    /// The socket may have room.
    writable: bool,
    /// The socket's end was passed on to the stream.
    input_closed: bool,
    /// The stream's end was announced; bytes may precede it.
    stream_ended: bool,
    /// The stream's end was passed on to the socket.
    output_closed: bool,
    /// Bytes read from the socket and not taken by the stream yet; at most those of one read.
    pending_input: Vec<u8>,
    /// Bytes for the socket before those of the stream: a proxy's reply.
    pending_reply: Vec<u8>,
}

/// Result of a turn.
#[derive(Debug)]
pub(crate) enum Turn {
    /// Nothing can be done until the socket or the stream is ready.
    Wait,
    /// More can be done at once, after the turns of others.
    More,
    /// Both directions have ended, and all bytes are delivered.
    Done,
    /// The socket failed.
    Broken(io::Error),
}

impl Splice {
    /// A splice that first writes `pending_input` to the stream and `pending_reply` to the socket.
    pub(crate) fn new(pending_input: Vec<u8>, pending_reply: Vec<u8>) -> Self {
        Self {
            readable: true,
            writable: true,
            input_closed: false,
            stream_ended: false,
            output_closed: false,
            pending_input,
            pending_reply,
        }
    }

    /// Notes that the socket is readable.
    pub(crate) fn socket_is_readable(&mut self) {
        self.readable = true;
    }

    /// Notes that the socket is writable.
    pub(crate) fn socket_is_writable(&mut self) {
        self.writable |= !defect::has(Defect::LostWakeup);
    }

    /// Notes the stream's end, which follows the bytes that can be peeked at.
    pub(crate) fn stream_has_ended(&mut self) {
        self.stream_ended = true;
    }

    /// Takes what was read from the socket, which has failed, and not taken by the stream.
    pub(crate) fn take_input(&mut self) -> Pipe {
        let mut pipe = Pipe::with(std::mem::take(&mut self.pending_input));
        pipe.source_is_broken();
        pipe
    }

    /// Takes what the socket is to receive before the bytes of the stream, which was reset.
    pub(crate) fn take_output(&mut self) -> Pipe {
        Pipe::with(std::mem::take(&mut self.pending_reply))
    }

    /// Moves what can be moved in both directions. `scratch` is room for one read.
    pub(crate) fn turn(
        &mut self,
        socket: &dyn TcpSocket,
        stream: &mut impl Stream,
        scratch: &mut [u8],
    ) -> Turn {
        let more = match self.read_socket(socket, stream, scratch) {
            Ok(more) => more,
            Err(error) => return Turn::Broken(error),
        };
        match self.write_socket(socket, stream) {
            Ok(false) if self.input_closed && self.output_closed => Turn::Done,
            Ok(false) if !more => Turn::Wait,
            Ok(_) => Turn::More,
            Err(error) => Turn::Broken(error),
        }
    }

    /// Copies from the socket to the stream; true when there is more to do.
    fn read_socket(
        &mut self,
        socket: &dyn TcpSocket,
        stream: &mut impl Stream,
        scratch: &mut [u8],
    ) -> io::Result<bool> {
        if self.input_closed {
            return Ok(false);
        }
        if !self.pending_input.is_empty() {
            let taken = stream.write(&self.pending_input);
            if taken < self.pending_input.len() {
                self.pending_input.drain(..taken);
                return Ok(false);
            }
            self.pending_input = Vec::new();
        }
        let mut budget = BUDGET;
        while self.readable {
            if budget == 0 {
                return Ok(true);
            }
            // What is read beyond the stream's room would have to be stored here.
            let room = match stream.room() {
                _ if defect::has(Defect::LostBytes) => scratch.len(),
                0 => return Ok(false),
                room => room.min(scratch.len()),
            };
            match socket.read(&mut scratch[..room]) {
                Ok(0) => {
                    self.readable = false;
                    self.input_closed = true;
                    stream.end();
                }
                Ok(count) => {
                    budget = budget.saturating_sub(count);
                    let taken = stream.write(&scratch[..count]);
                    if taken < count && !defect::has(Defect::LostBytes) {
                        self.pending_input.extend_from_slice(&scratch[taken..count]);
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

    /// Copies from the stream to the socket; true when there is more to do.
    fn write_socket(
        &mut self,
        socket: &dyn TcpSocket,
        stream: &mut impl Stream,
    ) -> io::Result<bool> {
        let mut budget = BUDGET;
        while self.writable && !self.output_closed {
            let from_stream = self.pending_reply.is_empty();
            let mut pieces: [&[u8]; PIECES] = [&[]; PIECES];
            if from_stream {
                stream.peek_pieces(&mut pieces);
            } else {
                pieces[0] = &self.pending_reply;
            }
            if pieces[0].is_empty() || self.stream_ended && defect::has(Defect::EarlyShutdown) {
                if self.stream_ended {
                    self.output_closed = true;
                    socket.shutdown_write()?;
                }
                return Ok(false);
            }
            if budget == 0 {
                return Ok(true);
            }
            let mut left = budget;
            let within = |piece: &&&[u8]| {
                let counts = left > 0 && !piece.is_empty();
                left = left.saturating_sub(piece.len());
                counts
            };
            let count = pieces.iter().take_while(within).count();
            match socket.write_vectored(&pieces.map(IoSlice::new)[..count]) {
                Ok(count) => {
                    budget = budget.saturating_sub(count);
                    if from_stream {
                        stream.consume(count);
                    } else {
                        self.pending_reply.drain(..count);
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
