//! Status of a running gateway: on the control socket as JSON, and as metrics.

use crate::Promised;
use crate::report::{AssociationCounters, Counters, SingleReport, Traffic, UdpCounters};
use serde::Serialize;

/// A gateway at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// Which gateway, and since when.
    pub gateway: GatewayStatus,
    /// What is counted for the whole.
    #[serde(flatten)]
    pub counted: Counted,
    /// Each terminal's way: at a terminal its own, at a hub those that are there.
    pub terminals: Vec<TerminalStatus>,
    /// How timely the readiness loop is.
    #[serde(rename = "loop")]
    pub rounds: LoopStatus,
    /// What the process uses.
    pub process: ProcessStatus,
}

/// Which gateway this is.
#[derive(Clone, Debug, Serialize)]
pub struct GatewayStatus {
    /// `terminal`, `hub` or `single`.
    pub role: &'static str,
    /// The terminal's name, or the hub's id.
    pub name: String,
    /// The program's version.
    pub version: &'static str,
    /// What decides how fast it sends.
    pub controller: &'static str,
    /// Where it receives datagrams.
    pub link: Option<String>,
    /// Addresses and interfaces of the configuration that this host does not have now.
    pub waiting: Vec<String>,
    /// Its process.
    pub pid: u32,
    /// When it began, seconds since 1970.
    pub started_unix_seconds: f64,
    /// For how long it has run, seconds.
    pub uptime_seconds: f64,
}

/// What is counted for the gateway as a whole.
#[derive(Clone, Debug, Serialize)]
pub struct Counted {
    /// Connections now.
    pub open: u64,
    /// Connections at once, at most.
    pub limit: u64,
    /// Counters of connections.
    pub connections: Counters,
    /// The datagram socket.
    pub udp: UdpCounters,
    /// Associations.
    pub association: AssociationCounters,
    /// Sessions and streams, all terminals together, those included that are gone.
    pub traffic: Traffic,
    /// Names that are looked up.
    pub resolver: ResolverStatus,
    /// What a hub's plans promise; none where no rate is known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub promised: Vec<PromisedStatus>,
    /// What a gateway without a partner sent over the satellite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub single: Option<SingleReport>,
}

/// What a hub's plans promise one way, of the link or of what a plan has in all.
#[derive(Clone, Debug, Serialize)]
pub struct PromisedStatus {
    /// `up` or `down`.
    pub way: &'static str,
    /// The plan of whose total it is promised; `None`: of the link.
    pub plan: Option<String>,
    /// What is committed to terminals that the configuration names.
    pub committed_bits_per_second: u64,
    /// What commitments may take; where they are more they are met in proportion.
    pub most_bits_per_second: u64,
}

impl PromisedStatus {
    pub(crate) fn of(promised: &Promised) -> Self {
        Self {
            way: promised.way,
            plan: promised.plan.clone(),
            committed_bits_per_second: promised.committed_bps,
            most_bits_per_second: promised.most().as_bps(),
        }
    }
}

/// Names that are looked up, for connections by name.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ResolverStatus {
    /// Queries for names.
    pub queries: u64,
    /// Of these, answered from the cache.
    pub cache_hits: u64,
    /// Lookups that have ended; queries for one name share one.
    pub lookups: u64,
    /// Queries for names that do not exist or have no addresses, those from the cache left out.
    pub not_found: u64,
    /// Queries that no name server has answered in time, or all with an error.
    pub no_answer: u64,
    /// Queries refused because too many waited.
    pub refused: u64,
    /// Queries given up before they were answered.
    pub cancelled: u64,
    /// Lookups in flight now.
    pub in_flight: u64,
    /// Queries that wait for their lookup to begin.
    pub queued: u64,
    /// Names in the cache.
    pub cached: u64,
    /// How long queries took that were looked up and answered.
    pub latency: super::Histogram,
}

/// One terminal's way, as this side sees it.
#[derive(Clone, Debug, Serialize)]
pub struct TerminalStatus {
    /// The terminal's name.
    pub terminal: String,
    /// Where the other gateway is.
    pub address: String,
    /// How a terminal's path is in the eyes of new connections: `well`, `recovering`, `poor` or
    /// `down`.
    pub health: Option<&'static str>,
    /// Times that a terminal's path has failed after it was well.
    pub failures: u64,
    /// Whether there is a session.
    pub connected: bool,
    /// Since when, seconds since 1970.
    pub since_unix_seconds: Option<f64>,
    /// When the other side was last heard, seconds since 1970.
    pub heard_unix_seconds: Option<f64>,
    /// For how long it has not been heard, seconds.
    pub silent_seconds: Option<f64>,
    /// What the controller does, in a word.
    pub mode: &'static str,
    /// The plan that the terminal has, at a hub.
    pub plan: Option<String>,
    /// What it has of the link from the hub while it wants all that it gets, where that is shared.
    pub share_bits_per_second: Option<u64>,
    /// What is committed to it on the way from the hub.
    pub committed_bits_per_second: Option<u64>,
    /// Configured maximum send rate: at a hub to each terminal, at a terminal its own.
    pub granted_bits_per_second: Option<u64>,
    /// Times that it sent more than that, for seconds on end.
    pub beyond_grant: u64,
    /// The rate at which this side may send by now: whole IP packets and the link's overhead.
    pub rate_bits_per_second: Option<u64>,
    /// What was found out of the way's rate.
    pub learnt_bits_per_second: Option<u64>,
    /// The smoothed round trip.
    pub round_trip_seconds: Option<f64>,
    /// The shortest round trip so far.
    pub least_round_trip_seconds: Option<f64>,
    /// What waits on the way to the other side, as far as the controller measures it.
    pub queue_seconds: Option<f64>,
    /// For how long there has been an outage, while there is one.
    pub outage_seconds: Option<f64>,
    /// Largest IP packet sent.
    pub mtu_bytes: u64,
    /// Streams kept now.
    pub streams: u64,
    /// Payload sent and not known to have arrived.
    pub outstanding_bytes: u64,
    /// Packets that wait to be sent again.
    pub waiting_again: u64,
    /// Send buffer in use.
    pub send_buffered_bytes: u64,
    /// Its bound.
    pub send_buffer_limit_bytes: u64,
    /// Receive credit given to the other side.
    pub receive_promised_bytes: u64,
    /// Its bound.
    pub receive_limit_bytes: u64,
    /// Memory that received data takes.
    pub receive_memory_bytes: u64,
    /// Counted since this terminal's association was made.
    #[serde(flatten)]
    pub counters: PathCounters,
}

/// What one terminal's sessions have counted.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PathCounters {
    /// Sessions begun.
    pub sessions: u64,
    /// XSTP segments sent.
    pub segments_sent: u64,
    /// Bytes of these, without what lies below XSTP.
    pub segment_bytes_sent: u64,
    /// XSTP segments received.
    pub segments_received: u64,
    /// Data packets sent for the first time.
    pub data_sent: u64,
    /// Data packets sent again.
    pub retransmitted: u64,
    /// Data packets received again.
    pub duplicates: u64,
    /// POLLs sent.
    pub polls: u64,
    /// STATs sent.
    pub stats: u64,
    /// USTATs sent.
    pub ustats: u64,
    /// Outages noticed.
    pub outages: u64,
    /// Streams opened, by either side.
    pub streams_opened: u64,
    /// Bytes of streams sent, each once.
    pub stream_bytes_sent: u64,
    /// Bytes of streams received, each once.
    pub stream_bytes_received: u64,
    /// Frames that made no sense.
    pub bad_frames: u64,
}

/// How timely the readiness loop is.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LoopStatus {
    /// How late it woke for what was due.
    pub late: super::Histogram,
    /// How long its rounds took, from waking to waiting.
    pub busy: super::Histogram,
}

/// What the process uses of the machine.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ProcessStatus {
    /// Time on processors, seconds.
    pub cpu_seconds: f64,
    /// Memory in use.
    pub resident_bytes: Option<u64>,
    /// Open descriptors.
    pub open_descriptors: Option<u64>,
    /// Descriptors that it may have.
    pub most_descriptors: Option<u64>,
    /// Lines of the log that standard error did not take.
    pub log_lines_dropped: u64,
}

/// One connection.
#[derive(Clone, Debug, Serialize)]
pub struct ConnectionStatus {
    /// Its number, never used twice while the gateway runs.
    pub number: u64,
    /// The terminal that it came by, at a hub.
    pub terminal: Option<String>,
    /// Address of the client, if known.
    pub client: Option<String>,
    /// Where to.
    pub server: Option<String>,
    /// How far it has come; `open` once bytes pass.
    pub state: &'static str,
    /// When it began, seconds since 1970.
    pub since_unix_seconds: u64,
    /// For how long it has been there, seconds.
    pub age_seconds: f64,
    /// Bytes read from its socket here.
    pub bytes_from_socket: u64,
    /// Bytes written to its socket here.
    pub bytes_to_socket: u64,
}

/// Some of the connections, in the order of their numbers.
#[derive(Clone, Debug, Serialize)]
pub struct Page {
    /// They.
    pub connections: Vec<ConnectionStatus>,
    /// Whether there are more behind the last one.
    pub more: bool,
}
