//! Simulation of one file retrieval.

use super::file_transfer::{Client, Server, chunks};
use super::station::{Application, Computer, Station};
use crate::{EventQueue, Pattern, TraceHash};
use satlink::mac::csma::{Csma, CsmaConfig, CsmaCounters, CsmaError};
use satlink::{Admission, Frame};
use units::{Instant, RngStream, Span};
use xstp::session::{SessionConfig, Statistics};

/// The stations: the client, and the server of the file.
const GROUND: usize = 0;
const SATELLITE: usize = 1;

/// Octets of the stream in a frame of 255 when 10 octets replace both headers and three the POLL.
const COMPRESSED_SEGMENT: usize = 255 - 17 + 3 - 10 - 3;

/// When a retrieval starts, relative to its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// The request is piggybacked on the connection's first segment.
    WithRequest,
    /// The connection is open; the time counts from the request on.
    Connected,
}

/// Two stations and their parameters.
#[derive(Clone, Debug)]
pub struct Radio {
    /// The channel.
    pub channel: CsmaConfig,
    /// XSTP's parameters; `profile` is set by the run.
    pub session: SessionConfig,
    /// The computer and serial line between protocols and radio.
    pub computer: Computer,
    /// Whether headers are compressed on the link.
    pub compress: bool,
    /// When the retrieval starts.
    pub start: Start,
    /// The file's name.
    pub name: Vec<u8>,
    /// Time limit of a retrieval.
    pub patience: Span,
}

impl Radio {
    /// Returns the stations with header compression and segments that fill the same frames: 228
    /// octets of the stream. A packet with a full header makes a frame of up to 328 octets.
    #[must_use]
    pub fn filled(mut self) -> Self {
        self.compress = true;
        self.session.max_segment = 16 + 3 + COMPRESSED_SEGMENT;
        self
    }

    /// The published frame and window sizes on `channel`: a segment with 16 octets of header, 5 of
    /// file transfer and 157 of a file, with room for a POLL; 64 segments in either buffer.
    pub fn published(channel: CsmaConfig, session: &SessionConfig) -> Self {
        let payload = super::file_transfer::HEADER + super::file_transfer::CHUNK;
        let session = SessionConfig {
            max_segment: 16 + 3 + payload,
            packet_overhead: xstp::wire::ipv4::HEADER_WITH_ROUTE,
            send_buffer: 64 * payload,
            receive_window: 64,
            initial_peer_window: 64,
            ..session.clone()
        };
        Self {
            channel,
            session,
            computer: Computer::FREE,
            compress: false,
            start: Start::WithRequest,
            name: b"file.dat".to_vec(),
            patience: Span::from_secs(4 * 3_600),
        }
    }
}

/// Results of a retrieval.
#[derive(Clone, Debug, PartialEq)]
pub struct Retrieval {
    /// From the request to the last octet of the file at the client; `None`: time limit reached.
    pub latency: Option<Span>,
    /// From the request until both ends are closed.
    pub closed: Option<Span>,
    /// Chunks of the file.
    pub chunks: u64,
    /// Frames sent by the ground station and by the satellite.
    pub frames: [u64; 2],
    /// Octets of their IP packets.
    pub octets: [u64; 2],
    /// Counters of the channel.
    pub channel: CsmaCounters,
    /// Counters of the client's session and of the server's.
    pub sessions: [Statistics; 2],
    /// Packets rejected by the protocols of either end.
    pub refused: u64,
    /// A hash of the run; equal for equal runs.
    pub trace_hash: u64,
}

/// A packet on the channel.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Packet(Vec<u8>);

impl Frame for Packet {
    fn len(&self) -> usize {
        self.0.len()
    }
}

enum Due {
    /// A packet has passed the computer and reaches the protocols.
    Received(usize, Vec<u8>),
    /// A packet has passed the computer and reaches the radio.
    Sent(usize, Vec<u8>),
}

struct Net {
    channel: Csma<Packet>,
    stations: [Station; 2],
    events: EventQueue<Due>,
    now: Instant,
    rounds: u32,
    frames: [u64; 2],
    octets: [u64; 2],
    trace: TraceHash,
}

/// Retrieves a file of `size` octets from the satellite.
///
/// # Errors
/// If the channel's settings are invalid.
///
/// # Panics
/// If octets of the file are wrong or duplicated, or a packet is unaccounted for.
pub fn retrieve(radio: &Radio, size: u64, seed: u64, run: u64) -> Result<Retrieval, CsmaError> {
    let mut rng = RngStream::new(seed, run, "sim/radio");
    let pattern = Pattern(rng.next_u64());
    let station = |index: usize, user| {
        let peer = 1 - index as u8;
        Station::new(index as u8, peer, &radio.session, radio.computer, radio.compress, user)
    };
    let mut net = Net {
        channel: Csma::new(&radio.channel, 2, seed, run)?,
        stations: [
            station(GROUND, Application::Client(Client::new(pattern))),
            station(SATELLITE, Application::Server(Server::new(&radio.name, pattern, size))),
        ],
        events: EventQueue::new(),
        now: Instant::ZERO,
        rounds: 0,
        frames: [0; 2],
        octets: [0; 2],
        trace: TraceHash::new(),
    };
    let began = match radio.start {
        Start::WithRequest => Instant::ZERO,
        Start::Connected => net.connect(Instant::ZERO + radio.patience),
    };
    net.stations[GROUND].ask(&radio.name);
    let end = began + radio.patience;
    let closed = net.run_while(end, |net| net.stations.iter().all(Station::is_closed));
    let [ground, satellite] = &net.stations;
    assert!(!ground.broken && !satellite.broken, "a file should arrive as it is stored");
    assert!(net.channel.audit(), "packet conservation should hold on the channel");
    Ok(Retrieval {
        latency: ground.done_at.map(|at| at.since(began)),
        closed: closed.then(|| net.now.since(began)),
        chunks: chunks(size),
        frames: net.frames,
        octets: net.octets,
        channel: *net.channel.counters(),
        sessions: [ground, satellite].map(|it| *it.connection.session().statistics()),
        refused: ground.refused + satellite.refused,
        trace_hash: net.trace.value(),
    })
}

impl Net {
    /// Opens the connection without a request; returns when both ends are connected and no packet
    /// is in flight.
    fn connect(&mut self, end: Instant) -> Instant {
        let quiet = |net: &Self| {
            let open = net.stations.iter().all(Station::is_open);
            open && net.events.next_at().is_none() && net.channel.counters().held.packets == 0
        };
        self.run_while(end, quiet);
        self.now
    }

    /// Runs until `stop` returns true, until `end` at most; returns whether it stopped before.
    fn run_while(&mut self, end: Instant, stop: impl Fn(&Self) -> bool) -> bool {
        loop {
            self.transmit();
            if stop(self) {
                return true;
            }
            let timeouts = self.stations.iter().filter_map(Station::poll_timeout);
            let others = [self.channel.poll_timeout(), self.events.next_at()];
            match timeouts.chain(others.into_iter().flatten()).min() {
                Some(at) if at <= end => self.step(at),
                Some(_) | None => return false,
            }
        }
    }

    fn step(&mut self, at: Instant) {
        if at > self.now {
            self.now = at;
            self.rounds = 0;
        } else {
            self.rounds += 1;
            assert!(self.rounds < 100_000, "at {:?} no progress of time: {at:?}", self.now);
        }
        let now = self.now;
        while let Some(heard) = self.channel.poll_delivery(now) {
            self.trace.event(now, heard.to as u64, &heard.frame.0);
            let at = self.stations[heard.to].received(now, heard.frame.len());
            self.events.push(at, Due::Received(heard.to, heard.frame.0));
        }
        while let Some((_, due)) = self.events.pop_due(now) {
            match due {
                Due::Received(index, packet) => self.stations[index].handle(now, &packet),
                Due::Sent(index, packet) => {
                    self.frames[index] += 1;
                    self.octets[index] += packet.len() as u64;
                    match self.channel.offer(now, index, 1 - index, Packet(packet)) {
                        Admission::Queued | Admission::Dropped(..) => {}
                    }
                }
            }
        }
        for (index, station) in self.stations.iter_mut().enumerate() {
            let silent = self.channel.is_silent(index);
            if silent {
                station.on_channel_idle(now);
            }
            station.handle_timeout(now);
        }
    }

    fn transmit(&mut self) {
        for (index, station) in self.stations.iter_mut().enumerate() {
            for (at, packet) in station.poll_transmit(self.now) {
                self.events.push(at, Due::Sent(index, packet));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::radio::file_transfer::CHUNK;
    use units::BitRate;

    fn radio(rate: u64, persistence: u8) -> Radio {
        let mut channel = CsmaConfig::kenwood(BitRate::from_bps(rate));
        channel.persistence = persistence;
        Radio::published(channel, &SessionConfig::stp_1999())
    }

    /// Twice: 50 ms in one computer, 300 ms to key up, the frame, 50 ms in the other computer. BGN,
    /// SD and POLL with the request are 95 octets in IPv4; BGNAK, SD and POLL with the file's octet
    /// are 92; AX.25 adds 20 to each.
    #[test]
    fn one_byte_takes_two_accesses_and_two_frames() {
        for (rate, air) in [(1_200, 8 * (115 + 112) * 1_000_000 / 1_200), (9_600, 189_167)] {
            let mut radio = radio(rate, 255);
            radio.computer.processing = Span::from_millis(50);
            let found = retrieve(&radio, 1, 1, 0).expect("valid settings");
            let latency = found.latency.expect("the file").as_micros();
            assert!(latency.abs_diff(4 * 50_000 + 2 * 300_000 + air) < 3, "{latency} us");
            assert!(found.closed.is_some());
        }
        // The name was sent in the request, so the serial line's time counts twice for each packet.
        let mut radio = radio(9_600, 255);
        radio.computer.serial = Some(BitRate::from_bps(9_600));
        let found = retrieve(&radio, 1, 1, 0).expect("valid settings");
        let serial = 2 * (95 + 92) * 10 * 1_000_000 / 9_600;
        let latency = found.latency.expect("the file").as_micros();
        assert!(latency.abs_diff(2 * 300_000 + 189_167 + serial) < 3, "{latency} us");
    }

    #[test]
    fn files_arrive_over_noise_and_the_same_seed_is_the_same_run() {
        for start in [Start::WithRequest, Start::Connected] {
            let mut radio = radio(9_600, 128);
            radio.start = start;
            radio.channel.bit_error_ratio = 1e-4;
            let first = retrieve(&radio, 10_240, 1, 0).expect("valid settings");
            assert!(first.latency.is_some() && first.closed.is_some());
            assert_eq!(first.chunks, 66);
            assert!(first.channel.corrupted.packets > 0 && first.sessions[1].data_sent >= 66);
            assert_eq!(retrieve(&radio, 10_240, 1, 0), Ok(first.clone()));
            assert_ne!(
                retrieve(&radio, 10_240, 1, 1).map(|it| it.trace_hash),
                Ok(first.trace_hash)
            );
        }
    }

    #[test]
    fn compression_saves_most_of_the_headers_and_survives_noise() {
        let mut radio = radio(1_200, 128);
        let plain = retrieve(&radio, 10_240, 1, 0).expect("valid settings");
        radio.compress = true;
        let short = retrieve(&radio, 10_240, 1, 0).expect("valid settings");
        let each = |it: &Retrieval| it.octets[1] as f64 / it.frames[1] as f64;
        assert!(each(&short) < each(&plain) - 40.0, "{} and {}", each(&short), each(&plain));
        assert!(short.latency < plain.latency);
        radio.channel.bit_error_ratio = 2e-4;
        for radio in [radio.clone(), radio.filled()] {
            let noisy = retrieve(&radio, 10_240, 1, 0).expect("valid settings");
            assert!(noisy.latency.is_some() && noisy.channel.corrupted.packets > 10);
            assert_eq!(noisy.refused, 0, "nothing wrong is made of what is lost");
        }
    }

    #[test]
    fn pause_between_chunks_starts_at_the_end_of_transmission() {
        let mut radio = radio(9_600, 255);
        let size = 4 * CHUNK as u64;
        let before = retrieve(&radio, 1, 1, 0).expect("valid settings").latency;
        radio.computer.between_chunks = Span::from_secs(20);
        let found = retrieve(&radio, size, 1, 0).expect("valid settings").latency;
        let (before, found) = (before.expect("a byte"), found.expect("the file"));
        // The first chunk is 156 octets longer and fills its segment, so seven octets of it are in
        // a second one; then three pauses, three accesses, three frames.
        let least = before + (Span::from_secs(20) + Span::from_millis(300 + 217)) * 3;
        assert!(found > least && found < least + Span::from_secs(2), "{found}, not {least}");
    }

    #[test]
    fn retrieval_ends_at_the_time_limit() {
        let mut radio = radio(9_600, 255);
        radio.channel.bit_error_ratio = 1.0;
        radio.patience = Span::from_secs(600);
        let found = retrieve(&radio, 1, 1, 0).expect("valid settings");
        assert_eq!((found.latency, found.channel.delivered.packets), (None, 0));
        radio.channel.queue = 0;
        assert!(retrieve(&radio, 1, 1, 0).is_err());
    }
}
