//! The status of a gateway as text.

use crate::words::{bytes, count, fit, fit_right, or_dash, rate, safe, share, time};
use crate::{ReportedPath, Status, Terminal};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Columns of the table of terminals: heading, width, and whether they are numeric.
const COLUMNS: [(&str, usize, bool); 13] = [
    ("TERMINAL", 16, false),
    ("STATE", 14, false),
    ("ADDRESS", 21, false),
    ("MODE", 11, false),
    ("RATE", 11, true),
    ("PLAN", 9, false),
    ("SHARE", 11, true),
    ("ROUND TRIP", 10, true),
    ("QUEUE", 7, true),
    ("RETX", 6, true),
    ("STREAMS", 7, true),
    ("SENT", 8, true),
    ("RECEIVED", 8, true),
];

/// Columns of the table of reports.
const REPORTS: [(&str, usize, bool); 7] = [
    ("TERMINAL", 16, false),
    ("VERSION", 8, false),
    ("UP", 12, true),
    ("CONNECTIONS", 11, true),
    ("LOST", 6, true),
    ("PATHS", 20, false),
    ("LAST WARNING", 60, false),
];

/// Formats the status: a few lines about the gateway, and one per terminal.
pub fn table(status: &Status) -> String {
    let mut out = head(status);
    out.push('\n');
    if status.terminals.is_empty() {
        out.push_str("no terminal is here\n");
        return out;
    }
    row(&mut out, &COLUMNS, &COLUMNS.map(|(heading, _, _)| heading.to_owned()));
    for terminal in &status.terminals {
        row(&mut out, &COLUMNS, &cells(terminal));
    }
    let now = status.gateway.started_unix_seconds + status.gateway.uptime_seconds;
    let mut reports = status.terminals.iter().filter(|terminal| terminal.report.is_some());
    if let Some(first) = reports.next() {
        out.push('\n');
        row(&mut out, &REPORTS, &REPORTS.map(|(heading, _, _)| heading.to_owned()));
        for terminal in std::iter::once(first).chain(reports) {
            row(&mut out, &REPORTS, &reported(terminal, now));
        }
    }
    out
}

/// Returns the cells of what a terminal has reported, at `now` in seconds since 1970.
fn reported(terminal: &Terminal, now: f64) -> [String; 7] {
    let report = terminal.report.clone().unwrap_or_default();
    let health = |path: &ReportedPath| match (&*path.path, &*path.health) {
        ("", health) => safe(health),
        (name, health) => format!("{} {}", safe(name), safe(health)),
    };
    let paths: Vec<String> = report.paths.iter().map(health).collect();
    let message = report.messages.first().map(|message| {
        format!("{} ago: {}", time(now - message.unix_seconds), safe(&message.text))
    });
    [
        safe(&terminal.terminal),
        safe(&report.version),
        time(now - report.started_unix_seconds),
        count(report.connections),
        count(report.connections_lost),
        paths.join(", "),
        or_dash(message),
    ]
}

fn head(status: &Status) -> String {
    let Status { gateway, connections, udp, process, rounds, .. } = status;
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{} {:?}, version {}, process {}, up {}, controller {}{}",
        safe(&gateway.role),
        gateway.name,
        safe(&gateway.version),
        gateway.pid,
        time(gateway.uptime_seconds),
        safe(&gateway.controller),
        gateway.link.as_ref().map(|link| format!(", on {}", safe(link))).unwrap_or_default(),
    );
    if !gateway.waiting.is_empty() {
        let _ = writeln!(out, "waiting for  {}", safe(&gateway.waiting.join(", ")));
    }
    let _ = writeln!(
        out,
        "connections  {} open of {}; {} opened, {} completed, {} reset, {} lost, {} vanished; refused {}",
        count(status.open),
        count(status.limit),
        count(connections.opened),
        count(connections.completed),
        count(connections.reset_by_sockets + connections.reset_by_peer),
        count(connections.lost_with_peer),
        count(connections.vanished),
        reasons(&connections.refused),
    );
    let _ = writeln!(
        out,
        "datagrams    sent {} ({}), received {} ({}); dropped {}",
        count(udp.sent),
        bytes(udp.sent_bytes),
        count(udp.received),
        bytes(udp.received_bytes),
        reasons(&status.association.dropped),
    );
    let resolver = &status.resolver;
    // Most gateways resolve no names.
    if resolver.queries > 0 {
        let _ = writeln!(
            out,
            "names        {} asked for, {} cached, {} looked up now, {} wait; {} not found, {} not answered, {} refused",
            count(resolver.queries),
            count(resolver.cache_hits),
            count(resolver.in_flight),
            count(resolver.queued),
            count(resolver.not_found),
            count(resolver.no_answer),
            count(resolver.refused),
        );
    }
    let of = |some: Option<u64>| or_dash(some.map(count));
    let _ = writeln!(
        out,
        "machine      processor {}, memory {}, descriptors {} of {}; woke at most {} late",
        time(process.cpu_seconds),
        or_dash(process.resident_bytes.map(bytes)),
        of(process.open_descriptors),
        of(process.max_descriptors),
        time(rounds.late.most_seconds),
    );
    out
}

/// Formats a total with its parts, such as `12 (policy 8, limit 4)`.
fn reasons(map: &BTreeMap<String, u64>) -> String {
    let all: u64 = map.values().sum();
    let named: Vec<String> = map
        .iter()
        .filter(|&(_, &number)| number > 0)
        .map(|(reason, &number)| format!("{} {}", safe(reason), count(number)))
        .collect();
    if named.is_empty() { "0".into() } else { format!("{} ({})", count(all), named.join(", ")) }
}

fn cells(terminal: &Terminal) -> [String; 13] {
    let lost = terminal.retransmitted as f64 / terminal.data_sent.max(1) as f64;
    let (sent, received) = terminal.carried();
    [
        safe(&terminal.terminal),
        state(terminal),
        safe(&terminal.address),
        safe(&terminal.mode),
        or_dash(terminal.rate_bits_per_second.map(|bits| rate(bits as f64))),
        or_dash(terminal.plan.as_deref().map(safe)),
        or_dash(terminal.share_bits_per_second.map(|bits| rate(bits as f64))),
        or_dash(terminal.round_trip_seconds.map(time)),
        or_dash(terminal.queuing_delay_seconds.map(time)),
        share(lost),
        count(terminal.streams),
        bytes(sent),
        bytes(received),
    ]
}

/// Returns whether a terminal is connected, and the state of its path.
pub(crate) fn state(terminal: &Terminal) -> String {
    if !terminal.connected {
        return "not connected".into();
    }
    match (terminal.outage_seconds, terminal.idle_seconds) {
        (Some(outage), _) => format!("outage {}", time(outage)),
        (None, Some(silent)) if silent > 30.0 => format!("silent {}", time(silent)),
        (None, Some(_) | None) => match terminal.health.as_deref() {
            Some(health @ ("recovering" | "poor")) => health.into(),
            Some(_) | None if terminal.carrier == "tls" => "by TLS".into(),
            Some(_) | None => "connected".into(),
        },
    }
}

fn row(out: &mut String, columns: &[(&str, usize, bool)], cells: &[String]) {
    let mut line = String::new();
    for (cell, &(_, width, number)) in cells.iter().zip(columns) {
        line.push_str(&if number { fit_right(cell, width) } else { fit(cell, width) });
        line.push_str("  ");
    }
    out.push_str(line.trim_end());
    out.push('\n');
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn example() -> Status {
        let text = r#"{
            "version": 1, "answer": "status", "new": {"field": 1},
            "gateway": {"role": "hub", "name": "hub", "version": "0.1.0", "controller": "steady",
                        "link": "10.2.0.2:7000", "pid": 812, "uptime_seconds": 8000.5,
                        "started_unix_seconds": 1800000000},
            "open": 12, "limit": 4096,
            "connections": {"opened": 10233, "completed": 10200, "refused": {"policy": 8, "limit": 4}},
            "udp": {"sent": 1234567, "sent_bytes": 1600000000, "received": 9, "received_bytes": 99},
            "association": {"dropped": {"bad_tag": 0, "replayed": 1}},
            "terminals": [
                {"terminal": "boat", "address": "192.0.2.9:4000", "connected": true, "mode": "steady",
                 "idle_seconds": 0.2, "rate_bits_per_second": 9800000, "round_trip_seconds": 0.612,
                 "queuing_delay_seconds": 0.003, "streams": 12, "data_sent": 1000, "retransmitted": 12,
                 "stream_bytes_sent": 1200000000, "stream_bytes_received": 34000000, "mtu_bytes": 1500,
                 "report": {"version": "0.2.0", "started_unix_seconds": 1800000800, "connections": 3,
                            "connections_lost": 2, "paths": [{"path": "geo", "health": "well"},
                            {"path": "lte", "health": "down"}], "messages": [
                            {"unix_seconds": 1800007000, "text": "path down\u001b"}]}},
                {"terminal": "bus\u001b[31m", "connected": true, "outage_seconds": 7.25, "mode": "free"}
            ],
            "loop": {"late": {"most_seconds": 0.0012}},
            "process": {"cpu_seconds": 12.5, "resident_bytes": 34000000, "open_descriptors": 45}
        }"#;
        serde_json::from_str(text).unwrap()
    }

    /// RLY-11.4: what a terminal reports changes neither the lines of the table nor the operator's
    /// terminal.
    #[test]
    fn texts_of_a_report_are_data() {
        let lines = |status: &Status| table(status).lines().count();
        let mut status = example();
        let before = lines(&status);
        let report = status.terminals[0].report.as_mut().unwrap();
        let hostile = "\u{1b}]0;x\u{7}\r\n\u{9b}31mship";
        report.version = hostile.into();
        report.paths[0].path = hostile.into();
        report.paths[0].health = hostile.into();
        report.messages[0].text = hostile.into();
        assert_eq!(lines(&status), before);
        let page = table(&status);
        assert!(!page.chars().any(|c| c.is_control() && c != '\n'), "{page:?}");
        assert!(page.contains("\u{fffd}31mship"), "{page:?}");
    }

    #[test]
    fn a_status_is_formatted_as_text() {
        let page = table(&example());
        let lines: Vec<&str> = page.lines().collect();
        assert_eq!(
            lines[0],
            "hub \"hub\", version 0.1.0, process 812, up 2 h 13 min, controller steady, on 10.2.0.2:7000"
        );
        assert!(lines[1].ends_with("refused 12 (limit 4, policy 8)"), "{page}");
        assert!(lines[2].ends_with("dropped 1 (replayed 1)"), "{page}");
        assert!(lines[3].contains("descriptors 45 of –; woke at most 1.2 ms late"), "{page}");
        assert!(lines[5].starts_with("TERMINAL"), "{page}");
        for part in ["boat", "9.80 Mbit/s", "612 ms", "1.2 %", "1.20 GB", "34.0 MB"] {
            assert!(lines[6].contains(part), "{part} in {page}");
        }
        assert!(lines[7].contains("outage 7.2 s") && !page.contains('\u{1b}'), "{page}");
        assert!(lines[9].starts_with("TERMINAL          VERSION"), "{page}");
        for part in [
            "boat",
            "0.2.0",
            "2 h 0 min",
            "geo well, lte down",
            "16 min 40 s ago: path down\u{fffd}",
        ] {
            assert!(lines[10].contains(part), "{part} in {page}");
        }
        assert_eq!(lines.len(), 11, "the other terminal has not reported: {page}");
        let mut waiting = example();
        waiting.gateway.waiting = vec!["address 10.2.0.2 (link.listen)".into()];
        let page = table(&waiting);
        assert!(page.contains("\nwaiting for  address 10.2.0.2 (link.listen)\n"), "{page}");
        assert!(table(&Status::default()).ends_with("no terminal is here\n"));
        assert!(!page.contains("names"), "none was asked for: {page}");
    }

    #[test]
    fn names_are_shown_after_the_first_lookup() {
        let mut status = example();
        status.resolver.queries = 1_200;
        status.resolver.no_answer = 7;
        let page = table(&status);
        let line = page.lines().nth(3).unwrap();
        assert!(line.starts_with("names        1,200 asked for, 0 cached"), "{line}");
        assert!(line.ends_with("0 not found, 7 not answered, 0 refused"), "{line}");
    }
}
