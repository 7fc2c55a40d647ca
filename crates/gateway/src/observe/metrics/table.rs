//! Table of all metrics: name by Prometheus' conventions, help text, and value.
//!
//! A new counter has a line here. Names are in base units (seconds, bytes), counters end in
//! `_total`, and labels have few values: connected terminals, and fixed words.

use super::super::{Histogram, ShardStatus, Status, TerminalStatus};

/// Type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A counter from the start of the gateway.
    Counter,
    /// A gauge.
    Gauge,
    /// A histogram.
    Histogram,
}

/// A metric of the gateway as a whole.
pub(super) type Whole = (&'static str, Kind, &'static str, fn(&Status) -> Option<f64>);
/// A metric of each terminal's path, with the label `terminal`.
pub(super) type Each = (&'static str, Kind, &'static str, fn(&TerminalStatus) -> Option<f64>);
/// A metric with a label of fixed words.
pub(super) struct Worded {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) help: &'static str,
    pub(super) label: &'static str,
    pub(super) values: fn(&Status) -> Vec<(&'static str, u64)>,
}
/// A metric of each shard of a hub, with the label `shard`.
pub(super) type OfShard = (&'static str, Kind, &'static str, fn(&ShardStatus) -> f64);
/// A histogram of durations.
pub(super) type Times = (&'static str, &'static str, fn(&Status) -> &Histogram);

use Kind::{Counter, Gauge};

pub(super) const WHOLE: &[Whole] = &[
    ("process_start_time_seconds", Gauge, "Start time, seconds since 1970.", |s| {
        Some(s.gateway.started_unix_seconds)
    }),
    ("process_cpu_seconds_total", Counter, "Processor time.", |s| Some(s.process.cpu_seconds)),
    ("process_resident_memory_bytes", Gauge, "Resident memory.", |s| opt(s.process.resident_bytes)),
    ("process_open_fds", Gauge, "Open file descriptors.", |s| opt(s.process.open_descriptors)),
    ("process_max_fds", Gauge, "Maximum number of file descriptors.", |s| {
        opt(s.process.max_descriptors)
    }),
    ("bentpipe_log_lines_dropped_total", Counter, "Dropped log lines.", |s| {
        num(s.process.log_lines_dropped)
    }),
    (
        "bentpipe_missing_addresses",
        Gauge,
        "Configured addresses and interfaces that this host does not have.",
        |s| num(s.gateway.waiting.len() as u64),
    ),
    ("bentpipe_connections", Gauge, "Open connections.", |s| num(s.counted.open)),
    ("bentpipe_connections_limit", Gauge, "Maximum number of connections.", |s| {
        num(s.counted.limit)
    }),
    ("bentpipe_connections_accepted_total", Counter, "Clients accepted, at a terminal.", |s| {
        num(s.counted.connections.accepted)
    }),
    ("bentpipe_connections_opened_total", Counter, "Streams opened for connections.", |s| {
        num(s.counted.connections.opened)
    }),
    ("bentpipe_connections_connected_total", Counter, "Servers connected to, at a hub.", |s| {
        num(s.counted.connections.connected)
    }),
    ("bentpipe_connect_attempts_total", Counter, "Connection attempts to server addresses.", |s| {
        num(s.counted.connections.connect_attempts)
    }),
    ("bentpipe_resolver_queries_total", Counter, "Names to be resolved.", |s| {
        num(s.counted.resolver.queries)
    }),
    ("bentpipe_resolver_cache_hits_total", Counter, "Names answered from the cache.", |s| {
        num(s.counted.resolver.cache_hits)
    }),
    ("bentpipe_resolver_lookups_total", Counter, "Lookups done; queries share them.", |s| {
        num(s.counted.resolver.lookups)
    }),
    ("bentpipe_resolver_lookups_in_flight", Gauge, "Lookups in flight.", |s| {
        num(s.counted.resolver.in_flight)
    }),
    ("bentpipe_resolver_queued_queries", Gauge, "Queued queries.", |s| {
        num(s.counted.resolver.queued)
    }),
    ("bentpipe_resolver_cached_names", Gauge, "Names in the cache.", |s| {
        num(s.counted.resolver.cached)
    }),
    ("bentpipe_dns_queries_total", Counter, "Messages to the DNS forwarder.", |s| {
        s.counted.dns.as_ref().map(|dns| dns.queries as f64)
    }),
    ("bentpipe_dns_cache_hits_total", Counter, "DNS responses from the cache.", |s| {
        s.counted.dns.as_ref().map(|dns| dns.hits as f64)
    }),
    ("bentpipe_dns_stale_responses_total", Counter, "Expired DNS responses.", |s| {
        s.counted.dns.as_ref().map(|dns| dns.stale as f64)
    }),
    ("bentpipe_dns_lookups_total", Counter, "DNS look-ups at the hub.", |s| {
        s.counted.dns.as_ref().map(|dns| dns.lookups as f64)
    }),
    ("bentpipe_dns_prefetches_total", Counter, "DNS look-ups before a response expires.", |s| {
        s.counted.dns.as_ref().map(|dns| dns.prefetches as f64)
    }),
    ("bentpipe_dns_placeholders_total", Counter, "DNS responses with placeholders.", |s| {
        s.counted.dns.as_ref().map(|dns| dns.placeholders as f64)
    }),
    ("bentpipe_dns_opened_by_name_total", Counter, "Connections opened by name at the hub.", |s| {
        s.counted.dns.as_ref().map(|dns| dns.opened_by_name as f64)
    }),
    ("bentpipe_dns_lookups_in_flight", Gauge, "DNS look-ups in flight.", |s| {
        s.counted.dns.as_ref().map(|dns| dns.in_flight as f64)
    }),
    ("bentpipe_dns_cached_responses", Gauge, "DNS responses in the cache.", |s| {
        s.counted.dns.as_ref().map(|dns| dns.cached as f64)
    }),
    ("bentpipe_dns_cache_bytes", Gauge, "Memory of the DNS cache.", |s| {
        s.counted.dns.as_ref().map(|dns| dns.cache_bytes as f64)
    }),
    ("bentpipe_proxy_bad_requests_total", Counter, "Malformed proxy requests.", |s| {
        num(s.counted.connections.bad_requests)
    }),
    (
        "bentpipe_not_intercepted_total",
        Counter,
        "Clients that connected directly to a transparent listener.",
        |s| num(s.counted.connections.not_intercepted),
    ),
    (
        "bentpipe_source_fallbacks_total",
        Counter,
        "Connections to servers from the hub's address instead of the client's.",
        |s| num(s.counted.connections.source_fallbacks),
    ),
    (
        "bentpipe_accept_pauses_total",
        Counter,
        "Pauses of accepting, without descriptors or at the limit.",
        |s| num(s.counted.connections.accept_pauses),
    ),
    (
        "bentpipe_direct_connections_total",
        Counter,
        "Direct connections, while no hub responded.",
        |s| num(s.counted.connections.direct),
    ),
    (
        "bentpipe_bypass_activations_total",
        Counter,
        "Activations of the bypass of new connections.",
        |s| num(s.counted.connections.bypass_activations),
    ),
    (
        "bentpipe_bypass_active",
        Gauge,
        "Whether new connections bypass the gateway (1) or not (0).",
        |s| num(s.counted.connections.bypass_active),
    ),
    ("bentpipe_mac_messages_total", Counter, "Messages to a MAC about connections.", |s| {
        num(s.counted.connections.mac_messages)
    }),
    ("bentpipe_mac_send_errors_total", Counter, "Such messages that were not delivered.", |s| {
        num(s.counted.connections.mac_send_errors)
    }),
    ("bentpipe_socket_received_bytes_total", Counter, "Bytes from clients and servers.", |s| {
        num(s.counted.connections.bytes_from_sockets)
    }),
    ("bentpipe_socket_sent_bytes_total", Counter, "Bytes to clients and servers.", |s| {
        num(s.counted.connections.bytes_to_sockets)
    }),
    ("bentpipe_datagrams_received_total", Counter, "Datagrams from the link.", |s| {
        num(s.counted.udp.received)
    }),
    ("bentpipe_datagrams_sent_total", Counter, "Datagrams to the link.", |s| {
        num(s.counted.udp.sent)
    }),
    ("bentpipe_datagram_received_bytes_total", Counter, "Bytes of UDP payload received.", |s| {
        num(s.counted.udp.received_bytes)
    }),
    ("bentpipe_datagram_sent_bytes_total", Counter, "Bytes of UDP payload sent.", |s| {
        num(s.counted.udp.sent_bytes)
    }),
    (
        "bentpipe_datagram_send_full_total",
        Counter,
        "Sends that failed because the buffer was full.",
        |s| num(s.counted.udp.send_full),
    ),
    ("bentpipe_datagram_send_errors_total", Counter, "Datagrams that the kernel refused.", |s| {
        num(s.counted.udp.send_errors)
    }),
    (
        "bentpipe_association_hellos_total",
        Counter,
        "Hellos sent (terminal) or answered (hub).",
        |s| num(s.counted.association.hellos),
    ),
    (
        "bentpipe_association_unknowns_total",
        Counter,
        "Unknowns accepted (terminal) or sent (hub): one side had lost the association.",
        |s| num(s.counted.association.unknowns),
    ),
    ("bentpipe_association_renewals_total", Counter, "Key renewals.", |s| {
        num(s.counted.association.renewals)
    }),
    (
        "bentpipe_association_cookies_total",
        Counter,
        "Cookies sent (hub, under load) or received (terminal).",
        |s| num(s.counted.association.cookies),
    ),
    ("bentpipe_sessions_total", Counter, "XSTP sessions begun.", |s| {
        num(s.counted.traffic.sessions)
    }),
    ("bentpipe_segments_sent_total", Counter, "XSTP segments sent, all terminals.", |s| {
        num(s.counted.traffic.segments_sent)
    }),
    ("bentpipe_segments_received_total", Counter, "XSTP segments received, all terminals.", |s| {
        num(s.counted.traffic.segments_received)
    }),
    ("bentpipe_retransmissions_total", Counter, "SDs retransmitted, all terminals.", |s| {
        num(s.counted.traffic.retransmitted)
    }),
    ("bentpipe_repairs_sent_total", Counter, "Repair symbols sent, all terminals.", |s| {
        num(s.counted.traffic.repairs_sent)
    }),
    ("bentpipe_repairs_received_total", Counter, "Repair symbols received, all terminals.", |s| {
        num(s.counted.traffic.repairs_received)
    }),
    (
        "bentpipe_packets_recovered_total",
        Counter,
        "Lost packets that repair symbols recovered, all terminals.",
        |s| num(s.counted.traffic.packets_recovered),
    ),
    (
        "bentpipe_headers_compressed_total",
        Counter,
        "Forwarded packets sent with a compressed header.",
        |s| num(s.counted.traffic.headers_compressed),
    ),
    (
        "bentpipe_header_bytes_saved_total",
        Counter,
        "Bytes of headers not sent because of compression.",
        |s| num(s.counted.traffic.header_bytes_saved),
    ),
    (
        "bentpipe_headers_restored_total",
        Counter,
        "Forwarded packets received with a compressed header.",
        |s| num(s.counted.traffic.headers_restored),
    ),
    (
        "bentpipe_headers_damaged_total",
        Counter,
        "Forwarded packets whose compressed header could not be restored, dropped.",
        |s| num(s.counted.traffic.headers_damaged),
    ),
    ("bentpipe_compression_plain_sent_bytes_total", Counter, "Bytes before compression.", |s| {
        num(s.counted.traffic.compression.plain_bytes_sent)
    }),
    ("bentpipe_compression_coded_sent_bytes_total", Counter, "Bytes after compression.", |s| {
        num(s.counted.traffic.compression.coded_bytes_sent)
    }),
    ("bentpipe_compression_plain_received_bytes_total", Counter, "Bytes decompressed.", |s| {
        num(s.counted.traffic.compression.plain_bytes_received)
    }),
    ("bentpipe_compression_coded_received_bytes_total", Counter, "Bytes received coded.", |s| {
        num(s.counted.traffic.compression.coded_bytes_received)
    }),
    ("bentpipe_streams_compressed_total", Counter, "Streams compressed.", |s| {
        num(s.counted.traffic.compression.streams_compressed)
    }),
    ("bentpipe_streams_left_uncompressed_total", Counter, "Streams not worth it.", |s| {
        num(s.counted.traffic.compression.streams_left_alone)
    }),
    ("bentpipe_streams_compression_refused_total", Counter, "Streams beyond the limit.", |s| {
        num(s.counted.traffic.compression.streams_refused)
    }),
    ("bentpipe_streams_damaged_total", Counter, "Streams that were undecodable.", |s| {
        num(s.counted.traffic.compression.streams_damaged)
    }),
    ("bentpipe_streams_opened_total", Counter, "Streams opened, by either side.", |s| {
        num(s.counted.traffic.streams)
    }),
    ("bentpipe_stream_sent_bytes_total", Counter, "Stream bytes sent, all terminals.", |s| {
        num(s.counted.traffic.stream_bytes_sent)
    }),
    (
        "bentpipe_stream_received_bytes_total",
        Counter,
        "Stream bytes received, all terminals.",
        |s| num(s.counted.traffic.stream_bytes_received),
    ),
    ("bentpipe_mtu_probes_total", Counter, "Path MTU probes.", |s| {
        num(s.counted.traffic.mtu_probes)
    }),
    ("bentpipe_mtu_reductions_total", Counter, "Path MTU reductions.", |s| {
        num(s.counted.traffic.mtu_falls)
    }),
    ("bentpipe_outages_total", Counter, "Outages detected.", |s| num(s.counted.traffic.outages)),
    (
        "bentpipe_satellite_sent_bytes_total",
        Counter,
        "Bytes to the satellite, for `single`.",
        |s| s.counted.single.as_ref().map(|single| single.bytes_to_satellite as f64),
    ),
    ("bentpipe_satellite_retransmitted_bytes_total", Counter, "Of these, retransmitted.", |s| {
        s.counted.single.as_ref().map(|single| single.bytes_retransmitted as f64)
    }),
    (
        "bentpipe_syns_held_total",
        Counter,
        "SYNs of intercepted clients held for confirmation.",
        |s| num(s.counted.connections.syns_held),
    ),
    (
        "bentpipe_syns_abandoned_total",
        Counter,
        "Held SYNs whose clients did not connect any more.",
        |s| num(s.counted.connections.syns_abandoned),
    ),
    (
        "bentpipe_syn_log_overruns_total",
        Counter,
        "Overruns of the buffer for SYNs to be held.",
        |s| num(s.counted.connections.syn_log_overruns),
    ),
    ("bentpipe_loop_rounds_total", Counter, "Rounds of the readiness loop.", |s| {
        num(s.counted.connections.rounds)
    }),
    ("bentpipe_terminals", Gauge, "Terminals with a session.", |s| {
        num(s.terminals.iter().filter(|terminal| terminal.connected).count() as u64)
    }),
];

pub(super) const TIMES: &[Times] = &[
    ("bentpipe_loop_wakeup_latency_seconds", "Delay of the loop's wake-up for timeouts.", |s| {
        &s.rounds.late
    }),
    ("bentpipe_resolver_seconds", "Duration of name resolution, without the cache.", |s| {
        &s.counted.resolver.latency
    }),
    ("bentpipe_loop_iteration_seconds", "Duration of a loop iteration.", |s| &s.rounds.busy),
];

/// Committed rates of a hub's link, by direction.
pub(super) fn num(value: u64) -> Option<f64> {
    Some(value as f64)
}

fn opt(value: Option<u64>) -> Option<f64> {
    value.map(|value| value as f64)
}

pub(super) const SHARDS: &[OfShard] = &[
    ("bentpipe_shard_terminals", Gauge, "Connected terminals of a shard.", |s| s.terminals as f64),
    ("bentpipe_shard_connections", Gauge, "Open connections of a shard.", |s| s.connections as f64),
    ("bentpipe_shard_cpu_seconds_total", Counter, "Processor time of a shard.", |s| s.cpu_seconds),
    ("bentpipe_shard_datagrams_received_total", Counter, "Datagrams of a shard's socket.", |s| {
        s.datagrams_received as f64
    }),
    (
        "bentpipe_shard_handed_over_total",
        Counter,
        "Datagrams for a shard that others have received.",
        |s| s.datagrams_handed_over as f64,
    ),
    ("bentpipe_shard_hand_over_drops_total", Counter, "Of these, dropped: it was busy.", |s| {
        s.hand_over_drops as f64
    }),
];
