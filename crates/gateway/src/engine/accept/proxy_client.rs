//! Talking with a proxy's client: what it wants, and why it does not get it.

use crate::engine::accept::client_admission::Door;
use crate::engine::accept::stream_open::wants;
use crate::engine::host::TcpSocket;
use crate::engine::transfer::connection::Phase;
use crate::engine::transfer::connections::Core;
use crate::engine::transfer::unresponsive;
use crate::proxy::{Destination, Progress};
use std::io;
use units::{Instant, Span};

/// Answers to a proxy's client that may wait for it to read them.
const MAX_REPLY: usize = 16 * 1024;
/// How long a client may take to read why it was refused.
const FAREWELL: Span = Span::from_secs(3);
/// How often a client that does not listen is read from before others have their turn.
const FAREWELL_READS: usize = 16;

/// Reads what the client says to the proxy, and answers.
pub(crate) fn ask(core: &mut Core, now: Instant, index: usize, door: &mut Door) {
    let mut scratch = core.take_scratch();
    let asked = ask_on(core, index, &mut scratch);
    core.put_scratch(scratch);
    match asked {
        Ok(Asked::Waits) => {}
        Ok(Asked::Wants(destination, kept)) => wants(core, now, index, door, destination, kept),
        Ok(Asked::Nonsense(message)) => {
            tracing::info!(%message, "a client of a proxy made no sense");
            core.counters.bad_requests += 1;
            core.because(index, "what it said to the proxy made no sense");
            let Phase::Asking(asking) = &mut core.connections[index].phase else { return };
            let message = std::mem::take(&mut asking.reply);
            say_farewell(core, now, index, message);
        }
        // Nothing was opened, so nobody else has to hear of it.
        Ok(Asked::Left) => core.finish(index),
        Err(error) => {
            tracing::debug!(%error, "a client of a proxy was gone");
            core.reset_socket(index);
        }
    }
}

/// What a client of a proxy has said so far.
enum Asked {
    Waits,
    Wants(Destination, Vec<u8>),
    Nonsense(String),
    Left,
}

fn ask_on(core: &mut Core, index: usize, scratch: &mut [u8]) -> io::Result<Asked> {
    let connection = &mut core.connections[index];
    let (Phase::Asking(asking), Some(socket)) = (&mut connection.phase, &connection.socket) else {
        return Ok(Asked::Waits);
    };
    loop {
        flush(&**socket, &mut asking.reply)?;
        let count = match socket.read(scratch) {
            Ok(0) => return Ok(Asked::Left),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) if unresponsive::is_later(&error) => return Ok(Asked::Waits),
            Err(error) => return Err(error),
        };
        let mut input = &scratch[..count];
        loop {
            match asking.handshake.feed(input) {
                Progress::NeedMore => break,
                Progress::Reply { bytes, used } => {
                    asking.reply.extend_from_slice(&bytes);
                    input = &input[used..];
                    if asking.reply.len() > MAX_REPLY {
                        return Ok(Asked::Nonsense("it reads no answers".into()));
                    }
                    if input.is_empty() {
                        break;
                    }
                }
                Progress::Request { destination, used } => {
                    return Ok(Asked::Wants(destination, input[used..].to_vec()));
                }
                Progress::Bad { reply, message } => {
                    asking.reply.extend_from_slice(&reply);
                    return Ok(Asked::Nonsense(message));
                }
            }
        }
    }
}

pub(crate) fn say_farewell(core: &mut Core, now: Instant, index: usize, message: Vec<u8>) {
    core.connections[index].phase = Phase::Farewell { message, ended: false };
    core.set_due(index, Some(now + FAREWELL));
    farewell(core, index);
}

/// Writes what is left of the last message, ends, and waits for the client's end: a socket that
/// is closed with unread bytes resets, and the message would be lost.
pub(crate) fn farewell(core: &mut Core, index: usize) {
    let mut scratch = core.take_scratch();
    let left = farewell_on(core, index, &mut scratch);
    core.put_scratch(scratch);
    match left {
        Ok(false) => {}
        Ok(true) => core.finish(index),
        Err(_) => core.reset_socket(index),
    }
}

/// True when the client has ended as well.
fn farewell_on(core: &mut Core, index: usize, scratch: &mut [u8]) -> io::Result<bool> {
    let connection = &mut core.connections[index];
    let (Phase::Farewell { message, ended }, Some(socket)) =
        (&mut connection.phase, &connection.socket)
    else {
        return Ok(false);
    };
    flush(&**socket, message)?;
    // Once only: each call wakes whoever polls the socket, and that is this loop.
    if message.is_empty() && !*ended {
        *ended = true;
        socket.shutdown_write()?;
    }
    for _ in 0..FAREWELL_READS {
        match socket.read(scratch) {
            Ok(0) => return Ok(message.is_empty()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if unresponsive::is_later(&error) => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    core.queue(index);
    Ok(false)
}

/// Writes as much of `bytes` as the socket takes, and forgets it.
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
