//! SOCKS5 and CONNECT handshakes with proxy clients.

use crate::engine::accept::client_admission::ClientAdmission;
use crate::engine::accept::stage::{TerminalCore, TerminalStage};
use crate::engine::accept::stream_open::on_proxy_request;
use crate::engine::transfer::final_reply::flush;
use crate::engine::transfer::unresponsive;
use crate::proxy::{Destination, Progress};
use std::io;
use units::Instant;

/// Maximum octets of replies that a proxy client has not read yet.
const MAX_REPLY: usize = 16 * 1024;

/// Reads the client's part of the proxy handshake and replies.
pub(crate) fn read_request(
    core: &mut TerminalCore,
    now: Instant,
    index: usize,
    admission: &mut ClientAdmission,
) {
    match read_from_client(core, index) {
        Ok(RequestStatus::Incomplete) => {}
        Ok(RequestStatus::Complete(destination, pending_input)) => {
            on_proxy_request(core, now, index, admission, destination, pending_input);
        }
        Ok(RequestStatus::Malformed(message)) => {
            tracing::info!(%message, "malformed proxy request");
            core.counters.bad_requests += 1;
            core.set_close_cause(index, "malformed proxy request");
            let TerminalStage::ProxyHandshake(proxy_client) = &mut core.connections[index].stage
            else {
                return;
            };
            let message = std::mem::take(&mut proxy_client.reply);
            core.send_final_reply(now, index, message);
        }
        // No stream was opened that would have to be reset.
        Ok(RequestStatus::Closed) => core.finish(index),
        Err(error) => {
            tracing::debug!(%error, "proxy client disconnected");
            core.reset_socket(index);
        }
    }
}

/// Progress of a proxy handshake.
enum RequestStatus {
    Incomplete,
    Complete(Destination, Vec<u8>),
    Malformed(String),
    Closed,
}

fn read_from_client(core: &mut TerminalCore, index: usize) -> io::Result<RequestStatus> {
    let connection = &mut core.connections[index];
    let (TerminalStage::ProxyHandshake(proxy_client), Some(socket)) =
        (&mut connection.stage, &connection.socket)
    else {
        return Ok(RequestStatus::Incomplete);
    };
    let scratch = &mut core.scratch[..];
    loop {
        flush(&**socket, &mut proxy_client.reply)?;
        let count = match socket.read(scratch) {
            Ok(0) => return Ok(RequestStatus::Closed),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) if unresponsive::is_later(&error) => return Ok(RequestStatus::Incomplete),
            Err(error) => return Err(error),
        };
        let mut input = &scratch[..count];
        loop {
            match proxy_client.handshake.feed(input) {
                Progress::NeedMore => break,
                Progress::Reply { bytes, used } => {
                    proxy_client.reply.extend_from_slice(&bytes);
                    input = &input[used..];
                    if proxy_client.reply.len() > MAX_REPLY {
                        return Ok(RequestStatus::Malformed("it reads no answers".into()));
                    }
                    if input.is_empty() {
                        break;
                    }
                }
                Progress::Request { destination, used } => {
                    return Ok(RequestStatus::Complete(destination, input[used..].to_vec()));
                }
                Progress::Bad { reply, message } => {
                    proxy_client.reply.extend_from_slice(&reply);
                    return Ok(RequestStatus::Malformed(message));
                }
            }
        }
    }
}
