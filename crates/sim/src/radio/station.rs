//! One station: a connection, what uses it, and the computer between it and its radio.
//!
//! ```text
//!  file transfer ─▶ XSTP ─▶ IPv4 ─▶ ┌───────────────┐ ─▶ serial line ─▶ TNC ─▶ channel
//!                ◀─      ◀─      ◀─ │ computer: one │ ◀─             ◀─     ◀─
//!                                   │ packet a time │
//!                                   └───────────────┘
//! ```

use super::file_transfer::{Client, Message, Server};
use super::packet::{self, Route};
use core::net::{Ipv4Addr, SocketAddr};
use units::{BitRate, Instant, Serializer, Span};
use xstp::Connection;
use xstp::session::{SessionConfig, State};
use xstp::wire::{Endpoints, Profile};

/// What stands between a station's protocols and its radio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Computer {
    /// What each packet costs, coming or going; one at a time.
    pub processing: Span,
    /// The line between the computer and the TNC, in bits per second with ten for each byte; a
    /// packet has passed when its last byte has. `None`: it takes no time.
    pub serial: Option<BitRate>,
    /// From a chunk's leaving the air to the next one's being handed to the transport.
    pub between_chunks: Span,
}

impl Computer {
    /// A computer and a line that cost nothing.
    pub const FREE: Self =
        Self { processing: Span::ZERO, serial: None, between_chunks: Span::ZERO };
}

/// What uses a connection.
#[derive(Debug)]
pub(super) enum User {
    Client(Client),
    Server(Server),
}

#[derive(Debug)]
pub(super) struct Station {
    pub(super) connection: Connection,
    pub(super) user: User,
    route: Route,
    computer: Computer,
    free_at: Instant,
    /// When the last chunk had left the air.
    chunk_left: Option<Instant>,
    /// What of a message was not written yet.
    unwritten: Vec<u8>,
    written: u64,
    chunks: u64,
    to_radio: Option<Serializer>,
    from_radio: Option<Serializer>,
    name: Vec<u8>,
    /// Whether the file is to be asked for, and was not yet.
    asks: bool,
    /// When the last byte of the file was handed to the user.
    pub(super) done_at: Option<Instant>,
    pub(super) broken: bool,
    /// Packets that were no packets, and segments that were not accepted.
    pub(super) refused: u64,
    pub(super) max_segment: usize,
}

/// The address of station `index`.
fn address(index: u8) -> Ipv4Addr {
    // AMPRNet, the amateurs' network.
    Ipv4Addr::new(44, 135, 0, index + 1)
}

impl Station {
    pub(super) fn new(
        index: u8,
        peer: u8,
        session: &SessionConfig,
        computer: Computer,
        user: User,
        name: &[u8],
    ) -> Self {
        let end = |index| SocketAddr::from((address(index), 21));
        let profile = Profile::Published(Endpoints { local: end(index), remote: end(peer) });
        let config = SessionConfig { profile, ..session.clone() };
        let connection = match user {
            User::Client(_) => Connection::connect(&config, Instant::ZERO, 1),
            User::Server(_) => Connection::listen(&config),
        };
        // Eight-bit characters with a start and a stop bit.
        let line = |rate: BitRate| Serializer::new(rate.mul_ratio(8, 10));
        Self {
            connection,
            user,
            route: Route::new(address(index), address(peer), [address(peer); 9]),
            computer,
            free_at: Instant::ZERO,
            chunk_left: None,
            unwritten: Vec::new(),
            written: 0,
            chunks: 0,
            to_radio: computer.serial.map(line),
            from_radio: computer.serial.map(line),
            name: name.to_vec(),
            asks: false,
            done_at: None,
            broken: false,
            refused: 0,
            max_segment: config.max_segment,
        }
    }

    /// A packet's last bit came in at the radio: when the protocols get it.
    pub(super) fn received(&mut self, at: Instant, len: usize) -> Instant {
        let at = self.from_radio.as_mut().map_or(at, |line| line.send(at, len as u64));
        self.process(at)
    }

    /// The protocols hand out a packet: when the radio has it.
    fn sending(&mut self, at: Instant, len: usize) -> Instant {
        let at = self.process(at);
        self.to_radio.as_mut().map_or(at, |line| line.send(at, len as u64))
    }

    fn process(&mut self, at: Instant) -> Instant {
        self.free_at = self.free_at.max(at) + self.computer.processing;
        self.free_at
    }

    /// Takes in a packet.
    pub(super) fn handle(&mut self, now: Instant, packet: &[u8]) {
        let handled = packet::payload(packet)
            .is_some_and(|segment| self.connection.handle_segment(now, segment).is_ok());
        self.refused += u64::from(!handled);
        self.work(now);
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if self.connection.poll_timeout().is_some_and(|due| due <= now) {
            self.connection.handle_timeout(now);
        }
        self.work(now);
    }

    /// What may be sent now: packets, and when the radio has each.
    pub(super) fn poll_transmit(&mut self, now: Instant) -> Vec<(Instant, Vec<u8>)> {
        self.work(now);
        let mut segment = vec![0; self.max_segment];
        let mut packets = Vec::new();
        while let Some(len) = self.connection.poll_transmit(now, &mut segment) {
            let packet = self.route.packet(&segment[..len]);
            packets.push((self.sending(now, packet.len()), packet));
            self.work(now);
        }
        packets
    }

    /// The file is asked for from now on.
    pub(super) fn ask(&mut self) {
        self.asks = true;
    }

    pub(super) fn is_open(&self) -> bool {
        self.connection.session().state() == State::Established
    }

    pub(super) fn is_closed(&self) -> bool {
        self.connection.session().state() == State::Closed
    }

    /// When this station wants to be called again.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let chunk = self.chunk_at().filter(|_| self.unwritten.is_empty());
        self.connection.poll_timeout().into_iter().chain(chunk).min()
    }

    /// When the next chunk may be handed down, if there is one and nothing else is waited for.
    fn chunk_at(&self) -> Option<Instant> {
        let User::Server(server) = &self.user else { return None };
        if !server.has_message() || self.connection.room() == 0 {
            return None;
        }
        if self.chunks == 0 || self.computer.between_chunks.is_zero() {
            return Some(Instant::ZERO);
        }
        Some(self.chunk_left? + self.computer.between_chunks)
    }

    /// Nothing of this station waits at its radio or is on air.
    pub(super) fn fell_silent(&mut self, now: Instant) {
        let sent = self.connection.session().statistics().data_bytes_sent;
        if self.chunk_left.is_none() && sent >= self.written && self.free_at <= now {
            self.chunk_left = Some(now);
        }
    }

    /// Moves bytes between the user and the connection.
    fn work(&mut self, now: Instant) {
        while self.connection.poll_event().is_some() {}
        let mut bytes = [0; 1024];
        loop {
            let len = self.connection.read(&mut bytes);
            if len == 0 {
                break;
            }
            let taken = match &mut self.user {
                User::Client(client) => client.take(&bytes[..len]),
                User::Server(server) => server.take(&bytes[..len]),
            };
            self.broken |= taken.is_err();
        }
        if core::mem::take(&mut self.asks) {
            Message::Request(self.name.clone()).encode(&mut self.unwritten);
        }
        self.write();
        while self.unwritten.is_empty()
            && self.chunk_at().is_some_and(|at| at <= now)
            && let User::Server(server) = &mut self.user
        {
            self.chunks += 1;
            self.chunk_left = None;
            self.unwritten.extend(server.next_message().into_iter().flatten());
            self.write();
        }
        let done = match &self.user {
            User::Client(client) => client.is_done(),
            User::Server(server) => server.is_done() && self.unwritten.is_empty(),
        };
        if done && self.done_at.is_none() {
            self.done_at = Some(now);
            self.connection.end(now);
        }
    }

    fn write(&mut self) {
        if self.unwritten.is_empty() {
            return;
        }
        // Once it is closed, what was not written is not wanted.
        let taken = self.connection.write(&self.unwritten).unwrap_or(self.unwritten.len());
        self.written += taken as u64;
        self.unwritten.drain(..taken);
    }
}
