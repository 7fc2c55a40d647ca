//! Every metric: its name by Prometheus' conventions, what it is, and where its value stands.
//!
//! A new counter has a line here. Names are in base units (seconds, bytes), counters
//! end in `_total`, and labels take few values: terminals that are there, and words.

use super::super::{Histogram, PromisedStatus, Status, TerminalStatus};

/// How a metric behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Only grows, and starts at 0 with the gateway.
    Counter,
    /// Goes up and down.
    Gauge,
}

/// A metric of the gateway as a whole.
pub(super) type Whole = (&'static str, Kind, &'static str, fn(&Status) -> Option<f64>);
/// A metric of each terminal's way, with the label `terminal`.
pub(super) type Each = (&'static str, Kind, &'static str, fn(&TerminalStatus) -> Option<f64>);
/// A metric with a label whose values are words.
pub(super) struct Worded {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) help: &'static str,
    pub(super) label: &'static str,
    pub(super) values: fn(&Status) -> Vec<(&'static str, u64)>,
}
/// Lengths of time.
pub(super) type Times = (&'static str, &'static str, fn(&Status) -> &Histogram);

use Kind::{Counter, Gauge};

pub(super) const WHOLE: &[Whole] = &[
    ("process_start_time_seconds", Gauge, "When the gateway began, seconds since 1970.", |s| {
        Some(s.gateway.started_unix_seconds)
    }),
    ("process_cpu_seconds_total", Counter, "Time on processors.", |s| Some(s.process.cpu_seconds)),
    ("process_resident_memory_bytes", Gauge, "Memory in use.", |s| opt(s.process.resident_bytes)),
    ("process_open_fds", Gauge, "Open file descriptors.", |s| opt(s.process.open_descriptors)),
    ("process_max_fds", Gauge, "File descriptors that the process may have.", |s| {
        opt(s.process.most_descriptors)
    }),
    (
        "bentpipe_log_lines_dropped_total",
        Counter,
        "Lines of the log that standard error did not take.",
        |s| num(s.process.log_lines_dropped),
    ),
    (
        "bentpipe_waiting",
        Gauge,
        "Addresses and interfaces of the configuration that this host does not have now.",
        |s| num(s.gateway.waiting.len() as u64),
    ),
    ("bentpipe_connections", Gauge, "Connections now.", |s| num(s.counted.open)),
    ("bentpipe_connections_limit", Gauge, "Connections at once, at most.", |s| {
        num(s.counted.limit)
    }),
    ("bentpipe_connections_accepted_total", Counter, "Clients accepted, at a terminal.", |s| {
        num(s.counted.connections.accepted)
    }),
    ("bentpipe_connections_opened_total", Counter, "Streams opened for connections.", |s| {
        num(s.counted.connections.opened)
    }),
    ("bentpipe_connections_connected_total", Counter, "Servers reached, at a hub.", |s| {
        num(s.counted.connections.connected)
    }),
    (
        "bentpipe_connect_attempts_total",
        Counter,
        "Addresses of servers to which a connection was begun.",
        |s| num(s.counted.connections.connect_attempts),
    ),
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
    ("bentpipe_resolver_queued_queries", Gauge, "Queries that wait for a lookup.", |s| {
        num(s.counted.resolver.queued)
    }),
    ("bentpipe_resolver_cached_names", Gauge, "Names in the cache.", |s| {
        num(s.counted.resolver.cached)
    }),
    ("bentpipe_proxy_bad_requests_total", Counter, "Clients of a proxy that made no sense.", |s| {
        num(s.counted.connections.bad_requests)
    }),
    (
        "bentpipe_not_intercepted_total",
        Counter,
        "Clients that connected straight to a transparent listener.",
        |s| num(s.counted.connections.not_intercepted),
    ),
    (
        "bentpipe_own_address_instead_total",
        Counter,
        "Servers reached with the hub's address where the client's was wanted.",
        |s| num(s.counted.connections.own_address_instead),
    ),
    (
        "bentpipe_accept_pauses_total",
        Counter,
        "Times that accepting paused for want of descriptors or within the limit.",
        |s| num(s.counted.connections.accept_pauses),
    ),
    ("bentpipe_direct_total", Counter, "Connections made without a hub, as none answered.", |s| {
        num(s.counted.connections.direct)
    }),
    ("bentpipe_passes_total", Counter, "Times that new connections were let pass.", |s| {
        num(s.counted.connections.passed)
    }),
    ("bentpipe_passing", Gauge, "Whether new connections are let pass (1) or not (0).", |s| {
        num(s.counted.connections.passing)
    }),
    ("bentpipe_mac_messages_total", Counter, "Messages to a MAC about connections.", |s| {
        num(s.counted.connections.mac_messages)
    }),
    ("bentpipe_mac_unheard_total", Counter, "Such messages without a receiver.", |s| {
        num(s.counted.connections.mac_unheard)
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
    ("bentpipe_datagram_send_full_total", Counter, "Times that the socket was full.", |s| {
        num(s.counted.udp.send_full)
    }),
    ("bentpipe_datagram_send_errors_total", Counter, "Datagrams that the kernel refused.", |s| {
        num(s.counted.udp.send_errors)
    }),
    ("bentpipe_association_hellos_total", Counter, "Hellos sent, or answered at a hub.", |s| {
        num(s.counted.association.hellos)
    }),
    (
        "bentpipe_association_unknowns_total",
        Counter,
        "Unknowns heeded, or sent by a hub: one side had lost the association.",
        |s| num(s.counted.association.unknowns),
    ),
    ("bentpipe_association_renewals_total", Counter, "Keys renewed.", |s| {
        num(s.counted.association.renewals)
    }),
    (
        "bentpipe_association_cookies_total",
        Counter,
        "Cookies sent, or taken at a terminal: the hub was busy with Hellos.",
        |s| num(s.counted.association.cookies),
    ),
    ("bentpipe_sessions_total", Counter, "XSTP sessions begun.", |s| {
        num(s.counted.traffic.sessions)
    }),
    ("bentpipe_segments_sent_total", Counter, "XSTP segments sent, to all.", |s| {
        num(s.counted.traffic.segments_sent)
    }),
    ("bentpipe_segments_received_total", Counter, "XSTP segments received, from all.", |s| {
        num(s.counted.traffic.segments_received)
    }),
    ("bentpipe_retransmissions_total", Counter, "Data packets sent again, to all.", |s| {
        num(s.counted.traffic.retransmitted)
    }),
    ("bentpipe_streams_opened_total", Counter, "Streams opened, by either side.", |s| {
        num(s.counted.traffic.streams)
    }),
    ("bentpipe_stream_sent_bytes_total", Counter, "Stream bytes sent, each once, to all.", |s| {
        num(s.counted.traffic.stream_bytes_sent)
    }),
    ("bentpipe_stream_received_bytes_total", Counter, "Stream bytes received, from all.", |s| {
        num(s.counted.traffic.stream_bytes_received)
    }),
    ("bentpipe_mtu_probes_total", Counter, "Probes of what size a path takes.", |s| {
        num(s.counted.traffic.mtu_probes)
    }),
    ("bentpipe_mtu_falls_total", Counter, "Times that a path took less than before.", |s| {
        num(s.counted.traffic.mtu_falls)
    }),
    ("bentpipe_outages_total", Counter, "Outages noticed.", |s| num(s.counted.traffic.outages)),
    (
        "bentpipe_satellite_sent_bytes_total",
        Counter,
        "Bytes to the satellite, for `single`.",
        |s| s.counted.single.as_ref().map(|single| single.bytes_to_satellite as f64),
    ),
    ("bentpipe_satellite_repeated_bytes_total", Counter, "Of these, sent again.", |s| {
        s.counted.single.as_ref().map(|single| single.bytes_repeated as f64)
    }),
    ("bentpipe_knocks_total", Counter, "Intercepted clients kept back for confirmation.", |s| {
        num(s.counted.connections.knocked)
    }),
    ("bentpipe_knocks_gone_total", Counter, "Those that were gone when let in.", |s| {
        num(s.counted.connections.gone_before_accepted)
    }),
    ("bentpipe_knocks_overrun_total", Counter, "Times that SYNs were lost unread.", |s| {
        num(s.counted.connections.knocks_lost)
    }),
    ("bentpipe_loop_rounds_total", Counter, "Rounds of the readiness loop.", |s| {
        num(s.counted.connections.rounds)
    }),
    ("bentpipe_terminals", Gauge, "Terminals with a session.", |s| {
        num(s.terminals.iter().filter(|terminal| terminal.connected).count() as u64)
    }),
];

pub(super) const WORDED: &[Worded] = &[
    Worded {
        name: "bentpipe_connections_refused_total",
        kind: Counter,
        help: "Connections refused, by reason.",
        label: "reason",
        values: |s| words(&s.counted.connections.refused),
    },
    Worded {
        name: "bentpipe_shares_used_up_total",
        kind: Counter,
        help: "Connections refused because a limit was reached, by limit.",
        label: "limit",
        values: |s| words(&s.counted.connections.limited),
    },
    Worded {
        name: "bentpipe_resolver_failures_total",
        kind: Counter,
        help: "Names that were not resolved, by reason.",
        label: "reason",
        values: |s| {
            let resolver = &s.counted.resolver;
            vec![
                ("not_found", resolver.not_found),
                ("no_answer", resolver.no_answer),
                ("refused", resolver.refused),
                ("cancelled", resolver.cancelled),
            ]
        },
    },
    Worded {
        name: "bentpipe_connections_ended_total",
        kind: Counter,
        help: "Connections ended, by how.",
        label: "how",
        values: |s| {
            let counters = &s.counted.connections;
            vec![
                ("completed", counters.completed),
                ("reset_by_socket", counters.reset_by_sockets),
                ("reset_by_peer", counters.reset_by_peer),
                ("lost_with_peer", counters.lost_with_peer),
                ("vanished", counters.vanished),
                ("reclaimed", counters.reclaimed),
                ("idle", counters.idle),
            ]
        },
    },
    Worded {
        name: "bentpipe_forwarded_packets_total",
        kind: Counter,
        help: "Packets of [forward], by what became of them.",
        label: "fate",
        values: |s| {
            let counters = &s.counted.connections.forwarded;
            vec![
                ("sent", counters.sent),
                ("received", counters.received),
                ("left_alone", counters.left_alone),
                ("nowhere", counters.nowhere),
                ("foreign_source", counters.foreign_source),
                ("denied", counters.denied),
                ("unwanted", counters.unwanted),
                ("not_taken", counters.not_taken),
            ]
        },
    },
    Worded {
        name: "bentpipe_committed_bytes_per_second",
        kind: Gauge,
        help: "Committed by a hub's plans to all terminals of its configuration.",
        label: "way",
        values: |s| of_link(s, |one| one.committed_bits_per_second / 8),
    },
    Worded {
        name: "bentpipe_committable_bytes_per_second",
        kind: Gauge,
        help: "What commitments may take of a hub's link.",
        label: "way",
        values: |s| of_link(s, |one| one.most_bits_per_second / 8),
    },
    Worded {
        name: "bentpipe_oversubscribed",
        kind: Gauge,
        help: "Of the link and of plans with a total, how many have more committed than they have.",
        label: "way",
        values: |s| {
            let is_over =
                |one: &&PromisedStatus| one.committed_bits_per_second > one.most_bits_per_second;
            let count = |way| {
                s.counted.promised.iter().filter(|one| one.way == way).filter(is_over).count()
            };
            match s.gateway.role {
                "hub" => ["up", "down"].map(|way| (way, count(way) as u64)).to_vec(),
                _ => Vec::new(),
            }
        },
    },
    Worded {
        name: "bentpipe_datagrams_dropped_total",
        kind: Counter,
        help: "Datagrams that were not taken, by reason.",
        label: "reason",
        values: |s| words(&s.counted.association.dropped),
    },
    Worded {
        name: "bentpipe_association_withheld_total",
        kind: Counter,
        help: "Cookies and Unknowns that a hub did not send: all of them have a share of its link.",
        label: "answer",
        values: |s| words(&s.counted.association.withheld),
    },
];

pub(super) const TIMES: &[Times] = &[
    ("bentpipe_loop_late_seconds", "How late the loop woke for what was due.", |s| &s.rounds.late),
    ("bentpipe_resolver_seconds", "How long names took that were looked up.", |s| {
        &s.counted.resolver.latency
    }),
    ("bentpipe_loop_busy_seconds", "How long a round of the loop took.", |s| &s.rounds.busy),
];

pub(super) const EACH: &[Each] = &[
    ("bentpipe_terminal_connected", Gauge, "Whether there is a session (1) or none (0).", |t| {
        num(u64::from(t.connected))
    }),
    (
        "bentpipe_terminal_well",
        Gauge,
        "Whether new connections trust the path (1), or not (0); at terminals.",
        |t| t.health.map(|health| if health == "well" { 1.0 } else { 0.0 }),
    ),
    (
        "bentpipe_terminal_failures_total",
        Counter,
        "Times that the path failed after it was well; at terminals.",
        |t| t.health.map(|_| t.failures as f64),
    ),
    ("bentpipe_terminal_session_start_time_seconds", Gauge, "Since when, since 1970.", |t| {
        t.since_unix_seconds
    }),
    ("bentpipe_terminal_last_heard_time_seconds", Gauge, "When last heard, since 1970.", |t| {
        t.heard_unix_seconds
    }),
    ("bentpipe_terminal_outage_seconds", Gauge, "Length of the present outage; else 0.", |t| {
        Some(t.outage_seconds.unwrap_or(0.0))
    }),
    ("bentpipe_terminal_round_trip_seconds", Gauge, "Smoothed round trip.", |t| {
        t.round_trip_seconds
    }),
    ("bentpipe_terminal_least_round_trip_seconds", Gauge, "Shortest round trip so far.", |t| {
        t.least_round_trip_seconds
    }),
    ("bentpipe_terminal_queue_seconds", Gauge, "Delay by queues on the way out.", |t| {
        t.queue_seconds
    }),
    ("bentpipe_terminal_send_rate_bytes_per_second", Gauge, "Rate it may send at now.", |t| {
        t.rate_bits_per_second.map(|bits| bits as f64 / 8.0)
    }),
    (
        "bentpipe_terminal_share_bytes_per_second",
        Gauge,
        "Its share of a hub's link, while it wants all that it gets.",
        |t| t.share_bits_per_second.map(|bits| bits as f64 / 8.0),
    ),
    ("bentpipe_terminal_committed_bytes_per_second", Gauge, "Rate committed to it.", |t| {
        t.committed_bits_per_second.map(|bits| bits as f64 / 8.0)
    }),
    ("bentpipe_terminal_granted_bytes_per_second", Gauge, "Rate that it was granted.", |t| {
        t.granted_bits_per_second.map(|bits| bits as f64 / 8.0)
    }),
    ("bentpipe_terminal_beyond_grant_total", Counter, "Times that it sent more.", |t| {
        num(t.beyond_grant)
    }),
    ("bentpipe_terminal_found_rate_bytes_per_second", Gauge, "Rate found on the way.", |t| {
        t.learnt_bits_per_second.map(|bits| bits as f64 / 8.0)
    }),
    ("bentpipe_terminal_mtu_bytes", Gauge, "Largest IP packet sent.", |t| num(t.mtu_bytes)),
    ("bentpipe_terminal_streams", Gauge, "Streams kept now.", |t| num(t.streams)),
    ("bentpipe_terminal_outstanding_bytes", Gauge, "Sent, not known to have arrived.", |t| {
        num(t.outstanding_bytes)
    }),
    ("bentpipe_terminal_waiting_again_packets", Gauge, "Waiting to be sent again.", |t| {
        num(t.waiting_again)
    }),
    ("bentpipe_terminal_send_buffered_bytes", Gauge, "Send buffer in use.", |t| {
        num(t.send_buffered_bytes)
    }),
    ("bentpipe_terminal_send_buffer_limit_bytes", Gauge, "Its bound.", |t| {
        num(t.send_buffer_limit_bytes)
    }),
    ("bentpipe_terminal_receive_promised_bytes", Gauge, "Receive credit given.", |t| {
        num(t.receive_promised_bytes)
    }),
    ("bentpipe_terminal_receive_limit_bytes", Gauge, "Its bound.", |t| num(t.receive_limit_bytes)),
    ("bentpipe_terminal_receive_memory_bytes", Gauge, "Memory of received data.", |t| {
        num(t.receive_memory_bytes)
    }),
    ("bentpipe_terminal_sessions_total", Counter, "XSTP sessions begun.", |t| {
        num(t.counters.sessions)
    }),
    ("bentpipe_terminal_segments_sent_total", Counter, "XSTP segments sent.", |t| {
        num(t.counters.segments_sent)
    }),
    ("bentpipe_terminal_segment_sent_bytes_total", Counter, "Bytes of these.", |t| {
        num(t.counters.segment_bytes_sent)
    }),
    ("bentpipe_terminal_segments_received_total", Counter, "XSTP segments received.", |t| {
        num(t.counters.segments_received)
    }),
    ("bentpipe_terminal_data_packets_sent_total", Counter, "Data packets, first sendings.", |t| {
        num(t.counters.data_sent)
    }),
    ("bentpipe_terminal_retransmissions_total", Counter, "Data packets sent again.", |t| {
        num(t.counters.retransmitted)
    }),
    ("bentpipe_terminal_duplicates_received_total", Counter, "Data packets twice.", |t| {
        num(t.counters.duplicates)
    }),
    ("bentpipe_terminal_polls_sent_total", Counter, "POLLs sent.", |t| num(t.counters.polls)),
    ("bentpipe_terminal_stats_sent_total", Counter, "STATs sent.", |t| num(t.counters.stats)),
    ("bentpipe_terminal_ustats_sent_total", Counter, "USTATs sent.", |t| num(t.counters.ustats)),
    ("bentpipe_terminal_outages_total", Counter, "Outages noticed.", |t| num(t.counters.outages)),
    ("bentpipe_terminal_streams_opened_total", Counter, "Streams opened.", |t| {
        num(t.counters.streams_opened)
    }),
    ("bentpipe_terminal_stream_sent_bytes_total", Counter, "Stream bytes sent, once.", |t| {
        num(t.counters.stream_bytes_sent)
    }),
    ("bentpipe_terminal_stream_received_bytes_total", Counter, "Stream bytes received.", |t| {
        num(t.counters.stream_bytes_received)
    }),
    ("bentpipe_terminal_bad_frames_total", Counter, "Frames that made no sense.", |t| {
        num(t.counters.bad_frames)
    }),
];

/// What is promised of a hub's link, by way.
fn of_link(status: &Status, value: fn(&PromisedStatus) -> u64) -> Vec<(&'static str, u64)> {
    let of_link = status.counted.promised.iter().filter(|one| one.plan.is_none());
    of_link.map(|one| (one.way, value(one))).collect()
}

fn num(value: u64) -> Option<f64> {
    Some(value as f64)
}

fn opt(value: Option<u64>) -> Option<f64> {
    value.map(|value| value as f64)
}

fn words(map: &std::collections::BTreeMap<&'static str, u64>) -> Vec<(&'static str, u64)> {
    map.iter().map(|(&word, &count)| (word, count)).collect()
}
