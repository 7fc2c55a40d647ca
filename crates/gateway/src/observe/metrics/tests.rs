//! The pages conform to the formats, read strictly.

use super::super::{
    AssociationCounters, CommitmentStatus, Counted, GatewayStatus, LoopStatus, PathCounters,
    ProcessStatus, ReportStatus, TerminalStatus,
};
use super::*;
use std::collections::{BTreeMap, BTreeSet};
use units::Span;

fn terminal(name: &str) -> TerminalStatus {
    TerminalStatus {
        health: None,
        failures: 0,
        terminal: name.into(),
        address: "192.0.2.9:4000".into(),
        carrier: "udp",
        bonded: false,
        connected: true,
        since_unix_seconds: Some(1_800_000_000.5),
        last_received_unix_seconds: Some(1_800_000_100.25),
        idle_seconds: Some(0.5),
        mode: "steady",
        plan: Some("gold".into()),
        share_bits_per_second: Some(4_000_000),
        committed_bits_per_second: Some(2_000_000),
        granted_bits_per_second: None,
        grant_overuse: 0,
        rate_bits_per_second: Some(10_000_000),
        confirmed_rate_bits_per_second: None,
        round_trip_seconds: Some(0.61),
        min_round_trip_seconds: Some(0.6),
        queuing_delay_seconds: Some(0.0),
        outage_seconds: None,
        mtu_bytes: 1500,
        streams: 3,
        outstanding_bytes: 1,
        retransmit_queue_packets: 2,
        send_buffered_bytes: 3,
        send_buffer_limit_bytes: 4,
        receive_credit_bytes: 5,
        receive_limit_bytes: 6,
        receive_memory_bytes: 7,
        report: Some(ReportStatus::new(relay::TerminalReport {
            release: "0.2.0".into(),
            started_unix_s: 1_800_000_000,
            paths: vec![relay::ReportedPath { state: 3, failures: 1, name: "geo".into() }],
            ..relay::TerminalReport::default()
        })),
        counters: PathCounters { data_sent: u64::from(u32::MAX) * 9, ..PathCounters::default() },
    }
}

/// A hub with two terminals, one with a name that wants to break out of its quotes.
pub(crate) fn example() -> Status {
    let mut rounds = LoopStatus::default();
    rounds.late.count(Span::from_micros(80));
    rounds.late.count(Span::from_secs(2));
    let mut connections = crate::Counters::default();
    connections.refused(crate::proxy::RefuseReason::Policy);
    Status {
        gateway: GatewayStatus {
            role: "hub",
            name: "hub".into(),
            version: "0.1.0",
            controller: "steady",
            link: None,
            waiting: vec!["address 192.0.2.1 (link.listen)".into()],
            pid: 1,
            started_unix_seconds: 1.8e9,
            uptime_seconds: 100.0,
        },
        counted: Counted {
            open: 1,
            limit: 4096,
            connections,
            udp: crate::UdpCounters::default(),
            association: AssociationCounters {
                dropped: [("replayed", 1), ("bad_tag", 2)].into(),
                ..AssociationCounters::default()
            },
            traffic: crate::Traffic::default(),
            resolver: crate::observe::ResolverStatus {
                queries: 7,
                refused: 2,
                ..Default::default()
            },
            dns: Some(crate::observe::DnsStatus { queries: 9, stale: 3, ..Default::default() }),
            commitments: vec![CommitmentStatus {
                direction: "down",
                plan: None,
                committed_bits_per_second: 24_000_000,
                max_bits_per_second: 19_000_000,
            }],
            shards: vec![crate::observe::ShardStatus {
                shard: 0,
                terminals: 2,
                connections: 1,
                cpu_seconds: 0.5,
                datagrams_received: 9,
                datagrams_handed_over: 3,
                hand_over_drops: 0,
            }],
            single: None,
        },
        terminals: vec![terminal("boat"), terminal("a \"b\\\nc} 1\n# TYPE")],
        rounds,
        process: ProcessStatus {
            cpu_seconds: 1.5,
            resident_bytes: Some(1),
            open_descriptors: Some(2),
            max_descriptors: Some(3),
            log_lines_dropped: 4,
        },
    }
}

/// Samples by name and labels, after checking everything that the text format demands.
fn read(page: &str, open: bool) -> BTreeMap<String, f64> {
    let page = match page.strip_suffix("# EOF\n") {
        Some(page) if open => page,
        other => {
            assert!(!open && other.is_none(), "an end where there should be none, or none");
            page
        }
    };
    let (mut kinds, mut helped) = (BTreeMap::new(), BTreeSet::new());
    let (mut samples, mut last) = (BTreeMap::new(), String::new());
    for line in page.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, words) = help.split_once(' ').expect("words of help");
            assert!(words.ends_with('.') && helped.insert(name.to_owned()), "{line}");
            last = name.to_owned();
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').expect("a type");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert_eq!(name, last, "HELP and TYPE stand together");
            assert!(kinds.insert(name.to_owned(), kind.to_owned()).is_none(), "{line}");
        } else {
            let (series, value) = line.rsplit_once(' ').expect("a value");
            let name = series.split('{').next().expect("a name");
            let legal = |c: char| c.is_ascii_lowercase() || c == '_';
            assert!(name.chars().all(legal), "{line}");
            let kind = kinds.get(&last).expect("a type before its samples").as_str();
            let expected = match kind {
                "counter" if open => format!("{last}_total"),
                "histogram" => {
                    let suffix = name.strip_prefix(last.as_str()).expect("its family");
                    assert!(["_bucket", "_sum", "_count"].contains(&suffix), "{line}");
                    name.to_owned()
                }
                _ => last.clone(),
            };
            assert_eq!(name, expected);
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            let value: f64 = value.parse().expect("a number");
            assert!(value.is_finite() && value >= 0.0, "{line}");
            assert!(samples.insert(series.to_owned(), value).is_none(), "twice: {line}");
        }
    }
    assert_eq!(kinds.keys().cloned().collect::<BTreeSet<_>>(), helped);
    samples
}

#[test]
fn labels_are_escaped() {
    let samples = read(&render(&example(), Format::Text), false);
    assert_eq!(samples["bentpipe_connections_limit"], 4096.0);
    assert_eq!(samples["bentpipe_terminal_round_trip_seconds{terminal=\"boat\"}"], 0.61);
    let odd = "bentpipe_terminal_connected{terminal=\"a \\\"b\\\\\\nc} 1\\n# TYPE\"}";
    assert_eq!(samples[odd], 1.0);
    assert_eq!(samples["bentpipe_connections_refused_total{reason=\"policy\"}"], 1.0);
    assert_eq!(samples["bentpipe_loop_wakeup_latency_seconds_bucket{le=\"0.0001\"}"], 1.0);
    assert_eq!(samples["bentpipe_loop_wakeup_latency_seconds_bucket{le=\"1.0\"}"], 1.0);
    assert_eq!(samples["bentpipe_loop_wakeup_latency_seconds_bucket{le=\"+Inf\"}"], 2.0);
    let packets = "bentpipe_terminal_data_packets_sent_total{terminal=\"boat\"}";
    assert_eq!(samples[packets], (u64::from(u32::MAX) * 9) as f64, "no exponent, no rounding");
}

/// RLY-11.4: a version that a terminal reports stays within its label.
#[test]
fn a_reported_version_is_data() {
    let mut status = example();
    let count = read(&render(&status, Format::Text), false).len();
    let report = status.terminals[0].report.as_mut().expect("a report");
    report.version = "1\"} 1\nbentpipe_connections_limit 7\n\\".into();
    for (format, is_open) in [(Format::Text, false), (Format::Open, true)] {
        let samples = read(&render(&status, format), is_open);
        assert_eq!((samples.len(), samples["bentpipe_connections_limit"]), (count, 4096.0));
        let escaped = "version=\"1\\\"} 1\\nbentpipe_connections_limit 7\\n\\\\\"}";
        assert!(samples.keys().any(|name| name.ends_with(escaped)), "{samples:?}");
    }
}

#[test]
fn deprecated_names_are_written_beside_the_present_ones() {
    let page = render(&example(), Format::Text);
    let has = |name: &str| page.contains(&format!("# HELP {name} "));
    // The example is not a single gateway.
    for (former, present) in METRICS.iter().filter(|it| !it.0.contains("satellite")) {
        assert!(has(former) && has(present), "{former}, {present}");
    }
    assert!(
        page.contains("bentpipe_oversubscribed{direction=\"down\",way=\"down\"} 1\n"),
        "{page}"
    );
    assert!(page.contains("\nbentpipe_missing_addresses 1\n"));
    assert!(page.contains("\nbentpipe_waiting 1\n"));
}

#[test]
fn openmetrics_has_the_same_samples() {
    let status = example();
    let text = read(&render(&status, Format::Text), false);
    assert_eq!(read(&render(&status, Format::Open), true), text);
}

/// Prometheus' own opinion, where its tool is installed.
#[test]
fn promtool_accepts_the_metrics() {
    use std::io::Write;
    use std::process::{Command, Stdio};
    let started = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut tool) = started else {
        eprintln!("skipped: this machine has no promtool");
        return;
    };
    let page = render(&example(), Format::Text);
    tool.stdin.take().expect("a pipe").write_all(page.as_bytes()).expect("it reads");
    let output = tool.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.trim().is_empty(), "{said}");
}

const DASHBOARD: &str = include_str!("../../../../../contrib/grafana/bentpipe.json");
const RULES: &str = include_str!("../../../../../contrib/prometheus/bentpipe.rules.yml");

const ALERTS: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../contrib/prometheus/bentpipe.rules.test.yml");

/// Alerts fire in prepared failures and not at a healthy pair, by Prometheus' own evaluation.
#[test]
fn alerts_fire_in_prepared_failures() {
    let alerts = RULES.lines().filter_map(|line| line.trim().strip_prefix("- alert: "));
    let tests = std::fs::read_to_string(ALERTS).unwrap();
    for alert in alerts {
        let count = tests.matches(&format!("alertname: {alert}")).count();
        assert!(count >= 3, "{alert} has no test that it fires");
    }
    let tested = std::process::Command::new("promtool").args(["test", "rules", ALERTS]).output();
    let Ok(tested) = tested else {
        eprintln!("skipped: this machine has no promtool");
        return;
    };
    let output = String::from_utf8_lossy(&tested.stderr) + String::from_utf8_lossy(&tested.stdout);
    assert!(tested.status.success(), "{output}");
}

/// The names of metrics that are not deprecated: those of HELP lines, and of a histogram's parts.
fn known() -> BTreeSet<String> {
    let page = render(&example(), Format::Text);
    let name = |line: &str| line.split(['{', ' ']).next().unwrap_or_default().to_owned();
    let is_present = |name: &String| METRICS.iter().all(|(former, _)| name != former);
    let samples = page.lines().filter(|line| !line.starts_with('#')).map(name).filter(is_present);
    let helped = page.lines().filter_map(|line| line.strip_prefix("# HELP ")).map(name);
    let helped = helped.filter(is_present);
    samples.chain(helped).collect()
}

/// Names of metrics in `text`.
fn named(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| word.starts_with("bentpipe_") || word.starts_with("process_"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn dashboard_and_alerts_name_metrics_that_exist() {
    let dashboard: serde_json::Value = serde_json::from_str(DASHBOARD).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let (mut ids, mut used) = (BTreeSet::new(), named(RULES));
    for panel in panels {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "an id twice");
        if panel["type"] == "row" {
            continue;
        }
        assert_eq!(panel["datasource"]["uid"], "${datasource}");
        for target in panel["targets"].as_array().unwrap() {
            let names = named(target["expr"].as_str().unwrap());
            assert!(!names.is_empty(), "{target}");
            used.extend(names);
        }
    }
    used.extend(named(&dashboard["templating"].to_string()));
    let known = known();
    let unknown: Vec<&String> = used.difference(&known).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    assert!(used.len() > 30 && panels.len() > 15);
}

/// The pages that name metrics.
const PAGES: [&str; 5] = [
    include_str!("../../../../../docs/guide/monitoring.md"),
    include_str!("../../../../../docs/guide/plans.md"),
    include_str!("../../../../../docs/guide/failover.md"),
    include_str!("../../../../../docs/guide/multi-access.md"),
    include_str!("../../../../../docs/guide/tuning.md"),
];

#[test]
fn pages_name_metrics_that_exist() {
    let (known, mut count) = (known(), 0);
    // The metrics of the satellite exist only at single gateways, and the example is a pair.
    let names = PAGES.into_iter().flat_map(named).filter(|name| !name.contains("_satellite_"));
    for name in names {
        // `bentpipe_datagrams_*` is all that begin so.
        let all_of = |one: &String| name.ends_with('_') && one.starts_with(&name);
        let is_there = known.contains(&name) || known.iter().any(all_of);
        assert!(is_there, "{name}");
        count += 1;
    }
    assert!(count > 30, "{count} names");
}
