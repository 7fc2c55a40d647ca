//! Sums over the shards of a hub.
//!
//! Structures are destructured completely, so that a new counter does not compile until it is added.

use crate::observe::{Counted, Histogram, LoopStatus, ResolverStatus};
use crate::report::{AssociationCounters, Counters, ForwardCounters, Report, Traffic};
use std::collections::BTreeMap;

/// Adds fields of the same names.
macro_rules! add_fields {
    ($sum:ident += $($field:ident),*) => { $($sum.$field += $field;)* };
}

/// Adds the counters of another shard. The rates that plans commit are those of the whole hub, and
/// only terminals answer DNS.
pub(crate) fn add(sum: &mut Counted, other: Counted) {
    let Counted {
        open,
        limit,
        connections,
        udp,
        association,
        traffic,
        resolver,
        dns: _,
        commitments: _,
        shards,
        single: _,
    } = other;
    add_fields!(sum += open, limit);
    add_counters(&mut sum.connections, &connections);
    sum.udp.add(&udp);
    add_association(&mut sum.association, association);
    add_traffic(&mut sum.traffic, &traffic);
    add_resolver(&mut sum.resolver, &resolver);
    sum.shards.extend(shards);
}

/// Adds the report of another shard, without the time and the controller.
pub(crate) fn add_report(sum: &mut Report, other: Report) {
    let Report {
        role: _,
        seconds: _,
        controller: _,
        peers,
        connections,
        udp,
        association,
        traffic,
        single: _,
    } = other;
    sum.peers.extend(peers);
    add_counters(&mut sum.connections, &connections);
    sum.udp.add(&udp);
    add_association(&mut sum.association, association);
    add_traffic(&mut sum.traffic, &traffic);
}

fn add_counters(sum: &mut Counters, other: &Counters) {
    let Counters {
        accepted,
        opened,
        connected,
        connect_attempts,
        refused,
        limited,
        completed,
        reset_by_sockets,
        reset_by_peer,
        lost_with_peer,
        vanished,
        reclaimed,
        idle,
        bad_requests,
        syns_held,
        syns_abandoned,
        syn_log_overruns,
        not_intercepted,
        source_fallbacks,
        accept_pauses,
        direct,
        bypass_activations,
        bypass_active,
        peak_connections,
        forwarded: ForwardCounters { .. },
        mac_messages,
        mac_send_errors,
        rounds,
        bytes_from_sockets,
        bytes_to_sockets,
    } = other;
    add_fields!(sum += accepted, opened, connected, connect_attempts, completed);
    add_fields!(sum += reset_by_sockets, reset_by_peer, lost_with_peer, vanished, reclaimed, idle);
    add_fields!(sum += bad_requests, syns_held, syns_abandoned, syn_log_overruns, not_intercepted);
    add_fields!(sum += source_fallbacks, accept_pauses, direct, bypass_activations, bypass_active);
    // The shards' maxima need not be of one time; the sum is a bound.
    add_fields!(sum += peak_connections, mac_messages, mac_send_errors, rounds);
    add_fields!(sum += bytes_from_sockets, bytes_to_sockets);
    add_words(&mut sum.refused, refused);
    add_words(&mut sum.limited, limited);
}

fn add_words(sum: &mut BTreeMap<&'static str, u64>, other: &BTreeMap<&'static str, u64>) {
    for (word, count) in other {
        *sum.entry(word).or_default() += count;
    }
}

fn add_association(sum: &mut AssociationCounters, other: AssociationCounters) {
    let AssociationCounters {
        sealed,
        opened,
        hellos,
        unknowns,
        renewals,
        cookies,
        withheld,
        dropped,
    } = other;
    add_fields!(sum += sealed, opened, hellos, unknowns, renewals, cookies);
    add_words(&mut sum.withheld, &withheld);
    add_words(&mut sum.dropped, &dropped);
}

fn add_traffic(sum: &mut Traffic, other: &Traffic) {
    let Traffic {
        datagrams_sent,
        datagrams_received,
        bad_datagrams,
        sessions,
        segments_sent,
        segments_received,
        acks_filtered,
        headers_compressed,
        header_bytes_saved,
        headers_restored,
        headers_damaged,
        retransmitted,
        duplicates,
        polls,
        stats,
        ustats,
        repairs_sent,
        repairs_received,
        packets_recovered,
        compression,
        outages,
        mtu_probes,
        mtu_falls,
        streams,
        stream_bytes_sent,
        stream_bytes_received,
        resets_sent,
        resets_received,
        bad_frames,
        credit_violations,
        round_trip_seconds,
    } = other;
    add_fields!(sum += datagrams_sent, datagrams_received, bad_datagrams, sessions);
    add_fields!(sum += segments_sent, segments_received, retransmitted, duplicates);
    add_fields!(sum += acks_filtered, headers_compressed, header_bytes_saved);
    add_fields!(sum += headers_restored, headers_damaged);
    add_fields!(sum += polls, stats, ustats, repairs_sent, repairs_received, packets_recovered);
    sum.compression.add(compression);
    add_fields!(sum += outages, mtu_probes, mtu_falls, streams, stream_bytes_sent);
    add_fields!(sum += stream_bytes_received, resets_sent, resets_received, bad_frames);
    add_fields!(sum += credit_violations);
    let both = [sum.round_trip_seconds, *round_trip_seconds];
    sum.round_trip_seconds = both.into_iter().flatten().reduce(f64::max);
}

fn add_resolver(sum: &mut ResolverStatus, other: &ResolverStatus) {
    let ResolverStatus {
        queries,
        cache_hits,
        lookups,
        not_found,
        no_answer,
        refused,
        cancelled,
        in_flight,
        queued,
        cached,
        latency,
    } = other;
    add_fields!(sum += queries, cache_hits, lookups, not_found, no_answer, refused, cancelled);
    add_fields!(sum += in_flight, queued, cached);
    add_times(&mut sum.latency, latency);
}

pub(crate) fn add_rounds(sum: &mut LoopStatus, LoopStatus { late, busy }: &LoopStatus) {
    add_times(&mut sum.late, late);
    add_times(&mut sum.busy, busy);
}

fn add_times(sum: &mut Histogram, other: &Histogram) {
    let Histogram { classes, sum_seconds, most_seconds } = other;
    sum.classes.iter_mut().zip(classes).for_each(|(sum, other)| *sum += other);
    sum.sum_seconds += sum_seconds;
    sum.most_seconds = sum.most_seconds.max(*most_seconds);
}
