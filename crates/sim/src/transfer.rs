//! The transfer of one file over one connection, as measured in the papers.
//!
//! The source writes a file in chunks as its send buffer has room; the sink reads without delay and
//! verifies every octet. The octets of both ends are classified as in Elaasar et al. 2003, section
//! 6: retransmission, forward control, reverse control.

use crate::invariants::SessionGuard;
use crate::{Broken, Endpoint, Path, PathConfig, Pattern, StreamCheck};
use core::fmt;
use satlink::{ConfigError, Counters, Direction, LinkConfig, Outage};
use units::{Instant, Span};
use xstp::Connection;
use xstp::session::{Event, SessionConfig, State, Statistics};
use xstp::wire::Profile;

/// Octets of the header of a packet with data only.
const fn header(profile: &Profile) -> u64 {
    match profile {
        Profile::Published(_) => 16,
        Profile::Sealed => 4,
    }
}

/// Parameters of a transfer.
#[derive(Clone, Debug)]
pub struct TransferConfig {
    /// The source's session.
    pub source: SessionConfig,
    /// The sink's session.
    pub sink: SessionConfig,
    /// The link; the file takes the forward direction.
    pub link: LinkConfig,
    /// Octets of the file.
    pub size: u64,
    /// Octets that the application writes at a time.
    pub chunk: usize,
    /// Octets of headers below XSTP, which count on the link but not in the overhead.
    pub header: usize,
    /// With `run` the source of all randomness.
    pub seed: u64,
    /// The replication.
    pub run: u64,
    /// Time limit, in virtual time.
    pub limit: Span,
}

/// Results of a transfer.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// From the first BGN until the sink has the last octet.
    pub took: Span,
    /// Octets of the file.
    pub size: u64,
    /// Octets of the header of a packet with data only.
    pub header: u64,
    /// Counters of the source.
    pub source: Statistics,
    /// Counters of the sink.
    pub sink: Statistics,
    /// Counters of the link, forward.
    pub forward: Counters,
    /// Time average of the source's congestion window in octets; 0 without one.
    pub mean_window: f64,
    /// Number of reductions of that window.
    pub window_reductions: u64,
    /// A hash of the run; equal for equal runs.
    pub trace_hash: u64,
}

/// Octets of XSTP beyond those of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overhead {
    /// Retransmitted SDs, headers included.
    pub retransmission: u64,
    /// Other overhead of the source: POLLs, handshakes, headers of first transmissions.
    pub forward_control: u64,
    /// Everything sent by the sink.
    pub reverse_control: u64,
}

impl Overhead {
    /// Sum of all overhead.
    pub fn total(self) -> u64 {
        self.retransmission + self.forward_control + self.reverse_control
    }
}

impl Transfer {
    /// Bits of the file over the duration.
    pub fn throughput_bps(&self) -> f64 {
        self.size as f64 * 8.0 / self.took.as_secs_f64()
    }

    /// Octets beyond those of the file, by class.
    pub fn overhead(&self) -> Overhead {
        let again =
            self.source.data_bytes_retransmitted + self.header * self.source.data_retransmitted;
        Overhead {
            retransmission: again,
            forward_control: self.source.octets_sent - again - self.source.data_bytes_sent,
            reverse_control: self.sink.octets_sent,
        }
    }
}

/// Why a file was not delivered.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TransferError {
    /// The link is invalid.
    Link(ConfigError),
    /// Received octets differ from those sent.
    Broken(Broken),
    /// The connection closed before the file was complete.
    Closed {
        /// Octets received in order.
        received: u64,
        /// When it closed.
        after: Span,
    },
    /// The time limit was reached.
    TimeLimit {
        /// Octets received in order.
        received: u64,
    },
}

impl fmt::Display for TransferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Link(error) => write!(f, "{error}"),
            Self::Broken(error) => write!(f, "{error}"),
            Self::Closed { received, after } => {
                write!(f, "the connection closed after {after} with {received} bytes received")
            }
            Self::TimeLimit { received } => {
                write!(f, "the time limit came with {received} bytes received")
            }
        }
    }
}

impl std::error::Error for TransferError {}

/// Sends the file; the source is at the hub and opens the connection.
///
/// # Errors
/// If the file was not delivered.
pub fn transfer(config: &TransferConfig) -> Result<Transfer, TransferError> {
    let mut path = join(config)?;
    let size = config.size;
    let mut window = Average::default();
    path.run_while(Instant::ZERO + config.limit, |path| {
        let snapshot = path.hub.connection.session().snapshot(path.now());
        window.holds_from(path.now(), snapshot.congestion_window.unwrap_or_default());
        let (source, sink) = (&path.hub.connection, &path.terminal);
        let closed = source.session().state() == State::Closed;
        sink.check.received() < size && sink.broken.is_none() && !closed
    });
    let received = path.terminal.check.received();
    let took = path.now().since(Instant::ZERO);
    if let Some(broken) = path.terminal.broken {
        return Err(TransferError::Broken(broken));
    }
    if received < size {
        let closed = path.hub.connection.session().state() == State::Closed;
        return Err(match closed {
            true => TransferError::Closed { received, after: took },
            false => TransferError::TimeLimit { received },
        });
    }
    Ok(Transfer {
        took,
        size,
        header: header(&config.source.profile),
        source: *path.hub.connection.session().statistics(),
        sink: *path.terminal.connection.session().statistics(),
        forward: path.link().counters(Direction::Forward).clone(),
        mean_window: window.until(path.now()),
        window_reductions: window.reductions,
        trace_hash: path.trace_hash(),
    })
}

/// Sends the file over a link with an outage of `length` from `at` on. Returns the time from the
/// end of the outage until the first segment reaches the sink; `None` if none does within the time
/// limit or the file was complete before.
///
/// # Errors
/// If the link is invalid.
pub fn recovery_time(
    config: &TransferConfig,
    at: Span,
    length: Span,
) -> Result<Option<Span>, TransferError> {
    let mut config = config.clone();
    config.link.outages.push(Outage { at, length, every: None, direction: None });
    let mut path = join(&config)?;
    let back = Instant::ZERO + at + length;
    path.run_until(back);
    if path.terminal.check.received() == config.size {
        return Ok(None);
    }
    let delivered =
        |path: &Path<Sink, Source>| path.link().counters(Direction::Forward).delivered.packets;
    let before = delivered(&path);
    let came = path.run_while(back + config.limit, |path| delivered(path) == before);
    Ok(came.then(|| path.now().since(back)))
}

/// The source, the sink, and the link between them.
fn join(config: &TransferConfig) -> Result<Path<Sink, Source>, TransferError> {
    let path_config = PathConfig {
        seed: config.seed,
        run: config.run,
        header: config.header,
        ..PathConfig::new(config.link.clone())
    };
    let source = Source {
        connection: Connection::connect(&config.source, Instant::ZERO, 1),
        guard: SessionGuard::new(&config.source),
        buffer: vec![0; config.source.max_segment],
        chunk: vec![0; config.chunk],
        pattern: Pattern(config.seed),
        size: config.size,
        written: 0,
    };
    let sink = Sink {
        connection: Connection::listen(&config.sink),
        guard: SessionGuard::new(&config.sink),
        buffer: vec![0; config.sink.max_segment.max(config.chunk)],
        check: StreamCheck::new(Pattern(config.seed)),
        broken: None,
    };
    Path::new(&path_config, sink, source).map_err(TransferError::Link)
}

/// A time average.
#[derive(Clone, Copy, Debug, Default)]
struct Average {
    sum: f64,
    since: Instant,
    value: u64,
    /// Number of decreases of the value.
    reductions: u64,
}

impl Average {
    fn holds_from(&mut self, now: Instant, value: u64) {
        if value != self.value {
            self.sum += self.value as f64 * now.since(self.since).as_secs_f64();
            self.reductions += u64::from(value < self.value);
            (self.since, self.value) = (now, value);
        }
    }

    fn until(mut self, now: Instant) -> f64 {
        self.holds_from(now, u64::MAX);
        self.sum / now.since(Instant::ZERO).as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

/// Writes the file as fast as the send buffer accepts it.
#[derive(Debug)]
struct Source {
    connection: Connection,
    guard: SessionGuard,
    buffer: Vec<u8>,
    chunk: Vec<u8>,
    pattern: Pattern,
    size: u64,
    written: u64,
}

impl Source {
    /// Only whole chunks are written, so that every segment but the last is full.
    fn push(&mut self, now: Instant) {
        if self.connection.session().state() == State::Closed {
            return;
        }
        while self.written < self.size {
            let len = (self.chunk.len() as u64).min(self.size - self.written) as usize;
            if self.connection.room() < len {
                return;
            }
            self.pattern.fill(self.written, &mut self.chunk[..len]);
            let taken =
                self.connection.write(&self.chunk[..len]).expect("neither ended nor closed");
            self.written += taken as u64;
            if self.written == self.size {
                self.connection.end(now);
            }
        }
        self.guard.on_held(&self.connection);
    }
}

impl Endpoint for Source {
    fn handle_datagram(&mut self, now: Instant, datagram: &mut [u8]) {
        // The connection drops and counts invalid segments.
        let _ = self.connection.handle_segment(now, datagram);
        drain(&mut self.connection);
    }

    fn poll_transmit(&mut self, now: Instant, send: &mut dyn FnMut(&[u8])) {
        self.push(now);
        while let Some(len) = self.connection.poll_transmit(now, &mut self.buffer) {
            send(&self.buffer[..len]);
            self.guard.on_sent(now, len, self.connection.session());
        }
        drain(&mut self.connection);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.connection.poll_timeout()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.connection.handle_timeout(now);
    }
}

/// Reads everything without delay and verifies it.
#[derive(Debug)]
struct Sink {
    connection: Connection,
    guard: SessionGuard,
    buffer: Vec<u8>,
    check: StreamCheck,
    broken: Option<Broken>,
}

impl Endpoint for Sink {
    fn handle_datagram(&mut self, now: Instant, datagram: &mut [u8]) {
        let _ = self.connection.handle_segment(now, datagram);
        self.guard.on_held(&self.connection);
        loop {
            let len = self.connection.read(&mut self.buffer);
            if len == 0 {
                break;
            }
            if let Err(broken) = self.check.take(&self.buffer[..len]) {
                self.broken.get_or_insert(broken);
            }
        }
        if drain(&mut self.connection) {
            self.connection.end(now);
        }
    }

    fn poll_transmit(&mut self, now: Instant, send: &mut dyn FnMut(&[u8])) {
        while let Some(len) = self.connection.poll_transmit(now, &mut self.buffer) {
            send(&self.buffer[..len]);
            self.guard.on_sent(now, len, self.connection.session());
        }
        drain(&mut self.connection);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.connection.poll_timeout()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.connection.handle_timeout(now);
    }
}

/// Drains all events; returns whether the peer's end is among them.
fn drain(connection: &mut Connection) -> bool {
    let mut ended = false;
    while let Some(event) = connection.poll_event() {
        ended |= event == Event::PeerEnded;
    }
    ended
}

#[cfg(test)]
mod tests {
    use super::*;
    use satlink::profiles;

    fn config(link: &LinkConfig, run: u64) -> TransferConfig {
        let session = SessionConfig { max_segment: 1_019, ..SessionConfig::stp_1999() };
        TransferConfig {
            source: session.clone(),
            sink: session,
            link: link.clone(),
            size: 300_500,
            chunk: 1_000,
            header: 20,
            seed: 1,
            run,
            limit: Span::from_secs(10_000),
        }
    }

    #[test]
    fn without_loss_nothing_is_retransmitted_and_the_octets_add_up() {
        let link = profiles::elaasar_corruption(Span::from_secs(10), 0.0);
        let seen = transfer(&config(&link, 0)).unwrap();
        let overhead = seen.overhead();
        assert_eq!((seen.source.data_sent, overhead.retransmission), (301, 0));
        let sent = seen.source.octets_sent + seen.sink.octets_sent;
        assert_eq!(overhead.total(), sent - 300_500);
        assert!(overhead.forward_control >= 301 * seen.header, "{overhead:?}");
        // The handshake, then slow start from one segment: at least eight windows.
        assert!(seen.took > Span::from_millis(200 * 8), "{}", seen.took);
        assert!((2_000.0..300_000.0).contains(&seen.mean_window), "{}", seen.mean_window);
    }

    #[test]
    fn losses_are_retransmitted_and_a_seed_gives_one_run() {
        let link = profiles::elaasar_corruption(Span::from_secs(1), 0.3);
        let seen = transfer(&config(&link, 3)).unwrap();
        assert!(seen.source.data_retransmitted > 0);
        assert!(seen.throughput_bps() > 0.0);
        assert_eq!(transfer(&config(&link, 3)).unwrap().trace_hash, seen.trace_hash);
        assert_ne!(transfer(&config(&link, 4)).unwrap().trace_hash, seen.trace_hash);
    }

    #[test]
    fn a_link_that_is_down_ends_at_the_limit() {
        let mut link = profiles::elaasar_corruption(Span::from_secs(10), 0.0);
        link.forward.loss = 1.0;
        let mut config = config(&link, 0);
        config.limit = Span::from_secs(5);
        assert_eq!(transfer(&config).unwrap_err(), TransferError::TimeLimit { received: 0 });
        config.limit = Span::from_secs(5_000);
        let error = transfer(&config).unwrap_err();
        assert!(matches!(error, TransferError::Closed { received: 0, .. }), "{error}");
    }

    #[test]
    fn probing_detects_the_end_of_an_outage_within_a_round_trip() {
        let mut link = LinkConfig::default();
        (link.forward.delay, link.return_.delay) = (Span::from_millis(100), Span::from_millis(100));
        let mut config = config(&link, 0);
        config.size = 10_000_000;
        let mut found = |probing: bool| {
            config.source = SessionConfig::xstp_2003();
            config.source.xstp.probing = config.source.xstp.probing.filter(|_| probing);
            let (at, length) = (Span::from_secs(5), Span::from_secs(60));
            recovery_time(&config, at, length).unwrap().expect("it is found")
        };
        // One probe per round trip, and the delay to the sink.
        assert!(found(true) <= Span::from_millis(200 + 100));
        // POLL intervals had backed off to several seconds.
        assert!(found(false) > Span::from_millis(300));
        config.size = 1_000;
        let there = recovery_time(&config, Span::from_secs(5), Span::from_secs(1)).unwrap();
        assert_eq!(there, None, "there was nothing to find it for");
    }
}
