//! Clients and servers above two relays, with streams of octets that both ends verify.
//!
//! ```text
//!   client ── head, request ──▶ server      head: pattern of the stream, both lengths
//!          ◀──── response ─────             FIN: the client's before or after the response,
//!                                           the server's before or after the client's
//! ```
//!
//! A client whose stream is lost opens another one, until all of its tasks are done.

use super::super::fault::{Fault, FaultCounts};
use crate::Pattern;
use relay::{Event, Priority, Relay, ResetReason, StreamId, Target};
use std::collections::BTreeMap;
use units::{Instant, RngStream, Span};

/// Octets of a head.
const HEAD: u64 = 24;
/// Delay before a client whose stream was lost opens another one.
const PAUSE: Span = Span::from_millis(700);
/// Octets per read or write.
const PIECE: usize = 8192;

/// A client's transfer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    /// Start, relative to the start of its endpoint.
    pub(crate) after: Span,
    /// Octets in each direction; the request includes the head.
    pub(crate) request: u64,
    pub(crate) response: u64,
    /// Bits that vary its course: see [`Task::draw`].
    options: u64,
}

/// Its readers pause while slow readers are injected.
const IS_SLOW: u64 = 1;
/// The client sends FIN after the request, and not after the response.
const ENDS_EARLY: u64 = 2;
/// The server sends FIN after the response, independently of the client.
const SERVER_ENDS_EARLY: u64 = 4;
/// The server responds before the request is complete.
const RESPONDS_EARLY: u64 = 8;

impl Task {
    /// Draws up to `most` octets in each direction that start within `within`; `large` ones are
    /// uniform, others uniform in their logarithm.
    pub(crate) fn draw(rng: &mut RngStream, most: [u64; 2], large: bool, within: Span) -> Self {
        let size = |rng: &mut RngStream, most: u64| {
            let largest = (most.max(2) as f64).ln();
            if large { 1 + rng.below(most.max(1)) } else { (largest * rng.uniform()).exp() as u64 }
        };
        Self {
            after: Span::from_nanos(rng.below(within.as_nanos().max(1))),
            request: HEAD + size(rng, most[0]),
            response: size(rng, most[1]),
            options: rng.below(16),
        }
    }
}

/// The send side of a stream.
#[derive(Debug)]
struct Writing {
    head: Option<[u8; HEAD as usize]>,
    pattern: Pattern,
    total: u64,
    written: u64,
    ended: bool,
}

impl Writing {
    /// Writes as much as the buffer accepts.
    fn write(&mut self, now: Instant, stream: StreamId, relay: &mut Relay) {
        let mut piece = [0; PIECE];
        while self.written < self.total {
            let left = self.total - self.written;
            let len = usize::try_from(left).map_or(PIECE, |left| left.min(PIECE));
            self.pattern.fill(self.written, &mut piece[..len]);
            if let Some(head) = &self.head
                && self.written < HEAD
            {
                let rest = &head[self.written as usize..];
                let count = rest.len().min(len);
                piece[..count].copy_from_slice(&rest[..count]);
            }
            // A closed stream accepts nothing; its event follows.
            let taken = relay.write(now, stream, &piece[..len]).unwrap_or(0);
            self.written += taken as u64;
            if taken < len {
                return;
            }
        }
    }

    fn end(&mut self, stream: StreamId, relay: &mut Relay) {
        if !self.ended && self.written == self.total {
            self.ended = true;
            // The stream is already closed.
            let _ = relay.end(stream);
        }
    }
}

/// The receive side of a stream.
#[derive(Debug)]
struct Reading {
    pattern: Option<Pattern>,
    /// The octets of the head received so far.
    head: Vec<u8>,
    total: u64,
    read: u64,
    /// The peer has sent FIN.
    ended: bool,
}

/// One stream at one end.
#[derive(Debug)]
struct Flow {
    writing: Writing,
    reading: Reading,
    options: u64,
    /// The client's task.
    task: usize,
}

/// The state of a client's task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Waiting(Instant),
    Open(StreamId),
    Done,
}

/// Counters since the last call.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UserTotals {
    /// Octets received and verified.
    pub(crate) delivered: u64,
    /// Streams lost to a reset, a refusal or the end of a session.
    pub(crate) lost: u64,
    /// Streams of which one direction ended long before the other.
    half_closes: u64,
}

/// All users at one end of a relay.
#[derive(Debug)]
pub(crate) struct Users {
    tasks: Vec<Task>,
    progress: Vec<Progress>,
    flows: BTreeMap<StreamId, Flow>,
    /// Streams opened: each has its own pattern.
    streams_opened: u64,
    seed: u64,
    reading: bool,
    user_totals: UserTotals,
    error: Option<String>,
}

impl Users {
    /// Clients with `tasks` from `now` on; without tasks, servers.
    pub(crate) fn new(seed: u64, tasks: Vec<Task>, now: Instant) -> Self {
        let progress = tasks.iter().map(|task| Progress::Waiting(now + task.after)).collect();
        Self {
            tasks,
            progress,
            flows: BTreeMap::new(),
            streams_opened: 0,
            seed,
            reading: true,
            user_totals: UserTotals::default(),
            error: None,
        }
    }

    /// Returns and resets the counters.
    pub(crate) fn take_totals(&mut self, fault_counts: &mut FaultCounts) -> UserTotals {
        let user_totals = core::mem::take(&mut self.user_totals);
        for _ in 0..user_totals.half_closes {
            fault_counts.count(Fault::HalfClose);
        }
        user_totals
    }

    /// The first error.
    pub(crate) fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// Whether no stream is open and no task is left.
    pub(crate) fn is_done(&self) -> bool {
        self.flows.is_empty() && self.progress.iter().all(|one| *one == Progress::Done)
    }

    /// Number of unfinished tasks.
    pub(crate) fn left(&self) -> usize {
        self.progress.iter().filter(|one| **one != Progress::Done).count()
    }

    /// Describes the first open streams.
    pub(crate) fn describe(&self, relay: &Relay) -> String {
        let flow = |(stream, flow): (&StreamId, &Flow)| {
            let Flow { writing, reading, .. } = flow;
            format!(
                "{stream}: {}{} of {} written, {} held, {}{} of {} read",
                writing.written,
                if writing.ended { " (end)" } else { "" },
                writing.total,
                relay.held(*stream),
                reading.read,
                if reading.ended { " (end)" } else { "" },
                reading.total,
            )
        };
        self.flows.iter().take(3).map(flow).collect::<Vec<_>>().join(", ")
    }

    /// When the next stream is to be opened.
    pub(crate) fn due(&self) -> Option<Instant> {
        let waiting = self.progress.iter().filter_map(|one| match one {
            Progress::Waiting(due) => Some(*due),
            Progress::Open(_) | Progress::Done => None,
        });
        waiting.min()
    }

    /// Opens the streams that are due.
    pub(crate) fn open(&mut self, now: Instant, relay: &mut Relay) {
        for task in 0..self.tasks.len() {
            let Progress::Waiting(due) = self.progress[task] else { continue };
            if due > now {
                continue;
            }
            let target = Target::name("server.example", 80);
            let priority = [Priority::Interactive, Priority::Normal, Priority::Background];
            match relay.open(now, target, priority[task % 3]) {
                Ok(stream) => self.begin(now, task, stream, relay),
                // The hub's limit of open streams is reached.
                Err(_) => self.progress[task] = Progress::Waiting(now + PAUSE),
            }
        }
    }

    fn begin(&mut self, now: Instant, task: usize, stream: StreamId, relay: &mut Relay) {
        let Task { request, response, options, .. } = self.tasks[task];
        self.streams_opened += 1;
        let tag = self.seed << 20 ^ self.streams_opened << 4 | options;
        let mut head = [0; HEAD as usize];
        for (place, word) in head.chunks_exact_mut(8).zip([tag, request, response]) {
            place.copy_from_slice(&word.to_be_bytes());
        }
        let writing = Writing {
            head: Some(head),
            pattern: Pattern(tag),
            total: request,
            written: 0,
            ended: false,
        };
        let pattern = Some(Pattern(!tag));
        let reading = Reading { pattern, head: Vec::new(), total: response, read: 0, ended: false };
        self.flows.insert(stream, Flow { writing, reading, options, task });
        self.progress[task] = Progress::Open(stream);
        self.work(now, stream, relay);
    }

    /// Starts or stops reading.
    pub(crate) fn set_reading(&mut self, now: Instant, reading: bool, relay: &mut Relay) {
        self.reading = reading;
        let streams: Vec<StreamId> = self.flows.keys().copied().collect();
        for stream in streams {
            self.work(now, stream, relay);
        }
    }

    /// Resets up to two streams; returns whether there were any.
    pub(crate) fn abort(&mut self, now: Instant, relay: &mut Relay) -> bool {
        let streams: Vec<StreamId> = self.flows.keys().copied().take(2).collect();
        for &stream in &streams {
            // The stream is already closed.
            let _ = relay.reset(stream, ResetReason::Aborted);
            self.lose(now, stream);
        }
        !streams.is_empty()
    }

    /// Handles an event of the relay.
    pub(crate) fn on_event(&mut self, now: Instant, event: &Event, relay: &mut Relay) {
        match *event {
            Event::Opened { stream, .. } => {
                // A stream that is already closed has an event in the queue.
                let _ = relay.accept(stream);
                let empty =
                    Writing { head: None, pattern: Pattern(0), total: 0, written: 0, ended: false };
                let reading = Reading {
                    pattern: None,
                    head: Vec::new(),
                    total: u64::MAX,
                    read: 0,
                    ended: false,
                };
                let flow = Flow { writing: empty, reading, options: 0, task: usize::MAX };
                self.flows.insert(stream, flow);
            }
            Event::Readable { stream }
            | Event::Writable { stream }
            | Event::Ending { stream, .. } => {
                self.work(now, stream, relay);
            }
            Event::Ended { stream } => {
                if let Some(flow) = self.flows.get_mut(&stream) {
                    flow.reading.ended = true;
                }
                self.work(now, stream, relay);
            }
            Event::Refused { stream, .. } | Event::Reset { stream, .. } => self.lose(now, stream),
            Event::Released { stream } => self.release(stream),
            Event::Disconnected { .. } => self.lose_all(now),
            Event::Connected | Event::Accepted { .. } => {}
        }
    }

    /// Handles the loss of all streams.
    pub(crate) fn lose_all(&mut self, now: Instant) {
        while let Some((&stream, _)) = self.flows.first_key_value() {
            self.lose(now, stream);
        }
    }

    fn lose(&mut self, now: Instant, stream: StreamId) {
        let Some(flow) = self.flows.remove(&stream) else { return };
        self.user_totals.lost += 1;
        if let Some(progress) = self.progress.get_mut(flow.task) {
            *progress = Progress::Waiting(now + PAUSE);
        }
    }

    /// Handles a stream of which both directions have ended.
    fn release(&mut self, stream: StreamId) {
        let Some(flow) = self.flows.remove(&stream) else { return };
        let Reading { read, total, ended, .. } = flow.reading;
        if read != total || !ended || !flow.writing.ended {
            let text = format!("stream {stream} ended with {read} octets of {total} read");
            self.error.get_or_insert(text);
        }
        if let Some(progress) = self.progress.get_mut(flow.task) {
            *progress = Progress::Done;
        }
    }

    /// Reads, writes and sends FIN as far as possible.
    fn work(&mut self, now: Instant, stream: StreamId, relay: &mut Relay) {
        let Some(flow) = self.flows.get_mut(&stream) else { return };
        if self.reading || flow.options & IS_SLOW == 0 {
            match flow.read(now, stream, relay) {
                Ok(count) => self.user_totals.delivered += count,
                Err(text) => {
                    self.error.get_or_insert(text);
                }
            }
        }
        flow.writing.write(now, stream, relay);
        let had_ended = flow.writing.ended;
        if flow.may_end() {
            flow.writing.end(stream, relay);
        }
        let half = flow.writing.ended && !had_ended && flow.reading.read < flow.reading.total;
        self.user_totals.half_closes += u64::from(half);
    }
}

impl Flow {
    fn is_client(&self) -> bool {
        self.task != usize::MAX
    }

    /// Whether this side sends FIN once everything is written.
    fn may_end(&self) -> bool {
        let heard_all = self.reading.read == self.reading.total;
        if self.is_client() {
            return heard_all || self.options & ENDS_EARLY != 0;
        }
        let first = self.options & SERVER_ENDS_EARLY != 0 && self.writing.total > 0;
        first || (heard_all && self.reading.ended)
    }

    /// Reads all available octets; returns how many.
    fn read(&mut self, now: Instant, stream: StreamId, relay: &mut Relay) -> Result<u64, String> {
        let mut count = 0;
        loop {
            let bytes = relay.peek(stream);
            if bytes.is_empty() {
                break;
            }
            let len = self.take(stream, bytes)?;
            count += len as u64;
            // `peek` has just returned these octets.
            let _ = relay.consume(now, stream, len);
        }
        let Reading { ended, read, total, .. } = self.reading;
        if ended && read != total {
            return Err(format!("stream {stream} ended with {read} octets of {total}"));
        }
        Ok(count)
    }

    /// Verifies the next octets; returns how many were used.
    fn take(&mut self, stream: StreamId, bytes: &[u8]) -> Result<usize, String> {
        let reading = &mut self.reading;
        let Some(pattern) = reading.pattern else {
            let missing = HEAD as usize - reading.head.len();
            let count = missing.min(bytes.len());
            reading.head.extend_from_slice(&bytes[..count]);
            reading.read += count as u64;
            if count == missing {
                self.parse_head();
            }
            return Ok(count);
        };
        if let Some(place) = pattern.mismatch(reading.read, bytes) {
            return Err(format!("octet {place} of stream {stream} is wrong"));
        }
        reading.read += bytes.len() as u64;
        if reading.read > reading.total {
            return Err(format!("stream {stream} has more than {} octets", reading.total));
        }
        let is_server = self.task == usize::MAX;
        if is_server && reading.read == reading.total {
            self.start_response();
        }
        Ok(bytes.len())
    }

    /// Parses the head at the server.
    fn parse_head(&mut self) {
        let word = |from: usize| {
            self.reading.head[from..from + 8].iter().fold(0, |sum, &o| sum << 8 | u64::from(o))
        };
        let (tag, request, response) = (word(0), word(8), word(16));
        self.options = tag & 15;
        self.reading.pattern = Some(Pattern(tag));
        self.reading.total = request;
        self.writing.pattern = Pattern(!tag);
        self.reading.head.truncate(0);
        self.reading.head.extend(response.to_be_bytes());
        if self.options & RESPONDS_EARLY != 0 || request == HEAD {
            self.start_response();
        }
    }

    /// Starts the response.
    fn start_response(&mut self) {
        self.writing.total =
            self.reading.head.iter().take(8).fold(0, |sum, &o| sum << 8 | u64::from(o));
    }
}
