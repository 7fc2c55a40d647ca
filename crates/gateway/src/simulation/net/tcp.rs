//! A TCP connection in memory, as seen by the sockets at its two ends.
//!
//! ```text
//!   write ─▶ flight (one-way delay) ─▶ buffer (the receiver's window) ─▶ read
//!             └── FIN behind the last byte; RST discards what does not fit the window
//! ```
//!
//! Ends behave as in Linux: bytes that arrived before a RST can be read, then the error is returned
//! once, then the end of the stream; a close with unread bytes sends a RST.

use crate::engine::{Readiness, Source};
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use units::{Instant, Span};

/// Time after which keep-alives detect that the remote host has vanished.
const KEEPALIVE: Span = Span::from_secs(75);

/// The owner of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::simulation) enum Owner {
    /// A gateway's socket.
    Node(usize),
    /// The client or the server of a task.
    Task(usize),
}

/// The bytes in one direction.
#[derive(Debug)]
pub(in crate::simulation) struct Half {
    flight: VecDeque<(Instant, Vec<u8>)>,
    /// Octets in flight or waiting for the receiver's window.
    queued: usize,
    buffer: VecDeque<u8>,
    send_room: usize,
    receive_room: usize,
    /// The writer has found a full buffer and waits for writability.
    starved: bool,
    fin: Option<Instant>,
    fin_arrived: bool,
}

/// One end of a connection.
#[derive(Debug)]
pub(in crate::simulation) struct End {
    pub(in crate::simulation) owner: Owner,
    pub(in crate::simulation) source: Option<Source>,
    pub(in crate::simulation) address: SocketAddr,
    pub(in crate::simulation) connected: bool,
    /// A close without a flag sends a RST.
    pub(in crate::simulation) resets: bool,
    /// Time at which its host vanished; it receives and acknowledges nothing from then on.
    pub(in crate::simulation) vanished: Option<Instant>,
    closed: bool,
    dead: bool,
    error: Option<i32>,
    reset_at: Option<Instant>,
}

/// A connection; end 0 has opened it.
#[derive(Debug)]
pub(in crate::simulation) struct Conn {
    halves: [Half; 2],
    pub(in crate::simulation) ends: [End; 2],
    delay: Span,
    /// When the opener's SYN is answered, and its error if it is refused.
    outcome: Option<(Instant, Option<i32>)>,
}

fn errno(code: i32) -> io::Error {
    io::Error::from_raw_os_error(code)
}

fn later<T>() -> io::Result<T> {
    Err(errno(libc::EAGAIN))
}

impl Conn {
    /// Creates a connection whose SYN is sent at `now`. The opener receives an error after
    /// `patience`.
    pub(in crate::simulation) fn new(
        now: Instant,
        (owners, addresses): ([Owner; 2], [SocketAddr; 2]),
        delay: Span,
        room: usize,
        (after, error): (Span, Option<i32>),
    ) -> Self {
        let end = |number: usize| End {
            owner: owners[number],
            source: None,
            address: addresses[number],
            connected: number == 1,
            resets: false,
            vanished: None,
            closed: false,
            dead: false,
            error: None,
            reset_at: None,
        };
        let half = || Half {
            flight: VecDeque::new(),
            queued: 0,
            buffer: VecDeque::new(),
            send_room: room,
            receive_room: room,
            starved: false,
            fin: None,
            fin_arrived: false,
        };
        let outcome = Some((now + after, error));
        Self { halves: [half(), half()], ends: [end(0), end(1)], delay, outcome }
    }

    /// Returns whether the opener's SYN has no response yet and may receive one.
    pub(super) fn awaits_answer(&self) -> bool {
        self.outcome.is_some_and(|(_, error)| error == Some(libc::ETIMEDOUT))
    }

    /// Responds to the opener's SYN at `now`, with an error or by accepting.
    pub(super) fn answer(&mut self, now: Instant, error: Option<i32>) {
        self.outcome = Some((now + self.delay, error));
    }

    /// Returns the number of octets that are in flight or not read.
    pub(in crate::simulation) fn unread(&self) -> u64 {
        self.halves.iter().map(|half| (half.queued + half.buffer.len()) as u64).sum()
    }

    /// Ends the connection at an end whose call returns an error; the other end receives a RST.
    pub(super) fn break_down(&mut self, now: Instant, end: usize) {
        self.ends[end].dead = true;
        for half in &mut self.halves {
            half.discard(0);
        }
        self.halves[1 - end].buffer.clear();
        self.ends[1 - end].reset_at.get_or_insert(now + self.delay);
    }

    /// Processes what is due at `now`; returns at which ends something has changed.
    pub(in crate::simulation) fn advance(&mut self, now: Instant) -> [bool; 2] {
        let mut edges = [false; 2];
        if let Some((at, error)) = self.outcome
            && at <= now
        {
            self.outcome = None;
            let opener = &mut self.ends[0];
            opener.connected = error.is_none();
            (opener.error, opener.dead) = (error.or(opener.error), opener.dead || error.is_some());
            edges[0] = true;
        }
        for from in 0..2 {
            self.advance_half(now, from, &mut edges);
            let to = 1 - from;
            let ended = self.halves[from].fin_arrived;
            let gone = self.ends[from].vanished;
            let end = &mut self.ends[to];
            if end.times_out_at(gone).is_some_and(|at| at <= now) {
                (end.dead, end.error) = (true, Some(libc::ETIMEDOUT));
                self.halves[to].discard(0);
                edges[to] = true;
                continue;
            }
            if end.reset_at.is_some_and(|at| at <= now) && !end.dead && end.vanished.is_none() {
                end.dead = true;
                end.error = Some(if ended { libc::EPIPE } else { libc::ECONNRESET });
                self.halves[to].discard(0);
                edges[to] = true;
            }
        }
        edges
    }

    fn advance_half(&mut self, now: Instant, from: usize, edges: &mut [bool; 2]) {
        let to = 1 - from;
        if self.ends[to].vanished.is_some() {
            return;
        }
        while let Some((at, _)) = self.halves[from].flight.front()
            && *at <= now
        {
            if self.ends[to].closed || self.ends[to].dead {
                // No process reads it.
                self.halves[from].discard(0);
                let sender = &mut self.ends[from];
                sender.reset_at.get_or_insert(now + self.delay);
                return;
            }
            let half = &mut self.halves[from];
            let room = half.receive_room - half.buffer.len();
            let Some((_, bytes)) = half.flight.front_mut() else { return };
            let count = room.min(bytes.len());
            if count == 0 {
                return;
            }
            half.buffer.extend(bytes.drain(..count));
            half.queued -= count;
            if bytes.is_empty() {
                half.flight.pop_front();
            }
            edges[to] = true;
            if half.starved && half.queued * 3 <= half.send_room * 2 {
                half.starved = false;
                edges[from] = true;
            }
        }
        let half = &mut self.halves[from];
        if half.flight.is_empty() && !half.fin_arrived && half.fin.is_some_and(|at| at <= now) {
            half.fin_arrived = true;
            edges[to] = true;
        }
    }

    /// Returns when [`Conn::advance`] has something to do.
    pub(in crate::simulation) fn due(&self, now: Instant) -> Option<Instant> {
        let outcome = self.outcome.map(|(at, _)| at);
        let halves = (0..2).flat_map(|from: usize| {
            let (half, to) = (&self.halves[from], &self.ends[1 - from]);
            let lives = to.vanished.is_none() && !to.dead;
            let data = half.flight.front().map(|(at, _)| *at);
            let fin = half.fin.filter(|_| data.is_none() && !half.fin_arrived);
            let gone = to.times_out_at(self.ends[from].vanished);
            [gone, data.filter(|_| lives), fin.filter(|_| lives), to.reset_at.filter(|_| lives)]
        });
        // Bytes that wait for the window are checked when the reader has read.
        outcome.into_iter().chain(halves.flatten()).filter(|at| *at > now).min()
    }

    /// Returns the readiness of an end.
    pub(in crate::simulation) fn readiness(&self, end: usize) -> Readiness {
        let (own, coming, going) = (&self.ends[end], &self.halves[1 - end], &self.halves[end]);
        let room = own.connected && going.queued < going.send_room;
        Readiness {
            readable: !coming.buffer.is_empty() || coming.fin_arrived || own.dead,
            writable: room || own.dead,
            error: own.error.is_some(),
        }
    }

    pub(in crate::simulation) fn read(
        &mut self,
        end: usize,
        out: &mut [u8],
        consume: bool,
    ) -> io::Result<usize> {
        let coming = &mut self.halves[1 - end];
        let count = out.len().min(coming.buffer.len());
        if count > 0 {
            for (to, from) in out.iter_mut().zip(&coming.buffer) {
                *to = *from;
            }
            if consume {
                coming.buffer.drain(..count);
            }
            return Ok(count);
        }
        let own = &mut self.ends[end];
        if let Some(error) = own.error.take() {
            return Err(errno(error));
        }
        match own.dead || coming.fin_arrived {
            true => Ok(0),
            false if own.connected => later(),
            false => Err(errno(libc::ENOTCONN)),
        }
    }

    pub(in crate::simulation) fn write(
        &mut self,
        now: Instant,
        end: usize,
        bytes: &[u8],
    ) -> io::Result<usize> {
        let (own, going) = (&mut self.ends[end], &mut self.halves[end]);
        if let Some(error) = own.error.take() {
            return Err(errno(error));
        }
        if own.dead || going.fin.is_some() {
            return Err(errno(libc::EPIPE));
        }
        let count = bytes.len().min(going.send_room - going.queued);
        going.starved |= count < bytes.len();
        if count == 0 || !own.connected {
            return later();
        }
        going.queued += count;
        going.flight.push_back((now + self.delay, bytes[..count].to_vec()));
        Ok(count)
    }

    pub(in crate::simulation) fn shutdown_write(
        &mut self,
        now: Instant,
        end: usize,
    ) -> io::Result<()> {
        if self.ends[end].dead {
            return Err(errno(libc::ENOTCONN));
        }
        self.halves[end].fin.get_or_insert(now + self.delay);
        Ok(())
    }

    pub(in crate::simulation) fn take_error(&mut self, end: usize) -> Option<io::Error> {
        self.ends[end].error.take().map(errno)
    }

    /// Returns and clears the error of an attempt to connect.
    pub(in crate::simulation) fn take_refusal(&mut self, end: usize) -> Option<io::Error> {
        if self.ends[end].connected { None } else { self.take_error(end) }
    }

    pub(in crate::simulation) fn is_connected(&self, end: usize) -> bool {
        self.ends[end].connected && !self.ends[end].dead
    }

    pub(in crate::simulation) fn unacknowledged(&self, end: usize) -> u64 {
        self.halves[end].queued as u64
    }

    /// Returns for how long the remote host has been gone, if it has not acknowledged data.
    pub(in crate::simulation) fn unanswered_for(&self, now: Instant, end: usize) -> Option<Span> {
        let silent = self.ends[1 - end].vanished.map_or(Span::ZERO, |since| now.since(since));
        let half = &self.halves[end];
        let owes = half.queued > 0 || half.fin.is_some() && !half.fin_arrived;
        owes.then_some(silent)
    }

    /// Closes an end, with a RST if `reset` or if bytes were not read. Returns whether a RST was
    /// sent.
    pub(in crate::simulation) fn close(&mut self, now: Instant, end: usize, reset: bool) -> bool {
        let unread = !self.halves[1 - end].buffer.is_empty();
        if std::mem::replace(&mut self.ends[end].closed, true) || self.ends[end].dead {
            return reset;
        }
        if !reset && !unread {
            self.halves[end].fin.get_or_insert(now + self.delay);
            return false;
        }
        self.ends[end].dead = true;
        let window = self.halves[end].receive_room - self.halves[end].buffer.len();
        self.halves[end].discard(window);
        self.halves[1 - end].discard(0);
        self.ends[1 - end].reset_at.get_or_insert(now + self.delay);
        // An unanswered SYN is discarded.
        self.outcome = None;
        true
    }

    /// Returns whether the opener's SYN has arrived by `now`, after half of a round trip.
    pub(in crate::simulation) fn has_arrived(&self, now: Instant) -> bool {
        self.outcome.is_none_or(|(at, _)| at <= now + self.delay)
    }

    /// Returns whether the socket of an end is open.
    pub(in crate::simulation) fn is_open(&self, end: usize) -> bool {
        !self.ends[end].closed
    }
}

impl End {
    /// Returns when keep-alives detect that the remote host is `gone`.
    fn times_out_at(&self, gone: Option<Instant>) -> Option<Instant> {
        gone.filter(|_| self.resets && !self.dead).map(|since| since + KEEPALIVE)
    }
}

impl Half {
    /// Discards the octets in flight except for the first `keep`.
    fn discard(&mut self, mut keep: usize) {
        for (_, bytes) in &mut self.flight {
            let count = bytes.len().min(keep);
            bytes.truncate(count);
            keep -= count;
        }
        self.flight.retain(|(_, bytes)| !bytes.is_empty());
        self.queued = self.flight.iter().map(|(_, bytes)| bytes.len()).sum();
        self.fin = self.fin.filter(|_| self.fin_arrived);
    }
}
