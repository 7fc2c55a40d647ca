//! Two TCP sockets between which bytes are copied.

use crate::engine::host::TcpSocket;
use crate::engine::transfer::last_bytes::{LastBytes, LastSink, Progress, Towards};
use crate::engine::transfer::pipe::{BUDGET, Broken, Moved, Pipe, Sink};
use crate::engine::transfer::token_bucket::TokenBucket;
use crate::engine::transfer::unresponsive;
use std::io::{self, Read, Write};
use units::{Instant, Span};

/// Full segments that one connection sends in a shaped direction before others have their turn.
const QUANTUM: u64 = 8;

/// One of the two sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The socket that was accepted.
    Client,
    /// The socket that was connected.
    Server,
}

impl Side {
    /// Returns the other one.
    pub(crate) fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// Octets that turns have moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) read: u64,
    pub(crate) written: u64,
    /// Those of the written ones that went from a client's socket to a server's.
    pub(crate) to_server: u64,
}

/// A bound on the rate of one direction.
#[derive(Debug)]
pub(crate) struct Shaper<'a> {
    pub(crate) bucket: &'a mut TokenBucket,
    /// The socket to which bytes are written at this rate.
    pub(crate) towards: Side,
    /// Other connections have waited longer for tokens.
    pub(crate) is_queued: bool,
}

/// Result of a turn.
#[derive(Debug)]
pub(crate) enum Turn {
    /// Nothing can be done until a socket is ready.
    Wait,
    /// More can be done at once, after the turns of others.
    More,
    /// Bytes wait for tokens. The other direction may have more to do meanwhile.
    NeedsTokens { more: bool },
    /// Both directions have ended.
    Done,
    /// A socket failed.
    Broken(Side, io::Error),
}

/// The two directions of the connection, and what is known of its ends.
#[derive(Debug)]
pub(crate) struct SocketPair {
    /// From the client to the server.
    up: Pipe,
    down: Pipe,
    /// Set once a socket has failed: the side that receives the last bytes, and these.
    last: Option<(Side, LastBytes)>,
    /// Time since which data to each socket's peer has been unacknowledged.
    unacked_since: [Option<Instant>; 2],
}

impl SocketPair {
    /// A pair whose server first receives `up`, and whose client first receives `down`.
    pub(crate) fn new(up: Vec<u8>, down: Vec<u8>) -> Self {
        Self { up: Pipe::with(up), down: Pipe::with(down), last: None, unacked_since: [None; 2] }
    }

    /// Whether a socket has failed.
    pub(crate) fn is_closing(&self) -> bool {
        self.last.is_some()
    }

    /// Notes that the socket of this side is ready.
    pub(crate) fn on_readiness(&mut self, side: Side, readable: bool, writable: bool) {
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

    /// Moves what can be moved in both directions between the client's socket and the server's.
    pub(crate) fn run(
        &mut self,
        now: Instant,
        [client, server]: [&dyn TcpSocket; 2],
        mut shaper: Option<Shaper<'_>>,
        scratch: &mut [u8],
        tally: &mut Tally,
    ) -> Turn {
        let (mut more, mut needs_tokens) = (false, false);
        for (pipe, towards, source, sink) in [
            (&mut self.down, Side::Client, server, client),
            (&mut self.up, Side::Server, client, server),
        ] {
            // A reset behind an end is not found by reading, which has stopped at the end.
            if pipe.has_ended()
                && let Some(error) = source.take_error()
            {
                return Turn::Broken(towards.other(), error);
            }
            let shaper = shaper.as_mut().filter(|shaper| shaper.towards == towards);
            let before = tally.written;
            let result = run_direction(pipe, now, (source, sink), shaper, scratch, tally);
            if towards == Side::Server {
                tally.to_server += tally.written - before;
            }
            match result {
                Ok(Direction::Waits) => {}
                Ok(Direction::HasMore) => more = true,
                Ok(Direction::NeedsTokens) => needs_tokens = true,
                Err(Broken::Source(error)) => return Turn::Broken(towards.other(), error),
                Err(Broken::Sink(error)) => return Turn::Broken(towards, error),
            }
        }
        if self.up.is_over() && self.down.is_over() {
            Turn::Done
        } else if needs_tokens {
            Turn::NeedsTokens { more }
        } else if more {
            Turn::More
        } else {
            Turn::Wait
        }
    }

    /// Notes that the socket of this side has failed. The bytes that it gave before go to the
    /// other side's socket, which is `sink`.
    pub(crate) fn fail(&mut self, now: Instant, side: Side, sink: &dyn TcpSocket) {
        let pipe = match side {
            Side::Client => &mut self.up,
            Side::Server => &mut self.down,
        };
        let mut pipe = std::mem::replace(pipe, Pipe::new());
        pipe.source_is_broken();
        let last = LastBytes::new(now, pipe, Towards::Socket, sink.unacknowledged());
        self.last = Some((side.other(), last));
    }

    /// Moves the last bytes after a failure, of which no rate is bounded: they are few, and need
    /// not wait for tokens.
    pub(crate) fn run_last_bytes(
        &mut self,
        now: Instant,
        [client, server]: [&dyn TcpSocket; 2],
        scratch: &mut [u8],
        tally: &mut Tally,
    ) -> Progress {
        match &mut self.last {
            Some((Side::Server, last)) => {
                let before = tally.written;
                let progress = last.run(now, &mut End(client), &mut End(server), scratch, tally);
                tally.to_server += tally.written - before;
                progress
            }
            Some((Side::Client, last)) => {
                last.run(now, &mut End(server), &mut End(client), scratch, tally)
            }
            None => Progress::Failed,
        }
    }

    /// Whether a peer of the two sockets has not acknowledged anything for `longest`.
    pub(crate) fn has_vanished(
        &mut self,
        now: Instant,
        sockets: [&dyn TcpSocket; 2],
        longest: Span,
    ) -> bool {
        sockets.into_iter().zip(&mut self.unacked_since).any(|(socket, unacked_since)| {
            unresponsive::has_vanished(now, socket.unanswered_for(), unacked_since, longest)
        })
    }
}

/// What a direction can do next.
enum Direction {
    Waits,
    HasMore,
    NeedsTokens,
}

fn run_direction(
    pipe: &mut Pipe,
    now: Instant,
    (source, sink): (&dyn TcpSocket, &dyn TcpSocket),
    mut shaper: Option<&mut Shaper<'_>>,
    scratch: &mut [u8],
    tally: &mut Tally,
) -> Result<Direction, Broken> {
    let segments = |shaper: &Shaper<'_>| (QUANTUM * shaper.bucket.segment()) as usize;
    let mut budget = shaper.as_deref().map_or(BUDGET, segments);
    while pipe.has_work() {
        if budget == 0 {
            return Ok(Direction::HasMore);
        }
        let leave = match &mut shaper {
            Some(shaper) if shaper.is_queued => 0,
            Some(shaper) => leave(shaper.bucket, now, pipe.waiting()).min(budget),
            None => budget,
        };
        let Moved { read, written } =
            pipe.step(&mut End(source), &mut End(sink), leave, scratch)?;
        tally.read += read as u64;
        tally.written += written as u64;
        budget -= written;
        if let Some(shaper) = &mut shaper {
            shaper.bucket.take(now, written as u64);
        }
        if read == 0 && written == 0 && leave == 0 && pipe.wants_to_write() {
            return Ok(Direction::NeedsTokens);
        }
    }
    Ok(Direction::Waits)
}

/// Returns how many of `waiting` octets have tokens: full segments, or all of them.
fn leave(bucket: &mut TokenBucket, now: Instant, waiting: usize) -> usize {
    let payload = usize::try_from(bucket.payload(now)).unwrap_or(usize::MAX);
    let segment = bucket.segment() as usize;
    if payload >= waiting { waiting } else { payload / segment * segment }
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

impl LastSink for End<'_> {
    fn undelivered(&mut self) -> u64 {
        self.0.unacknowledged()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::host::Socket;
    use std::net::{Shutdown, TcpListener, TcpStream as Client};

    /// Returns two ends of a connection, the second as the engine has it.
    fn ends() -> (Client, Socket) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let one = Client::connect(listener.local_addr().unwrap()).unwrap();
        let (other, _) = listener.accept().unwrap();
        other.set_nonblocking(true).unwrap();
        (one, crate::driver::KernelTcp::from_std(other))
    }

    #[test]
    fn a_client_that_has_ended_and_then_fails_is_noticed() {
        let ((client, near), (server, far)) = (ends(), ends());
        let sockets: [&dyn TcpSocket; 2] = [&*near, &*far];
        let mut pair = SocketPair::new(Vec::new(), Vec::new());
        let (mut scratch, mut tally) = ([0; 4_096], Tally::default());
        let mut run = |pair: &mut SocketPair| {
            pair.on_readiness(Side::Client, true, true);
            pair.run(Instant::ZERO, sockets, None, &mut scratch, &mut tally)
        };
        client.shutdown(Shutdown::Write).unwrap();
        assert!(matches!(run(&mut pair), Turn::Wait), "the server has not ended");
        assert!(pair.up.is_over(), "the end was passed on");
        socket2::SockRef::from(&client).set_linger(Some(std::time::Duration::ZERO)).unwrap();
        drop(client);
        assert!(matches!(run(&mut pair), Turn::Broken(Side::Client, _)));
        pair.fail(Instant::ZERO, Side::Client, sockets[1]);
        // The kernel takes a moment to report that the server has acknowledged the end.
        let is_over = (0..500).any(|_| {
            std::thread::park_timeout(std::time::Duration::from_millis(5));
            pair.run_last_bytes(Instant::ZERO, sockets, &mut scratch, &mut tally)
                == Progress::Delivered
        });
        assert!(is_over);
        drop(server);
    }
}
