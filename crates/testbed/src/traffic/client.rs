//! Downloads, uploads and single requests, with their measurements.

use super::{Way, connect, connect::clamp, set_congestion};
use crate::content::{Checksum, Content};
use rt::Clock;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use units::{Instant, Span};

/// Minimum interval between samples.
const SAMPLING: Span = Span::from_millis(10);
/// Read timeout after which the client checks its limits.
const LOOK_UP: Duration = Duration::from_millis(50);

/// When a client stops.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Time after the first octet.
    pub after_first_byte: Span,
    /// Time after its start.
    pub overall: Span,
}

/// The shared state of a running transfer, by which it can be observed and stopped.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    shared: Arc<(AtomicU64, AtomicBool)>,
}

impl Progress {
    /// Bytes so far.
    pub fn bytes(&self) -> u64 {
        self.shared.0.load(Ordering::Relaxed)
    }

    /// Stops the transfer soon.
    pub fn stop(&self) {
        self.shared.1.store(true, Ordering::Relaxed);
    }

    fn set(&self, bytes: u64) {
        self.shared.0.store(bytes, Ordering::Relaxed);
    }

    fn stopped(&self) -> bool {
        self.shared.1.load(Ordering::Relaxed)
    }
}

/// Octets received until a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Time since the transfer's start.
    pub at: Span,
    /// Bytes so far.
    pub bytes: u64,
}

/// Results of a bulk transfer.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// Start (the call of `connect`), in the time of [`Clock::new`].
    pub started: Instant,
    /// Time from the start to an open connection.
    pub connected: Option<Span>,
    /// Time from the start to the first octet.
    pub first_byte: Option<Span>,
    /// Time from the start to the end.
    pub ended: Span,
    /// Octets received.
    pub bytes: u64,
    /// Whether the whole file was received.
    pub complete: bool,
    /// Whether the received octets are those sent: the checksum matches that of the file, or of the
    /// received prefix if the transfer was stopped.
    pub matches: bool,
    /// The checksum of the received octets (of none, for uploads).
    pub checksum: u64,
    /// Samples, for plots.
    pub series: Vec<Sample>,
    /// What ended it early.
    pub error: Option<String>,
}

impl Transfer {
    /// Bits per second over `window` from the first octet on, or until the end if the transfer
    /// completed earlier. Zero without data.
    pub fn goodput(&self, window: Span) -> f64 {
        let Some(first) = self.first_byte else { return 0.0 };
        let full = self.ended.saturating_sub(first);
        let window = if self.complete { window.min(full) } else { window };
        if window.is_zero() {
            return 0.0;
        }
        let before = |at: Span| {
            let count = self.series.partition_point(|sample| sample.at <= at);
            count.checked_sub(1).map_or(0, |last| self.series[last].bytes)
        };
        before(first + window) as f64 * 8.0 / window.as_secs_f64()
    }
}

/// A file on a [`super::FileServer`], and the sender's congestion control.
#[derive(Clone, Copy, Debug)]
pub struct File<'a> {
    /// Its seed.
    pub seed: u64,
    /// Its length; `u64::MAX`: unlimited.
    pub bytes: u64,
    /// The sender's congestion control; `-` for its kernel's default.
    pub congestion: &'a str,
}

/// Downloads `file` from `server`.
pub fn download(
    way: Way,
    server: SocketAddr,
    file: File<'_>,
    limits: Limits,
    progress: &Progress,
) -> Transfer {
    let mut run = Running::new(limits, progress);
    run.window = match way {
        Way::Buffered(buffer) => Some(buffer.window),
        Way::Direct | Way::Socks5(_) => None,
    };
    let outcome = run.open(way, server).and_then(|mut stream| {
        let File { seed, bytes, congestion } = file;
        stream.write_all(format!("GET {bytes} {seed} {congestion}\n").as_bytes())?;
        run.receive(&mut stream, bytes)
    });
    let mut transfer = run.finish(outcome);
    transfer.complete = transfer.bytes == file.bytes;
    transfer.matches = Content::new(file.seed).checksum(transfer.bytes) == transfer.checksum;
    transfer
}

/// Uploads `file` to `server` and waits for its confirmation.
pub fn upload(
    way: Way,
    server: SocketAddr,
    file: File<'_>,
    limits: Limits,
    progress: &Progress,
) -> Transfer {
    let mut run = Running::new(limits, progress);
    let mut answer = String::new();
    let outcome = run.open(way, server).and_then(|mut stream| {
        set_congestion(&stream, file.congestion)?;
        stream.write_all(format!("PUT {}\n", file.seed).as_bytes())?;
        run.first_byte = Some(run.elapsed());
        run.send(&mut stream, file)?;
        stream.shutdown(Shutdown::Write)?;
        run.wait_for(&mut stream, |stream| stream.read_to_string(&mut answer)).map(drop)
    });
    let sent = run.bytes;
    let mut transfer = run.finish(outcome);
    transfer.complete = sent == file.bytes;
    let expected = format!("{sent} {:016x}", Content::new(file.seed).checksum(sent));
    transfer.matches = answer.trim() == expected;
    transfer
}

/// Result of a request and its response.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// From the call of `connect` to the response's last octet; `None` if it failed.
    pub took: Option<Span>,
    /// The error.
    pub error: Option<String>,
}

/// Connects, sends `request` bytes (at least 24) and waits for `response` bytes.
pub fn ask(
    way: Way,
    server: SocketAddr,
    (request, response): (usize, usize),
    patience: Span,
) -> Exchange {
    let progress = Progress::default();
    let mut run = Running::new(Limits { after_first_byte: patience, overall: patience }, &progress);
    let mut body = vec![0; response];
    let outcome = run.open(way, server).and_then(|mut stream| {
        stream.write_all(&ask_line(request, response))?;
        let mut filled = 0;
        while filled < body.len() {
            match run.wait_for(&mut stream, |stream| stream.read(&mut body[filled..]))? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                n => filled += n,
            }
        }
        Ok(())
    });
    match outcome {
        Ok(()) => Exchange { took: Some(run.elapsed()), error: None },
        Err(error) => Exchange { took: None, error: Some(error.to_string()) },
    }
}

/// A request of `length` octets in all: a line, and padding whose length is in the line.
fn ask_line(length: usize, response: usize) -> Vec<u8> {
    // Always eight digits, so that the line's length does not depend on the number.
    let line = |rest: usize| format!("ASK {rest:08} {response}\n");
    let rest = length.saturating_sub(line(0).len());
    let mut bytes = line(rest).into_bytes();
    bytes.resize(bytes.len() + rest, b'.');
    bytes
}

/// A running transfer.
struct Running<'a> {
    clock: Clock,
    limits: Limits,
    progress: &'a Progress,
    started: Instant,
    connected: Option<Span>,
    first_byte: Option<Span>,
    bytes: u64,
    sum: Checksum,
    series: Vec<Sample>,
    /// The maximum receive window to advertise.
    window: Option<u32>,
}

impl<'a> Running<'a> {
    fn new(limits: Limits, progress: &'a Progress) -> Self {
        let clock = Clock::new();
        Self {
            clock,
            limits,
            progress,
            started: clock.now(),
            connected: None,
            first_byte: None,
            bytes: 0,
            sum: Checksum::default(),
            series: Vec::new(),
            window: None,
        }
    }

    fn elapsed(&self) -> Span {
        self.clock.now().since(self.started)
    }

    fn open(&mut self, way: Way, server: SocketAddr) -> io::Result<TcpStream> {
        let patience = Duration::from_nanos(self.limits.overall.as_nanos());
        let stream = connect(way, server, patience)?;
        self.connected = Some(self.elapsed());
        stream.set_read_timeout(Some(LOOK_UP))?;
        stream.set_write_timeout(Some(LOOK_UP))?;
        Ok(stream)
    }

    /// Whether a limit is reached.
    fn over(&self) -> bool {
        let elapsed = self.elapsed();
        let seen = self
            .first_byte
            .is_some_and(|first| elapsed.saturating_sub(first) >= self.limits.after_first_byte);
        seen || elapsed >= self.limits.overall || self.progress.stopped()
    }

    fn receive(&mut self, stream: &mut TcpStream, bytes: u64) -> io::Result<()> {
        let mut block = vec![0; 256 << 10];
        while self.bytes < bytes && !self.over() {
            match stream.read(&mut block) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => {
                    self.first_byte.get_or_insert(self.clock.now().since(self.started));
                    self.sum.update(&block[..n]);
                    self.count(n);
                    if let Some(window) = self.window {
                        clamp(stream, window)?;
                    }
                }
                Err(error) if is_pause(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn send(&mut self, stream: &mut TcpStream, file: File<'_>) -> io::Result<()> {
        let content = Content::new(file.seed);
        let mut block = vec![0; 16 << 10];
        while self.bytes < file.bytes && !self.over() {
            let left = usize::try_from(file.bytes - self.bytes).unwrap_or(usize::MAX);
            let take = block.len().min(left);
            content.fill(self.bytes, &mut block[..take]);
            match stream.write(&block[..take]) {
                Ok(n) => self.count(n),
                Err(error) if is_pause(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn count(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
        self.progress.set(self.bytes);
        let sample = Sample { at: self.elapsed(), bytes: self.bytes };
        match self.series.last() {
            Some(last) if sample.at.saturating_sub(last.at) < SAMPLING => {}
            _ => self.series.push(sample),
        }
    }

    /// Repeats a read that times out until the overall limit.
    fn wait_for<T>(
        &self,
        stream: &mut TcpStream,
        mut read: impl FnMut(&mut TcpStream) -> io::Result<T>,
    ) -> io::Result<T> {
        loop {
            match read(stream) {
                Err(error) if is_pause(&error) && self.elapsed() < self.limits.overall => {}
                other => return other,
            }
        }
    }

    fn finish(mut self, outcome: io::Result<()>) -> Transfer {
        let ended = self.elapsed();
        if self.series.last().is_some_and(|last| last.bytes < self.bytes) {
            self.series.push(Sample { at: ended, bytes: self.bytes });
        }
        Transfer {
            started: self.started,
            connected: self.connected,
            first_byte: self.first_byte,
            ended,
            bytes: self.bytes,
            complete: false,
            matches: false,
            checksum: self.sum.value(),
            series: self.series,
            error: outcome.err().map(|error| error.to_string()),
        }
    }
}

fn is_pause(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}
