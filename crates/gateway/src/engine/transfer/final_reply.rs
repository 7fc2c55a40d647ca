//! Last messages to clients.

use crate::engine::host::TcpSocket;
use crate::engine::transfer::connection::{Stage, Transfer};
use crate::engine::transfer::connections::Core;
use crate::engine::transfer::unresponsive;
use std::io;
use units::{Instant, Span};

/// Maximum time for a client to read its last message.
const TIMEOUT: Span = Span::from_secs(3);
/// Maximum number of reads in one turn from a client that does not stop sending.
const READS: usize = 16;

/// A message that is followed by an orderly end.
#[derive(Debug, Default)]
pub(crate) struct FinalReply {
    /// The part of it that the socket has not taken yet.
    message: Vec<u8>,
    /// The end was sent.
    ended: bool,
}

impl<S: Stage> Core<S> {
    /// Sends `message` to the client, and closes the connection when the client has read it.
    pub(crate) fn send_final_reply(&mut self, now: Instant, index: usize, message: Vec<u8>) {
        let reply = FinalReply { message, ended: false };
        self.connections[index].stage = Transfer::FinalReply(reply).into();
        self.set_due(index, Some(now + TIMEOUT));
        self.run_final_reply(index);
    }

    /// Writes the rest of the message and the end, and waits for the client's end: a socket that
    /// is closed with unread bytes resets, and the message would be lost.
    pub(crate) fn run_final_reply(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        let (Some(Transfer::FinalReply(reply)), Some(socket)) =
            (connection.stage.transfer_mut(), connection.socket.as_deref())
        else {
            return;
        };
        match reply.run(socket, &mut self.scratch) {
            Ok(Turn::Wait) => {}
            Ok(Turn::More) => self.queue(index),
            Ok(Turn::Done) => self.finish(index),
            Err(_) => self.reset_socket(index),
        }
    }
}

enum Turn {
    Wait,
    More,
    Done,
}

impl FinalReply {
    fn run(&mut self, socket: &dyn TcpSocket, scratch: &mut [u8]) -> io::Result<Turn> {
        flush(socket, &mut self.message)?;
        // Once only: each call makes the socket ready, which would wake this loop.
        if self.message.is_empty() && !self.ended {
            self.ended = true;
            socket.shutdown_write()?;
        }
        for _ in 0..READS {
            match socket.read(scratch) {
                Ok(0) if self.message.is_empty() => return Ok(Turn::Done),
                Ok(0) => return Ok(Turn::Wait),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if unresponsive::is_later(&error) => return Ok(Turn::Wait),
                Err(error) => return Err(error),
            }
        }
        Ok(Turn::More)
    }
}

/// Writes as many of `bytes` as the socket takes, and removes them.
///
/// # Errors
/// What ended the connection.
pub(crate) fn flush(socket: &dyn TcpSocket, bytes: &mut Vec<u8>) -> io::Result<()> {
    while !bytes.is_empty() {
        match socket.write(bytes) {
            Ok(count) => drop(bytes.drain(..count)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if unresponsive::is_later(&error) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
