//! What a gateway answers, as far as people are shown it.

use serde::Deserialize;
use std::collections::BTreeMap;

/// A gateway at one moment.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Status {
    /// Which one.
    pub gateway: Gateway,
    /// Connections now.
    pub open: u64,
    /// Connections at once, at most.
    pub limit: u64,
    /// What became of connections.
    pub connections: Connections,
    /// The datagram socket.
    pub udp: Udp,
    /// Associations.
    pub association: Association,
    /// Names that are looked up.
    pub resolver: Resolver,
    /// Each terminal's way.
    pub terminals: Vec<Terminal>,
    /// The readiness loop.
    #[serde(rename = "loop")]
    pub rounds: Loop,
    /// The process.
    pub process: Process,
}

/// Which gateway.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Gateway {
    /// `terminal` or `hub`.
    pub role: String,
    /// Its name.
    pub name: String,
    /// The program's version.
    pub version: String,
    /// What decides how fast it sends.
    pub controller: String,
    /// Where it receives datagrams.
    pub link: Option<String>,
    /// Addresses and interfaces that it waits for.
    pub waiting: Vec<String>,
    /// Its process.
    pub pid: u32,
    /// For how long it has run.
    pub uptime_seconds: f64,
}

/// What became of connections.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Connections {
    /// Clients accepted.
    pub accepted: u64,
    /// Streams opened.
    pub opened: u64,
    /// Servers reached.
    pub connected: u64,
    /// Refused, by reason.
    pub refused: BTreeMap<String, u64>,
    /// Ended after their last byte.
    pub completed: u64,
    /// Ended by a socket's error.
    pub reset_by_sockets: u64,
    /// Ended by the other gateway.
    pub reset_by_peer: u64,
    /// Ended with the other gateway.
    pub lost_with_peer: u64,
    /// Ended because an end had vanished.
    pub vanished: u64,
    /// Bytes from clients and servers.
    pub bytes_from_sockets: u64,
    /// Bytes to clients and servers.
    pub bytes_to_sockets: u64,
}

/// Names that are looked up.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Resolver {
    /// Names asked for.
    pub queries: u64,
    /// Of these, answered from the cache.
    pub cache_hits: u64,
    /// Without addresses.
    pub not_found: u64,
    /// Without an answer.
    pub no_answer: u64,
    /// Refused because too many waited.
    pub refused: u64,
    /// Lookups in flight now.
    pub in_flight: u64,
    /// Queries that wait for their lookup to begin.
    pub queued: u64,
}

/// The datagram socket.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Udp {
    /// Datagrams received.
    pub received: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Datagrams sent.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
}

/// Associations.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Association {
    /// Datagrams that were not taken, by reason.
    pub dropped: BTreeMap<String, u64>,
}

/// The readiness loop.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Loop {
    /// How late it woke.
    pub late: Times,
    /// How long its rounds took.
    pub busy: Times,
}

/// Lengths of time.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Times {
    /// The longest.
    pub most_seconds: f64,
}

/// The process.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Process {
    /// Time on processors.
    pub cpu_seconds: f64,
    /// Memory in use.
    pub resident_bytes: Option<u64>,
    /// Open descriptors.
    pub open_descriptors: Option<u64>,
    /// Descriptors that it may have.
    pub max_descriptors: Option<u64>,
}

/// One terminal's way.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Terminal {
    /// Its name.
    pub terminal: String,
    /// Where the other gateway is.
    pub address: String,
    /// Whether there is a session.
    pub connected: bool,
    /// How a terminal's path is in the eyes of new connections.
    pub health: Option<String>,
    /// Since when, seconds since 1970.
    pub since_unix_seconds: Option<f64>,
    /// For how long it has not been heard.
    pub idle_seconds: Option<f64>,
    /// What the controller does.
    pub mode: String,
    /// Its plan, at a hub.
    pub plan: Option<String>,
    /// What it has of a hub's link, while it wants all that it gets.
    pub share_bits_per_second: Option<u64>,
    /// The rate at which the gateway may send.
    pub rate_bits_per_second: Option<u64>,
    /// The smoothed round trip.
    pub round_trip_seconds: Option<f64>,
    /// What waits on the way.
    pub queuing_delay_seconds: Option<f64>,
    /// For how long there has been an outage.
    pub outage_seconds: Option<f64>,
    /// Largest IP packet.
    pub mtu_bytes: u64,
    /// Streams kept.
    pub streams: u64,
    /// Data packets, first transmissions.
    pub data_sent: u64,
    /// Data packets retransmitted.
    pub retransmitted: u64,
    /// Stream bytes sent, each once.
    pub stream_bytes_sent: u64,
    /// Stream bytes received.
    pub stream_bytes_received: u64,
    /// Send buffer in use.
    pub send_buffered_bytes: u64,
    /// Its bound.
    pub send_buffer_limit_bytes: u64,
}

/// Some of the connections.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Page {
    /// They.
    pub connections: Vec<Connection>,
    /// Whether there are more.
    pub more: bool,
}

/// One connection.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Connection {
    /// Its number.
    pub number: u64,
    /// Its terminal, at a hub.
    pub terminal: Option<String>,
    /// Who connected.
    pub client: Option<String>,
    /// Where to.
    pub server: Option<String>,
    /// How far it has come.
    pub state: String,
    /// For how long it has been there.
    pub age_seconds: f64,
    /// Bytes read from its socket.
    pub bytes_from_socket: u64,
    /// Bytes written to its socket.
    pub bytes_to_socket: u64,
}
