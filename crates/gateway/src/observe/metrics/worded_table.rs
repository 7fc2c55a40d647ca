//! Table of the metrics with a label of fixed words.

use super::table::{Kind::Counter, Kind::Gauge, Worded};
use crate::observe::{CommitmentStatus, Status};

pub(super) const WORDED: &[Worded] = &[
    Worded {
        name: "bentpipe_connections_refused_total",
        kind: Counter,
        help: "Connections refused, by reason.",
        label: "reason",
        values: |s| words(&s.counted.connections.refused),
    },
    Worded {
        name: "bentpipe_quota_refusals_total",
        kind: Counter,
        help: "Connections refused at a limit, by limit.",
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
        name: "bentpipe_dns_failures_total",
        kind: Counter,
        help: "DNS queries and look-ups without a response, by reason.",
        label: "reason",
        values: |s| {
            let Some(dns) = &s.counted.dns else { return Vec::new() };
            vec![
                ("failed", dns.failures - dns.timeouts.min(dns.failures)),
                ("timed_out", dns.timeouts),
                ("refused", dns.refused),
                ("bad_query", dns.bad_queries),
                ("bad_response", dns.bad_responses),
            ]
        },
    },
    Worded {
        name: "bentpipe_connections_ended_total",
        kind: Counter,
        help: "Connections ended, by cause.",
        label: "cause",
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
        help: "Packets of [forward], by result.",
        label: "result",
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
        name: "bentpipe_forwarded_tcp_total",
        kind: Counter,
        help: "Connections, segments and acknowledgements of TCP among the packets of [forward].",
        label: "event",
        values: |s| {
            let tcp = &s.counted.connections.forwarded.tcp;
            vec![
                ("opened", tcp.opened),
                ("spoofed", tcp.spoofed),
                ("early_ack", tcp.early_acks),
                ("suppressed_ack", tcp.suppressed),
                ("filtered_ack", s.counted.traffic.acks_filtered),
                ("regenerated_ack", tcp.regenerated),
                ("retransmitted", tcp.retransmitted),
                ("duplicate", tcp.duplicates),
                ("no_room", tcp.no_room),
                ("implausible", tcp.implausible),
                ("aborted", tcp.aborted),
            ]
        },
    },
    Worded {
        name: "bentpipe_committed_bytes_per_second",
        kind: Gauge,
        help: "Committed by a hub's plans to all terminals of its configuration.",
        label: "direction",
        values: |s| of_link(s, |one| one.committed_bits_per_second / 8),
    },
    Worded {
        name: "bentpipe_committable_bytes_per_second",
        kind: Gauge,
        help: "Maximum of the committed rates of a hub's link.",
        label: "direction",
        values: |s| of_link(s, |one| one.max_bits_per_second / 8),
    },
    Worded {
        name: "bentpipe_oversubscribed",
        kind: Gauge,
        help: "Number of totals (of the link and of plans) that are less than the rates committed of them.",
        label: "direction",
        values: |s| {
            let is_over =
                |one: &&CommitmentStatus| one.committed_bits_per_second > one.max_bits_per_second;
            let count = |direction| {
                s.counted
                    .commitments
                    .iter()
                    .filter(|one| one.direction == direction)
                    .filter(is_over)
                    .count()
            };
            match s.gateway.role {
                "hub" => ["up", "down"].map(|it| (it, count(it) as u64)).to_vec(),
                _ => Vec::new(),
            }
        },
    },
    Worded {
        name: "bentpipe_datagrams_dropped_total",
        kind: Counter,
        help: "Datagrams rejected, by reason.",
        label: "reason",
        values: |s| words(&s.counted.association.dropped),
    },
    Worded {
        name: "bentpipe_association_suppressed_total",
        kind: Counter,
        help: "Cookies and Unknowns suppressed by a hub's response rate limit.",
        label: "answer",
        values: |s| words(&s.counted.association.withheld),
    },
];

fn of_link(status: &Status, value: fn(&CommitmentStatus) -> u64) -> Vec<(&'static str, u64)> {
    let of_link = status.counted.commitments.iter().filter(|one| one.plan.is_none());
    of_link.map(|one| (one.direction, value(one))).collect()
}

fn words(map: &std::collections::BTreeMap<&'static str, u64>) -> Vec<(&'static str, u64)> {
    map.iter().map(|(&word, &count)| (word, count)).collect()
}
