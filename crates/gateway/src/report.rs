//! Reports of a gateway's run.

use crate::proxy::RefuseReason;
use relay::{CodingStatistics, PathView, Relay, Totals};
use serde::Serialize;
use std::collections::BTreeMap;
use units::{BitRate, Instant, Span};

/// Report of a gateway at its end.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// `terminal`, `hub` or `single`.
    pub role: &'static str,
    /// Run time in seconds.
    pub seconds: f64,
    /// The congestion controller.
    pub controller: &'static str,
    /// The connected peers at the end, at most a hundred of each shard.
    pub peers: Vec<PeerReport>,
    /// Counters of connections.
    pub connections: Counters,
    /// Counters of the datagram socket.
    pub udp: UdpCounters,
    /// Counters of associations.
    pub association: AssociationCounters,
    /// Counters of sessions and streams.
    #[serde(flatten)]
    pub traffic: Traffic,
    /// Traffic of a single gateway over the satellite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub single: Option<SingleReport>,
}

/// Traffic of a single gateway (two-segment splitting) over the satellite.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SingleReport {
    /// The congestion control of the connections over the satellite.
    pub congestion: String,
    /// Bytes written to them.
    pub bytes_to_satellite: u64,
    /// Segments that the kernel retransmitted.
    pub segments_retransmitted: u64,
    /// Bytes that the kernel retransmitted.
    pub bytes_retransmitted: u64,
}

/// State of the path to a peer.
#[derive(Clone, Debug, Serialize)]
pub struct PeerReport {
    /// The terminal's name, or the hub's address.
    pub peer: String,
    /// The controller's state.
    pub mode: &'static str,
    /// The current send rate: IP packets with link overhead, bit/s.
    pub rate_bits_per_second: Option<u64>,
    /// The rate that is cached for the next session, bit/s.
    pub confirmed_rate_bits_per_second: Option<u64>,
    /// The smoothed RTT, seconds.
    pub round_trip_seconds: Option<f64>,
    /// The path MTU, bytes.
    pub mtu: usize,
}

impl PeerReport {
    pub(crate) fn of(peer: String, now: Instant, path: PathView<'_>) -> Option<Self> {
        let seen = path.snapshot(now)?;
        Some(Self {
            peer,
            mode: seen.mode,
            rate_bits_per_second: path.rate(now).map(BitRate::as_bps),
            confirmed_rate_bits_per_second: path
                .path_metrics()
                .map(|metrics| metrics.rate.as_bps()),
            round_trip_seconds: seen.srtt.map(Span::as_secs_f64),
            mtu: path.mtu(),
        })
    }
}

/// Counters of compressed streams, in the direction from and to this side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Compression {
    /// Bytes of compressed streams before compression.
    pub plain_bytes_sent: u64,
    /// Bytes sent for them.
    pub coded_bytes_sent: u64,
    /// Bytes of compressed streams after decompression.
    pub plain_bytes_received: u64,
    /// Bytes received for them.
    pub coded_bytes_received: u64,
    /// Streams of which this side compressed its direction.
    pub streams_compressed: u64,
    /// Streams left as they are because of their content.
    pub streams_left_alone: u64,
    /// Streams left as they are because too many are compressed already.
    pub streams_refused: u64,
    /// Streams reset because what was received could not be decompressed.
    pub streams_damaged: u64,
}

impl Compression {
    /// Adds the counters of `other`.
    pub(crate) fn add(&mut self, other: &Self) {
        self.plain_bytes_sent += other.plain_bytes_sent;
        self.coded_bytes_sent += other.coded_bytes_sent;
        self.plain_bytes_received += other.plain_bytes_received;
        self.coded_bytes_received += other.coded_bytes_received;
        self.streams_compressed += other.streams_compressed;
        self.streams_left_alone += other.streams_left_alone;
        self.streams_refused += other.streams_refused;
        self.streams_damaged += other.streams_damaged;
    }
}

impl From<CodingStatistics> for Compression {
    fn from(of: CodingStatistics) -> Self {
        Self {
            plain_bytes_sent: of.plain_sent,
            coded_bytes_sent: of.coded_sent,
            plain_bytes_received: of.plain_received,
            coded_bytes_received: of.coded_received,
            streams_compressed: of.compressed,
            streams_left_alone: of.left_alone,
            streams_refused: of.refused,
            streams_damaged: of.damaged,
        }
    }
}

/// Counters of sessions and streams of all peers.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Traffic {
    /// Datagrams sent.
    pub datagrams_sent: u64,
    /// Datagrams received.
    pub datagrams_received: u64,
    /// Rejected datagrams: malformed, replayed, or from an unknown source.
    pub bad_datagrams: u64,
    /// XSTP sessions begun.
    pub sessions: u64,
    /// XSTP segments sent.
    pub segments_sent: u64,
    /// XSTP segments received.
    pub segments_received: u64,
    /// Acknowledgements of forwarded TCP connections that were removed from the queues.
    pub acks_filtered: u64,
    /// Forwarded packets sent with a compressed header.
    pub headers_compressed: u64,
    /// Bytes of headers that were not sent because of that.
    pub header_bytes_saved: u64,
    /// Forwarded packets received with a compressed header.
    pub headers_restored: u64,
    /// Forwarded packets dropped because their header could not be restored.
    pub headers_damaged: u64,
    /// SDs retransmitted.
    pub retransmitted: u64,
    /// Duplicate SDs received.
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
    /// Compression of streams.
    pub compression: Compression,
    /// Outages detected.
    pub outages: u64,
    /// Path MTU probes sent.
    pub mtu_probes: u64,
    /// Path MTU reductions.
    pub mtu_falls: u64,
    /// Streams opened, by either side.
    pub streams: u64,
    /// Stream bytes sent, without retransmissions.
    pub stream_bytes_sent: u64,
    /// Stream bytes received, without duplicates.
    pub stream_bytes_received: u64,
    /// Streams that this side reset or refused.
    pub resets_sent: u64,
    /// Streams that the peer reset or refused.
    pub resets_received: u64,
    /// Malformed frames.
    pub bad_frames: u64,
    /// Frames above the granted credit.
    pub credit_violations: u64,
    /// The smoothed RTT, seconds; the maximum over the peers.
    pub round_trip_seconds: Option<f64>,
}

impl Traffic {
    /// Adds the totals of relays.
    pub(crate) fn add_totals(&mut self, totals: &Totals) {
        self.sessions += totals.sessions;
        self.segments_sent += totals.segments_sent;
        self.segments_received += totals.segments_received;
        self.acks_filtered += totals.datagrams.acks_filtered;
        self.headers_compressed += totals.datagrams.headers_compressed;
        self.header_bytes_saved += totals.datagrams.header_bytes_saved;
        self.headers_restored += totals.datagrams.headers_restored;
        self.headers_damaged += totals.datagrams.headers_damaged;
        self.retransmitted += totals.retransmitted;
        self.duplicates += totals.duplicates;
        self.polls += totals.polls;
        self.stats += totals.stats;
        self.ustats += totals.ustats;
        self.repairs_sent += totals.repairs_sent;
        self.repairs_received += totals.repairs_received;
        self.packets_recovered += totals.packets_recovered;
        self.compression.add(&totals.coding.into());
        self.outages += totals.outages;
        self.mtu_probes += totals.mtu_probes;
        self.mtu_falls += totals.mtu_falls;
        self.streams += totals.opened + totals.accepted;
        self.stream_bytes_sent += totals.bytes_sent;
        self.stream_bytes_received += totals.bytes_received;
    }

    /// Adds the counters of a relay's current session.
    pub(crate) fn add(&mut self, relay: &Relay) {
        let streams = relay.statistics();
        self.resets_sent += streams.resets_sent;
        self.resets_received += streams.resets_received;
        self.bad_frames += streams.bad_frames;
        self.credit_violations += streams.credit_violations;
        let round_trip = relay.round_trip().map(Span::as_secs_f64);
        self.round_trip_seconds = match (self.round_trip_seconds, round_trip) {
            (Some(one), Some(other)) => Some(one.max(other)),
            (one, other) => one.or(other),
        };
    }
}

/// Counters of connections.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Counters {
    /// Clients accepted, at a terminal.
    pub accepted: u64,
    /// Streams opened, at a terminal by clients, at a hub by terminals.
    pub opened: u64,
    /// Servers connected to, at a hub.
    pub connected: u64,
    /// Connection attempts: several addresses of one server may be tried at a time.
    pub connect_attempts: u64,
    /// Connections refused, by reason.
    pub refused: BTreeMap<&'static str, u64>,
    /// Connections refused because a limit was reached, by limit.
    pub limited: BTreeMap<&'static str, u64>,
    /// Connections that ended in order in both directions.
    pub completed: u64,
    /// Connections that a reset or error of a socket ended.
    pub reset_by_sockets: u64,
    /// Connections that the peer gateway reset.
    pub reset_by_peer: u64,
    /// Connections that ended because the peer gateway was lost.
    pub lost_with_peer: u64,
    /// Connections whose client or server did not respond any more.
    pub vanished: u64,
    /// Idle connections that were reclaimed for a client with fewer.
    pub reclaimed: u64,
    /// Connections that were idle for `limits.idle`.
    pub idle: u64,
    /// Clients whose proxy requests were malformed or too slow.
    pub bad_requests: u64,
    /// Intercepted clients whose SYN was held.
    pub syns_held: u64,
    /// Intercepted clients that did not connect after their server had answered.
    pub syns_abandoned: u64,
    /// Overruns of the buffer for SYNs to be held; clients retransmit them.
    pub syn_log_overruns: u64,
    /// Clients that connected directly to a transparent listener.
    pub not_intercepted: u64,
    /// Servers that were not connected to from the client's own address.
    pub source_fallbacks: u64,
    /// Pauses of accepting, without descriptors or at the limit.
    pub accept_pauses: u64,
    /// Direct connections of a terminal, while no hub responded.
    pub direct: u64,
    /// Number of times that bypassing began.
    pub bypass_activations: u64,
    /// Whether new connections bypass the gateway: 1, or 0.
    pub bypass_active: u64,
    /// Maximum number of concurrent connections.
    pub peak_connections: u64,
    /// The tunnel interface of packets that are forwarded unsplit.
    pub forwarded: ForwardCounters,
    /// Messages to a MAC scheduler about connections, at a hub.
    pub mac_messages: u64,
    /// Such messages that were not delivered.
    pub mac_send_errors: u64,
    /// Rounds of the readiness loop.
    pub rounds: u64,
    /// Bytes read from clients and servers.
    pub bytes_from_sockets: u64,
    /// Bytes written to clients and servers.
    pub bytes_to_sockets: u64,
}

impl Counters {
    /// Counts a connection refused by the limit `what`.
    pub(crate) fn limited(&mut self, what: &'static str) {
        *self.limited.entry(what).or_default() += 1;
    }

    /// Counts a connection that was refused.
    pub(crate) fn refused(&mut self, reason: RefuseReason) {
        let name = match reason {
            RefuseReason::ConnectionRefused => "connection_refused",
            RefuseReason::HostUnreachable => "host_unreachable",
            RefuseReason::NetworkUnreachable => "network_unreachable",
            RefuseReason::TimedOut => "timed_out",
            RefuseReason::Policy => "policy",
            RefuseReason::NameNotFound => "name_not_found",
            RefuseReason::Limit => "limit",
            RefuseReason::Other => "other",
        };
        *self.refused.entry(name).or_default() += 1;
    }
}

/// The tunnel interface of packets that are forwarded unsplit.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ForwardCounters {
    /// Packets from the interface to the peer gateway.
    pub sent: u64,
    /// Packets from the peer gateway to the interface.
    pub received: u64,
    /// Packets that are not between two hosts, or the gateway's own datagrams.
    pub left_alone: u64,
    /// Packets without a connected peer, or for a network without a terminal.
    pub nowhere: u64,
    /// At a hub: packets with a source outside the terminal's networks.
    pub foreign_source: u64,
    /// At a hub: packets to a destination that terminals may not reach.
    pub denied: u64,
    /// Packets of the peer gateway while this one does not forward.
    pub unwanted: u64,
    /// Packets that the kernel refused.
    pub not_taken: u64,
    /// TCP connections among the packets.
    pub tcp: ForwardedTcp,
}

/// TCP connections that are forwarded unsplit, with `spoof` or `space_acks`.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct ForwardedTcp {
    /// Connections with state now.
    pub flows: usize,
    /// Memory of stored segments now, bytes.
    pub stored_bytes: usize,
    /// Connections whose handshake was seen.
    pub opened: u64,
    /// Connections whose data was acknowledged early.
    pub spoofed: u64,
    /// Acknowledgements that were made for senders on this side.
    pub early_acks: u64,
    /// Acknowledgements of receivers that were suppressed.
    pub suppressed: u64,
    /// Segments that were retransmitted from here.
    pub retransmitted: u64,
    /// Retransmissions of senders that were not forwarded.
    pub duplicates: u64,
    /// Acknowledgements that were regenerated.
    pub regenerated: u64,
    /// Segments for which there was no memory.
    pub no_room: u64,
    /// Segments outside the windows, or damaged.
    pub implausible: u64,
    /// Connections that were reset with stored data.
    pub aborted: u64,
}

/// Counters of the datagram socket.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct UdpCounters {
    /// Datagrams received.
    pub received: u64,
    /// Bytes of UDP payload received.
    pub received_bytes: u64,
    /// Datagrams sent.
    pub sent: u64,
    /// Bytes of UDP payload sent.
    pub sent_bytes: u64,
    /// System calls that sent them.
    pub send_calls: u64,
    /// Calls that failed because the send buffer was full.
    pub send_full: u64,
    /// Datagrams that the kernel refused for another reason than a full send buffer.
    pub send_errors: u64,
}

impl UdpCounters {
    /// Adds the counters of another socket.
    pub(crate) fn add(&mut self, other: &Self) {
        let Self { received, received_bytes, sent, sent_bytes, send_calls, send_full, send_errors } =
            other;
        self.received += received;
        self.received_bytes += received_bytes;
        self.sent += sent;
        self.sent_bytes += sent_bytes;
        self.send_calls += send_calls;
        self.send_full += send_full;
        self.send_errors += send_errors;
    }
}

/// Counters of associations.
#[derive(Clone, Debug, Default, Serialize)]
pub struct AssociationCounters {
    /// Datagrams sealed.
    pub sealed: u64,
    /// Datagrams opened.
    pub opened: u64,
    /// Hellos sent (terminal) or answered (hub).
    pub hellos: u64,
    /// Unknowns sent (hub) or accepted (terminal).
    pub unknowns: u64,
    /// Key renewals.
    pub renewals: u64,
    /// Cookies sent (hub, under load) or received (terminal).
    pub cookies: u64,
    /// Cookies and Unknowns that a hub's response rate limit suppressed.
    pub withheld: BTreeMap<&'static str, u64>,
    /// Rejected datagrams, by reason.
    pub dropped: BTreeMap<&'static str, u64>,
}
