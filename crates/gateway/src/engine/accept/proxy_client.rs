//! Talking with a proxy's client: what it wants, and why it does not get it.

use crate::engine::accept::client_admission::Door;
use crate::engine::accept::stage::{TerminalCore, TerminalStage};
use crate::engine::accept::stream_open::wants;
use crate::engine::transfer::final_reply::flush;
use crate::engine::transfer::unresponsive;
use crate::proxy::{Destination, Progress};
use std::io;
use units::Instant;

/// Answers to a proxy's client that may wait for it to read them.
const MAX_REPLY: usize = 16 * 1024;

/// Reads what the client says to the proxy, and answers.
pub(crate) fn ask(core: &mut TerminalCore, now: Instant, index: usize, door: &mut Door) {
    match ask_on(core, index) {
        Ok(Asked::Waits) => {}
        Ok(Asked::Wants(destination, kept)) => wants(core, now, index, door, destination, kept),
        Ok(Asked::Nonsense(message)) => {
            tracing::info!(%message, "a client of a proxy made no sense");
            core.counters.bad_requests += 1;
            core.because(index, "what it said to the proxy made no sense");
            let TerminalStage::Asking(asking) = &mut core.connections[index].stage else { return };
            let message = std::mem::take(&mut asking.reply);
            core.send_final_reply(now, index, message);
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

fn ask_on(core: &mut TerminalCore, index: usize) -> io::Result<Asked> {
    let connection = &mut core.connections[index];
    let (TerminalStage::Asking(asking), Some(socket)) = (&mut connection.stage, &connection.socket)
    else {
        return Ok(Asked::Waits);
    };
    let scratch = &mut core.scratch[..];
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
