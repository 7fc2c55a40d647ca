//! UDP sockets of gateways, and the satellite links between them.

use super::{DATAGRAMS, Event, Net};
use crate::engine::{Readiness, SocketId, Source};
use std::collections::VecDeque;
use std::net::SocketAddr;
use units::Span;

/// Time in which a full send buffer drains.
const DRAIN: Span = Span::from_millis(2);

/// A UDP socket.
#[derive(Debug)]
pub(in crate::simulation) struct Datagrams {
    pub(in crate::simulation) node: usize,
    pub(in crate::simulation) address: SocketAddr,
    pub(in crate::simulation) source: Option<Source>,
    pub(in crate::simulation) arrived: VecDeque<(SocketAddr, Vec<u8>)>,
    pub(in crate::simulation) open: bool,
    /// The sender has found a full buffer and waits for writability.
    starved: bool,
}

impl Datagrams {
    pub(in crate::simulation) fn new(node: usize, address: SocketAddr) -> Self {
        let arrived = VecDeque::new();
        Self { node, address, source: None, arrived, open: true, starved: false }
    }

    pub(super) fn readiness(&self) -> Readiness {
        Readiness { readable: !self.arrived.is_empty(), writable: !self.starved, error: false }
    }
}

impl Net {
    fn report_socket(&mut self, socket: usize) {
        let node = self.sockets[socket].node;
        self.report(node, SocketId(DATAGRAMS + socket as i32));
    }

    pub(super) fn on_datagram(&mut self, to: usize, from: SocketAddr, bytes: Vec<u8>) {
        self.note(bytes.len() as u64 ^ self.now.as_nanos());
        if self.sockets[to].open {
            self.sockets[to].arrived.push_back((from, bytes));
            self.report_socket(to);
        }
    }

    pub(super) fn on_writable(&mut self, socket: usize) {
        self.sockets[socket].starved = false;
        self.report_socket(socket);
    }

    /// Sends a datagram over the link from `socket` to `to`.
    pub(in crate::simulation) fn send(&mut self, socket: usize, to: SocketAddr, bytes: &[u8]) {
        let from = self.sockets[socket].address;
        if let Some(Source::NameQueries(_)) = self.sockets[socket].source {
            self.name_service.replies += 1;
        }
        let Some(link) = self.links.get_mut(&(from, to)) else { return };
        let mut bytes = bytes.to_vec();
        let arrivals = link.carry(self.now, &mut self.rng, &mut bytes);
        let receiver = self.sockets.iter().position(|other| other.open && other.address == to);
        let Some(receiver) = receiver else { return };
        for at in arrivals {
            self.schedule(at, Event::Datagram(receiver, from, bytes.clone()));
        }
    }

    /// Fills the send buffer of `socket`, which becomes writable again after [`DRAIN`].
    pub(in crate::simulation) fn starve(&mut self, socket: usize) {
        self.sockets[socket].starved = true;
        self.schedule(self.now + DRAIN, Event::Writable(socket));
    }
}
