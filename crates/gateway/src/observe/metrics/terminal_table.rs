//! Table of the metrics of each terminal's path.

use super::table::Kind::{Counter, Gauge};
use super::table::{Each, num};

pub(super) const EACH: &[Each] = &[
    ("bentpipe_terminal_connected", Gauge, "Whether there is a session (1) or none (0).", |t| {
        num(u64::from(t.connected))
    }),
    (
        "bentpipe_terminal_path_up",
        Gauge,
        "Whether new connections use the path (1) or not (0), at terminals.",
        |t| t.health.map(|health| if health == "well" { 1.0 } else { 0.0 }),
    ),
    ("bentpipe_terminal_uses_tls", Gauge, "Whether TLS (1) or UDP (0) carries the link.", |t| {
        num(u64::from(t.carrier == "tls"))
    }),
    ("bentpipe_terminal_failures_total", Counter, "Failures of the path, at terminals.", |t| {
        t.health.map(|_| t.failures as f64)
    }),
    (
        "bentpipe_terminal_session_start_time_seconds",
        Gauge,
        "Start of the session, seconds since 1970.",
        |t| t.since_unix_seconds,
    ),
    (
        "bentpipe_terminal_last_received_time_seconds",
        Gauge,
        "Time of the last packet from the peer, seconds since 1970.",
        |t| t.last_received_unix_seconds,
    ),
    (
        "bentpipe_terminal_outage_seconds",
        Gauge,
        "Duration of the current outage; 0 without one.",
        |t| Some(t.outage_seconds.unwrap_or(0.0)),
    ),
    ("bentpipe_terminal_round_trip_seconds", Gauge, "Smoothed RTT.", |t| t.round_trip_seconds),
    ("bentpipe_terminal_min_round_trip_seconds", Gauge, "Minimum RTT.", |t| {
        t.min_round_trip_seconds
    }),
    ("bentpipe_terminal_queuing_delay_seconds", Gauge, "Queuing delay towards the peer.", |t| {
        t.queuing_delay_seconds
    }),
    ("bentpipe_terminal_send_rate_bytes_per_second", Gauge, "Current send rate.", |t| {
        t.rate_bits_per_second.map(|bits| bits as f64 / 8.0)
    }),
    (
        "bentpipe_terminal_share_bytes_per_second",
        Gauge,
        "Share of a hub's link, while data is queued.",
        |t| t.share_bits_per_second.map(|bits| bits as f64 / 8.0),
    ),
    ("bentpipe_terminal_committed_bytes_per_second", Gauge, "Rate committed to it.", |t| {
        t.committed_bits_per_second.map(|bits| bits as f64 / 8.0)
    }),
    ("bentpipe_terminal_granted_bytes_per_second", Gauge, "Granted rate.", |t| {
        t.granted_bits_per_second.map(|bits| bits as f64 / 8.0)
    }),
    (
        "bentpipe_terminal_grant_overuse_total",
        Counter,
        "Times that the grant was exceeded for seconds.",
        |t| num(t.grant_overuse),
    ),
    (
        "bentpipe_terminal_confirmed_rate_bytes_per_second",
        Gauge,
        "Confirmed rate of the path.",
        |t| t.confirmed_rate_bits_per_second.map(|bits| bits as f64 / 8.0),
    ),
    (
        "bentpipe_terminal_start_time_seconds",
        Gauge,
        "Start of the terminal's process, seconds since 1970, as it reports.",
        |t| t.report.as_ref().map(|report| report.started_unix_seconds as f64),
    ),
    (
        "bentpipe_terminal_reported_paths_down",
        Gauge,
        "Number of paths that the terminal does not use for new connections, as it reports.",
        |t| {
            let paths = &t.report.as_ref()?.paths;
            Some(paths.iter().filter(|path| path.health != "well").count() as f64)
        },
    ),
    (
        "bentpipe_terminal_reported_connections",
        Gauge,
        "Open connections of the terminal, as it reports.",
        |t| t.report.as_ref().map(|report| report.connections as f64),
    ),
    (
        "bentpipe_terminal_reported_connections_opened_total",
        Counter,
        "Connections that the terminal has opened, as it reports.",
        |t| t.report.as_ref().map(|report| report.connections_opened as f64),
    ),
    (
        "bentpipe_terminal_reported_connections_refused_total",
        Counter,
        "Connections that the terminal has refused, as it reports.",
        |t| t.report.as_ref().map(|report| report.connections_refused as f64),
    ),
    (
        "bentpipe_terminal_reported_connections_lost_total",
        Counter,
        "Connections that the terminal has lost with a session, as it reports.",
        |t| t.report.as_ref().map(|report| report.connections_lost as f64),
    ),
    (
        "bentpipe_terminal_reported_datagrams_dropped_total",
        Counter,
        "Datagrams that the terminal has dropped, as it reports.",
        |t| t.report.as_ref().map(|report| report.datagrams_dropped as f64),
    ),
    ("bentpipe_terminal_mtu_bytes", Gauge, "Largest IP packet sent.", |t| num(t.mtu_bytes)),
    ("bentpipe_terminal_streams", Gauge, "Number of streams.", |t| num(t.streams)),
    ("bentpipe_terminal_outstanding_bytes", Gauge, "Unacknowledged payload.", |t| {
        num(t.outstanding_bytes)
    }),
    (
        "bentpipe_terminal_retransmit_queue_packets",
        Gauge,
        "Packets queued for retransmission.",
        |t| num(t.retransmit_queue_packets),
    ),
    ("bentpipe_terminal_send_buffered_bytes", Gauge, "Send buffer in use.", |t| {
        num(t.send_buffered_bytes)
    }),
    ("bentpipe_terminal_send_buffer_limit_bytes", Gauge, "Maximum send buffer.", |t| {
        num(t.send_buffer_limit_bytes)
    }),
    ("bentpipe_terminal_receive_credit_bytes", Gauge, "Receive credit granted.", |t| {
        num(t.receive_credit_bytes)
    }),
    ("bentpipe_terminal_receive_limit_bytes", Gauge, "Maximum receive credit.", |t| {
        num(t.receive_limit_bytes)
    }),
    ("bentpipe_terminal_receive_memory_bytes", Gauge, "Memory of received data.", |t| {
        num(t.receive_memory_bytes)
    }),
    ("bentpipe_terminal_sessions_total", Counter, "XSTP sessions begun.", |t| {
        num(t.counters.sessions)
    }),
    ("bentpipe_terminal_segments_sent_total", Counter, "XSTP segments sent.", |t| {
        num(t.counters.segments_sent)
    }),
    (
        "bentpipe_terminal_segment_sent_bytes_total",
        Counter,
        "Bytes of the XSTP segments sent.",
        |t| num(t.counters.segment_bytes_sent),
    ),
    ("bentpipe_terminal_segments_received_total", Counter, "XSTP segments received.", |t| {
        num(t.counters.segments_received)
    }),
    (
        "bentpipe_terminal_segment_received_bytes_total",
        Counter,
        "Bytes of the XSTP segments received.",
        |t| num(t.counters.segment_bytes_received),
    ),
    (
        "bentpipe_terminal_data_packets_sent_total",
        Counter,
        "SDs transmitted for the first time.",
        |t| num(t.counters.data_sent),
    ),
    ("bentpipe_terminal_retransmissions_total", Counter, "SDs retransmitted.", |t| {
        num(t.counters.retransmitted)
    }),
    ("bentpipe_terminal_duplicates_received_total", Counter, "Duplicate SDs received.", |t| {
        num(t.counters.duplicates)
    }),
    ("bentpipe_terminal_repairs_sent_total", Counter, "Repair symbols sent.", |t| {
        num(t.counters.repairs_sent)
    }),
    ("bentpipe_terminal_repairs_received_total", Counter, "Repair symbols received.", |t| {
        num(t.counters.repairs_received)
    }),
    (
        "bentpipe_terminal_packets_recovered_total",
        Counter,
        "Lost packets that repair symbols recovered.",
        |t| num(t.counters.packets_recovered),
    ),
    (
        "bentpipe_terminal_compression_plain_sent_bytes_total",
        Counter,
        "Bytes before compression.",
        |t| num(t.counters.compression.plain_bytes_sent),
    ),
    (
        "bentpipe_terminal_compression_coded_sent_bytes_total",
        Counter,
        "Bytes after compression.",
        |t| num(t.counters.compression.coded_bytes_sent),
    ),
    (
        "bentpipe_terminal_compression_plain_received_bytes_total",
        Counter,
        "Bytes decompressed.",
        |t| num(t.counters.compression.plain_bytes_received),
    ),
    (
        "bentpipe_terminal_compression_coded_received_bytes_total",
        Counter,
        "Bytes received coded.",
        |t| num(t.counters.compression.coded_bytes_received),
    ),
    ("bentpipe_terminal_streams_compressed_total", Counter, "Streams compressed.", |t| {
        num(t.counters.compression.streams_compressed)
    }),
    ("bentpipe_terminal_streams_left_uncompressed_total", Counter, "Streams not worth it.", |t| {
        num(t.counters.compression.streams_left_alone)
    }),
    (
        "bentpipe_terminal_streams_compression_refused_total",
        Counter,
        "Streams beyond the limit.",
        |t| num(t.counters.compression.streams_refused),
    ),
    ("bentpipe_terminal_streams_damaged_total", Counter, "Streams that were undecodable.", |t| {
        num(t.counters.compression.streams_damaged)
    }),
    ("bentpipe_terminal_polls_sent_total", Counter, "POLLs sent.", |t| num(t.counters.polls)),
    ("bentpipe_terminal_stats_sent_total", Counter, "STATs sent.", |t| num(t.counters.stats)),
    ("bentpipe_terminal_ustats_sent_total", Counter, "USTATs sent.", |t| num(t.counters.ustats)),
    ("bentpipe_terminal_outages_total", Counter, "Outages detected.", |t| num(t.counters.outages)),
    ("bentpipe_terminal_streams_opened_total", Counter, "Streams opened.", |t| {
        num(t.counters.streams_opened)
    }),
    (
        "bentpipe_terminal_stream_sent_bytes_total",
        Counter,
        "Stream bytes sent, without retransmissions.",
        |t| num(t.counters.stream_bytes_sent),
    ),
    ("bentpipe_terminal_stream_received_bytes_total", Counter, "Stream bytes received.", |t| {
        num(t.counters.stream_bytes_received)
    }),
    ("bentpipe_terminal_bad_frames_total", Counter, "Malformed frames.", |t| {
        num(t.counters.bad_frames)
    }),
];
