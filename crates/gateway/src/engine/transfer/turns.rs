//! Turns of connections whose bytes are being moved, and what follows when one of their ends fails.

use crate::engine::defect::{self, Defect};
use crate::engine::host::Close;
use crate::engine::transfer::connection::{Stage, Transfer};
use crate::engine::transfer::connections::Core;
use crate::engine::transfer::last_bytes::{LastBytes, Progress, Towards};
use crate::engine::transfer::socket_pair::{End, Side, Tally, Turn as PairTurn};
use crate::engine::transfer::splice::Turn;
use crate::engine::transfer::stream_endpoint::StreamEndpoint;
use relay::ResetReason;
use std::io;
use units::Instant;

impl<S: Stage> Core<S> {
    /// Moves what can be moved for a connection in one of the common stages.
    pub(crate) fn run_transfer(&mut self, now: Instant, index: usize) {
        match self.connections[index].stage.transfer() {
            Some(Transfer::Spliced(_)) => self.run_splice(now, index),
            Some(Transfer::LastBytes(_)) => self.run_last_bytes(now, index),
            Some(Transfer::Direct(direct)) if direct.pair.is_closing() => {
                self.run_last_bytes_directly(now, index);
            }
            Some(Transfer::Direct(_)) => self.run_directly(now, index),
            Some(Transfer::FinalReply(_)) => self.run_final_reply(index),
            None => {}
        }
    }

    /// Handles the deadline of a connection in one of the common stages.
    pub(crate) fn on_transfer_deadline(&mut self, now: Instant, index: usize) {
        match self.connections[index].stage.transfer() {
            Some(Transfer::FinalReply(_)) => self.reset_socket(index),
            Some(Transfer::LastBytes(_) | Transfer::Direct(_)) => self.run_transfer(now, index),
            Some(Transfer::Spliced(_)) | None => {}
        }
    }

    /// Copies between the socket and the stream, and ends the connection when both have ended.
    pub(crate) fn run_splice(&mut self, now: Instant, index: usize) {
        if self.connections[index].ending_stream {
            self.flush_to_socket(now, index);
            return;
        }
        let connection = &mut self.connections[index];
        let (Some(Transfer::Spliced(splice)), Some(socket), Some(key)) =
            (connection.stage.transfer_mut(), &connection.socket, connection.key)
        else {
            return;
        };
        let mut stream = StreamEndpoint::new(&mut self.relays, key, now, self.limits.outage);
        let turned = splice.turn(&**socket, &mut stream, &mut self.scratch);
        let (from_socket, to_socket) = (stream.written, stream.read);
        self.count(now, index, from_socket, to_socket);
        match turned {
            Turn::Wait => {}
            Turn::More => self.queue(index),
            Turn::Done => {
                self.counters.completed += 1;
                self.set_close_cause(index, "closed by both ends");
                self.finish(index);
            }
            Turn::Broken(error) => self.on_socket_error(now, index, &error),
        }
    }

    fn count(&mut self, now: Instant, index: usize, from_socket: u64, to_socket: u64) {
        self.counters.bytes_from_sockets += from_socket;
        self.counters.bytes_to_sockets += to_socket;
        let info = &mut self.connections[index].info;
        info.from_socket += from_socket;
        info.to_socket += to_socket;
        if from_socket + to_socket > 0 {
            self.slots.table.touch(now, index);
        }
    }

    /// Handles a failed socket. The stream is reset once the bytes that came before are delivered
    /// to the peer gateway.
    pub(crate) fn on_socket_error(&mut self, now: Instant, index: usize, error: &io::Error) {
        if defect::has(Defect::ResetAsEnd) {
            self.connections[index].key.inspect(|&key| self.relays.end(key));
            self.finish(index);
            return;
        }
        let connection = &mut self.connections[index];
        tracing::debug!(connection = connection.id, %error, "socket failed");
        self.counters.reset_by_sockets += 1;
        self.set_close_cause(index, error.to_string());
        let connection = &mut self.connections[index];
        let Some(Transfer::Spliced(splice)) = connection.stage.transfer_mut() else {
            self.abort(index, ResetReason::Aborted);
            return;
        };
        let pipe = splice.take_input();
        let undelivered = connection.key.map_or(0, |key| self.relays.held(key));
        let last = LastBytes::new(now, pipe, Towards::Stream, undelivered);
        connection.stage = Transfer::LastBytes(Box::new(last)).into();
        self.run_last_bytes(now, index);
    }

    /// Handles the peer gateway's announcement that the stream is reset behind bytes that can
    /// still be read.
    pub(crate) fn stream_ending(&mut self, index: usize) {
        self.counters.reset_by_peer += 1;
        self.connections[index].ending_stream = true;
        self.queue(index);
    }

    /// Handles the reset of the stream, which is gone. The socket is reset once its peer has the
    /// bytes that came before.
    pub(crate) fn stream_reset(&mut self, now: Instant, index: usize) {
        if !self.connections[index].ending_stream {
            self.counters.reset_by_peer += 1;
        }
        self.detach(index);
        match self.connections[index].stage.transfer() {
            Some(Transfer::Spliced(_)) => self.flush_to_socket(now, index),
            Some(Transfer::LastBytes(last)) if last.towards() == Towards::Socket => {
                self.run_last_bytes(now, index);
            }
            Some(_) | None => self.reset_socket(index),
        }
    }

    /// Resets the socket of a connection that has lost its stream together with the session.
    pub(crate) fn stream_lost(&mut self, index: usize) {
        let transfer = self.connections[index].stage.transfer();
        if matches!(transfer, Some(Transfer::Spliced(_) | Transfer::LastBytes(_))) {
            self.reset_socket(index);
        }
    }

    /// Reads no more from the socket, and writes to it what the stream still has.
    fn flush_to_socket(&mut self, now: Instant, index: usize) {
        let connection = &mut self.connections[index];
        let Some(Transfer::Spliced(splice)) = connection.stage.transfer_mut() else { return };
        let pipe = splice.take_output();
        let undelivered = connection.socket.as_ref().map_or(0, |socket| socket.unacknowledged());
        let last = LastBytes::new(now, pipe, Towards::Socket, undelivered);
        connection.stage = Transfer::LastBytes(Box::new(last)).into();
        self.run_last_bytes(now, index);
    }

    fn run_last_bytes(&mut self, now: Instant, index: usize) {
        let connection = &mut self.connections[index];
        let (Some(Transfer::LastBytes(last)), Some(socket)) =
            (connection.stage.transfer_mut(), connection.socket.as_deref())
        else {
            self.abort(index, ResetReason::Aborted);
            return;
        };
        let (outage, relays) = (self.limits.outage, &mut self.relays);
        let (mut tally, scratch) = (Tally::default(), &mut self.scratch);
        let towards = last.towards();
        let progress = match (towards, connection.key) {
            (Towards::Stream, Some(key)) => {
                let mut stream = StreamEndpoint::new(relays, key, now, outage);
                last.run(now, &mut End(socket), &mut stream, scratch, &mut tally)
            }
            (Towards::Stream, None) => Progress::Failed,
            (Towards::Socket, Some(key)) => {
                let mut stream = StreamEndpoint::new(relays, key, now, outage);
                last.run(now, &mut stream, &mut End(socket), scratch, &mut tally)
            }
            (Towards::Socket, None) => {
                last.source_is_gone();
                last.run(now, &mut io::empty(), &mut End(socket), scratch, &mut tally)
            }
        };
        match towards {
            Towards::Stream => self.count(now, index, tally.written, 0),
            Towards::Socket => self.count(now, index, 0, tally.written),
        }
        match progress {
            Progress::More => self.queue(index),
            Progress::Pending(at) => self.set_due(index, Some(at)),
            Progress::Expired if towards == Towards::Socket => {
                self.abort(index, ResetReason::TimedOut);
            }
            Progress::Delivered | Progress::Expired | Progress::Failed => {
                self.abort(index, ResetReason::Aborted);
            }
        }
    }

    /// Copies between the client's socket and the server's.
    fn run_directly(&mut self, now: Instant, index: usize) {
        let connection = &mut self.connections[index];
        let (Some(Transfer::Direct(direct)), Some(client)) =
            (connection.stage.transfer_mut(), connection.socket.as_deref())
        else {
            return;
        };
        let Some(server) = direct.server.as_deref() else { return };
        // Both sockets are reported as one source.
        direct.pair.on_readiness(Side::Client, true, true);
        direct.pair.on_readiness(Side::Server, true, true);
        let mut tally = Tally::default();
        let sockets = [client, server];
        let turned = direct.pair.run(now, sockets, None, &mut self.scratch, &mut tally);
        if let PairTurn::Broken(side, _) = &turned {
            let sink = if *side == Side::Client { server } else { client };
            direct.pair.fail(now, *side, sink);
        }
        self.count_directly(now, index, tally);
        match turned {
            PairTurn::Wait | PairTurn::NeedsTokens { more: false } => {}
            PairTurn::More | PairTurn::NeedsTokens { more: true } => self.queue(index),
            PairTurn::Done => {
                self.counters.completed += 1;
                self.set_close_cause(index, "closed by both ends");
                if let Some(Transfer::Direct(direct)) = self.connections[index].stage.transfer_mut()
                    && let Some(server) = direct.server.take()
                {
                    server.close(Close::Graceful);
                }
                self.finish(index);
            }
            PairTurn::Broken(_, error) => {
                self.counters.reset_by_sockets += 1;
                self.set_close_cause(index, error.to_string());
                self.run_last_bytes_directly(now, index);
            }
        }
    }

    /// Moves the last bytes after one of the two sockets has failed, and resets both when the
    /// other's peer has them. The server's is reset when it is dropped.
    fn run_last_bytes_directly(&mut self, now: Instant, index: usize) {
        let connection = &mut self.connections[index];
        let (Some(Transfer::Direct(direct)), Some(client)) =
            (connection.stage.transfer_mut(), connection.socket.as_deref())
        else {
            return;
        };
        let mut tally = Tally::default();
        let progress = match direct.server.as_deref() {
            Some(server) => {
                let sockets = [client, server];
                direct.pair.run_last_bytes(now, sockets, &mut self.scratch, &mut tally)
            }
            None => Progress::Failed,
        };
        self.count_directly(now, index, tally);
        match progress {
            Progress::More => self.queue(index),
            Progress::Pending(at) => self.set_due(index, Some(at)),
            Progress::Delivered | Progress::Expired | Progress::Failed => self.reset_socket(index),
        }
    }

    /// Counts octets of both sockets. Those of the connection are what its client has sent and
    /// received.
    fn count_directly(&mut self, now: Instant, index: usize, tally: Tally) {
        self.counters.bytes_from_sockets += tally.read;
        self.counters.bytes_to_sockets += tally.written;
        let info = &mut self.connections[index].info;
        info.from_socket += tally.to_server;
        info.to_socket += tally.written - tally.to_server;
        if tally.read + tally.written > 0 {
            self.slots.table.touch(now, index);
        }
    }
}
