//! One connection of a client through gateways to its server, as seen by both sides.
//!
//! ```text
//!   Waiting ─start─▶ Asking (a proxy) ──granted──▶ Open ──▶ both sides closed
//!      └─ intercepted ─────────────────────────────▶ │
//!                        └──────────refused─────────▶ Refused
//! ```

mod dialog;
mod transfer;

use super::net::tcp::Owner;
use super::net::{Net, conn_of};
use crate::engine::{Kind, SocketId};
use std::io;
use std::net::SocketAddr;
use units::Instant;

/// How a side ends its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// By a FIN.
    Fin,
    /// By a RST, when its peer's kernel has all bytes.
    Reset,
    /// By closing its socket, with or without unread bytes.
    Close,
    /// Its host vanishes without sending anything.
    Vanish,
    /// It stays connected and idle until [`Task::leave`].
    Never,
}

/// How a side reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// All that arrives, immediately.
    All,
    /// This number of octets every 20 ms.
    Slowly(usize),
    /// Nothing.
    Never,
}

/// The behaviour of a side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) bytes: u64,
    pub(super) ending: Ending,
    pub(super) reading: Reading,
    /// It sends only after the other side has sent everything.
    pub(super) answers: bool,
}

/// How a client requests its server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ClientKind {
    /// Its connection is intercepted.
    Intercepted,
    /// By SOCKS5, with the server's address or its name.
    Socks(Option<String>),
    /// By HTTP CONNECT.
    Connect,
    /// It connects to the SOCKS5 proxy and sends nothing.
    Silent,
    /// It sends what no proxy understands.
    Malformed,
    /// It sends a SYN that is intercepted, and vanishes.
    HalfOpen,
}

/// A client's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It has not started.
    Waiting,
    /// The proxy has not replied yet; the octets received so far.
    Asking(Vec<u8>),
    /// It is connected to the server.
    Open,
    /// The proxy has refused with this code.
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
    /// It has read the other side's FIN.
    pub(super) end_seen: bool,
    pub(super) error: Option<i32>,
    /// It has closed its socket with a RST.
    pub(super) has_reset: bool,
    /// Its socket is closed.
    pub(super) closed: bool,
    pub(super) wake: Option<Instant>,
}

/// Events at gateways that permit a connection to fail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Excuses {
    /// A gateway that relayed it has ended: it may be reset.
    pub(super) lost: bool,
    /// A gateway on its path accepted no new connections before it had reached its server: it may
    /// be refused, or be reset if it was accepted early.
    pub(super) refused: bool,
    /// Its client's SYN was held and now bypasses the gateway: there may be two connections to the
    /// server, of which the first is reset.
    pub(super) opened_again: bool,
}

/// A client and its server.
#[derive(Clone, Debug)]
pub(super) struct Task {
    pub(super) number: usize,
    pub(super) start: Instant,
    pub(super) kind: ClientKind,
    /// The gateway of its client.
    pub(super) node: usize,
    pub(super) from: SocketAddr,
    pub(super) server: SocketAddr,
    pub(super) stage: Stage,
    /// The client's side and the server's.
    pub(super) sides: [Side; 2],
    pub(super) excuses: Excuses,
    /// It belongs to a hostile client.
    pub(super) hostile: bool,
    /// When the first byte arrived at the client, and when both sides had ended.
    pub(super) first_byte: Option<Instant>,
    pub(super) finished: Option<Instant>,
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

    fn fail(&mut self, net: &mut Net, error: &io::Error) {
        self.error = Some(error.raw_os_error().unwrap_or(-1));
        self.close(net, true);
    }
}

impl Task {
    /// Creates a connection from `from`, at the gateway `node`, to `server`.
    pub(super) fn new(
        (number, start): (usize, Instant),
        kind: ClientKind,
        (node, from, server): (usize, SocketAddr, SocketAddr),
        plans: [Plan; 2],
    ) -> Self {
        Self {
            number,
            start,
            kind,
            node,
            from,
            server,
            stage: Stage::Waiting,
            sides: plans.map(Side::new),
            excuses: Excuses::default(),
            hostile: false,
            first_byte: None,
            finished: None,
        }
    }

    /// Returns when it needs to be driven without an event.
    pub(super) fn due(&self) -> Option<Instant> {
        let start = matches!(self.stage, Stage::Waiting).then_some(self.start);
        self.sides.iter().filter_map(|side| side.wake).chain(start).min()
    }

    /// Returns whether it has started and not ended.
    pub(super) fn is_running(&self) -> bool {
        self.stage != Stage::Waiting && self.finished.is_none()
    }

    /// Returns whether both sides have ended, or the server's side cannot start.
    pub(super) fn is_over(&self) -> bool {
        let [client, server] = &self.sides;
        client.closed && (server.closed || server.id.is_none())
    }

    /// Returns whether all bytes have arrived in both directions, and both FINs were read.
    pub(super) fn is_complete(&self) -> bool {
        let [client, server] = &self.sides;
        let whole = |own: &Side, other: &Side| own.end_seen && own.got == other.plan.bytes;
        whole(client, server) && whole(server, client)
    }

    /// Does what is possible now.
    ///
    /// # Errors
    /// Returns a gateway's violation.
    pub(super) fn drive(&mut self, net: &mut Net) -> Result<(), String> {
        let now = net.now;
        if self.stage == Stage::Waiting {
            if now < self.start {
                return Ok(());
            }
            self.begin(net);
        }
        while let Some(id) = net.accepted(self.number) {
            self.serve(net, id)?;
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

    fn begin(&mut self, net: &mut Net) {
        let (number, from, node) = (self.number, self.from, self.node);
        let asking = Stage::Asking(Vec::new());
        let (id, stage) = match self.kind {
            ClientKind::Intercepted | ClientKind::HalfOpen => {
                (net.dial_through(number, (from, self.server), node), Stage::Open)
            }
            ClientKind::Connect => (net.dial(number, from, node, Kind::HttpConnect), asking),
            ClientKind::Socks(_) | ClientKind::Silent | ClientKind::Malformed => {
                (net.dial(number, from, node, Kind::Socks5), asking)
            }
        };
        self.stage = stage;
        self.sides[0].id = Some(id);
        if self.kind == ClientKind::HalfOpen {
            net.vanish(id);
            self.sides[0].closed = true;
        }
    }

    /// Handles a connection to its server.
    fn serve(&mut self, net: &mut Net, id: SocketId) -> Result<(), String> {
        let side = &mut self.sides[1];
        if let Some(first) = side.id {
            if !self.excuses.opened_again && !self.excuses.lost && !self.hostile {
                return Err(format!("task {}: its server was connected to twice", self.number));
            }
            // The client itself has connected meanwhile, and is served.
            if let Owner::Task(_) = net.conns[conn_of(first).0].ends[0].owner {
                net.close(id, true);
                return Ok(());
            }
            side.close(net, true);
            *side = Side::new(side.plan);
        }
        side.id = Some(id);
        self.finished = None;
        Ok(())
    }

    /// Closes both sides immediately.
    pub(super) fn leave(&mut self, net: &mut Net) {
        if self.stage == Stage::Waiting {
            self.stage = Stage::Open;
        }
        for side in &mut self.sides {
            side.close(net, true);
            (side.closed, side.wake) = (true, None);
        }
        self.finished.get_or_insert(net.now);
    }
}

fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::NotConnected)
}
