//! The connections of a host, without I/O: which segment belongs to which.

use super::Peer;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::task;
use units::{Instant, Span};
use xstp::Connection;
use xstp::session::{Event, SessionConfig, State};
use xstp::wire::{Control, Endpoints, Profile, Segment};

/// Maximum number of connections, with those that are closed and answer late segments.
const MAX_CONNECTIONS: usize = 1024;
/// Maximum number of connections with one peer.
const MAX_WITH_PEER: usize = 64;
/// Maximum number of connections of a listener that the program has not accepted.
const MAX_BACKLOG: usize = 64;
/// Maximum number of refusals that wait to be sent.
const MAX_REFUSALS: usize = 16;
/// Time for which a closed connection answers late segments.
const LINGER: Span = Span::from_secs(120);
/// First port of those that are chosen for connections (RFC 6335, section 6).
const FIRST_DYNAMIC_PORT: u16 = 49_152;

/// Both ends of a connection: the peer, its port, and the port of this host.
pub(super) type Key = (Peer, u16, u16);

/// A segment of a connection, to be sent to its peer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Outgoing {
    pub(super) peer: Peer,
    pub(super) segment: Vec<u8>,
}

/// A connection and its stream.
#[derive(Debug)]
pub(super) struct Entry {
    key: Key,
    pub(super) connection: Connection,
    /// Whether this host has begun it.
    is_client: bool,
    /// Whether the program has dropped the stream.
    is_dropped: bool,
    is_finished: bool,
    error: Option<(ErrorKind, &'static str)>,
    closed_at: Option<Instant>,
    wakers: Vec<task::Waker>,
}

/// Counters of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that are no segments for this host: malformed, damaged, of an unknown connection,
    /// or from another station than the connection's.
    pub refused: u64,
    /// Connections of peers that were dropped or refused: no listener, or a limit was reached.
    pub refused_connections: u64,
    /// Packets that were dropped because the TNC or the socket took no more.
    pub not_sent: u64,
}

#[derive(Debug)]
pub(super) struct Connections {
    session: SessionConfig,
    local: IpAddr,
    entries: BTreeMap<u64, Entry>,
    keys: BTreeMap<Key, u64>,
    next: u64,
    /// The connection whose turn it is to send.
    turn: u64,
    listeners: BTreeMap<u16, Listening>,
    /// Incarnation of the next connection.
    incarnation: u32,
    /// The lower bits of the last port that was tried.
    port: u16,
    refusals: VecDeque<Outgoing>,
    /// Whether a segment was processed since the last call of `handle_events`.
    has_changed: bool,
    buffer: Vec<u8>,
    pub(super) counters: Counters,
}

#[derive(Debug, Default)]
struct Listening {
    backlog: VecDeque<u64>,
    wakers: Vec<task::Waker>,
}

impl Connections {
    /// Creates the connections of the host `local`. `incarnation` should increase from one process
    /// to the next, and `port` be random.
    pub(super) fn new(session: SessionConfig, local: IpAddr, incarnation: u32, port: u16) -> Self {
        Self {
            buffer: vec![0; session.max_segment],
            session,
            local,
            entries: BTreeMap::new(),
            keys: BTreeMap::new(),
            next: 0,
            turn: 0,
            listeners: BTreeMap::new(),
            incarnation,
            port,
            refusals: VecDeque::new(),
            has_changed: false,
            counters: Counters::default(),
        }
    }

    fn config(&self, (peer, remote, local): Key) -> SessionConfig {
        let ends = Endpoints {
            local: SocketAddr::new(self.local, local),
            remote: SocketAddr::new(peer.address, remote),
        };
        SessionConfig { profile: Profile::Published(ends), ..self.session.clone() }
    }

    fn insert(&mut self, key: Key, connection: Connection, is_client: bool) -> u64 {
        let number = self.next;
        self.next += 1;
        self.keys.insert(key, number);
        let entry = Entry {
            key,
            connection,
            is_client,
            is_dropped: false,
            is_finished: false,
            error: None,
            closed_at: None,
            wakers: Vec::new(),
        };
        self.entries.insert(number, entry);
        number
    }

    /// Begins a connection to `port` of `peer`; returns its number.
    pub(super) fn connect(&mut self, now: Instant, peer: Peer, port: u16) -> io::Result<u64> {
        if !self.has_room() {
            let text = "the limit of connections is reached";
            return Err(io::Error::new(ErrorKind::QuotaExceeded, text));
        }
        for _ in 0..=MAX_CONNECTIONS {
            self.port = self.port.wrapping_add(1);
            let key = (peer, port, FIRST_DYNAMIC_PORT | self.port);
            if !self.keys.contains_key(&key) && !self.listeners.contains_key(&key.2) {
                self.incarnation = self.incarnation.wrapping_add(1);
                let connection = Connection::connect(&self.config(key), now, self.incarnation);
                return Ok(self.insert(key, connection, true));
            }
        }
        Err(ErrorKind::AddrInUse.into())
    }

    pub(super) fn listen(&mut self, port: u16) -> io::Result<()> {
        if self.listeners.contains_key(&port) {
            return Err(ErrorKind::AddrInUse.into());
        }
        self.listeners.insert(port, Listening::default());
        Ok(())
    }

    /// Ends a listener: connections that were not accepted are reset.
    pub(super) fn unlisten(&mut self, now: Instant, port: u16) {
        for number in self.listeners.remove(&port).unwrap_or_default().backlog {
            self.drop_stream(now, number);
        }
    }

    /// Ends all listeners.
    pub(super) fn unlisten_all(&mut self, now: Instant) {
        for port in self.listeners.keys().copied().collect::<Vec<u16>>() {
            self.unlisten(now, port);
        }
    }

    /// Returns the next connection of a listener.
    pub(super) fn accept(&mut self, port: u16) -> io::Result<(u64, Peer, u16)> {
        let listener = self.listeners.get_mut(&port).ok_or(ErrorKind::NotConnected)?;
        while let Some(number) = listener.backlog.pop_front() {
            if let Some(entry) = self.entries.get(&number) {
                return Ok((number, entry.key.0, entry.key.1));
            }
        }
        Err(ErrorKind::WouldBlock.into())
    }

    pub(super) fn set_accepting(&mut self, port: u16, waker: &task::Waker) {
        if let Some(listener) = self.listeners.get_mut(&port) {
            super::push(&mut listener.wakers, waker);
        }
    }

    /// Processes a segment that `peer` has sent to this host.
    pub(super) fn handle_segment(&mut self, now: Instant, peer: Peer, segment: &[u8]) {
        let Some(&[a, b, c, d]) = segment.first_chunk() else {
            self.counters.refused += 1;
            return;
        };
        let key = (peer, u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        let Some(entry) = self.keys.get(&key).and_then(|number| self.entries.get_mut(number))
        else {
            return self.begin(now, key, None, segment);
        };
        let session = entry.connection.session();
        if !entry.is_client && session.is_begin_anew(segment) {
            let last = session.incarnation();
            self.release_key(key);
            self.begin(now, key, last, segment);
        } else if entry.connection.handle_segment(now, segment).is_err() {
            self.counters.refused += 1;
        } else {
            self.has_changed = true;
            entry.wakers.drain(..).for_each(task::Waker::wake);
        }
    }

    /// Processes a segment that may begin a connection; `last` is the incarnation of the last one
    /// between these ends.
    fn begin(&mut self, now: Instant, key: Key, last: Option<u32>, segment: &[u8]) {
        let config = self.config(key);
        let decoded = Segment::decode(&config.profile, segment).ok();
        if !matches!(decoded.and_then(|it| it.control()), Some(Control::Begin(_))) {
            self.counters.refused += 1;
            return;
        }
        let Some(backlog) = self.listeners.get(&key.2).map(|listener| listener.backlog.len())
        else {
            return self.refuse(now, key.0, &config, segment);
        };
        let with_peer = self.entries.values().filter(|entry| entry.key.0 == key.0).count();
        if backlog >= MAX_BACKLOG || with_peer >= MAX_WITH_PEER || !self.has_room() {
            self.counters.refused_connections += 1;
            return;
        }
        let mut connection = match last {
            Some(last) => Connection::listen_after(&config, last),
            None => Connection::listen(&config),
        };
        if connection.handle_segment(now, segment).is_err() {
            self.counters.refused += 1;
            return;
        }
        let number = self.insert(key, connection, false);
        self.has_changed = true;
        if let Some(listener) = self.listeners.get_mut(&key.2) {
            listener.backlog.push_back(number);
            listener.wakers.drain(..).for_each(task::Waker::wake);
        }
    }

    /// Refuses a connection to a port without a listener: a closed connection answers BGN by RST.
    fn refuse(&mut self, now: Instant, peer: Peer, config: &SessionConfig, segment: &[u8]) {
        self.counters.refused_connections += 1;
        if self.refusals.len() >= MAX_REFUSALS {
            return;
        }
        let mut connection = Connection::listen(config);
        connection.abort(now);
        let _ = connection.handle_segment(now, segment);
        if let Some(len) = connection.poll_transmit(now, &mut self.buffer) {
            let segment = self.buffer[..len].to_vec();
            self.refusals.push_back(Outgoing { peer, segment });
        }
    }

    /// Makes room for a connection if there is none: the oldest that only answers late segments
    /// is removed. Returns whether there is room.
    fn has_room(&mut self) -> bool {
        if self.entries.len() < MAX_CONNECTIONS {
            return true;
        }
        let closed = self.entries.iter().filter(|(_, entry)| entry.is_dropped);
        let oldest = closed.filter_map(|(&number, entry)| Some((entry.closed_at?, number))).min();
        oldest.map(|(_, number)| self.remove(number)).is_some()
    }

    fn remove(&mut self, number: u64) {
        if let Some(entry) = self.entries.remove(&number)
            && self.keys.get(&entry.key) == Some(&number)
        {
            self.keys.remove(&entry.key);
        }
    }

    /// Makes room for another connection between the same ends; the program may still have the
    /// stream of the earlier one.
    fn release_key(&mut self, key: Key) {
        let Some(number) = self.keys.remove(&key) else { return };
        if let Some(entry) = self.entries.get_mut(&number) {
            entry.error.get_or_insert((ErrorKind::ConnectionReset, "the peer has restarted"));
            entry.wakers.drain(..).for_each(task::Waker::wake);
            if entry.is_dropped {
                self.entries.remove(&number);
            }
        }
    }

    /// Processes the timers that have expired.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        let mut over = Vec::new();
        for (&number, entry) in &mut self.entries {
            if entry.connection.poll_timeout().is_some_and(|due| due <= now) {
                entry.connection.handle_timeout(now);
            }
            if entry.is_dropped && entry.closed_at.is_some_and(|at| now >= at + LINGER) {
                over.push(number);
            }
        }
        over.into_iter().for_each(|number| self.remove(number));
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let refusal = (!self.refusals.is_empty()).then_some(Instant::ZERO);
        let entries = self.entries.values().flat_map(|entry| {
            let end = entry.closed_at.filter(|_| entry.is_dropped).map(|at| at + LINGER);
            entry.connection.poll_timeout().into_iter().chain(end)
        });
        entries.chain(refusal).min()
    }

    /// Returns the next segment that is due; connections take turns.
    pub(super) fn poll_transmit(&mut self, now: Instant) -> Option<Outgoing> {
        if let Some(refusal) = self.refusals.pop_front() {
            return Some(refusal);
        }
        let (before, from) = (0..self.turn, self.turn..);
        let mut order: Vec<u64> = self.entries.range(from).map(|(&number, _)| number).collect();
        order.extend(self.entries.range(before).map(|(&number, _)| number));
        for number in order {
            let Some(entry) = self.entries.get_mut(&number) else { continue };
            if let Some(len) = entry.connection.poll_transmit(now, &mut self.buffer) {
                self.turn = number + 1;
                let segment = self.buffer[..len].to_vec();
                return Some(Outgoing { peer: entry.key.0, segment });
            }
        }
        None
    }

    /// Processes the events of the connections; returns whether there were any.
    pub(super) fn handle_events(&mut self, now: Instant) -> bool {
        // Data and acknowledgements have no event.
        let mut had = std::mem::take(&mut self.has_changed);
        for entry in self.entries.values_mut() {
            let mut changed = false;
            while let Some(event) = entry.connection.poll_event() {
                entry.handle_event(event);
                changed = true;
            }
            if entry.connection.session().state() == State::Closed && entry.closed_at.is_none() {
                entry.closed_at = Some(now);
                changed = true;
            }
            if entry.is_dropped && entry.closed_at.is_none() && entry.connection.is_readable() {
                entry.connection.abort(now);
            }
            if changed {
                entry.wakers.drain(..).for_each(task::Waker::wake);
            }
            had |= changed;
        }
        had
    }

    /// Returns whether all connections are closed.
    pub(super) fn is_drained(&self) -> bool {
        self.entries.values().all(|entry| entry.closed_at.is_some()) && self.refusals.is_empty()
    }

    /// Resets all connections.
    pub(super) fn abort_all(&mut self, now: Instant) {
        for entry in self.entries.values_mut() {
            if entry.closed_at.is_none() {
                entry.connection.abort(now);
                entry.error.get_or_insert((ErrorKind::NotConnected, "the host is closed"));
            }
        }
    }

    pub(super) fn entry(&mut self, number: u64) -> io::Result<&mut Entry> {
        self.entries.get_mut(&number).ok_or_else(|| ErrorKind::NotConnected.into())
    }

    pub(super) fn drop_stream(&mut self, now: Instant, number: u64) {
        let Some(entry) = self.entries.get_mut(&number) else { return };
        entry.is_dropped = true;
        entry.connection.end(now);
        if entry.connection.is_readable() && entry.closed_at.is_none() {
            entry.connection.abort(now);
        }
        if self.keys.get(&entry.key) != Some(&number) {
            self.entries.remove(&number);
        }
    }

    #[cfg(feature = "tokio")]
    pub(super) fn set_waker(&mut self, number: u64, waker: &task::Waker) {
        if let Some(entry) = self.entries.get_mut(&number) {
            super::push(&mut entry.wakers, waker);
        }
    }
}

/// The stream of a connection.
impl Entry {
    fn handle_event(&mut self, event: Event) {
        let error = match event {
            Event::Reset => (ErrorKind::ConnectionReset, "the peer has reset the connection"),
            Event::Refused => (ErrorKind::ConnectionRefused, "the peer does not listen"),
            Event::Superseded => (ErrorKind::ConnectionReset, "the peer has restarted"),
            Event::NoResponse => (ErrorKind::TimedOut, "the peer does not respond"),
            _ => return,
        };
        self.error.get_or_insert(error);
    }

    /// Why the stream is closed, if it is.
    fn check(&self) -> io::Result<()> {
        match self.error {
            Some((kind, text)) => Err(io::Error::new(kind, text)),
            None => Ok(()),
        }
    }

    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.connection.read(buffer);
        if len > 0 || buffer.is_empty() || self.connection.is_finished() {
            return Ok(len);
        }
        self.check()?;
        match self.closed_at {
            Some(_) => Err(ErrorKind::NotConnected.into()),
            None => Err(ErrorKind::WouldBlock.into()),
        }
    }

    pub(super) fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.check()?;
        let written = self.connection.write(data);
        let written = written.map_err(|e| io::Error::new(ErrorKind::BrokenPipe, e.to_string()))?;
        if written == 0 && !data.is_empty() {
            return Err(ErrorKind::WouldBlock.into());
        }
        Ok(written)
    }

    pub(super) fn is_ready(&self, (read, write): (bool, bool)) -> bool {
        let connection = &self.connection;
        let is_closed = self.error.is_some() || self.closed_at.is_some();
        let can_read = connection.is_readable() || connection.is_finished();
        is_closed || read && can_read || write && connection.room() > 0
    }

    pub(super) fn finish(&mut self, now: Instant) -> io::Result<()> {
        if !self.is_finished {
            self.check()?;
            self.is_finished = true;
            self.connection.end(now);
        }
        Ok(())
    }

    /// Written octets that the peer has not acknowledged.
    pub(super) fn unacknowledged(&self) -> io::Result<u64> {
        match self.connection.unacknowledged_bytes() {
            0 => Ok(0),
            bytes => self.check().map(|()| bytes as u64),
        }
    }
}

#[cfg(test)]
mod tests;
