//! The last bytes of a connection of which one end was reset.
//!
//! ```text
//!   reset end: bytes, then its reset ──▶ other end: bytes, as fast as it takes them,
//!                                                   and once it has all of them: a reset
//! ```
//!
//! A server that answers and closes without having read the whole request resets, and so does a
//! client that closes with an answer unread. The bytes that came before must not be lost, neither
//! here nor in a send buffer, which a reset discards. Progress is counted in delivered octets and
//! not in those that are left: the reset end may yield more bytes meanwhile, so that what is left
//! grows although the other end receives.

use crate::engine::defect::{self, Defect};
use crate::engine::transfer::pipe::{BUDGET, Pipe, Sink};
use crate::engine::transfer::socket_pair::Tally;
use std::io::Read;
use units::{Instant, Span};

/// Minimum and maximum interval between checks of the delivery, which is not reported by events.
const CHECKS: (Span, Span) = (Span::from_millis(50), Span::from_secs(1));
/// Maximum time without progress towards a stream that does not wait for the link. A server that
/// does not read prevents progress for ever.
const STREAM_PATIENCE: Span = Span::from_secs(3);
/// Maximum time without progress towards a socket: longer than a few retransmission timeouts of
/// its TCP.
const SOCKET_PATIENCE: Span = Span::from_secs(10);

/// The end that receives the last bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Towards {
    Socket,
    Stream,
}

/// The end that receives them, as this module uses it.
pub(crate) trait LastSink: Sink {
    /// Returns the number of octets written that are not known to be delivered.
    fn undelivered(&mut self) -> u64;

    /// Whether the lack of progress, which has lasted for `stalled`, is due to the link and not to
    /// the end behind it.
    fn waits_for_link(&mut self, stalled: Span) -> bool {
        let _ = stalled;
        false
    }
}

/// How far the delivery is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// More can be moved at once, after the turns of others.
    More,
    /// Octets are still undelivered: to be run again at this time.
    Pending(Instant),
    /// All octets are delivered.
    Delivered,
    /// There was no progress for too long.
    Expired,
    /// The receiving end failed.
    Failed,
}

/// The last bytes, and how many of them are delivered.
#[derive(Debug)]
pub(crate) struct LastBytes {
    pipe: Pipe,
    towards: Towards,
    since: Instant,
    /// Octets that were undelivered at the reset, and those written since.
    written: u64,
    /// How many of these are delivered.
    delivered: u64,
    progress_at: Instant,
    deadline: Instant,
}

impl LastBytes {
    /// Bytes of `pipe`, to an end that has `undelivered` octets already.
    pub(crate) fn new(now: Instant, pipe: Pipe, towards: Towards, undelivered: u64) -> Self {
        let deadline = now + patience(towards);
        let (written, since, progress_at) = (undelivered, now, now);
        Self { pipe, towards, since, written, delivered: 0, progress_at, deadline }
    }

    /// Returns which end receives them.
    pub(crate) fn towards(&self) -> Towards {
        self.towards
    }

    /// Notes that the source is gone, so that no more bytes will come than can be read now.
    pub(crate) fn source_is_gone(&mut self) {
        self.pipe.source_is_broken();
    }

    /// Moves what can be moved from `source` to `sink`. `scratch` is room for one read.
    pub(crate) fn run(
        &mut self,
        now: Instant,
        source: &mut impl Read,
        sink: &mut impl LastSink,
        scratch: &mut [u8],
        tally: &mut Tally,
    ) -> Progress {
        // The caller does not distinguish the readiness of the two ends.
        self.pipe.source_is_readable();
        self.pipe.sink_is_writable();
        let mut budget = BUDGET;
        while self.pipe.has_work() {
            if budget == 0 {
                return Progress::More;
            }
            let Ok(moved) = self.pipe.step(source, sink, budget, scratch) else {
                return Progress::Failed;
            };
            budget -= moved.written;
            tally.read += moved.read as u64;
            tally.written += moved.written as u64;
            self.written += moved.written as u64;
        }
        let left = sink.undelivered();
        let delivered = self.written.saturating_sub(left);
        if defect::has(Defect::ImpatientReset) {
            // They have no more time.
        } else if delivered > self.delivered {
            (self.delivered, self.progress_at) = (delivered, now);
            self.deadline = now + patience(self.towards);
        } else if sink.waits_for_link(now.since(self.progress_at)) {
            self.deadline = now + patience(self.towards);
        }
        if self.pipe.is_over() && left == 0 {
            Progress::Delivered
        } else if now >= self.deadline {
            Progress::Expired
        } else {
            Progress::Pending(now + (now.since(self.since) / 4).clamp(CHECKS.0, CHECKS.1))
        }
    }
}

fn patience(towards: Towards) -> Span {
    match towards {
        Towards::Socket => SOCKET_PATIENCE,
        Towards::Stream => STREAM_PATIENCE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{self, Write};

    /// Yields `left` octets, some in each read, and then the reset.
    struct Source {
        left: usize,
    }

    impl Read for Source {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let count = into.len().min(self.left);
            self.left -= count;
            if count == 0 { Err(io::ErrorKind::ConnectionReset.into()) } else { Ok(count) }
        }
    }

    /// Holds at most `room` octets that its peer has not acknowledged.
    struct Taker {
        held: usize,
        room: usize,
        /// What it holds waits for the link.
        waits: bool,
    }

    impl Write for Taker {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = bytes.len().min(self.room - self.held);
            self.held += count;
            if count == 0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(count) }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Sink for Taker {
        fn end(&mut self) -> io::Result<()> {
            panic!("an orderly end of a connection that was reset")
        }
    }

    impl LastSink for Taker {
        fn undelivered(&mut self) -> u64 {
            self.held as u64
        }

        fn waits_for_link(&mut self, _: Span) -> bool {
            self.waits
        }
    }

    fn broken() -> Pipe {
        let mut pipe = Pipe::new();
        pipe.source_is_broken();
        pipe
    }

    #[test]
    fn slow_receivers_get_all_bytes_while_what_is_left_does_not_shrink() {
        // Each second the receiver acknowledges 1,000 octets, and as many more are written.
        let (mut source, mut sink) =
            (Source { left: 100_000 }, Taker { held: 0, room: 10_000, waits: false });
        let mut last = LastBytes::new(Instant::ZERO, broken(), Towards::Socket, 0);
        let mut tally = Tally::default();
        let mut scratch = [0; 4_096];
        for second in 0..99 {
            let now = Instant::ZERO + Span::from_secs(second);
            let progress = last.run(now, &mut source, &mut sink, &mut scratch, &mut tally);
            assert!(
                matches!(progress, Progress::Pending(at) if at > now),
                "{second}: {progress:?}"
            );
            sink.held -= 1_000;
        }
        sink.held = 0;
        let now = Instant::ZERO + Span::from_secs(100);
        let progress = last.run(now, &mut source, &mut sink, &mut scratch, &mut tally);
        assert_eq!((progress, tally.written), (Progress::Delivered, 100_000));
    }

    #[test]
    fn a_fast_receiver_leaves_turns_to_others() {
        let (mut source, mut sink) =
            (Source { left: 10 * BUDGET }, Taker { held: 0, room: usize::MAX, waits: false });
        let mut last = LastBytes::new(Instant::ZERO, broken(), Towards::Socket, 0);
        let mut scratch = [0; 4_096];
        for turn in 1..=10 {
            let mut tally = Tally::default();
            let progress =
                last.run(Instant::ZERO, &mut source, &mut sink, &mut scratch, &mut tally);
            assert_eq!((progress, tally.written), (Progress::More, BUDGET as u64), "turn {turn}");
        }
        sink.held = 0;
        let (now, mut tally) = (Instant::ZERO, Tally::default());
        let progress = last.run(now, &mut source, &mut sink, &mut scratch, &mut tally);
        assert_eq!((progress, tally.written), (Progress::Delivered, 0));
    }

    #[test]
    fn bytes_that_wait_for_the_link_have_more_time() {
        let (mut source, mut sink) =
            (Source { left: 100 }, Taker { held: 7, room: 7, waits: true });
        let mut last = LastBytes::new(Instant::ZERO, broken(), Towards::Stream, 7);
        for second in 0..60 {
            let now = Instant::ZERO + Span::from_secs(second);
            let (scratch, mut tally) = (&mut [0; 64], Tally::default());
            let progress = last.run(now, &mut source, &mut sink, scratch, &mut tally);
            assert!(matches!(progress, Progress::Pending(_)), "{second}: {progress:?}");
        }
    }

    #[test]
    fn receivers_that_take_nothing_are_given_up() {
        for (towards, patience) in
            [(Towards::Socket, SOCKET_PATIENCE), (Towards::Stream, STREAM_PATIENCE)]
        {
            let (mut source, mut sink) =
                (Source { left: 100 }, Taker { held: 7, room: 7, waits: false });
            let mut last = LastBytes::new(Instant::ZERO, broken(), towards, 7);
            let mut run =
                |now| last.run(now, &mut source, &mut sink, &mut [0; 64], &mut Tally::default());
            let end = Instant::ZERO + patience;
            let before = Instant::ZERO + (patience - Span::from_millis(1));
            assert!(matches!(run(before), Progress::Pending(_)));
            assert_eq!(run(end), Progress::Expired);
        }
    }
}
