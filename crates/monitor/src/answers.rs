//! Responses of a gateway, as far as they are displayed.

use serde::Deserialize;
use std::collections::BTreeMap;

/// The status of a gateway.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Status {
    /// Identification of the gateway.
    pub gateway: Gateway,
    /// Open connections.
    pub open: u64,
    /// Maximum number of connections.
    pub limit: u64,
    /// Counters of connections.
    pub connections: Connections,
    /// The datagram socket.
    pub udp: Udp,
    /// Counters of associations.
    pub association: Association,
    /// Counters of name lookups.
    pub resolver: Resolver,
    /// Status of each terminal.
    pub terminals: Vec<Terminal>,
    /// The readiness loop.
    #[serde(rename = "loop")]
    pub rounds: Loop,
    /// Resource usage of the process.
    pub process: Process,
}

/// Identification of a gateway.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Gateway {
    /// `terminal` or `hub`.
    pub role: String,
    /// Name of the gateway.
    pub name: String,
    /// Version of the program.
    pub version: String,
    /// Congestion controller.
    pub controller: String,
    /// Local UDP address.
    pub link: Option<String>,
    /// Addresses and interfaces that are not available yet.
    pub waiting: Vec<String>,
    /// Process id.
    pub pid: u32,
    /// Time since start in seconds.
    pub uptime_seconds: f64,
    /// Start, seconds since 1970.
    pub started_unix_seconds: f64,
}

/// Counters of connections.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Connections {
    /// Clients accepted.
    pub accepted: u64,
    /// Streams opened.
    pub opened: u64,
    /// Connections established to servers.
    pub connected: u64,
    /// Refused connections by reason.
    pub refused: BTreeMap<String, u64>,
    /// Connections that ended normally.
    pub completed: u64,
    /// Connections that ended with a socket error.
    pub reset_by_sockets: u64,
    /// Connections that the peer gateway reset.
    pub reset_by_peer: u64,
    /// Connections that ended with their session.
    pub lost_with_peer: u64,
    /// Connections with an unresponsive end.
    pub vanished: u64,
    /// Octets received from clients and servers.
    pub bytes_from_sockets: u64,
    /// Octets sent to clients and servers.
    pub bytes_to_sockets: u64,
}

/// Counters of name lookups.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Resolver {
    /// Requested names.
    pub queries: u64,
    /// Names resolved from the cache.
    pub cache_hits: u64,
    /// Names without addresses.
    pub not_found: u64,
    /// Names without a response.
    pub no_answer: u64,
    /// Names refused because of the limit of pending lookups.
    pub refused: u64,
    /// Lookups in progress.
    pub in_flight: u64,
    /// Queries that wait for a lookup slot.
    pub queued: u64,
}

/// The datagram socket.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Udp {
    /// Datagrams received.
    pub received: u64,
    /// Octets received.
    pub received_bytes: u64,
    /// Datagrams sent.
    pub sent: u64,
    /// Octets sent.
    pub sent_bytes: u64,
}

/// Counters of associations.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Association {
    /// Rejected datagrams by reason.
    pub dropped: BTreeMap<String, u64>,
}

/// The readiness loop.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Loop {
    /// Wake-up latency.
    pub late: Times,
    /// Duration of iterations.
    pub busy: Times,
}

/// A distribution of times.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Times {
    /// Maximum in seconds.
    pub most_seconds: f64,
}

/// The process.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Process {
    /// Processor time in seconds.
    pub cpu_seconds: f64,
    /// Resident memory in octets.
    pub resident_bytes: Option<u64>,
    /// Open descriptors.
    pub open_descriptors: Option<u64>,
    /// Limit of descriptors.
    pub max_descriptors: Option<u64>,
}

/// Status of one terminal.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Terminal {
    /// Name of the terminal.
    pub terminal: String,
    /// Address of the peer gateway.
    pub address: String,
    /// What carries the datagrams: `udp` or `tls`.
    pub carrier: String,
    /// Whether the connections of the path use others as well.
    pub bonded: bool,
    /// Whether there is a session.
    pub connected: bool,
    /// State of the path for new connections.
    pub health: Option<String>,
    /// Time of the last change of that state, seconds since 1970.
    pub since_unix_seconds: Option<f64>,
    /// Time since the last received segment in seconds.
    pub idle_seconds: Option<f64>,
    /// State of the congestion controller.
    pub mode: String,
    /// Rate plan, at a hub.
    pub plan: Option<String>,
    /// Allocation of a hub's link while data is queued.
    pub share_bits_per_second: Option<u64>,
    /// Send rate limit.
    pub rate_bits_per_second: Option<u64>,
    /// Smoothed round-trip time.
    pub round_trip_seconds: Option<f64>,
    /// Queuing delay of the forward path.
    pub queuing_delay_seconds: Option<f64>,
    /// Duration of the current outage.
    pub outage_seconds: Option<f64>,
    /// Path MTU in octets.
    pub mtu_bytes: u64,
    /// Open streams.
    pub streams: u64,
    /// Data packets, first transmissions.
    pub data_sent: u64,
    /// Data packets retransmitted.
    pub retransmitted: u64,
    /// Stream octets sent, without retransmissions.
    pub stream_bytes_sent: u64,
    /// Stream octets received.
    pub stream_bytes_received: u64,
    /// Octets of segments sent.
    pub segment_bytes_sent: u64,
    /// Octets of segments received.
    pub segment_bytes_received: u64,
    /// Used send buffer.
    pub send_buffered_bytes: u64,
    /// Limit of the send buffer.
    pub send_buffer_limit_bytes: u64,
    /// State of the terminal's gateway as it reports it, at a hub.
    pub report: Option<Report>,
}

impl Terminal {
    /// Octets sent and received: of streams, or of segments if streams use several paths.
    pub fn carried(&self) -> (u64, u64) {
        if self.bonded {
            (self.segment_bytes_sent, self.segment_bytes_received)
        } else {
            (self.stream_bytes_sent, self.stream_bytes_received)
        }
    }
}

/// State of a terminal's gateway, by its last report.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Report {
    /// Its version.
    pub version: String,
    /// Start of its process, seconds since 1970.
    pub started_unix_seconds: f64,
    /// Its paths.
    pub paths: Vec<ReportedPath>,
    /// Its open connections.
    pub connections: u64,
    /// Connections refused.
    pub connections_refused: u64,
    /// Connections lost with a session.
    pub connections_lost: u64,
    /// Its last warnings and errors, the newest first.
    pub messages: Vec<ReportedMessage>,
}

/// A path of a terminal.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ReportedPath {
    /// Its name; empty if the terminal has only one.
    pub path: String,
    /// `well`, `recovering`, `poor` or `down`.
    pub health: String,
}

/// A line of a terminal's log.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ReportedMessage {
    /// Its time, seconds since 1970.
    pub unix_seconds: f64,
    /// Its text.
    pub text: String,
}

/// A page of connections.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Page {
    /// The connections.
    pub connections: Vec<Connection>,
    /// Whether there are more.
    pub more: bool,
}

/// One connection.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Connection {
    /// Connection number.
    pub number: u64,
    /// Name of the terminal, at a hub.
    pub terminal: Option<String>,
    /// Address of the client.
    pub client: Option<String>,
    /// Address of the server.
    pub server: Option<String>,
    /// Phase of the connection.
    pub state: String,
    /// Class in which its gateway sends its data.
    #[serde(default)]
    pub class: Option<String>,
    /// Age in seconds.
    pub age_seconds: f64,
    /// Octets read from its socket.
    pub bytes_from_socket: u64,
    /// Octets written to its socket.
    pub bytes_to_socket: u64,
}
