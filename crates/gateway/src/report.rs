//! What a gateway has done, for people and for programs.

use crate::proxy::RefuseReason;
use relay::{Relay, Totals};
use serde::Serialize;
use std::collections::BTreeMap;
use units::{BitRate, Instant, Span};

/// What a gateway has done by the time it stopped.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// `terminal`, `hub` or `single`.
    pub role: &'static str,
    /// How long it ran, seconds.
    pub seconds: f64,
    /// What decides how fast it sends.
    pub controller: &'static str,
    /// The peers that were there when it stopped, at most a hundred.
    pub peers: Vec<PeerReport>,
    /// Its connections.
    pub connections: Counters,
    /// Its datagram socket.
    pub udp: UdpCounters,
    /// Its associations.
    pub association: AssociationCounters,
    /// Its sessions and streams.
    #[serde(flatten)]
    pub traffic: Traffic,
    /// What a gateway without a partner sent over the satellite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub single: Option<SingleReport>,
}

/// What a gateway without a partner (two-segment splitting) sent over the satellite.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SingleReport {
    /// The congestion control of the connections over the satellite.
    pub congestion: String,
    /// Bytes that they were given to send.
    pub bytes_to_satellite: u64,
    /// Segments that the kernel sent again.
    pub segments_repeated: u64,
    /// Bytes that the kernel sent again.
    pub bytes_repeated: u64,
}

/// What a gateway knows of the way to a peer.
#[derive(Clone, Debug, Serialize)]
pub struct PeerReport {
    /// The terminal's name, or the hub's address.
    pub peer: String,
    /// What the controller does, in a word.
    pub mode: &'static str,
    /// The rate at which it may send by now: whole IP packets and the link's overhead.
    pub rate_bits_per_second: Option<u64>,
    /// What is remembered for the next session.
    pub learnt_bits_per_second: Option<u64>,
    /// The smoothed round trip, seconds.
    pub round_trip_seconds: Option<f64>,
    /// The largest IP packet that goes there, bytes.
    pub mtu: usize,
}

impl PeerReport {
    pub(crate) fn of(peer: String, now: Instant, relay: &Relay) -> Option<Self> {
        let seen = relay.snapshot(now)?;
        Some(Self {
            peer,
            mode: seen.mode,
            rate_bits_per_second: relay.rate(now).map(BitRate::as_bps),
            learnt_bits_per_second: relay.path_metrics().map(|metrics| metrics.rate.as_bps()),
            round_trip_seconds: seen.srtt.map(Span::as_secs_f64),
            mtu: relay.mtu(),
        })
    }
}

/// What sessions and streams have counted, all peers together.
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
    /// SDs sent again.
    pub retransmitted: u64,
    /// SDs received again.
    pub duplicates: u64,
    /// POLLs sent.
    pub polls: u64,
    /// STATs sent.
    pub stats: u64,
    /// USTATs sent.
    pub ustats: u64,
    /// Outages noticed.
    pub outages: u64,
    /// Probes sent of what size a path takes.
    pub mtu_probes: u64,
    /// Times that a path took less than before.
    pub mtu_falls: u64,
    /// Streams opened, by either side.
    pub streams: u64,
    /// Bytes of streams sent, each once.
    pub stream_bytes_sent: u64,
    /// Bytes of streams received, each once.
    pub stream_bytes_received: u64,
    /// Streams that this side reset or refused.
    pub resets_sent: u64,
    /// Streams that the other side reset or refused.
    pub resets_received: u64,
    /// Frames that made no sense.
    pub bad_frames: u64,
    /// Frames beyond the credit given.
    pub credit_violations: u64,
    /// The smoothed round trip, seconds; the longest where there are several peers.
    pub round_trip_seconds: Option<f64>,
}

impl Traffic {
    /// Adds what relays have counted in all.
    pub(crate) fn add_totals(&mut self, totals: &Totals) {
        self.sessions += totals.sessions;
        self.segments_sent += totals.segments_sent;
        self.segments_received += totals.segments_received;
        self.retransmitted += totals.retransmitted;
        self.duplicates += totals.duplicates;
        self.polls += totals.polls;
        self.stats += totals.stats;
        self.ustats += totals.ustats;
        self.outages += totals.outages;
        self.mtu_probes += totals.mtu_probes;
        self.mtu_falls += totals.mtu_falls;
        self.streams += totals.opened + totals.accepted;
        self.stream_bytes_sent += totals.bytes_sent;
        self.stream_bytes_received += totals.bytes_received;
    }

    /// Adds what one relay has counted on its present session.
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
    /// Servers reached, at a hub.
    pub connected: u64,
    /// Attempts to reach them: several addresses of one server may be tried at a time.
    pub connect_attempts: u64,
    /// Connections refused, by reason.
    pub refused: BTreeMap<&'static str, u64>,
    /// Connections refused because a limit was reached, by limit.
    pub limited: BTreeMap<&'static str, u64>,
    /// Connections whose both halves ended after their last byte.
    pub completed: u64,
    /// Connections that a socket's reset, or another error of it, ended.
    pub reset_by_sockets: u64,
    /// Connections that the other gateway reset.
    pub reset_by_peer: u64,
    /// Connections that ended because the other gateway was lost.
    pub lost_with_peer: u64,
    /// Connections whose client or server had vanished without a word.
    pub vanished: u64,
    /// Idle connections that were reset because a client with fewer wanted one.
    pub reclaimed: u64,
    /// Connections that moved no byte for `limits.idle`.
    pub idle: u64,
    /// Clients whose words to a proxy made no sense, or came too slowly.
    pub bad_requests: u64,
    /// Intercepted clients for which a server was asked before they were answered.
    pub knocked: u64,
    /// Intercepted clients that were gone when their server had answered.
    pub gone_before_accepted: u64,
    /// Times that the kernel had no room for SYNs that were kept back; clients send them again.
    pub knocks_lost: u64,
    /// Clients that connected straight to a transparent listener.
    pub not_intercepted: u64,
    /// Servers that did not take the client's own address.
    pub own_address_instead: u64,
    /// Times that accepting was paused, for want of descriptors or within the limit.
    pub accept_pauses: u64,
    /// Connections that a terminal has made by itself, as no hub answered.
    pub direct: u64,
    /// Times that the kernel was told to let new connections pass.
    pub passed: u64,
    /// Whether it lets them pass now: 1, or 0.
    pub passing: u64,
    /// Most connections at once.
    pub most_at_once: u64,
    /// The tunnel interface of packets that are forwarded unsplit.
    pub forwarded: ForwardCounters,
    /// Messages to a MAC scheduler about connections, at a hub.
    pub mac_messages: u64,
    /// Such messages without a receiver.
    pub mac_unheard: u64,
    /// Rounds of the readiness loop.
    pub rounds: u64,
    /// Bytes read from clients and servers.
    pub bytes_from_sockets: u64,
    /// Bytes written to clients and servers.
    pub bytes_to_sockets: u64,
}

impl Counters {
    /// Counts a connection for which there was no place, by `what` there was too much of.
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
    /// From the interface to the other gateway.
    pub sent: u64,
    /// From the other gateway to the interface.
    pub received: u64,
    /// Not between two hosts, or our own datagrams.
    pub left_alone: u64,
    /// With nobody at the other end, or for a network without a terminal.
    pub nowhere: u64,
    /// At a hub: with a source that is not in the terminal's networks.
    pub foreign_source: u64,
    /// At a hub: to a destination that terminals may not reach.
    pub denied: u64,
    /// The other gateway carries packets, this one does not.
    pub unwanted: u64,
    /// The kernel did not take.
    pub not_taken: u64,
}

/// What went through the datagram socket.
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
    /// Calls that sent them.
    pub send_calls: u64,
    /// Times that the socket was full.
    pub send_full: u64,
    /// Datagrams that the kernel did not take, for another reason than a full socket.
    pub send_errors: u64,
}

impl UdpCounters {
    /// What went through another socket as well.
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

/// What associations have counted.
#[derive(Clone, Debug, Default, Serialize)]
pub struct AssociationCounters {
    /// Datagrams sealed.
    pub sealed: u64,
    /// Datagrams opened.
    pub opened: u64,
    /// Hellos sent, or answered.
    pub hellos: u64,
    /// Unknowns sent, or heeded.
    pub unknowns: u64,
    /// Times that a terminal has renewed its keys.
    pub renewals: u64,
    /// Cookies sent, or taken: the hub was busy with Hellos.
    pub cookies: u64,
    /// Cookies and Unknowns that a hub did not send, as all of them have a share of its link.
    pub withheld: BTreeMap<&'static str, u64>,
    /// Datagrams that were not taken, by reason.
    pub dropped: BTreeMap<&'static str, u64>,
}
