//! A station: a connection, its application, and the computer between it and its radio.
//!
//! ```text
//!  file transfer ─▶ XSTP ─▶ IPv4 ─▶ ┌───────────────┐ ─▶ serial line ─▶ TNC ─▶ channel
//!                ◀─      ◀─      ◀─ │ computer: one │ ◀─             ◀─     ◀─
//!                                   │ packet a time │
//!                                   └───────────────┘
//! ```

use super::file_transfer::{Client, Message, Server};
use crate::invariants::SessionGuard;
use core::net::{Ipv4Addr, SocketAddr};
use satlink::compression::{Compressor, Decompressor, Refused};
use units::{BitRate, Instant, Serializer, Span};
use xstp::Connection;
use xstp::session::{SessionConfig, State};
use xstp::wire::ipv4::{self, Packets};
use xstp::wire::{Endpoints, Profile};

/// The computer and serial line between a station's protocols and its radio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Computer {
    /// Processing time of each packet sent or received; one packet at a time.
    pub processing: Span,
    /// Rate of the serial line between computer and TNC in bit/s, with ten bits per octet; a packet
    /// has passed when its last octet has. `None`: no delay.
    pub serial: Option<BitRate>,
    /// From the end of a chunk's transmission until the next one is passed to the transport.
    pub between_chunks: Span,
}

impl Computer {
    /// A computer and a line without delay.
    pub const FREE: Self =
        Self { processing: Span::ZERO, serial: None, between_chunks: Span::ZERO };
}

/// The ends of the link's header compression in one station.
#[derive(Debug, Default)]
struct Headers {
    compressor: Compressor,
    decompressor: Decompressor,
}

/// The application of a connection.
#[derive(Debug)]
pub(super) enum Application {
    Client(Client),
    Server(Server),
}

#[derive(Debug)]
pub(super) struct Station {
    pub(super) connection: Connection,
    pub(super) user: Application,
    packets: Packets,
    headers: Option<Headers>,
    computer: Computer,
    free_at: Instant,
    /// When the transmission of the last chunk ended.
    chunk_left: Option<Instant>,
    /// Octets of a message not yet written.
    unwritten: Vec<u8>,
    written: u64,
    chunks: u64,
    to_radio: Option<Serializer>,
    from_radio: Option<Serializer>,
    /// When the last octet of the file was delivered.
    pub(super) done_at: Option<Instant>,
    pub(super) broken: bool,
    /// Invalid packets and segments.
    pub(super) refused: u64,
    pub(super) max_segment: usize,
    guard: SessionGuard,
}

impl Headers {
    /// The packet in a frame, if any.
    fn take(&mut self, frame: &[u8]) -> Option<Vec<u8>> {
        match self.decompressor.decompress(frame) {
            Ok(packet) => Some(packet),
            Err(Refused::Request) => {
                self.compressor.handle_request(frame);
                None
            }
            Err(_) => None,
        }
    }
}

/// The address of station `index`.
fn address(index: u8) -> Ipv4Addr {
    // AMPRNet, the amateur radio network.
    Ipv4Addr::new(44, 135, 0, index + 1)
}

impl Station {
    pub(super) fn new(
        index: u8,
        peer: u8,
        session: &SessionConfig,
        computer: Computer,
        compress: bool,
        user: Application,
    ) -> Self {
        let end = |index| SocketAddr::from((address(index), 21));
        let profile = Profile::Published(Endpoints { local: end(index), remote: end(peer) });
        let config = SessionConfig { profile, ..session.clone() };
        let connection = match user {
            Application::Client(_) => Connection::connect(&config, Instant::ZERO, 1),
            Application::Server(_) => Connection::listen(&config),
        };
        // Eight-bit characters with a start and a stop bit.
        let line = |rate: BitRate| Serializer::new(rate.mul_ratio(8, 10));
        Self {
            connection,
            user,
            packets: Packets::new(address(index), address(peer))
                .with_route(&[address(peer); ipv4::MAX_HOPS]),
            headers: compress.then(Headers::default),
            computer,
            free_at: Instant::ZERO,
            chunk_left: None,
            unwritten: Vec::new(),
            written: 0,
            chunks: 0,
            to_radio: computer.serial.map(line),
            from_radio: computer.serial.map(line),
            done_at: None,
            broken: false,
            refused: 0,
            max_segment: config.max_segment,
            guard: SessionGuard::new(&config),
        }
    }

    /// When the protocols receive a packet whose last bit arrived at the radio at `at`.
    pub(super) fn received(&mut self, at: Instant, len: usize) -> Instant {
        let at = self.from_radio.as_mut().map_or(at, |line| line.send(at, len as u64));
        self.process(at)
    }

    /// When the radio has a packet that the protocols send at `at`.
    fn sending(&mut self, at: Instant, len: usize) -> Instant {
        let at = self.process(at);
        self.to_radio.as_mut().map_or(at, |line| line.send(at, len as u64))
    }

    fn process(&mut self, at: Instant) -> Instant {
        self.free_at = self.free_at.max(at) + self.computer.processing;
        self.free_at
    }

    /// Handles the information field of a frame.
    pub(super) fn handle(&mut self, now: Instant, frame: &[u8]) {
        let made;
        let packet = match &mut self.headers {
            None => Some(frame),
            Some(headers) => {
                made = headers.take(frame);
                made.as_deref()
            }
        };
        if let Some(packet) = packet {
            let received = ipv4::decode(packet);
            let taken =
                received.is_some_and(|it| self.connection.handle_segment(now, it.segment).is_ok());
            self.refused += u64::from(!taken);
        }
        self.work(now);
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if self.connection.poll_timeout().is_some_and(|due| due <= now) {
            self.connection.handle_timeout(now);
        }
        self.work(now);
    }

    /// The information fields that may be sent now, and when the radio has each.
    pub(super) fn poll_transmit(&mut self, now: Instant) -> Vec<(Instant, Vec<u8>)> {
        self.work(now);
        let mut segment = vec![0; self.max_segment];
        let mut frames = Vec::new();
        while let Some(len) = self.connection.poll_transmit(now, &mut segment) {
            self.guard.on_sent(now, len, self.connection.session());
            self.guard.on_held(&self.connection);
            let packet = self.packets.packet(&segment[..len]);
            let frame = match &mut self.headers {
                None => packet,
                Some(headers) => headers.compressor.compress(&packet),
            };
            frames.push((self.sending(now, frame.len()), frame));
            self.work(now);
        }
        let request = self.headers.as_mut().and_then(|it| it.decompressor.poll_request());
        if let Some(frame) = request {
            frames.push((self.sending(now, frame.len()), frame.to_vec()));
        }
        frames
    }

    /// Requests the file of this name.
    pub(super) fn ask(&mut self, name: &[u8]) {
        Message::Request(name.to_vec()).encode(&mut self.unwritten);
    }

    pub(super) fn is_open(&self) -> bool {
        self.connection.session().state() == State::Established
    }

    pub(super) fn is_closed(&self) -> bool {
        self.connection.session().state() == State::Closed
    }

    /// Returns when to call this station again.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let chunk = self.chunk_at().filter(|_| self.unwritten.is_empty());
        self.connection.poll_timeout().into_iter().chain(chunk).min()
    }

    /// When the next chunk may be written, if there is one and nothing else is outstanding.
    fn chunk_at(&self) -> Option<Instant> {
        let Application::Server(server) = &self.user else { return None };
        if !server.has_message() || self.connection.room() == 0 {
            return None;
        }
        if self.chunks == 0 || self.computer.between_chunks.is_zero() {
            return Some(Instant::ZERO);
        }
        Some(self.chunk_left? + self.computer.between_chunks)
    }

    /// Handles the end of all transmissions of this station.
    pub(super) fn on_channel_idle(&mut self, now: Instant) {
        let sent = self.connection.session().statistics().data_bytes_sent;
        if self.chunk_left.is_none() && sent >= self.written && self.free_at <= now {
            self.chunk_left = Some(now);
        }
    }

    /// Moves octets between the application and the connection.
    fn work(&mut self, now: Instant) {
        while self.connection.poll_event().is_some() {}
        let mut bytes = [0; 1024];
        loop {
            let len = self.connection.read(&mut bytes);
            if len == 0 {
                break;
            }
            let taken = match &mut self.user {
                Application::Client(client) => client.take(&bytes[..len]),
                Application::Server(server) => server.take(&bytes[..len]),
            };
            self.broken |= taken.is_err();
        }
        self.write();
        while self.unwritten.is_empty()
            && self.chunk_at().is_some_and(|at| at <= now)
            && let Application::Server(server) = &mut self.user
        {
            self.chunks += 1;
            self.chunk_left = None;
            self.unwritten.extend(server.next_message().into_iter().flatten());
            self.write();
        }
        let done = match &self.user {
            Application::Client(client) => client.is_done(),
            Application::Server(server) => server.is_done() && self.unwritten.is_empty(),
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
        // After the close unwritten octets are discarded.
        let taken = self.connection.write(&self.unwritten).unwrap_or(self.unwritten.len());
        self.written += taken as u64;
        self.unwritten.drain(..taken);
    }
}
