//! The bytes of a connection at both of its sides, with checks of each byte and each end.

use super::{Ending, Reading, Stage, Task, is_later};
use crate::engine::SocketId;
use crate::simulation::net::{Net, conn_of};
use units::Span;

/// Returns the octet at `offset` in the stream of the client or the server of `task`.
fn octet(task: usize, from_server: bool, offset: u64) -> u8 {
    let word = offset.wrapping_mul(31) ^ (offset / 251).wrapping_mul(7);
    (word as u8) ^ (task as u8).wrapping_mul(29) ^ if from_server { 0xa5 } else { 0 }
}

impl Task {
    /// Sends and reads at one side.
    pub(super) fn exchange(&mut self, net: &mut Net, own: usize) -> Result<(), String> {
        let Some(id) = self.sides[own].id else { return Ok(()) };
        self.sides[own].wake = None;
        if self.sides[own].closed {
            return Ok(());
        }
        let (conn, end) = conn_of(id);
        if !net.conns[conn].is_connected(end)
            && let Some(error) = net.conns[conn].take_refusal(end)
        {
            self.sides[own].fail(net, &error);
            return Ok(());
        }
        if !net.conns[conn].ends[end].connected {
            return Ok(());
        }
        let refused = matches!(self.stage, Stage::Refused(_)) && own == 0;
        if !self.is_waiting(own) && !refused && !self.send(net, own, id) {
            return Ok(());
        }
        let waited = self.is_waiting(own);
        self.receive(net, own, id, refused)?;
        if waited && !self.is_waiting(own) && !refused && !self.sides[own].closed {
            self.send(net, own, id);
        }
        let side = &mut self.sides[own];
        if side.end_seen && (side.ended || refused) {
            side.close(net, false);
        }
        Ok(())
    }

    /// Returns whether a side sends after the other and has not read everything yet.
    fn is_waiting(&self, own: usize) -> bool {
        let (side, other) = (&self.sides[own], &self.sides[1 - own]);
        side.plan.answers && side.got < other.plan.bytes && !side.end_seen
    }

    /// Sends what the socket accepts; returns false if it closes the socket.
    fn send(&mut self, net: &mut Net, own: usize, id: SocketId) -> bool {
        let (number, side) = (self.number, &mut self.sides[own]);
        while side.sent < side.plan.bytes {
            let count = (side.plan.bytes - side.sent).min(16_384);
            let bytes: Vec<u8> =
                (side.sent..side.sent + count).map(|at| octet(number, own == 1, at)).collect();
            match net.write(id, &bytes) {
                Ok(count) => side.sent += count as u64,
                Err(error) if is_later(&error) => return true,
                Err(error) => {
                    side.fail(net, &error);
                    return false;
                }
            }
        }
        let (conn, end) = conn_of(id);
        match side.plan.ending {
            Ending::Fin if !side.ended => match net.shutdown_write(id) {
                Ok(()) => side.ended = true,
                Err(error) => side.fail(net, &error),
            },
            Ending::Fin | Ending::Never => {}
            Ending::Reset if net.conns[conn].unacknowledged(end) == 0 => side.close(net, true),
            Ending::Reset => side.wake = Some(net.now + Span::from_millis(20)),
            Ending::Close => {
                // The peer's kernel has its bytes; they would otherwise be lost by the reset.
                if net.conns[conn].unacknowledged(end) == 0 {
                    side.close(net, false);
                } else {
                    side.wake = Some(net.now + Span::from_millis(20));
                }
            }
            Ending::Vanish => {
                net.vanish(id);
                side.closed = true;
            }
        }
        !side.closed
    }

    fn receive(
        &mut self,
        net: &mut Net,
        own: usize,
        id: SocketId,
        refused: bool,
    ) -> Result<(), String> {
        let mut room = match self.sides[own].plan.reading {
            Reading::All => vec![0; 16_384],
            Reading::Slowly(count) => vec![0; count],
            Reading::Never if refused => vec![0; 16],
            Reading::Never => return Ok(()),
        };
        while !self.sides[own].end_seen && !self.sides[own].closed {
            match net.read(id, &mut room, true) {
                Ok(0) => {
                    self.sides[own].end_seen = true;
                    self.check_end(own, refused)?;
                }
                // A proxy may send a reason with its refusal.
                Ok(_) if refused => {}
                Ok(count) => {
                    if own == 0 {
                        self.first_byte.get_or_insert(net.now);
                    }
                    self.check_bytes(own, &room[..count])?;
                }
                Err(error) if is_later(&error) => return Ok(()),
                Err(error) => self.sides[own].fail(net, &error),
            }
            if matches!(self.sides[own].plan.reading, Reading::Slowly(_)) {
                self.sides[own].wake = Some(net.now + Span::from_millis(20));
                return Ok(());
            }
        }
        Ok(())
    }

    /// Checks that the FIN is the other side's own and follows its last byte.
    fn check_end(&self, own: usize, refused: bool) -> Result<(), String> {
        let (side, other) = (&self.sides[own], &self.sides[1 - own]);
        if refused || (other.ended && side.got == other.plan.bytes) {
            return Ok(());
        }
        Err(format!(
            "task {} side {own}: an end after {} of {} octets that the other {}",
            self.number,
            side.got,
            other.plan.bytes,
            if other.ended { "has ended" } else { "has not ended" }
        ))
    }

    fn check_bytes(&mut self, own: usize, bytes: &[u8]) -> Result<(), String> {
        let (number, from_server) = (self.number, own == 0);
        let (got, sent) = (self.sides[own].got, self.sides[1 - own].sent);
        let right = (got..).zip(bytes).all(|(at, byte)| octet(number, from_server, at) == *byte);
        self.sides[own].got += bytes.len() as u64;
        let got = self.sides[own].got;
        match right && got <= sent {
            true => Ok(()),
            false => Err(format!("task {number} side {own}: wrong octets before {got} of {sent}")),
        }
    }
}
