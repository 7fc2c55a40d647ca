//! Two sockets that are one connection.

use super::bucket::Bucket;
use super::pipe::{Broken, Moved, Pipe, Sink};
use crate::engine::socket;
use mio::net::TcpStream;
use std::io::{self, Write};
use std::net::{Shutdown, SocketAddr};
use units::{Instant, Span};

/// Bytes that one connection moves in each direction before others have their turn.
const BUDGET: usize = 64 * 1024;
/// Full segments towards the satellite that one connection sends before others have their turn.
const QUANTUM: u64 = 8;
/// How long to wait for bytes of a broken connection that make no way.
const BREAKING_PATIENCE: Span = Span::from_secs(3);
/// How often to look.
pub(super) const BREAKING_LOOKS: Span = Span::from_millis(50);

/// One of the two sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The one that was intercepted.
    Client,
    /// The one that leads on.
    Server,
}

/// A client's socket, a server's, and what is between them.
#[derive(Debug)]
pub(super) struct Pair {
    /// Never used twice, unlike its place in the table.
    pub(super) number: u64,
    pub(super) client: TcpStream,
    pub(super) server: TcpStream,
    pub(super) addresses: (SocketAddr, SocketAddr),
    pub(super) phase: Phase,
    pub(super) since: Instant,
    /// What it has moved.
    pub(super) moved: Tally,
    /// Why it ended, once it has.
    pub(super) cause: &'static str,
    /// Which of the two the satellite is behind.
    pub(super) satellite: Side,
    up: Pipe,
    down: Pipe,
    /// Segments that the kernel has repeated over the satellite, as far as they were paid for.
    repeats: u32,
    /// Since when each end was seen to owe TCP an answer.
    owing: [Option<Instant>; 2],
    /// When something must have happened.
    pub(super) due: Option<Instant>,
    /// Whether it waits for its turn.
    pub(super) in_turn: bool,
    /// Whether it waits for tokens.
    pub(super) thirsty: bool,
}

/// How far a connection has come.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The server is being connected to; what the client says waits in its socket.
    Connecting,
    /// Both are one.
    Open,
    /// One socket broke; the other gets what came before that, and then a reset.
    Breaking {
        /// Who still gets something.
        towards: Side,
        /// Bytes that it did not have when some were last seen to arrive.
        left: u64,
        /// When to give up waiting, unless more arrive by then.
        patience: Instant,
    },
}

/// What a turn came to.
#[derive(Debug)]
pub(super) enum Turn {
    /// Nothing more to do until a socket says so.
    Wait,
    /// There is more to do, and others wait.
    More,
    /// Bytes wait for tokens; the other direction may have more to do meanwhile.
    Thirsty { more: bool },
    /// Both halves are over.
    Done,
    /// A socket broke.
    Broken(Side, io::Error),
}

/// Bytes that turns have moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) read: u64,
    pub(super) written: u64,
    /// Of those written, what went towards the satellite.
    pub(super) to_satellite: u64,
}

impl Pair {
    /// A client that was intercepted, and the socket that is being connected for it.
    pub(super) fn new(
        client: TcpStream,
        server: TcpStream,
        addresses: (SocketAddr, SocketAddr),
        satellite: Side,
        since: Instant,
    ) -> Self {
        Self {
            number: 0,
            client,
            server,
            addresses,
            phase: Phase::Connecting,
            since,
            moved: Tally::default(),
            cause: "ended by the gateway",
            satellite,
            up: Pipe::new(),
            down: Pipe::new(),
            repeats: 0,
            owing: [None; 2],
            due: None,
            in_turn: false,
            thirsty: false,
        }
    }

    /// News of one socket.
    pub(super) fn ready(&mut self, side: Side, readable: bool, writable: bool) {
        let (out, back) = match side {
            Side::Client => (&mut self.up, &mut self.down),
            Side::Server => (&mut self.down, &mut self.up),
        };
        if readable {
            out.source_is_readable();
        }
        if writable {
            back.sink_is_writable();
        }
    }

    /// Moves what can be moved, both ways; towards the satellite as far as there are tokens, and
    /// not at all while others have waited longer for them.
    pub(super) fn turn(
        &mut self,
        now: Instant,
        mut bucket: Option<&mut Bucket>,
        scratch: &mut [u8],
        tally: &mut Tally,
    ) -> Turn {
        let (mut result, mut thirsty) = (Turn::Wait, false);
        for towards in [Side::Client, Side::Server] {
            let shaped = towards == self.satellite;
            let (pipe, mut source, mut sink) = match towards {
                Side::Server => (&mut self.up, &self.client, Out(&self.server)),
                Side::Client => (&mut self.down, &self.server, Out(&self.client)),
            };
            let mut bucket = bucket.as_deref_mut().filter(|_| shaped);
            let mut budget = BUDGET;
            if let Some(bucket) = &bucket {
                budget = (QUANTUM * bucket.segment()) as usize;
            }
            while pipe.has_work() {
                if budget == 0 {
                    result = Turn::More;
                    break;
                }
                let leave = match &mut bucket {
                    Some(_) if self.thirsty => 0,
                    Some(bucket) => leave(bucket, now, pipe.waiting()).min(budget),
                    None => budget,
                };
                match pipe.step(&mut source, &mut sink, leave, scratch) {
                    Ok(Moved { read, written }) => {
                        tally.read += read as u64;
                        tally.written += written as u64;
                        budget -= written;
                        if shaped {
                            tally.to_satellite += written as u64;
                        }
                        if let Some(bucket) = &mut bucket {
                            bucket.take(now, written as u64);
                        }
                        if read == 0 && written == 0 && leave == 0 && pipe.wants_to_write() {
                            thirsty = true;
                            break;
                        }
                    }
                    Err(Broken::Source(error)) => return Turn::Broken(other(towards), error),
                    Err(Broken::Sink(error)) => return Turn::Broken(towards, error),
                }
            }
        }
        match result {
            _ if self.up.is_over() && self.down.is_over() => Turn::Done,
            // While it waits for tokens the other direction may have its turns.
            Turn::Wait if thirsty => Turn::Thirsty { more: false },
            Turn::More if thirsty => Turn::Thirsty { more: true },
            result => result,
        }
    }

    /// One side broke: the other gets what came before that.
    pub(super) fn broke(&mut self, now: Instant, side: Side) {
        let pipe = match side {
            Side::Client => &mut self.up,
            Side::Server => &mut self.down,
        };
        pipe.source_is_broken();
        self.phase = Phase::Breaking { towards: other(side), left: u64::MAX, patience: now };
    }

    /// Moves the last bytes of a broken connection; true when nothing more is to be waited for.
    pub(super) fn turn_breaking(
        &mut self,
        now: Instant,
        scratch: &mut [u8],
        tally: &mut Tally,
    ) -> bool {
        let Phase::Breaking { towards, left, patience } = &mut self.phase else { return true };
        let (pipe, mut source, sink) = match towards {
            Side::Server => (&mut self.up, &self.client, &self.server),
            Side::Client => (&mut self.down, &self.server, &self.client),
        };
        while pipe.has_work() {
            // So few bytes are no matter for the bucket, and nobody is to wait for their tokens.
            match pipe.step(&mut source, &mut Out(sink), usize::MAX, scratch) {
                Ok(moved) => {
                    tally.read += moved.read as u64;
                    tally.written += moved.written as u64;
                }
                Err(Broken::Source(_) | Broken::Sink(_)) => return true,
            }
        }
        let still = socket::unacknowledged(sink) + pipe.waiting() as u64;
        if still < *left {
            (*left, *patience) = (still, now + BREAKING_PATIENCE);
        }
        (pipe.is_over() && still == 0) || now >= *patience
    }

    /// What the kernel has sent again over the satellite since the last look: segments, and bytes.
    pub(super) fn repeated(&mut self) -> (u64, u64) {
        let Some(info) = socket::information(self.facing()) else { return (0, 0) };
        let segments = info.tcpi_total_retrans.wrapping_sub(self.repeats);
        self.repeats = info.tcpi_total_retrans;
        (u64::from(segments), u64::from(segments) * u64::from(info.tcpi_snd_mss))
    }

    /// Whether one of the ends has left TCP without an answer for `longest`.
    pub(super) fn has_vanished(&mut self, now: Instant, longest: Span) -> bool {
        let sockets = [&self.client, &self.server];
        sockets.into_iter().zip(&mut self.owing).any(|(socket, owing)| {
            socket::has_vanished(now, socket::unanswered_for(socket), owing, longest)
        })
    }

    /// Closes both in good order.
    pub(super) fn close(self) {
        socket::close_in_order(self.client);
        socket::close_in_order(self.server);
    }

    /// Resets both.
    pub(super) fn reset(self) {
        socket::close_with_reset(self.client);
        socket::close_with_reset(self.server);
    }

    fn facing(&self) -> &TcpStream {
        match self.satellite {
            Side::Client => &self.client,
            Side::Server => &self.server,
        }
    }
}

/// How many of `waiting` bytes may leave: full segments, or all there is.
fn leave(bucket: &mut Bucket, now: Instant, waiting: usize) -> usize {
    let payload = usize::try_from(bucket.payload(now)).unwrap_or(usize::MAX);
    let segment = bucket.segment() as usize;
    if payload >= waiting { waiting } else { payload / segment * segment }
}

pub(super) fn other(side: Side) -> Side {
    match side {
        Side::Client => Side::Server,
        Side::Server => Side::Client,
    }
}

/// A socket as the end of a pipe.
#[derive(Debug)]
pub(in crate::engine) struct Out<'a>(pub(in crate::engine) &'a TcpStream);

impl Write for Out<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Sink for Out<'_> {
    fn end(&mut self) -> io::Result<()> {
        self.0.shutdown(Shutdown::Write)
    }
}
