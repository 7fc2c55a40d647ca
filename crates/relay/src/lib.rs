//! Multiplexing of byte streams on XSTP sessions: the transport of a gateway, without I/O and
//! without a clock.
//!
//! ```text
//!   sockets of the gateway
//!        │ open, write, end, reset        ▲ Opened, Readable, Ended, Reset …
//!        ▼                                │ peek, consume
//!   ┌─ Relay ─────────────────────────────────────────────────────────────────┐
//!   │ streams ── send and receive buffers ── scheduler ── flow-control credit │
//!   │ session (XSTP, immediate delivery: POLL and STAT, pacing)               │
//!   │ association (seals and opens datagrams)                                 │
//!   └─────────────────────────────────────────────────────────────────────────┘
//!        │ poll_transmit                  ▲ handle_datagram
//!        ▼                                │
//!   UDP over the satellite link
//! ```
//!
//! A [`Relay`] is one end of the path between a terminal and a hub. A terminal has one per hub; a
//! [`Hub`] has one per terminal. The first bytes of a stream open it, so that a new connection
//! costs no round trip over the satellite. A lost packet delays only the streams with bytes in
//! it. Credit bounds the memory of each stream: a receiver that does not read blocks its own
//! stream only. `docs/spec/relay.md` specifies the frames and rules.
//!
//! ```
//! use relay::{Event, Hub, Priority, Relay, RelayConfig, Target, TransmitBatch};
//! use units::{BitRate, Instant, RngStream, Span};
//!
//! let rate = Some(BitRate::from_mbps(10));
//! let mut now = Instant::ZERO;
//! let here = "192.0.2.1:4500".parse().unwrap();
//! let config = |name| RelayConfig::new(name).with_rates(rate, rate);
//! let mut terminal = Relay::terminal(&config("boat"), now, RngStream::new(1, 0, "boat"));
//! let mut hub = Hub::new(&config("hub"), RngStream::new(1, 0, "hub"));
//!
//! let stream = terminal.open(now, Target::name("example.org", 80), Priority::Normal).unwrap();
//! terminal.write(now, stream, b"GET / HTTP/1.0\r\n\r\n").unwrap();
//!
//! // A driver passes each due datagram to the peer and advances the time.
//! let mut buffer = vec![0; 1500];
//! let received = 'run: loop {
//!     let mut batch = TransmitBatch::new(&mut buffer, 1);
//!     while terminal.poll_transmit(now, &mut batch).is_some() {
//!         let mut datagram = batch.datagrams().next().unwrap().to_vec();
//!         hub.handle_datagram(now, here, &mut datagram).unwrap();
//!         batch.clear();
//!     }
//!     while hub.poll_transmit(now, &mut batch).is_some() {
//!         let mut datagram = batch.datagrams().next().unwrap().to_vec();
//!         terminal.handle_datagram(now, &mut datagram).unwrap();
//!         batch.clear();
//!     }
//!     while let Some((peer, event)) = hub.poll_event() {
//!         if let Event::Readable { stream } = event {
//!             break 'run hub.peer(peer).unwrap().peek(stream).to_vec();
//!         }
//!     }
//!     now += Span::from_millis(1);
//!     terminal.handle_timeout(now);
//!     hub.handle_timeout(now);
//! };
//! assert_eq!(received, b"GET / HTTP/1.0\r\n\r\n");
//! ```
#![forbid(unsafe_code)]

mod buffer;
mod coding;
mod config;
mod datagram;
mod fair;
mod families;
mod frame;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod headers;
pub mod health;
mod hub;
mod measurement;
mod path_cache;
mod path_mtu;
pub mod pep;
pub mod plan;
mod pool;
mod ranges;
mod receive;
mod relay;
mod report;
mod scheduler;
mod seen;
mod send;
mod session;
mod share;
mod stream;
mod streams;
mod tap;
mod target;
#[cfg(test)]
mod tests;

pub use association::{
    Capabilities, Entropy, KeyTextError, Keys, KeysError, Known, Part, PeerId, PresharedKey,
    PrivateKey, PublicKey, Registration, Security, Transmit, TransmitBatch,
};
pub use coding::{Coder, CodingStatistics};
pub use config::{Control, IPV4_UDP, IPV6_UDP, MIN_MTU, RelayConfig, UnknownControl};
pub use datagram::DatagramStatistics;
pub use fair::Owner;
pub use families::{Families, FamilyReach};
pub use hub::{Hub, Plans, Standing};
pub use measurement::{Filler, MAX_PATH_REPORT, MEASUREMENT, PathReport, SINK, SOURCE};
pub use relay::{PathView, ReceiveError, Relay, RelayStatus};
pub use report::{ReportedCounters, ReportedMessage, ReportedPath, TerminalReport};
pub use scheduler::{Class, Level, Service};
pub use share::share_memory;
pub use tap::{Direction, Tap, Tapped};
pub use target::{
    Destination, DisconnectReason, Event, NAME_SERVERS, OpenError, Priority, RefuseReason,
    ResetReason, StreamError, StreamId, Target,
};

pub use xstp::session::PathMetrics;

/// Counters of a relay's streams in this session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Open streams.
    pub streams: usize,
    /// Streams opened here.
    pub opened: u64,
    /// Streams opened by the peer.
    pub accepted: u64,
    /// Streams of the peer that were refused because there were too many.
    pub refused: u64,
    /// Streams reset by this side, including refusals and replies to the peer's resets.
    pub resets_sent: u64,
    /// Streams reset by the peer, including replies.
    pub resets_received: u64,
    /// First transmissions of stream data, bytes.
    pub bytes_sent: u64,
    /// Stream data received, bytes.
    pub bytes_received: u64,
    /// Malformed or contradictory frames and notes.
    pub bad_frames: u64,
    /// Extension frames of an unknown type that were skipped.
    pub unknown_frames: u64,
    /// Frames that exceeded the flow-control credit.
    pub credit_violations: u64,
    /// Credit updates in separate frames, because no note was due in time.
    pub credit_frames: u64,
    /// Bytes of send buffer in use.
    pub send_buffered: u64,
    /// Granted bytes of the receive pool.
    pub receive_credit: u64,
    /// Compression of streams.
    pub coding: CodingStatistics,
}

/// Counters of sessions and streams, including past sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Sessions started.
    pub sessions: u64,
    /// Segments sent.
    pub segments_sent: u64,
    /// Bytes of these segments, without headers below XSTP.
    pub octets_sent: u64,
    /// Valid segments received.
    pub segments_received: u64,
    /// Bytes of these segments, without headers below XSTP.
    pub octets_received: u64,
    /// First transmissions of SDs.
    pub data_sent: u64,
    /// Retransmissions of SDs.
    pub retransmitted: u64,
    /// SDs received more than once.
    pub duplicates: u64,
    /// POLLs sent.
    pub polls: u64,
    /// STATs sent.
    pub stats: u64,
    /// USTATs sent.
    pub ustats: u64,
    /// Repair symbols sent.
    pub repairs_sent: u64,
    /// Repair symbols received.
    pub repairs_received: u64,
    /// Lost packets that repair symbols recovered.
    pub packets_recovered: u64,
    /// Outages detected.
    pub outages: u64,
    /// Path MTU probes sent.
    pub mtu_probes: u64,
    /// Reductions of the path MTU.
    pub mtu_falls: u64,
    /// Streams opened here.
    pub opened: u64,
    /// Streams opened by the peer.
    pub accepted: u64,
    /// First transmissions of stream data, bytes.
    pub bytes_sent: u64,
    /// Stream data received, bytes.
    pub bytes_received: u64,
    /// Malformed frames and notes, and frames that exceeded the flow-control credit.
    pub bad_frames: u64,
    /// Packets that are forwarded unsplit.
    pub datagrams: DatagramStatistics,
    /// Compression of streams.
    pub coding: CodingStatistics,
}

impl Totals {
    fn add_session(&mut self, session: &xstp::session::Statistics) {
        self.sessions += 1;
        self.segments_sent += session.segments_sent;
        self.octets_sent += session.octets_sent;
        self.segments_received += session.segments_received;
        self.octets_received += session.octets_received;
        self.data_sent += session.data_sent;
        self.retransmitted += session.data_retransmitted;
        self.duplicates += session.duplicates_received;
        self.polls += session.polls_sent;
        self.stats += session.stats_sent;
        self.ustats += session.ustats_sent;
        self.outages += session.outages;
        self.repairs_sent += session.repairs_sent;
        self.repairs_received += session.repairs_received;
        self.packets_recovered += session.packets_recovered;
    }

    fn add_streams(&mut self, streams: &Statistics) {
        self.opened += streams.opened;
        self.accepted += streams.accepted;
        self.bytes_sent += streams.bytes_sent;
        self.bytes_received += streams.bytes_received;
        self.bad_frames += streams.bad_frames + streams.credit_violations;
        self.coding.add(&streams.coding);
    }

    /// Adds the totals of another relay.
    pub fn add(&mut self, other: &Self) {
        self.sessions += other.sessions;
        self.segments_sent += other.segments_sent;
        self.octets_sent += other.octets_sent;
        self.segments_received += other.segments_received;
        self.octets_received += other.octets_received;
        self.data_sent += other.data_sent;
        self.retransmitted += other.retransmitted;
        self.duplicates += other.duplicates;
        self.polls += other.polls;
        self.stats += other.stats;
        self.ustats += other.ustats;
        self.outages += other.outages;
        self.repairs_sent += other.repairs_sent;
        self.repairs_received += other.repairs_received;
        self.packets_recovered += other.packets_recovered;
        self.mtu_probes += other.mtu_probes;
        self.mtu_falls += other.mtu_falls;
        self.opened += other.opened;
        self.accepted += other.accepted;
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        self.bad_frames += other.bad_frames;
        self.datagrams.add(&other.datagrams);
        self.coding.add(&other.coding);
    }
}
