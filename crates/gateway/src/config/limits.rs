//! `[limits]`: bounds and timeouts, in total, for each terminal and for each client.

use super::items::{positive_span, whole_seconds};
use super::reader::{Reader, Section};
use super::{Limits, ShareLimits, values};
use units::Span;

pub(super) fn read(reader: &mut Reader<'_>, top: &mut Section<'_>) -> Option<Limits> {
    let Some(mut section) = top.section(reader, "limits") else { return Some(Limits::default()) };
    let usual = Limits::default();
    let hour = Span::from_secs(3600);
    let connections =
        section.or(reader, "connections", usual.connections, |r, i| i.integer(r, 1..=1_000_000));
    let terminals =
        section.or(reader, "terminals", None, |r, i| i.integer(r, 1..=10_000).map(Some));
    let memory = section
        .or(reader, "memory", None, |r, i| i.parsed(r, values::MEMORY, values::memory).map(Some));
    let memory_total = section.or(reader, "memory_total", None, |r, i| {
        i.parsed(r, values::MEMORY_TOTAL, values::memory_total).map(Some)
    });
    let connect = section.or(reader, "connect", usual.connect, |r, i| positive_span(r, i, hour));
    let first_data_wait =
        section.or(reader, "first_data_wait", usual.first_data_wait, |r, i| i.span(r));
    let handshake =
        section.or(reader, "handshake", usual.handshake, |r, i| positive_span(r, i, hour));
    let keepalive = section.or(reader, "keepalive", usual.keepalive, |r, i| whole_seconds(r, i));
    let tcp_user_timeout =
        section.or(reader, "tcp_user_timeout", usual.tcp_user_timeout, |r, i| whole_seconds(r, i));
    let outage = section.or(reader, "outage", usual.outage, |r, i| whole_seconds(r, i));
    let expected = "a length of time from \"0s\", which stops at once, to \"1h\"";
    let drain = section.or(reader, "drain", usual.drain, |r, i| {
        i.parsed(r, expected, |text| values::span(text).filter(|&span| span <= hour))
    });
    let expected = "\"off\", or a length of time from \"1s\" to \"9h\"";
    let idle = section.or(reader, "idle", usual.idle, |r, i| match i.as_str() {
        Some("off") => Some(None),
        Some(_) | None => i.parsed(r, expected, values::whole_seconds).map(Some),
    });
    let ipv6_prefix =
        section.or(reader, "ipv6_prefix", usual.ipv6_prefix, |r, i| i.integer(r, 1..=128));
    let mut share = |reader: &mut Reader<'_>, key| match section.section(reader, key) {
        Some(mut section) => {
            let share = read_share(reader, &mut section);
            section.finish(reader);
            share
        }
        None => Some(ShareLimits::default()),
    };
    let terminal = share(reader, "terminal");
    let client = share(reader, "client");
    section.finish(reader);
    Some(Limits {
        connections: connections?,
        terminals: terminals?,
        memory: memory?,
        memory_total: memory_total?,
        terminal: terminal?,
        client: client?,
        connect: connect?,
        first_data_wait: first_data_wait?,
        handshake: handshake?,
        keepalive: keepalive?,
        tcp_user_timeout: tcp_user_timeout?,
        outage: outage?,
        drain: drain?,
        idle: idle?,
        ipv6_prefix: ipv6_prefix?,
    })
}

/// Reads `connections`, `rate` and `burst` of `section`: the quota of a terminal or a client.
pub(super) fn read_share(
    reader: &mut Reader<'_>,
    section: &mut Section<'_>,
) -> Option<ShareLimits> {
    let mut number = |reader: &mut Reader<'_>, key| {
        section.or(reader, key, None, |r, i| i.integer(r, 1..=1_000_000).map(Some))
    };
    let connections = number(reader, "connections");
    let rate = number(reader, "rate");
    let burst = number(reader, "burst");
    Some(ShareLimits { connections: connections?, rate: rate?, burst: burst? })
}
