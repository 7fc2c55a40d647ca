//! A datagram socket at work, with what waits to leave by it. A hub has one, a terminal one for
//! each of its paths: one that is full does not hold up another.

use super::carrier::{Carrier, Outgoing};
use super::udp::{Sent, Udp};
use super::{FIRST_CONNECTION, UDP};
use crate::config::MOST_PATHS;
use crate::report::UdpCounters;
use mio::Token;
use units::Instant;

/// Receiving calls in one round.
const RECEIVE_BUDGET: usize = 8;
/// Batches sent in one round.
const TRANSMIT_BUDGET: usize = 64;
/// Bytes of a batch: what the kernel takes in one call.
const BATCH: usize = 63 * 1024;
/// The sockets of all paths but the first.
const FURTHER: usize = FIRST_CONNECTION - MOST_PATHS;
/// Tokens of listeners are below this.
pub(super) const END_OF_LISTENERS: usize = FURTHER;

/// One socket.
#[derive(Debug)]
pub(super) struct Outlet {
    pub(super) udp: Udp,
    pub(super) readable: bool,
    /// Datagrams that leave next.
    buffer: Vec<u8>,
    /// What of the buffer the socket has not taken yet.
    pub(super) pending: Option<Outgoing>,
}

impl Outlet {
    pub(super) fn new(udp: Udp) -> Self {
        Self { udp, readable: true, buffer: vec![0; BATCH], pending: None }
    }

    /// The token of the outlet with this `number`.
    pub(super) fn token(number: usize) -> Token {
        if number == 0 { UDP } else { Token(FURTHER + number - 1) }
    }

    /// The number of the outlet with this token, if it is one's.
    pub(super) fn number(token: Token) -> Option<usize> {
        match token {
            UDP => Some(0),
            Token(token) if (FURTHER..FIRST_CONNECTION).contains(&token) => {
                Some(token - FURTHER + 1)
            }
            Token(_) => None,
        }
    }

    /// Takes in what has come, within its budget.
    pub(super) fn receive(&mut self, carrier: &mut Carrier, now: Instant, number: usize) {
        for _ in 0..RECEIVE_BUDGET {
            if !self.readable {
                return;
            }
            let received = self
                .udp
                .receive(|from, datagram| carrier.handle_datagram(now, number, from, datagram));
            self.readable = match received {
                Ok(more) => more,
                Err(error) => {
                    tracing::warn!(%error, "receiving datagrams");
                    false
                }
            };
        }
    }

    /// Sends what the pacer lets go; true when there is more.
    pub(super) fn transmit(&mut self, carrier: &mut Carrier, now: Instant, number: usize) -> bool {
        for _ in 0..TRANSMIT_BUDGET {
            let outgoing = match self.pending.take() {
                Some(pending) => pending,
                None => {
                    let most = self.udp.max_batch();
                    match carrier.poll_transmit(now, number, &mut self.buffer, most) {
                        Some(outgoing) => outgoing,
                        None => return false,
                    }
                }
            };
            let Outgoing { destination, len, segment_size } = outgoing;
            match self.udp.send(destination, &self.buffer[..len], segment_size) {
                Sent::Done => {}
                Sent::Full => {
                    self.pending = Some(outgoing);
                    return false;
                }
                Sent::TooBig => {
                    carrier.check_paths();
                    carrier.too_big(number, destination, segment_size);
                }
            }
        }
        true
    }
}

/// What went through all of them.
pub(super) fn counted(outlets: &[Outlet]) -> UdpCounters {
    let mut all = UdpCounters::default();
    for outlet in outlets {
        let UdpCounters {
            received,
            received_bytes,
            sent,
            sent_bytes,
            send_calls,
            send_full,
            send_errors,
        } = outlet.udp.counters();
        all.received += received;
        all.received_bytes += received_bytes;
        all.sent += sent;
        all.sent_bytes += sent_bytes;
        all.send_calls += send_calls;
        all.send_full += send_full;
        all.send_errors += send_errors;
    }
    all
}
