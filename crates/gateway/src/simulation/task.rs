//! One connection of a client through both gateways to its server, and what each of them sees.

use super::net::{Net, conn_of};
use crate::engine::SocketId;
use std::io;
use std::net::{IpAddr, SocketAddr};
use units::{Instant, Span};

/// How a side ends what it sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// By a FIN.
    Fin,
    /// By a RST, once its peer's kernel has all bytes.
    Reset,
    /// By closing its socket, whatever it has not read.
    Close,
    /// Not at all: its host vanishes.
    Vanish,
}

/// How a side reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// All that comes, at once.
    All,
    /// So many octets every 20 ms.
    Slowly(usize),
    /// Nothing.
    Never,
}

/// What a side does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) bytes: u64,
    pub(super) ending: Ending,
    pub(super) reading: Reading,
    /// It sends when the other side has sent all, not before.
    pub(super) answers: bool,
}

/// How the client asks for its server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// It was intercepted.
    Intercepted,
    /// By SOCKS5, with the server's address or its name.
    Socks(Option<String>),
    /// By HTTP CONNECT.
    Connect,
    /// It says nothing at all to the SOCKS5 proxy.
    Silence,
    /// It says what no proxy understands.
    Nonsense,
}

/// A client's view of how its connection began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It waits for its time.
    Waiting,
    /// The proxy has not answered yet; what it has said so far.
    Asking(Vec<u8>),
    /// It talks with the server.
    Open,
    /// The proxy has refused, with this code.
    Refused(u16),
}

/// One side of a connection.
#[derive(Clone, Debug)]
pub(super) struct Side {
    pub(super) plan: Plan,
    pub(super) id: Option<SocketId>,
    pub(super) sent: u64,
    pub(super) got: u64,
    /// It has sent a FIN.
    pub(super) ended: bool,
    /// It has read the other's FIN.
    pub(super) end_seen: bool,
    pub(super) error: Option<i32>,
    /// It has closed its socket with a RST.
    pub(super) has_reset: bool,
    /// Its socket is closed.
    pub(super) closed: bool,
    pub(super) wake: Option<Instant>,
}

impl Side {
    pub(super) fn new(plan: Plan) -> Self {
        Self {
            plan,
            id: None,
            sent: 0,
            got: 0,
            ended: false,
            end_seen: false,
            error: None,
            has_reset: false,
            closed: false,
            wake: None,
        }
    }

    fn close(&mut self, net: &mut Net, reset: bool) {
        if let Some(id) = self.id
            && !std::mem::replace(&mut self.closed, true)
        {
            self.has_reset = net.close(id, reset);
            self.ended |= !self.has_reset;
        }
    }

    fn broke(&mut self, net: &mut Net, error: &io::Error) {
        self.error = Some(error.raw_os_error().unwrap_or(-1));
        self.close(net, true);
    }
}

/// The octet at `offset` of what `task`'s client, or its server, sends.
fn octet(task: usize, from_server: bool, offset: u64) -> u8 {
    let word = offset.wrapping_mul(31) ^ (offset / 251).wrapping_mul(7);
    (word as u8) ^ (task as u8).wrapping_mul(29) ^ if from_server { 0xa5 } else { 0 }
}

/// A client and its server.
#[derive(Clone, Debug)]
pub(super) struct Task {
    pub(super) number: usize,
    pub(super) start: Instant,
    pub(super) way: Way,
    pub(super) from: SocketAddr,
    pub(super) server: SocketAddr,
    pub(super) stage: Stage,
    /// The client's side, the server's.
    pub(super) sides: [Side; 2],
    /// A gateway has lost it by no fault of its own.
    pub(super) excused: bool,
    /// It is there to be in the way of others.
    pub(super) hostile: bool,
    pub(super) finished: Option<Instant>,
}

impl Task {
    /// When it is to be driven although nothing has happened.
    pub(super) fn due(&self) -> Option<Instant> {
        let start = matches!(self.stage, Stage::Waiting).then_some(self.start);
        self.sides.iter().filter_map(|side| side.wake).chain(start).min()
    }

    /// Whether both sides are over, or the server's will never be.
    pub(super) fn is_over(&self) -> bool {
        let [client, server] = &self.sides;
        client.closed && (server.closed || server.id.is_none())
    }

    /// Does what can be done now.
    ///
    /// # Errors
    /// What a gateway has done wrong.
    pub(super) fn drive(&mut self, net: &mut Net, listeners: [usize; 3]) -> Result<(), String> {
        let now = net.now;
        if self.stage == Stage::Waiting {
            if now < self.start {
                return Ok(());
            }
            let (listener, to) = match self.way {
                Way::Intercepted => (listeners[0], self.server),
                Way::Socks(_) | Way::Silence | Way::Nonsense => {
                    (listeners[1], net.listeners[listeners[1]].address)
                }
                Way::Connect => (listeners[2], net.listeners[listeners[2]].address),
            };
            let id = net.dial(self.number, (self.from, to), listener);
            self.sides[0].id = Some(id);
            let intercepted = self.way == Way::Intercepted;
            self.stage = if intercepted { Stage::Open } else { Stage::Asking(Vec::new()) };
        }
        if self.sides[1].id.is_none() {
            self.sides[1].id = net.accepted(self.number);
        }
        if let Stage::Asking(_) = self.stage {
            self.ask(net);
        }
        if matches!(self.stage, Stage::Open | Stage::Refused(_)) {
            self.exchange(net, 0)?;
        }
        if self.sides[1].id.is_some() {
            self.exchange(net, 1)?;
        }
        if self.is_over() && self.finished.is_none() {
            self.finished = Some(now);
        }
        Ok(())
    }

    fn request(&self) -> Vec<u8> {
        let port = self.server.port().to_be_bytes();
        let mut request = vec![5, 1, 0, 5, 1, 0];
        match (&self.way, self.server.ip()) {
            (Way::Socks(Some(name)), _) => {
                request.extend([3, name.len() as u8]);
                request.extend(name.as_bytes());
            }
            (Way::Socks(None), IpAddr::V4(v4)) => {
                request.push(1);
                request.extend(v4.octets());
            }
            (Way::Connect, _) => {
                let server = self.server;
                return format!("CONNECT {server} HTTP/1.1\r\nHost: {server}\r\n\r\n").into();
            }
            (Way::Nonsense, _) => return b"GET / HTTP/1.0\r\n\r\n".to_vec(),
            (Way::Silence | Way::Intercepted | Way::Socks(None), _) => return Vec::new(),
        }
        request.extend(port);
        request
    }

    /// Talks with the proxy; `sides[0].sent` counts the octets of the request meanwhile.
    fn ask(&mut self, net: &mut Net) {
        let Some(id) = self.sides[0].id else { return };
        let request = self.request();
        while let Some(rest @ [_, ..]) = request.get(self.sides[0].sent as usize..) {
            match net.write(id, rest) {
                Ok(count) => self.sides[0].sent += count as u64,
                Err(error) if is_later(&error) => break,
                Err(error) => return self.sides[0].broke(net, &error),
            }
        }
        let Stage::Asking(mut heard) = self.stage.clone() else { return };
        let mut octet = [0];
        loop {
            match net.read(id, &mut octet, true) {
                Ok(0) => {
                    self.sides[0].end_seen = true;
                    return self.sides[0].close(net, false);
                }
                Ok(_) => heard.push(octet[0]),
                Err(error) if is_later(&error) => break,
                Err(error) => return self.sides[0].broke(net, &error),
            }
            let code = match self.way {
                Way::Connect => status(&heard),
                _ => (heard.len() == 12).then(|| u16::from(heard[3])),
            };
            if let Some(code) = code {
                self.sides[0].sent = 0;
                self.stage = if code == 0 { Stage::Open } else { Stage::Refused(code) };
                return;
            }
        }
        self.stage = Stage::Asking(heard);
    }

    /// Sends and reads at one side.
    fn exchange(&mut self, net: &mut Net, own: usize) -> Result<(), String> {
        let Some(id) = self.sides[own].id else { return Ok(()) };
        let other = 1 - own;
        self.sides[own].wake = None;
        if self.sides[own].closed {
            return Ok(());
        }
        let expected = self.sides[other].plan.bytes;
        let refused = matches!(self.stage, Stage::Refused(_)) && own == 0;
        let waits = self.sides[own].plan.answers
            && self.sides[own].got < expected
            && !self.sides[own].end_seen;
        if !waits && !refused && !self.send(net, own, id) {
            return Ok(());
        }
        self.receive(net, own, id, refused)?;
        let side = &mut self.sides[own];
        if side.end_seen && (side.ended || refused) {
            side.close(net, false);
        }
        Ok(())
    }

    /// Sends what there is room for; false when the socket is closed then.
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
                    side.broke(net, &error);
                    return false;
                }
            }
        }
        let (conn, end) = conn_of(id);
        match side.plan.ending {
            Ending::Fin if !side.ended => match net.shutdown_write(id) {
                Ok(()) => side.ended = true,
                Err(error) => side.broke(net, &error),
            },
            Ending::Fin => {}
            Ending::Reset if net.conns[conn].unacknowledged(end) == 0 => side.close(net, true),
            Ending::Reset => side.wake = Some(net.now + Span::from_millis(20)),
            Ending::Close => {
                // Its bytes are in the peer's kernel, or they would be lost with the socket.
                if net.conns[conn].unacknowledged(end) == 0 {
                    side.close(net, false);
                } else {
                    side.wake = Some(net.now + Span::from_millis(20));
                }
            }
            Ending::Vanish => {
                net.conns[conn].ends[end].vanished = Some(net.now);
                net.touch(conn);
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
                    self.judge_end(own, refused)?;
                }
                // A proxy may say why it refuses.
                Ok(_) if refused => {}
                Ok(count) => self.judge_bytes(own, &room[..count])?,
                Err(error) if is_later(&error) => return Ok(()),
                Err(error) => self.sides[own].broke(net, &error),
            }
            if matches!(self.sides[own].plan.reading, Reading::Slowly(_)) {
                self.sides[own].wake = Some(net.now + Span::from_millis(20));
                return Ok(());
            }
        }
        Ok(())
    }

    /// An end is the other side's own, behind its last byte.
    fn judge_end(&self, own: usize, refused: bool) -> Result<(), String> {
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

    fn judge_bytes(&mut self, own: usize, bytes: &[u8]) -> Result<(), String> {
        let (number, from_server) = (self.number, own == 0);
        let (got, most) = (self.sides[own].got, self.sides[1 - own].sent);
        let right = (got..).zip(bytes).all(|(at, byte)| octet(number, from_server, at) == *byte);
        self.sides[own].got += bytes.len() as u64;
        let got = self.sides[own].got;
        match right && got <= most {
            true => Ok(()),
            false => Err(format!("task {number} side {own}: wrong octets before {got} of {most}")),
        }
    }
}

/// The code of a whole answer to CONNECT; zero for success.
fn status(heard: &[u8]) -> Option<u16> {
    if !heard.ends_with(b"\r\n\r\n") {
        return None;
    }
    let code = std::str::from_utf8(heard.get(9..12)?).ok()?.parse().ok()?;
    Some(if code == 200 { 0 } else { code })
}

fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::NotConnected)
}
