//! The relays of an endpoint and the state of its streams, behind one mutex.

mod events;

use crate::shared::{Driven, Lifetime, Streams};
use crate::udp::{Sent, Udp};
use relay::{
    Hub, OpenError, PeerId, Priority, Relay, ResetReason, StreamError, StreamId, Target,
    TransmitBatch,
};
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::task;
use units::Instant;

/// The sessions of an endpoint.
#[derive(Debug)]
pub(crate) enum Side {
    /// Those with one server.
    Client(Box<Relay>, SocketAddr),
    /// One with each client.
    Server(Box<Hub>),
}

/// A stream at a peer; `None` for the server of a client.
type Key = (Option<PeerId>, StreamId);

/// A stream that the program has.
#[derive(Debug, Default)]
struct Entry {
    /// The relay's stream, until it is closed.
    key: Option<Key>,
    /// Whether all bytes of the peer were read, and it sends no more.
    has_ended: bool,
    /// Whether this side has finished.
    is_finished: bool,
    /// Why the stream is closed.
    error: Option<(ErrorKind, &'static str)>,
    /// Whether the program has dropped the stream.
    is_dropped: bool,
    /// Tasks that wait for any change: one that reads and one that writes.
    wakers: Vec<task::Waker>,
}

/// A stream of a peer that the program has not accepted yet.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) number: u64,
    pub(crate) target: Target,
    pub(crate) peer: String,
}

/// Everything that the mutex protects.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) side: Side,
    pub(crate) udp: Udp,
    entries: BTreeMap<u64, Entry>,
    numbers: BTreeMap<Key, u64>,
    next: u64,
    pub(crate) incoming: VecDeque<Incoming>,
    /// Tasks that wait for an incoming stream.
    accepting: Vec<task::Waker>,
    lifetime: Lifetime,
}

impl State {
    pub(crate) fn new(side: Side, udp: Udp) -> Self {
        Self {
            side,
            udp,
            entries: BTreeMap::new(),
            numbers: BTreeMap::new(),
            next: 0,
            incoming: VecDeque::new(),
            accepting: Vec::new(),
            lifetime: Lifetime::default(),
        }
    }

    fn relay(&mut self, peer: Option<PeerId>) -> Option<&mut Relay> {
        match (&mut self.side, peer) {
            (Side::Client(relay, _), _) => Some(relay),
            (Side::Server(hub), Some(peer)) => hub.peer(peer),
            (Side::Server(_), None) => None,
        }
    }

    /// Returns the relay and the stream of an open entry.
    fn open_stream(&mut self, number: u64) -> io::Result<(&mut Relay, StreamId)> {
        let entry = self.entries.get(&number);
        let key = entry.and_then(|entry| entry.key).ok_or_else(|| self.error_of(number))?;
        let closed = || io::Error::new(ErrorKind::ConnectionAborted, "the session has ended");
        self.relay(key.0).map(|relay| (relay, key.1)).ok_or_else(closed)
    }

    fn error_of(&self, number: u64) -> io::Error {
        let error = self.entries.get(&number).and_then(|entry| entry.error);
        let (kind, text) = error.unwrap_or((ErrorKind::NotConnected, "the stream is closed"));
        io::Error::new(kind, text)
    }

    fn insert(&mut self, key: Key) -> u64 {
        let number = self.next;
        self.next += 1;
        self.entries.insert(number, Entry { key: Some(key), ..Entry::default() });
        self.numbers.insert(key, number);
        number
    }

    /// Opens a stream to `target` at the server of a client.
    pub(crate) fn open(&mut self, now: Instant, target: Target) -> io::Result<u64> {
        if self.lifetime.is_over || self.lifetime.ends_by.is_some() {
            return Err(io::Error::new(ErrorKind::NotConnected, "the endpoint is closed"));
        }
        let Side::Client(relay, _) = &mut self.side else {
            let text = "a server opens no streams: it accepts those of its clients";
            return Err(io::Error::new(ErrorKind::Unsupported, text));
        };
        let stream = relay.open(now, target, Priority::Normal).map_err(|error| match error {
            OpenError::Name { .. } => io::Error::new(ErrorKind::InvalidInput, error.to_string()),
            _ => io::Error::new(ErrorKind::WouldBlock, error.to_string()),
        })?;
        Ok(self.insert((None, stream)))
    }

    /// Returns the next incoming stream, accepted.
    pub(crate) fn accept(&mut self) -> io::Result<Incoming> {
        while let Some(incoming) = self.incoming.pop_front() {
            let Ok((relay, stream)) = self.open_stream(incoming.number) else {
                self.entries.remove(&incoming.number); // Its peer has closed it meanwhile.
                continue;
            };
            if relay.accept(stream).is_ok() {
                return Ok(incoming);
            }
        }
        if self.lifetime.is_over {
            return Err(io::Error::new(ErrorKind::NotConnected, "the endpoint is closed"));
        }
        Err(ErrorKind::WouldBlock.into())
    }

    fn reset_dropped(&mut self, number: u64) {
        if let Ok((relay, stream)) = self.open_stream(number) {
            let _ = relay.reset(stream, ResetReason::Aborted);
        }
        if let Some(key) = self.entries.remove(&number).and_then(|entry| entry.key) {
            self.numbers.remove(&key);
        }
    }

    /// Registers a task that waits for an incoming stream.
    pub(crate) fn set_accepting(&mut self, waker: &task::Waker) {
        push(&mut self.accepting, waker);
    }

    pub(crate) fn is_connected(&self) -> bool {
        match &self.side {
            Side::Client(relay, _) => relay.is_connected(),
            Side::Server(hub) => hub.relays().any(|(_, relay)| relay.is_connected()),
        }
    }

    fn refuse_datagram(&mut self, to: SocketAddr, len: usize) {
        match &mut self.side {
            Side::Client(relay, _) => relay.refuse_datagram(len),
            Side::Server(hub) => {
                let peer = hub.peers().find(|&peer| hub.address(peer) == Some(to));
                if let Some(relay) = peer.and_then(|peer| hub.peer(peer)) {
                    relay.refuse_datagram(len);
                }
            }
        }
    }
}

impl Streams for State {
    fn lifetime(&mut self) -> &mut Lifetime {
        &mut self.lifetime
    }

    fn take_events(&mut self) -> bool {
        self.handle_events()
    }

    fn read(&mut self, now: Instant, number: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let entry = self.entries.get(&number);
        if entry.is_some_and(|entry| entry.has_ended) || buffer.is_empty() {
            return Ok(0);
        }
        let (relay, stream) = self.open_stream(number)?;
        let mut copied = 0;
        loop {
            let bytes = relay.peek(stream);
            let len = bytes.len().min(buffer.len() - copied);
            if len == 0 {
                break;
            }
            buffer[copied..copied + len].copy_from_slice(&bytes[..len]);
            relay.consume(now, stream, len).map_err(closed)?;
            copied += len;
        }
        if copied == 0 { Err(ErrorKind::WouldBlock.into()) } else { Ok(copied) }
    }

    fn write(&mut self, now: Instant, number: u64, data: &[u8]) -> io::Result<usize> {
        let (relay, stream) = self.open_stream(number)?;
        match relay.write(now, stream, data).map_err(closed)? {
            0 if !data.is_empty() => Err(ErrorKind::WouldBlock.into()),
            len => Ok(len),
        }
    }

    fn is_ready(&mut self, number: u64, (read, write): (bool, bool)) -> bool {
        let ended = self.entries.get(&number).is_some_and(|entry| entry.has_ended);
        let Ok((relay, stream)) = self.open_stream(number) else { return true };
        read && (ended || !relay.peek(stream).is_empty()) || write && relay.room(stream) > 0
    }

    fn finish(&mut self, _: Instant, number: u64) -> io::Result<()> {
        if self.entries.get(&number).is_some_and(|entry| entry.is_finished) {
            return Ok(());
        }
        let (relay, stream) = self.open_stream(number)?;
        relay.end(stream).map_err(closed)?;
        if let Some(entry) = self.entries.get_mut(&number) {
            entry.is_finished = true;
        }
        Ok(())
    }

    fn unacknowledged(&mut self, number: u64) -> io::Result<u64> {
        if self.entries.get(&number).is_some_and(|entry| entry.key.is_none() && entry.has_ended) {
            return Ok(0);
        }
        self.open_stream(number).map(|(relay, stream)| relay.held(stream))
    }

    fn drop_stream(&mut self, now: Instant, number: u64) {
        let _ = self.finish(now, number); // A closed stream is finished.
        let Some(entry) = self.entries.get_mut(&number) else { return };
        entry.is_dropped = true;
        match entry.key {
            None => {
                self.entries.remove(&number);
            }
            Some((peer, stream)) => {
                if self.relay(peer).is_some_and(|relay| !relay.peek(stream).is_empty()) {
                    self.reset_dropped(number);
                }
            }
        }
    }

    #[cfg(feature = "tokio")]
    fn set_waker(&mut self, number: u64, waker: &task::Waker) {
        if let Some(entry) = self.entries.get_mut(&number) {
            push(&mut entry.wakers, waker);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match &self.side {
            Side::Client(relay, _) => relay.poll_timeout(),
            Side::Server(hub) => hub.poll_timeout(),
        }
    }
}

impl Driven for State {
    fn descriptor(&self) -> io::Result<OwnedFd> {
        self.udp.descriptor().try_clone_to_owned()
    }

    fn drain(&mut self) {
        match &mut self.side {
            Side::Client(relay, _) => relay.drain(),
            Side::Server(hub) => hub.drain(),
        }
    }

    fn is_drained(&self) -> bool {
        self.numbers.is_empty()
            && match &self.side {
                Side::Client(relay, _) => relay.has_drained(),
                Side::Server(hub) => hub.relays().all(|(_, relay)| relay.has_drained()),
            }
    }

    fn exchange(&mut self, now: Instant, buffer: &mut [u8]) -> io::Result<bool> {
        /// Batches of one round, so that other threads reach the state.
        const BATCHES: usize = 16;
        match &mut self.side {
            Side::Client(relay, _) => relay.handle_timeout(now),
            Side::Server(hub) => hub.handle_timeout(now),
        }
        for _ in 0..BATCHES {
            let side = &mut self.side;
            let more = self.udp.receive(|from, datagram| match side {
                Side::Client(relay, server) => {
                    from == *server && relay.handle_datagram(now, datagram).is_ok()
                }
                Side::Server(hub) => {
                    matches!(hub.handle_datagram(now, from, datagram), Ok(Some(_)))
                }
            })?;
            if !more {
                break;
            }
        }
        for _ in 0..BATCHES {
            let mut batch = TransmitBatch::new(buffer, self.udp.max_batch());
            let transmit = match &mut self.side {
                Side::Client(relay, server) => {
                    relay.poll_transmit(now, &mut batch).map(|transmit| (*server, transmit))
                }
                Side::Server(hub) => hub.poll_transmit(now, &mut batch),
            };
            let Some((to, transmit)) = transmit else { return Ok(false) };
            match self.udp.send(to, &buffer[..transmit.len], transmit.segment_size) {
                Sent::Done => {}
                // The batch is lost, as on the link.
                Sent::Full => return Ok(true),
                Sent::TooBig => self.refuse_datagram(to, transmit.segment_size),
            }
        }
        Ok(false)
    }

    fn end(&mut self, now: Instant, buffer: &mut [u8]) {
        match &mut self.side {
            Side::Client(relay, _) => relay.close(now),
            Side::Server(hub) => hub.close(now),
        }
        let _ = self.exchange(now, buffer); // The peers detect it later.
        self.close_all();
    }
}

fn push(wakers: &mut Vec<task::Waker>, waker: &task::Waker) {
    if !wakers.iter().any(|other| other.will_wake(waker)) {
        wakers.push(waker.clone());
    }
}

fn closed(error: StreamError) -> io::Error {
    io::Error::new(ErrorKind::BrokenPipe, error.to_string())
}
