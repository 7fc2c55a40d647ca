//! One direction of a connection between two ends.

use crate::engine::transfer::unresponsive::is_later;
use std::io::{self, Read, Write};

/// Bytes that one connection moves in each direction before others have their turn.
pub(crate) const BUDGET: usize = 64 * 1024;
/// Maximum octets that are buffered between the ends.
const ROOM: usize = 64 * 1024;

/// Bytes that were read and not written yet, and the state of both ends.
#[derive(Debug)]
pub(crate) struct Pipe {
    buffer: Vec<u8>,
    /// Octets of the buffer that were written.
    start: usize,
    /// The source may have bytes or an end to read.
    readable: bool,
    /// The sink may have room.
    writable: bool,
    /// Whether the source's end was read.
    ended: bool,
    /// The end was passed on to the sink.
    shut: bool,
    /// The source failed: its last bytes are moved, and no end is passed on.
    broken: bool,
}

/// The end to which a pipe writes.
pub(crate) trait Sink: Write {
    /// Ends the written direction.
    fn end(&mut self) -> io::Result<()>;
}

/// Octets moved by a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moved {
    /// Bytes read from the source.
    pub(crate) read: usize,
    /// Bytes written to the sink.
    pub(crate) written: usize,
}

/// The end that failed.
#[derive(Debug)]
pub(crate) enum Broken {
    /// The source.
    Source(io::Error),
    /// The sink.
    Sink(io::Error),
}

impl Pipe {
    /// An empty pipe, both ends of which are tried at once.
    pub(crate) fn new() -> Self {
        Self {
            buffer: Vec::new(),
            start: 0,
            readable: true,
            writable: true,
            ended: false,
            shut: false,
            broken: false,
        }
    }

    /// A pipe with `bytes` that were read already.
    pub(crate) fn with(bytes: Vec<u8>) -> Self {
        Self { buffer: bytes, ..Self::new() }
    }

    /// Notes that the source is readable.
    pub(crate) fn source_is_readable(&mut self) {
        self.readable = true;
    }

    /// Notes that the sink is writable.
    pub(crate) fn sink_is_writable(&mut self) {
        self.writable = true;
    }

    /// Whether everything was moved, and the end passed on.
    pub(crate) fn is_over(&self) -> bool {
        self.shut
    }

    /// Whether the source's end was read.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Returns the number of buffered octets.
    pub(crate) fn waiting(&self) -> usize {
        self.buffer.len() - self.start
    }

    /// Whether buffered bytes could be written now.
    pub(crate) fn wants_to_write(&self) -> bool {
        self.writable && self.waiting() > 0
    }

    /// Whether a call of [`Pipe::step`] could have an effect.
    pub(crate) fn has_work(&self) -> bool {
        self.wants_to_write()
            || (self.readable && !self.ended && self.waiting() < ROOM)
            || (self.ended && self.waiting() == 0 && !self.shut)
    }

    /// Reads once if there is room and writes once, at most `leave` octets. `scratch` is room for
    /// one read.
    pub(crate) fn step(
        &mut self,
        source: &mut impl Read,
        sink: &mut impl Sink,
        leave: usize,
        scratch: &mut [u8],
    ) -> Result<Moved, Broken> {
        let mut moved = Moved { read: 0, written: 0 };
        let room = ROOM.saturating_sub(self.waiting()).min(scratch.len());
        if self.readable && !self.ended && room > 0 {
            moved.read = self.read(source, &mut scratch[..room]).map_err(Broken::Source)?;
        }
        let leave = leave.min(self.waiting());
        if self.writable && leave > 0 {
            moved.written = self.write(sink, leave).map_err(Broken::Sink)?;
        }
        if self.ended && self.waiting() == 0 && !self.shut {
            self.shut = true;
            if !self.broken {
                sink.end().map_err(Broken::Sink)?;
            }
        }
        Ok(moved)
    }

    /// Notes that the source failed. Its remaining bytes are moved, and the owner of the pipe
    /// resets the sink.
    pub(crate) fn source_is_broken(&mut self) {
        self.broken = true;
        self.readable = true;
    }

    fn read(&mut self, source: &mut impl Read, scratch: &mut [u8]) -> io::Result<usize> {
        match source.read(scratch) {
            Ok(0) => {
                self.ended = true;
                Ok(0)
            }
            Ok(count) => {
                self.buffer.extend_from_slice(&scratch[..count]);
                Ok(count)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            Err(error) if is_later(&error) => {
                self.readable = false;
                self.ended |= self.broken;
                Ok(0)
            }
            Err(_) if self.broken => {
                self.ended = true;
                Ok(0)
            }
            Err(error) => Err(error),
        }
    }

    fn write(&mut self, sink: &mut impl Write, leave: usize) -> io::Result<usize> {
        match sink.write(&self.buffer[self.start..self.start + leave]) {
            Ok(count) => {
                self.start += count;
                self.tidy();
                Ok(count)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            Err(error) if is_later(&error) => {
                self.writable = false;
                Ok(0)
            }
            Err(error) => Err(error),
        }
    }

    /// Frees the memory of an idle connection, and moves the contents of a busy one rarely.
    fn tidy(&mut self) {
        if self.start == self.buffer.len() {
            self.start = 0;
            self.buffer.clear();
            if self.ended || !self.readable {
                self.buffer = Vec::new();
            }
        } else if self.start >= ROOM {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hands out `bytes`, a few at a time, then says "later" until `ended`.
    struct Source {
        bytes: Vec<u8>,
        at: usize,
        ended: bool,
        broken: bool,
    }

    impl Read for Source {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let count = into.len().min(self.bytes.len() - self.at).min(1000);
            if count == 0 {
                return match (self.broken, self.ended) {
                    (true, _) => Err(io::ErrorKind::ConnectionReset.into()),
                    (false, true) => Ok(0),
                    (false, false) => Err(io::ErrorKind::WouldBlock.into()),
                };
            }
            into[..count].copy_from_slice(&self.bytes[self.at..self.at + count]);
            self.at += count;
            Ok(count)
        }
    }

    /// Takes up to `room` bytes, then says "later".
    #[derive(Default)]
    struct Taker {
        bytes: Vec<u8>,
        room: usize,
        ended: u32,
    }

    impl Write for Taker {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = bytes.len().min(self.room);
            if count == 0 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            self.room -= count;
            self.bytes.extend_from_slice(&bytes[..count]);
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Sink for Taker {
        fn end(&mut self) -> io::Result<()> {
            self.ended += 1;
            Ok(())
        }
    }

    fn source(count: usize) -> Source {
        let bytes = (0..count).map(|number| (number % 251) as u8).collect();
        Source { bytes, at: 0, ended: true, broken: false }
    }

    fn run(pipe: &mut Pipe, source: &mut Source, sink: &mut Taker, leave: usize) {
        let mut scratch = [0; 4096];
        for _ in 0..10_000 {
            if !pipe.has_work() {
                return;
            }
            pipe.step(source, sink, leave, &mut scratch).unwrap();
        }
        panic!("a pipe that always has work");
    }

    #[test]
    fn everything_arrives_in_order_and_then_the_end_once() {
        let (mut pipe, mut from) = (Pipe::new(), source(300_000));
        let mut to = Taker { room: usize::MAX, ..Taker::default() };
        run(&mut pipe, &mut from, &mut to, 777);
        assert!(to.bytes == from.bytes && to.ended == 1 && pipe.is_over());
    }

    #[test]
    fn a_sink_that_is_full_holds_the_source_back() {
        let (mut pipe, mut from) = (Pipe::new(), source(300_000));
        let mut to = Taker { room: 10_000, ..Taker::default() };
        run(&mut pipe, &mut from, &mut to, usize::MAX);
        assert_eq!((to.bytes.len(), to.ended), (10_000, 0));
        assert!(pipe.waiting() <= ROOM && from.at <= 10_000 + ROOM);
        while !pipe.is_over() {
            to.room = 5_000;
            pipe.sink_is_writable();
            run(&mut pipe, &mut from, &mut to, usize::MAX);
        }
        assert!(to.bytes == from.bytes && to.ended == 1);
    }

    #[test]
    fn without_leave_nothing_is_written() {
        let (mut pipe, mut from) = (Pipe::new(), source(100));
        let mut to = Taker { room: usize::MAX, ..Taker::default() };
        for _ in 0..5 {
            pipe.step(&mut from, &mut to, 0, &mut [0; 4096]).unwrap();
        }
        assert!(to.bytes.is_empty() && to.ended == 0 && pipe.wants_to_write());
        run(&mut pipe, &mut from, &mut to, 10);
        assert_eq!(to.bytes, from.bytes);
    }

    #[test]
    fn what_came_before_a_reset_is_written_and_no_end_follows() {
        let (mut pipe, mut from) = (Pipe::new(), source(2_500));
        from.broken = true;
        let mut to = Taker { room: usize::MAX, ..Taker::default() };
        let broken = loop {
            if let Err(broken) = pipe.step(&mut from, &mut to, 100, &mut [0; 4096]) {
                break broken;
            }
        };
        assert!(matches!(broken, Broken::Source(_)));
        pipe.source_is_broken();
        run(&mut pipe, &mut from, &mut to, 100);
        assert!(to.bytes == from.bytes && to.ended == 0);
    }
}
