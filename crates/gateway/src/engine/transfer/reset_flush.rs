//! The last bytes of connections that the other gateway has reset.
//!
//! ```text
//!   stream: bytes, then its reset ──▶ socket: bytes, as fast as its other end takes them,
//!                                             and when it has all of them: a reset
//! ```
//!
//! A server that answers and closes without having read the whole request resets; so does a
//! client that says its last word and closes with an answer unread. What came before is not to be
//! lost, neither in the stream nor in the kernel's buffer, which a reset throws away.

use crate::engine::transfer::connection::{Carried, Phase};
use crate::engine::transfer::connections::Core;
use crate::engine::transfer::splice::{NoStream, Splice};
use units::{Instant, Span};

/// How often to look whether the last bytes have arrived: at first, and later.
const LOOKS: (Span, Span) = (Span::from_millis(50), Span::from_secs(1));
/// How long the socket's other end may take none of them: one that reads nothing at all is to
/// hear of the reset, too.
const PATIENCE: Span = Span::from_secs(10);

/// What is left of a connection whose stream was reset.
#[derive(Debug)]
pub(crate) struct Emptying {
    pub(crate) splice: Splice,
    since: Instant,
    /// Bytes that the socket's other end had when it was last seen to take some.
    taken: u64,
    /// When to give up, unless it takes more by then.
    patience: Instant,
}

impl Core {
    /// The other gateway has reset the stream, behind bytes that are still to be read.
    pub(crate) fn stream_ending(&mut self, index: usize) {
        self.counters.reset_by_peer += 1;
        self.connections[index].ending_stream = true;
        self.queue(index);
    }

    /// The other gateway has reset the stream, and it is gone; the socket goes the same way.
    pub(crate) fn stream_reset(&mut self, now: Instant, index: usize) {
        if !self.connections[index].ending_stream {
            self.counters.reset_by_peer += 1;
        }
        self.detach(index);
        match self.connections[index].phase {
            Phase::Spliced(_) | Phase::Emptying(_) => self.reset_behind(now, index),
            Phase::Asking(_)
            | Phase::Greeting { .. }
            | Phase::Knocking(_)
            | Phase::Confirming(_)
            | Phase::Direct(_)
            | Phase::Farewell { .. }
            | Phase::Connecting(_)
            | Phase::Breaking(_) => self.reset_socket(index),
        }
    }

    /// The stream is gone, and the socket goes the same way once its other end has all that came.
    pub(crate) fn reset_behind(&mut self, now: Instant, index: usize) {
        if matches!(self.connections[index].phase, Phase::Spliced(_)) {
            self.begin_emptying(now, index);
        } else {
            self.turn_emptying(now, index);
        }
    }

    /// From here on nothing is taken in any more.
    pub(crate) fn begin_emptying(&mut self, now: Instant, index: usize) {
        let connection = &mut self.connections[index];
        let nothing = Splice::new(Vec::new(), Vec::new());
        let phase = std::mem::replace(&mut connection.phase, Phase::Spliced(nothing));
        let Phase::Spliced(splice) = phase else {
            connection.phase = phase;
            return;
        };
        let emptying = Emptying { splice, since: now, taken: 0, patience: now + PATIENCE };
        connection.phase = Phase::Emptying(Box::new(emptying));
        self.turn_emptying(now, index);
    }

    /// Hands out what is left; resets when there is nothing more, or none of it is taken.
    pub(crate) fn turn_emptying(&mut self, now: Instant, index: usize) {
        let connection = &mut self.connections[index];
        let (Phase::Emptying(emptying), Some(socket)) = (&mut connection.phase, &connection.socket)
        else {
            self.give_up(index, relay::ResetReason::Aborted);
            return;
        };
        let before = self.counters.bytes_to_sockets;
        let handed = match connection.key {
            Some(key) => {
                let mut stream = Carried {
                    carrier: &mut self.carrier,
                    key,
                    now,
                    taken_in: &mut self.counters.bytes_from_sockets,
                    handed_out: &mut self.counters.bytes_to_sockets,
                };
                emptying.splice.hand_out(&**socket, &mut stream)
            }
            None => emptying.splice.hand_out(&**socket, &mut NoStream),
        };
        connection.about.to_socket += self.counters.bytes_to_sockets - before;
        if self.counters.bytes_to_sockets > before {
            self.slots.table.touch(now, index);
        }
        let Ok(more) = handed else {
            self.give_up(index, relay::ResetReason::Aborted);
            return;
        };
        let left = socket.unacknowledged();
        let taken = connection.about.to_socket.saturating_sub(left);
        if taken > emptying.taken {
            (emptying.taken, emptying.patience) = (taken, now + PATIENCE);
        }
        let is_over = connection.key.is_none() && left == 0 && !emptying.splice.has_preface();
        if is_over || now >= emptying.patience {
            self.give_up(index, relay::ResetReason::TimedOut);
        } else if more {
            self.queue(index);
        } else {
            let look = (now.since(emptying.since) / 4).clamp(LOOKS.0, LOOKS.1);
            self.set_due(index, Some(now + look));
        }
    }
}
