//! Status of a running gateway: on the control socket as JSON, and as metrics.

use crate::Commitment;
use crate::report::{
    AssociationCounters, Compression, Counters, SingleReport, Traffic, UdpCounters,
};
use relay::health::HealthState;
use relay::{ReportedCounters, ReportedMessage, ReportedPath, TerminalReport};
use serde::Serialize;

/// Status of a gateway at one time.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// Identity of the gateway.
    pub gateway: GatewayStatus,
    /// Counters of the whole gateway.
    #[serde(flatten)]
    pub counted: Counted,
    /// Path of each terminal: at a terminal its own, at a hub those of connected terminals.
    pub terminals: Vec<TerminalStatus>,
    /// Timeliness of the readiness loop.
    #[serde(rename = "loop")]
    pub rounds: LoopStatus,
    /// Resource usage of the process.
    pub process: ProcessStatus,
}

/// Identity of a gateway.
#[derive(Clone, Debug, Serialize)]
pub struct GatewayStatus {
    /// `terminal`, `hub` or `single`.
    pub role: &'static str,
    /// The terminal's name, or the hub's id.
    pub name: String,
    /// The program's version.
    pub version: &'static str,
    /// The congestion controller.
    pub controller: &'static str,
    /// Addresses on which it receives datagrams.
    pub link: Option<String>,
    /// Configured addresses and interfaces that this host does not have now.
    pub waiting: Vec<String>,
    /// Its process id.
    pub pid: u32,
    /// Start time, seconds since 1970.
    pub started_unix_seconds: f64,
    /// Run time, seconds.
    pub uptime_seconds: f64,
}

/// Counters of the gateway as a whole.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Counted {
    /// Number of connections.
    pub open: u64,
    /// Maximum number of connections.
    pub limit: u64,
    /// Counters of connections.
    pub connections: Counters,
    /// Counters of the datagram socket.
    pub udp: UdpCounters,
    /// Counters of associations.
    pub association: AssociationCounters,
    /// Counters of sessions and streams of all terminals, including former ones.
    pub traffic: Traffic,
    /// Counters of name resolution.
    pub resolver: ResolverStatus,
    /// Counters of a terminal's DNS forwarder, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dns: Option<DnsStatus>,
    /// Committed rates of a hub's plans; empty without configured rates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commitments: Vec<CommitmentStatus>,
    /// The shards of a hub; empty if there is one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shards: Vec<ShardStatus>,
    /// Traffic of a single gateway over the satellite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub single: Option<SingleReport>,
}

/// One of the threads among which a hub divides its terminals.
#[derive(Clone, Debug, Serialize)]
pub struct ShardStatus {
    /// Its number, from 0.
    pub shard: usize,
    /// Number of connected terminals.
    pub terminals: u64,
    /// Number of connections.
    pub connections: u64,
    /// Processor time of its thread, seconds.
    pub cpu_seconds: f64,
    /// Datagrams that its socket has received.
    pub datagrams_received: u64,
    /// Datagrams that the sockets of other shards have received for it: handshakes of its terminals,
    /// and those that the kernel could not distribute.
    pub datagrams_handed_over: u64,
    /// Datagrams that other shards could not hand over because it was too busy.
    pub hand_over_drops: u64,
}

/// Committed rates of a hub's plans in one direction, of the link or of a plan's total.
#[derive(Clone, Debug, Serialize)]
pub struct CommitmentStatus {
    /// `up` or `down`.
    pub direction: &'static str,
    /// The plan whose total is committed; `None`: the link.
    pub plan: Option<String>,
    /// Sum of the rates committed to configured terminals, bit/s.
    pub committed_bits_per_second: u64,
    /// Maximum of that sum, bit/s; if it is exceeded, commitments are met in proportion.
    pub max_bits_per_second: u64,
}

impl CommitmentStatus {
    pub(crate) fn of(commitment: &Commitment) -> Self {
        Self {
            direction: commitment.direction,
            plan: commitment.plan.clone(),
            committed_bits_per_second: commitment.committed_bps,
            max_bits_per_second: commitment.limit().as_bps(),
        }
    }
}

/// Counters of name resolution, for connections by name.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ResolverStatus {
    /// Queries of connections.
    pub queries: u64,
    /// Of these, answered from the cache.
    pub cache_hits: u64,
    /// Finished lookups; concurrent queries for one name share a lookup.
    pub lookups: u64,
    /// Queries for names that do not exist or have no addresses, without those answered from the
    /// cache.
    pub not_found: u64,
    /// Queries that timed out, or that all name servers answered with an error.
    pub no_answer: u64,
    /// Queries refused because too many were queued.
    pub refused: u64,
    /// Queries cancelled before they were answered.
    pub cancelled: u64,
    /// Lookups in flight.
    pub in_flight: u64,
    /// Queued queries.
    pub queued: u64,
    /// Names in the cache.
    pub cached: u64,
    /// Durations of queries that were looked up and answered.
    pub latency: super::Histogram,
}

/// Counters of a terminal's DNS forwarder.
#[derive(Clone, Debug, Default, Serialize)]
pub struct DnsStatus {
    /// Messages of clients.
    pub queries: u64,
    /// Responses from the cache.
    pub hits: u64,
    /// Of these, expired ones.
    pub stale: u64,
    /// Look-ups begun at the hub's name servers.
    pub lookups: u64,
    /// Of these, renewals of responses that were about to expire.
    pub prefetches: u64,
    /// Responses with a placeholder, or without records beside one.
    pub placeholders: u64,
    /// Connections opened by name instead of by address.
    pub opened_by_name: u64,
    /// Look-ups that failed, or that the name servers could not answer.
    pub failures: u64,
    /// Look-ups without a response in time.
    pub timeouts: u64,
    /// Queries and look-ups above the limits.
    pub refused: u64,
    /// Malformed messages of clients, and those that are no queries.
    pub bad_queries: u64,
    /// Malformed responses, and those with another id or question.
    pub bad_responses: u64,
    /// Look-ups in flight.
    pub in_flight: u64,
    /// Responses in the cache.
    pub cached: u64,
    /// Memory of the cache, octets.
    pub cache_bytes: u64,
}

/// Path of one terminal, as measured at this side.
#[derive(Clone, Debug, Serialize)]
pub struct TerminalStatus {
    /// The terminal's name.
    pub terminal: String,
    /// Address of the peer gateway.
    pub address: String,
    /// What carries the datagrams: `udp`, or `tls`.
    pub carrier: &'static str,
    /// Whether the connections of the path use others as well; their streams are those of the first.
    pub bonded: bool,
    /// Health of a terminal's path, for new connections: `well`, `recovering`, `poor` or `down`.
    pub health: Option<&'static str>,
    /// Failures of a terminal's path.
    pub failures: u64,
    /// Whether there is a session.
    pub connected: bool,
    /// Start of the session, seconds since 1970.
    pub since_unix_seconds: Option<f64>,
    /// Time of the last packet from the peer, seconds since 1970.
    pub last_received_unix_seconds: Option<f64>,
    /// Time since the last packet from the peer, seconds.
    pub idle_seconds: Option<f64>,
    /// The controller's state.
    pub mode: &'static str,
    /// The terminal's plan, at a hub.
    pub plan: Option<String>,
    /// Its share of the forward link, where that is divided by plans, bit/s.
    pub share_bits_per_second: Option<u64>,
    /// Rate committed to it on the forward link, bit/s.
    pub committed_bits_per_second: Option<u64>,
    /// Configured maximum send rate: at a hub to each terminal, at a terminal its own.
    pub granted_bits_per_second: Option<u64>,
    /// Number of times that it exceeded that rate for seconds.
    pub grant_overuse: u64,
    /// Current send rate: IP packets with link overhead, bit/s.
    pub rate_bits_per_second: Option<u64>,
    /// Confirmed rate of the path, bit/s.
    pub confirmed_rate_bits_per_second: Option<u64>,
    /// The smoothed RTT, seconds.
    pub round_trip_seconds: Option<f64>,
    /// The minimum RTT, seconds.
    pub min_round_trip_seconds: Option<f64>,
    /// Queuing delay towards the peer, if the controller measures it.
    pub queuing_delay_seconds: Option<f64>,
    /// Duration of the current outage, if there is one.
    pub outage_seconds: Option<f64>,
    /// Largest IP packet sent.
    pub mtu_bytes: u64,
    /// Number of streams.
    pub streams: u64,
    /// Unacknowledged payload, bytes.
    pub outstanding_bytes: u64,
    /// Packets queued for retransmission.
    pub retransmit_queue_packets: u64,
    /// Send buffer in use.
    pub send_buffered_bytes: u64,
    /// Maximum send buffer, bytes.
    pub send_buffer_limit_bytes: u64,
    /// Receive credit granted to the peer, bytes.
    pub receive_credit_bytes: u64,
    /// Maximum receive credit, bytes.
    pub receive_limit_bytes: u64,
    /// Memory of received data, bytes.
    pub receive_memory_bytes: u64,
    /// State of the terminal's gateway as it reports it, at a hub.
    pub report: Option<ReportStatus>,
    /// Counters since the association was established.
    #[serde(flatten)]
    pub counters: PathCounters,
}

/// State of a terminal's gateway, by its last report.
#[derive(Clone, Debug, Serialize)]
pub struct ReportStatus {
    /// Its version.
    pub version: String,
    /// Start of its process, seconds since 1970.
    pub started_unix_seconds: u64,
    /// Its paths.
    pub paths: Vec<ReportedPathStatus>,
    /// Its open connections.
    pub connections: u64,
    /// Connections opened since its start.
    pub connections_opened: u64,
    /// Connections refused since its start.
    pub connections_refused: u64,
    /// Connections lost with a session since its start.
    pub connections_lost: u64,
    /// Datagrams that it has dropped.
    pub datagrams_dropped: u64,
    /// Its last warnings and errors, the newest first.
    pub messages: Vec<ReportedMessageStatus>,
}

/// A path of a terminal.
#[derive(Clone, Debug, Serialize)]
pub struct ReportedPathStatus {
    /// Its name; empty if the terminal has only one.
    pub path: String,
    /// `well`, `recovering`, `poor` or `down`.
    pub health: &'static str,
    /// Number of failures.
    pub failures: u64,
}

/// A line of a terminal's log.
#[derive(Clone, Debug, Serialize)]
pub struct ReportedMessageStatus {
    /// Its time, seconds since 1970.
    pub unix_seconds: u64,
    /// Its text.
    pub text: String,
}

impl ReportStatus {
    /// Returns the status of a report.
    pub(crate) fn new(report: TerminalReport) -> Self {
        let ReportedCounters { open, opened, refused, lost, dropped } = report.counters;
        let path = |path: ReportedPath| ReportedPathStatus {
            path: path.name,
            health: HealthState::ALL[usize::from(path.state.min(3))].as_str(),
            failures: path.failures,
        };
        let message = |message: ReportedMessage| ReportedMessageStatus {
            unix_seconds: message.unix_s,
            text: message.text,
        };
        Self {
            version: report.release,
            started_unix_seconds: report.started_unix_s,
            paths: report.paths.into_iter().map(path).collect(),
            connections: open,
            connections_opened: opened,
            connections_refused: refused,
            connections_lost: lost,
            datagrams_dropped: dropped,
            messages: report.messages.into_iter().map(message).collect(),
        }
    }
}

/// Counters of one terminal's sessions.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PathCounters {
    /// Sessions begun.
    pub sessions: u64,
    /// XSTP segments sent.
    pub segments_sent: u64,
    /// Bytes of these, without lower layers.
    pub segment_bytes_sent: u64,
    /// XSTP segments received.
    pub segments_received: u64,
    /// Bytes of these, without lower layers.
    pub segment_bytes_received: u64,
    /// SDs transmitted for the first time.
    pub data_sent: u64,
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
    /// Streams opened, by either side.
    pub streams_opened: u64,
    /// Stream bytes sent, without retransmissions.
    pub stream_bytes_sent: u64,
    /// Stream bytes received, without duplicates.
    pub stream_bytes_received: u64,
    /// Malformed frames.
    pub bad_frames: u64,
}

/// Timeliness of the readiness loop.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LoopStatus {
    /// Delays of waking for timeouts.
    pub late: super::Histogram,
    /// Durations of its rounds, from waking to waiting.
    pub busy: super::Histogram,
}

/// Resource usage of the process.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ProcessStatus {
    /// Processor time, seconds.
    pub cpu_seconds: f64,
    /// Resident memory, bytes.
    pub resident_bytes: Option<u64>,
    /// Open descriptors.
    pub open_descriptors: Option<u64>,
    /// Maximum number of descriptors.
    pub max_descriptors: Option<u64>,
    /// Dropped log lines.
    pub log_lines_dropped: u64,
}

/// One connection.
#[derive(Clone, Debug, Serialize)]
pub struct ConnectionStatus {
    /// Its number, unique while the gateway runs.
    pub number: u64,
    /// Its terminal, at a hub.
    pub terminal: Option<String>,
    /// Address of the client, if known.
    pub client: Option<String>,
    /// Destination.
    pub server: Option<String>,
    /// Its stage; `open` when bytes are transferred.
    pub state: &'static str,
    /// Class in which this side would send its data now, if it has a stream: `urgent`,
    /// `interactive`, `bulk` or `background`.
    pub class: Option<&'static str>,
    /// Start time, seconds since 1970.
    pub since_unix_seconds: u64,
    /// Age, seconds.
    pub age_seconds: f64,
    /// Bytes read from its socket here.
    pub bytes_from_socket: u64,
    /// Bytes written to its socket here.
    pub bytes_to_socket: u64,
}

/// A page of connections in the order of their numbers.
#[derive(Clone, Debug, Serialize)]
pub struct Page {
    /// The connections.
    pub connections: Vec<ConnectionStatus>,
    /// Whether more follow.
    pub more: bool,
}
