//! A session with delivery in order: one octet stream per direction, as in the papers.
//!
//! ```text
//!   write ──▶ send buffer ──▶ Session ──▶ segments
//!    read ◀── receive cache ◀─┘
//! ```
//!
//! The send buffer stores octets until they are acknowledged; the receive cache stores packets until
//! they are in order and read. Unread packets reduce the advertised window, down to zero; then the
//! peer sends POLLs at increasing intervals until the window reopens.

use crate::seq::Seq24;
use crate::session::receiver::ReceiveCache;
use crate::session::{Event, NewPacket, ReceiveError, Session, SessionConfig, State, UpperLayer};
use alloc::collections::VecDeque;
use core::fmt;
use units::Instant;

/// One end of a connection with an octet stream per direction.
#[derive(Clone, Debug)]
pub struct Connection {
    session: Session,
    stream: Stream,
    ended: bool,
    largest_segment: usize,
}

/// Reason why octets were not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteError {
    /// The direction was [ended](Connection::end).
    Ended,
    /// The connection is closed.
    Closed,
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ended => "this direction is ended",
            Self::Closed => "the connection is closed",
        })
    }
}

impl core::error::Error for WriteError {}

impl Connection {
    /// Creates the end of a client; see [`Session::connect`]. Octets written before the first
    /// [`poll_transmit`](Connection::poll_transmit) are sent with BGN.
    ///
    /// # Panics
    /// If the configuration is not [valid](SessionConfig::validate).
    pub fn connect(config: &SessionConfig, now: Instant, incarnation: u32) -> Self {
        Self::new(Session::connect(config, now, incarnation), config)
    }

    /// Creates the end of a server; see [`Session::listen`].
    ///
    /// # Panics
    /// If the configuration is not [valid](SessionConfig::validate).
    pub fn listen(config: &SessionConfig) -> Self {
        Self::new(Session::listen(config), config)
    }

    /// As [`Connection::listen`]; see [`Session::listen_after`].
    ///
    /// # Panics
    /// If the configuration is not [valid](SessionConfig::validate).
    pub fn listen_after(config: &SessionConfig, last: u32) -> Self {
        Self::new(Session::listen_after(config, last), config)
    }

    fn new(session: Session, config: &SessionConfig) -> Self {
        let largest_segment = config.max_segment;
        Self { session, stream: Stream::new(config), ended: false, largest_segment }
    }

    /// Appends `bytes` to the send buffer as far as there is room; returns the number accepted.
    ///
    /// # Errors
    /// After [`end`](Connection::end), and if the connection is closed.
    pub fn write(&mut self, bytes: &[u8]) -> Result<usize, WriteError> {
        if self.ended {
            return Err(WriteError::Ended);
        }
        if self.session.state() == State::Closed {
            return Err(WriteError::Closed);
        }
        let taken = self.stream.write(bytes);
        if taken > 0 {
            self.session.wake();
        }
        Ok(taken)
    }

    /// Free octets of the send buffer.
    pub fn room(&self) -> usize {
        self.stream.room()
    }

    /// Octets in the send buffer: written and not acknowledged.
    pub fn unacknowledged_bytes(&self) -> usize {
        self.stream.buffer.len()
    }

    /// Received packets that are not in order or not read.
    pub fn cached_packets(&self) -> usize {
        self.stream.cache.len()
    }

    /// Moves octets that are in order into `out`; returns their number, 0 if there are none.
    pub fn read(&mut self, out: &mut [u8]) -> usize {
        let len = self.stream.cache.read(out);
        self.session.set_receive_window(self.stream.cache.free());
        len
    }

    /// Octets that are in order and contiguous in memory; empty if there are none.
    pub fn peek(&self) -> &[u8] {
        self.stream.cache.peek()
    }

    /// Removes the first `count` octets that are in order.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn consume(&mut self, count: usize) {
        self.stream.cache.consume(count);
        self.session.set_receive_window(self.stream.cache.free());
    }

    /// Whether octets can be read.
    pub fn is_readable(&self) -> bool {
        !self.stream.cache.is_empty()
    }

    /// Whether the peer has closed its direction and all its data was read.
    pub fn is_finished(&self) -> bool {
        self.stream.peer_ended && !self.is_readable()
    }

    /// Closes this direction: END is sent when all data is acknowledged. The direction of the peer
    /// stays open.
    pub fn end(&mut self, now: Instant) {
        self.ended = true;
        self.stream.ended = true;
        self.session.end(now);
    }

    /// Aborts the connection: it is closed, and RST is sent.
    pub fn abort(&mut self, now: Instant) {
        self.session.abort(now);
    }

    /// Sets the rate cap; see [`Session::set_max_rate`].
    pub fn set_max_rate(&mut self, rate: Option<units::BitRate>) {
        self.session.set_max_rate(rate);
    }

    /// Sets the maximum segment size; see [`Session::set_max_segment`]. Packets are retransmitted at
    /// their old size.
    pub fn set_max_segment(&mut self, bytes: usize) {
        self.session.set_max_segment(bytes);
    }

    /// Stored octets: written and not acknowledged, and received and not read.
    pub fn stored_bytes(&self) -> usize {
        self.stream.buffer.len() + self.stream.cache.bytes()
    }

    /// The session, for its state and counters.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Processes a segment that was received at `now`.
    ///
    /// # Errors
    /// If it was dropped as a whole; see [`Session::handle_segment`].
    pub fn handle_segment(&mut self, now: Instant, bytes: &[u8]) -> Result<(), ReceiveError> {
        let result = self.session.handle_segment(now, bytes, &mut self.stream);
        self.session.set_receive_window(self.stream.cache.free());
        result
    }

    /// Writes the next segment that is due to the start of `out`; returns its length.
    ///
    /// # Panics
    /// If `out` is shorter than the configured maximum segment: packets are retransmitted at their
    /// old size.
    pub fn poll_transmit(&mut self, now: Instant, out: &mut [u8]) -> Option<usize> {
        let (found, expected) = (out.len(), self.largest_segment);
        assert!(found >= expected, "expected room for {expected} bytes, found {found}");
        self.session.poll_transmit(now, &mut self.stream, out)
    }

    /// Time of the next call; see [`Session::poll_timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.session.poll_timeout()
    }

    /// Processes expired timers; see [`Session::handle_timeout`].
    pub fn handle_timeout(&mut self, now: Instant) {
        self.session.handle_timeout(now);
    }

    /// Takes the next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        let event = self.session.poll_event();
        self.stream.peer_ended |= event == Some(Event::PeerEnded);
        event
    }
}

/// Send buffer and receive cache: the upper layer of the session.
#[derive(Clone, Debug)]
struct Stream {
    /// Octets from `base` on, not acknowledged.
    buffer: VecDeque<u8>,
    limit: usize,
    /// Stream offset of the first octet in `buffer`.
    base: u64,
    /// Offset of the first octet that was never sent.
    unsent: u64,
    /// Packets sent from `base` on, by offset.
    sent: VecDeque<Packet>,
    cache: ReceiveCache,
    peer_ended: bool,
    /// Payload of a full packet; less is delayed while data is unacknowledged (Nagle).
    full: Option<usize>,
    /// No more data will be written, so none is delayed.
    ended: bool,
}

/// Position of a packet in the stream.
#[derive(Clone, Copy, Debug)]
struct Packet {
    offset: u64,
    len: u32,
    released: bool,
}

impl Stream {
    fn new(config: &SessionConfig) -> Self {
        let capacity = config.receive_window.min(config.profile.max_window());
        Self {
            buffer: VecDeque::new(),
            limit: config.send_buffer,
            base: 0,
            unsent: 0,
            sent: VecDeque::new(),
            cache: ReceiveCache::new(config.first_number, capacity),
            peer_ended: false,
            full: config.stp.nagle.then(|| config.payload_size()),
            ended: false,
        }
    }

    fn room(&self) -> usize {
        self.limit.saturating_sub(self.buffer.len())
    }

    fn write(&mut self, bytes: &[u8]) -> usize {
        let taken = bytes.len().min(self.room());
        self.buffer.extend(&bytes[..taken]);
        taken
    }

    /// Index in `sent` of the packet at `offset`.
    fn index_of(&self, offset: u64) -> Option<usize> {
        if self.sent.front().is_some_and(|first| first.offset == offset) {
            return Some(0);
        }
        self.sent.binary_search_by_key(&offset, |packet| packet.offset).ok()
    }

    /// Copies octets of the stream from `offset` on.
    fn copy(&self, offset: u64, out: &mut [u8]) {
        // The buffer is smaller than memory.
        let start = (offset - self.base) as usize;
        let (front, back) = self.buffer.as_slices();
        let in_front = front.len().saturating_sub(start).min(out.len());
        if in_front > 0 {
            out[..in_front].copy_from_slice(&front[start..start + in_front]);
        }
        let start = (start + in_front) - front.len().min(start + in_front);
        let rest = out.len() - in_front;
        out[in_front..].copy_from_slice(&back[start..start + rest]);
    }
}

impl UpperLayer for Stream {
    fn has_new_data(&self) -> bool {
        let left = self.base + self.buffer.len() as u64 - self.unsent;
        let waits = !self.ended && !self.sent.is_empty();
        left > 0 && !(waits && self.full.is_some_and(|full| left < full as u64))
    }

    fn fill_new(&mut self, _: Seq24, room: &mut [u8]) -> Option<NewPacket> {
        let left = self.base + self.buffer.len() as u64 - self.unsent;
        let len = room.len().min(left as usize);
        if len == 0 || !self.has_new_data() {
            return None;
        }
        let handle = self.unsent;
        self.copy(handle, &mut room[..len]);
        self.sent.push_back(Packet { offset: handle, len: len as u32, released: false });
        self.unsent += len as u64;
        Some(NewPacket { len, handle })
    }

    /// Writes the same octets again: in order none can be omitted. The session provides the room
    /// even after the path MTU has decreased.
    fn fill_retransmission(&mut self, _: Seq24, handle: u64, room: &mut [u8]) -> usize {
        let sent = self.index_of(handle).map_or(0, |index| self.sent[index].len as usize);
        let len = sent.min(room.len());
        self.copy(handle, &mut room[..len]);
        len
    }

    fn on_acknowledged(&mut self, _: Seq24, handle: u64) {
        let Some(index) = self.index_of(handle) else { return };
        self.sent[index].released = true;
        let mut read = 0;
        while let Some(first) = self.sent.front().filter(|first| first.released) {
            read += first.len as usize;
            self.sent.pop_front();
        }
        if read > 0 {
            self.buffer.drain(..read);
            self.base += read as u64;
        }
    }

    fn deliver(&mut self, number: Seq24, payload: &[u8]) {
        self.cache.insert(number, payload);
    }
}

#[cfg(test)]
mod tests;
