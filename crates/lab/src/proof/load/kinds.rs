//! The tasks of single connections.

use rt::Clock;
use socket2::SockRef;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;
use testbed::content::Content;
use testbed::traffic::{Way, connect};
use units::{Instant, RngStream, Span};

/// Time limit for opening a connection.
const OPENING: Duration = Duration::from_secs(3);
/// Time limit without progress.
const PATIENCE: Span = Span::from_secs(60);

/// The task of one connection in the protocol of [`testbed::traffic`]. Sizes are in octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// A request and its response; with `half` the client sends a FIN before it reads.
    Ask { rest: u64, response: u64, half: bool },
    /// A download; with `slow` the client reads slowly.
    Download { seed: u64, bytes: u64, slow: bool },
    /// A download that the client resets after `until` octets.
    LeaveDownload { seed: u64, bytes: u64, until: u64 },
    /// An upload with a FIN, and the server's count and checksum.
    Upload { seed: u64, bytes: u64 },
    /// An upload that the client resets after `until` octets.
    LeaveUpload { seed: u64, bytes: u64, until: u64 },
}

/// The end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Complete { bytes: u64 },
    Reset,
    Refused(String),
    Left,
    Truncated { at: u64 },
    Wrong { at: u64 },
    Hung { at: u64 },
}

impl Task {
    /// Returns the task of connection `number`; one of `long` is long.
    pub(super) fn draw(run: u64, number: u64, long: u64) -> Self {
        let mut random = RngStream::new(run, number, "load");
        let seed = number;
        if number.is_multiple_of(long) {
            let bytes = 2_000_000 + random.below(6_000_000);
            return match random.below(3) {
                0 => Self::Upload { seed, bytes },
                _ => Self::Download { seed, bytes, slow: false },
            };
        }
        let middle = 5_000 + random.below(200_000);
        let until = random.below(middle);
        match random.below(100) {
            0..55 => {
                let (rest, response) = (random.below(2_000), 1 + random.below(20_000));
                Self::Ask { rest, response, half: random.chance(0.2) }
            }
            55..72 => Self::Download { seed, bytes: middle, slow: false },
            72..78 => Self::Download { seed, bytes: middle, slow: true },
            78..84 => Self::LeaveDownload { seed, bytes: middle * 10, until },
            84..94 => Self::Upload { seed, bytes: middle },
            _ => Self::LeaveUpload { seed, bytes: middle, until },
        }
    }

    /// Returns the upload of this task: its identifier and complete size in octets.
    pub(super) fn upload(&self) -> Option<(u64, u64)> {
        match *self {
            Self::Upload { seed, bytes } | Self::LeaveUpload { seed, bytes, .. } => {
                Some((seed, bytes))
            }
            Self::Ask { .. } | Self::Download { .. } | Self::LeaveDownload { .. } => None,
        }
    }

    /// Opens the connection and performs the task.
    pub(super) fn run(&self, way: Way, server: SocketAddr) -> Ended {
        match connect(way, server, OPENING) {
            Ok(stream) => {
                let mut run = Run { stream, at: 0, clock: Clock::new() };
                run.perform(self).unwrap_or_else(|ended| ended)
            }
            Err(error) => Ended::Refused(error.to_string()),
        }
    }
}

struct Run {
    stream: TcpStream,
    /// Octets transferred so far.
    at: u64,
    clock: Clock,
}

impl Run {
    fn perform(&mut self, task: &Task) -> Result<Ended, Ended> {
        let look_up = Some(Duration::from_millis(200));
        let set = self.stream.set_read_timeout(look_up).and(self.stream.set_write_timeout(look_up));
        set.map_err(|error| Ended::Refused(error.to_string()))?;
        match *task {
            Task::Ask { rest, response, half } => {
                self.say(format!("ASK {rest} {response}\n").as_bytes())?;
                self.send(Content::new(rest), rest)?;
                if half {
                    self.end_half()?;
                }
                self.at = 0;
                self.receive(Content::new(rest), response, false)?;
            }
            Task::Download { seed, bytes, slow } => {
                self.say(format!("GET {bytes} {seed} -\n").as_bytes())?;
                self.receive(Content::new(seed), bytes, slow)?;
            }
            Task::LeaveDownload { seed, bytes, until } => {
                self.say(format!("GET {bytes} {seed} -\n").as_bytes())?;
                self.receive(Content::new(seed), until, false)?;
                return self.leave();
            }
            Task::Upload { seed, bytes } => {
                self.say(format!("PUT {seed}\n").as_bytes())?;
                self.send(Content::new(seed), bytes)?;
                self.end_half()?;
                self.hear_answer(seed, bytes)?;
            }
            Task::LeaveUpload { seed, until, .. } => {
                self.say(format!("PUT {seed}\n").as_bytes())?;
                self.send(Content::new(seed), until)?;
                return self.leave();
            }
        }
        Ok(Ended::Complete { bytes: self.at })
    }

    fn say(&mut self, words: &[u8]) -> Result<(), Ended> {
        self.stream.write_all(words).map_err(|error| self.broken(&error))
    }

    fn end_half(&mut self) -> Result<(), Ended> {
        self.stream.shutdown(Shutdown::Write).map_err(|error| self.broken(&error))
    }

    /// Ended by a reset.
    fn leave(&mut self) -> Result<Ended, Ended> {
        let _ = SockRef::from(&self.stream).set_linger(Some(Duration::ZERO));
        Ok(Ended::Left)
    }

    fn send(&mut self, content: Content, bytes: u64) -> Result<(), Ended> {
        let mut block = [0; 16 << 10];
        let (mut sent, mut last) = (0, self.clock.now());
        while sent < bytes {
            let take = usize::try_from(bytes - sent).unwrap_or(block.len()).min(block.len());
            content.fill(sent, &mut block[..take]);
            match self.stream.write(&block[..take]) {
                Ok(count) => {
                    sent += count as u64;
                    self.at = sent;
                    last = self.clock.now();
                }
                Err(error) => self.bear(&error, last)?,
            }
        }
        Ok(())
    }

    fn receive(&mut self, content: Content, bytes: u64, slow: bool) -> Result<(), Ended> {
        let mut block = vec![0; if slow { 4 << 10 } else { 64 << 10 }];
        let mut expected = block.clone();
        let mut last = self.clock.now();
        while self.at < bytes {
            let take = usize::try_from(bytes - self.at).unwrap_or(block.len()).min(block.len());
            match self.stream.read(&mut block[..take]) {
                Ok(0) => return Err(Ended::Truncated { at: self.at }),
                Ok(count) => {
                    content.fill(self.at, &mut expected[..count]);
                    if block[..count] != expected[..count] {
                        return Err(Ended::Wrong { at: self.at });
                    }
                    self.at += count as u64;
                    last = self.clock.now();
                    if slow {
                        super::super::sleep_ms(20);
                    }
                }
                Err(error) => self.bear(&error, last)?,
            }
        }
        Ok(())
    }

    /// Reads the server's count of received octets and their checksum.
    fn hear_answer(&mut self, seed: u64, bytes: u64) -> Result<(), Ended> {
        let mut answer = Vec::new();
        let last = self.clock.now();
        while answer.last() != Some(&b'\n') {
            let mut octet = [0; 64];
            match self.stream.read(&mut octet) {
                Ok(0) => return Err(Ended::Truncated { at: bytes }),
                Ok(count) => answer.extend_from_slice(&octet[..count]),
                Err(error) => self.bear(&error, last)?,
            }
        }
        let right = format!("{bytes} {:016x}\n", Content::new(seed).checksum(bytes));
        if answer == right.as_bytes() { Ok(()) } else { Err(Ended::Wrong { at: bytes }) }
    }

    /// Classifies an I/O error: retry, or an end.
    fn bear(&self, error: &io::Error, last: Instant) -> Result<(), Ended> {
        match error.kind() {
            io::ErrorKind::Interrupted => Ok(()),
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                let waits = self.clock.now().since(last) < PATIENCE;
                if waits { Ok(()) } else { Err(Ended::Hung { at: self.at }) }
            }
            _ => Err(self.broken(error)),
        }
    }

    fn broken(&self, error: &io::Error) -> Ended {
        match error.kind() {
            io::ErrorKind::ConnectionReset
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::ConnectionAborted => Ended::Reset,
            // The kernel's timeout of an unanswered connection.
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Ended::Hung { at: self.at },
            _ => Ended::Refused(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_kinds_occur_and_a_number_determines_the_task() {
        let tasks: Vec<Task> = (1..2_000).map(|number| Task::draw(1, number, 100)).collect();
        assert_eq!(tasks[41], Task::draw(1, 42, 100));
        let has = |kind: fn(&Task) -> bool| assert!(tasks.iter().any(kind));
        has(|task| matches!(task, Task::Ask { half: true, .. }));
        has(|task| matches!(task, Task::Download { slow: true, .. }));
        has(|task| matches!(task, Task::Download { bytes: 2_000_000.., .. }));
        has(|task| matches!(task, Task::LeaveDownload { .. }));
        has(|task| matches!(task, Task::Upload { bytes: 2_000_000.., .. }));
        has(|task| matches!(task, Task::LeaveUpload { .. }));
        for task in tasks {
            if let Task::LeaveDownload { bytes, until, .. }
            | Task::LeaveUpload { bytes, until, .. } = task
            {
                assert!(until < bytes);
            }
        }
    }
}
