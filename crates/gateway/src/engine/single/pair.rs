//! Two sockets that are one connection.

use super::bucket::Bucket;
use crate::engine::host::{Close, Socket, TcpSocket};
use crate::engine::transfer::pipe::{Broken, Moved, Pipe, Sink};
use crate::engine::transfer::unresponsive;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use units::{Instant, Span};

/// Bytes that one connection moves in each direction before others have their turn.
const BUDGET: usize = 64 * 1024;
/// Full segments towards the satellite that one connection sends before others have their turn.
const QUANTUM: u64 = 8;
/// How long to wait for bytes of a broken connection that make no way.
const BREAKING_PATIENCE: Span = Span::from_secs(3);
/// How often to look.
pub(crate) const BREAKING_LOOKS: Span = Span::from_millis(50);

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
    pub(super) client: Socket,
    pub(super) server: Socket,
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
        /// What that is.
        last: LastBytes,
    },
}

/// The last bytes of a connection of which one socket broke, on their way to the other.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LastBytes {
    /// Bytes that the other end did not have when some were last seen to arrive.
    left: u64,
    /// When to give up waiting, unless more arrive by then.
    patience: Instant,
}

impl LastBytes {
    /// Those of a socket that broke at `now`.
    pub(crate) fn new(now: Instant) -> Self {
        Self { left: u64::MAX, patience: now }
    }

    /// Moves them by `pipe`, whose source is broken; true when nothing more is to be waited for.
    pub(crate) fn turn(
        &mut self,
        now: Instant,
        pipe: &mut Pipe,
        (source, sink): (&dyn TcpSocket, &dyn TcpSocket),
        scratch: &mut [u8],
        tally: &mut Tally,
    ) -> bool {
        // Whoever looks does not know which of the two has news.
        pipe.sink_is_writable();
        while pipe.has_work() {
            // So few bytes are no matter for a bucket, and nobody is to wait for their tokens.
            match pipe.step(&mut End(source), &mut End(sink), usize::MAX, scratch) {
                Ok(moved) => {
                    tally.read += moved.read as u64;
                    tally.written += moved.written as u64;
                }
                Err(Broken::Source(_) | Broken::Sink(_)) => return true,
            }
        }
        let still = sink.unacknowledged() + pipe.waiting() as u64;
        if still < self.left {
            (self.left, self.patience) = (still, now + BREAKING_PATIENCE);
        }
        (pipe.is_over() && still == 0) || now >= self.patience
    }
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
pub(crate) struct Tally {
    pub(crate) read: u64,
    pub(crate) written: u64,
    /// Of those written, what went towards the satellite.
    pub(super) to_satellite: u64,
}

impl Pair {
    /// A client that was intercepted, and the socket that is being connected for it.
    pub(super) fn new(
        client: Socket,
        server: Socket,
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
            let (pipe, source, sink) = match towards {
                Side::Server => (&mut self.up, &*self.client, &*self.server),
                Side::Client => (&mut self.down, &*self.server, &*self.client),
            };
            // Nothing is read any more where an end was read, and a reset behind it would go
            // unseen.
            if pipe.has_ended()
                && let Some(error) = source.take_error()
            {
                return Turn::Broken(other(towards), error);
            }
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
                match pipe.step(&mut End(source), &mut End(sink), leave, scratch) {
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
        self.phase = Phase::Breaking { towards: other(side), last: LastBytes::new(now) };
    }

    /// Moves the last bytes of a broken connection; true when nothing more is to be waited for.
    pub(super) fn turn_breaking(
        &mut self,
        now: Instant,
        scratch: &mut [u8],
        tally: &mut Tally,
    ) -> bool {
        let Phase::Breaking { towards, last } = &mut self.phase else { return true };
        match towards {
            Side::Server => {
                last.turn(now, &mut self.up, (&*self.client, &*self.server), scratch, tally)
            }
            Side::Client => {
                last.turn(now, &mut self.down, (&*self.server, &*self.client), scratch, tally)
            }
        }
    }

    /// What the kernel has sent again over the satellite since the last look: segments, and bytes.
    pub(super) fn repeated(&mut self) -> (u64, u64) {
        let Some((all, size)) = self.facing().retransmitted() else { return (0, 0) };
        let segments = all.wrapping_sub(self.repeats);
        self.repeats = all;
        (u64::from(segments), u64::from(segments) * u64::from(size))
    }

    /// Whether one of the ends has left TCP without an answer for `longest`.
    pub(super) fn has_vanished(&mut self, now: Instant, longest: Span) -> bool {
        let sockets = [&self.client, &self.server];
        sockets.into_iter().zip(&mut self.owing).any(|(socket, owing)| {
            unresponsive::has_vanished(now, socket.unanswered_for(), owing, longest)
        })
    }

    /// Closes both in good order.
    pub(super) fn close(self) {
        self.client.close(Close::Graceful);
        self.server.close(Close::Graceful);
    }

    /// Resets both.
    pub(super) fn reset(self) {
        self.client.close(Close::Reset);
        self.server.close(Close::Reset);
    }

    fn facing(&self) -> &dyn TcpSocket {
        match self.satellite {
            Side::Client => &*self.client,
            Side::Server => &*self.server,
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

/// A socket at an end of a pipe.
#[derive(Debug)]
pub(crate) struct End<'a>(pub(crate) &'a dyn TcpSocket);

impl Read for End<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for End<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Sink for End<'_> {
    fn end(&mut self) -> io::Result<()> {
        self.0.shutdown_write()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Shutdown, TcpListener, TcpStream as Client};

    /// Two ends of a connection, the second as the loop has it.
    fn ends() -> (Client, Socket) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let one = Client::connect(listener.local_addr().unwrap()).unwrap();
        let (other, _) = listener.accept().unwrap();
        other.set_nonblocking(true).unwrap();
        (one, crate::driver::KernelTcp::from_std(other))
    }

    #[test]
    fn a_client_that_has_ended_and_then_breaks_is_noticed() {
        let ((client, near), (server, far)) = (ends(), ends());
        let addresses = (client.local_addr().unwrap(), server.local_addr().unwrap());
        let mut pair = Pair::new(near, far, addresses, Side::Server, Instant::ZERO);
        let turn = |pair: &mut Pair| {
            pair.ready(Side::Client, true, true);
            pair.turn(Instant::ZERO, None, &mut [0; 4_096], &mut Tally::default())
        };
        client.shutdown(Shutdown::Write).unwrap();
        assert!(matches!(turn(&mut pair), Turn::Wait), "the server has not ended");
        assert!(pair.up.is_over(), "and knows");
        socket2::SockRef::from(&client).set_linger(Some(std::time::Duration::ZERO)).unwrap();
        drop(client);
        assert!(matches!(turn(&mut pair), Turn::Broken(Side::Client, _)));
        pair.broke(Instant::ZERO, Side::Client);
        // Its end is on its way to the server, whose kernel takes a moment to say that it came.
        let over = (0..500).any(|_| {
            std::thread::park_timeout(std::time::Duration::from_millis(5));
            pair.turn_breaking(Instant::ZERO, &mut [0; 4_096], &mut Tally::default())
        });
        assert!(over);
        pair.reset();
        drop(server);
    }
}
