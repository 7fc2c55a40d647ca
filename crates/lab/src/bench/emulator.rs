//! `bentpipe bench emulator`: accuracy of the emulator in packets and time.
//!
//! ```text
//!   generator ──▶ g ══ a ──▶ emulator ──▶ b ══ s
//!                      │                       │
//!                      └── capture (kernel's stamps) ──┘
//! ```
//!
//! The reference is a capture of both sides that is independent of the emulator. The packets that
//! arrived at `a`, with the capture's timestamps, are replayed through [`satlink`] under virtual
//! time, which determines which packets must depart, in which order, and when. This is compared
//! with the capture at `s`. A packet that is missing there although the link did not drop it is an
//! unexplained loss, whatever the emulator reports.

use super::figures::median;
use rt::Clock;
use rt::emulator::{Emulator, EmulatorConfig, Handle, Ports, Summary};
use rt::netlink::{Netlink, NetlinkError, VethEnd};
use rt::packet::{Options as PacketOptions, PacketError, PacketSocket};
use satlink::{Admission, Direction, Frame, Link, LinkConfig, words};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use testbed::{Host, TestbedError};
use units::{BitRate, Instant, Span};

/// Octets of each packet at the network layer.
const PACKET: usize = 1500;
/// An experimental EtherType, which no kernel processes.
const ETHERTYPE: u16 = 0x88b5;
/// Interval at which the generator sends all due packets.
const TICK: Span = Span::from_micros(200);

/// One load on one link.
#[derive(Clone, Debug)]
pub struct Case {
    /// Name in the report.
    pub name: &'static str,
    /// Offered rate at the network layer.
    pub offered: BitRate,
    /// Link description.
    pub link: &'static str,
}

/// The loads that the emulator is designed for: a high packet rate, and accurate times.
pub const CASES: &[Case] = &[
    Case {
        name: "1gbit",
        offered: BitRate::from_mbps(1_000),
        link: "delay 300ms rate 1020mbit limit 60000 loss 0.1%",
    },
    Case {
        name: "300mbit",
        offered: BitRate::from_mbps(300),
        link: "delay 300ms rate 310mbit limit 20000 loss 0.1%",
    },
    Case {
        name: "50mbit",
        offered: BitRate::from_mbps(50),
        link: "delay 300ms rate 52mbit limit 5000 loss 0.1%",
    },
];

/// Options of the benchmark.
#[derive(Clone, Debug)]
pub struct Options {
    /// Number of runs of each case; the report has the medians.
    pub repeats: u32,
    /// Duration of the load in each run.
    pub length: Span,
}

impl Default for Options {
    fn default() -> Self {
        Self { repeats: 3, length: Span::from_secs(5) }
    }
}

/// Errors of the benchmark.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// The network namespace could not be created.
    #[error(transparent)]
    Testbed(#[from] TestbedError),
    /// The network could not be configured.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    /// A packet socket could not be opened.
    #[error(transparent)]
    Packet(#[from] PacketError),
    /// The emulator could not start or stopped on its own.
    #[error("the emulator: {0}")]
    Emulator(#[from] rt::emulator::EmulatorError),
    /// The link description of a case is invalid.
    #[error("the link of case {case}: {reason}")]
    Words {
        /// Name of the case.
        case: &'static str,
        /// The error.
        reason: String,
    },
}

/// Runs `cases`; calls `progress` with a line after each run.
///
/// # Errors
/// If nothing can be measured; an inaccurate result is not an error.
pub fn run(
    cases: &[Case],
    options: &Options,
    mut progress: impl FnMut(&str),
) -> Result<Value, BenchError> {
    let mut results = Vec::new();
    for case in cases {
        let mut runs = Vec::new();
        for repeat in 0..options.repeats.max(1) {
            let result = run_once(case, u64::from(repeat), options.length)?;
            progress(&format!(
                "{} run {}: {} of {} packets as the link decided, {} lost without reason, \
                 departures late by {} (median), {} (99th percentile), {} (most)",
                case.name,
                repeat + 1,
                result.as_expected,
                result.arrived,
                result.unexplained_losses,
                result.late(0.5),
                result.late(0.99),
                result.late(1.0),
            ));
            runs.push(result);
        }
        results.push(report(case, options, &runs));
    }
    Ok(json!({ "bench": "emulator", "packet_bytes": PACKET, "cases": results }))
}

/// Result of a run according to the independent capture.
struct Outcome {
    sent: u64,
    arrived: u64,
    as_expected: u64,
    dropped_by_link: u64,
    unexplained_losses: u64,
    unexpected: u64,
    out_of_order: u64,
    /// Departures before the expected time.
    early: u64,
    /// Delays of departures after the expected time in nanoseconds, sorted.
    late_ns: Vec<u64>,
    arrival_seconds: f64,
    capture_dropped: u64,
    summary: Summary,
}

impl Outcome {
    fn late(&self, quantile: f64) -> Span {
        let last = self.late_ns.len().saturating_sub(1);
        let at = (quantile * last as f64).round() as usize;
        Span::from_nanos(self.late_ns.get(at).copied().unwrap_or(0))
    }
}

fn run_once(case: &Case, run: u64, length: Span) -> Result<Outcome, BenchError> {
    let link = words::parse_link(case.link)
        .map_err(|error| BenchError::Words { case: case.name, reason: error.to_string() })?;
    let host = Host::new("bench")?;
    host.run(wire_up)?;
    let captures = host.run(|| {
        let options = PacketOptions::default();
        PacketSocket::open("a", &options).and_then(|a| Ok((a, PacketSocket::open("s", &options)?)))
    })?;
    let ports = Ports::Interfaces { a: "a".to_owned(), b: "b".to_owned() };
    let config = EmulatorConfig { run, ..EmulatorConfig::new(link.clone(), ports) };
    let emulator = host.run(|| Emulator::open(config))?;
    let handle = emulator.handle();
    let running = host.spawn("emulator", move || emulator.run(&AtomicBool::new(false)));
    let stop = Arc::new(AtomicBool::new(false));
    let capturing = capture(&host, captures, Arc::clone(&stop));

    let offered = case.offered;
    let sent = host.run(move || generate(offered, length));
    let drain = link.forward.delay + Span::from_millis(500);
    let clock = Clock::new();
    clock.sleep_until(clock.now() + drain);
    let summary = end(&handle, running)?;
    stop.store(true, Ordering::Relaxed);
    let seen = capturing.join().expect("the capture does not panic");
    Ok(compare(&link, sent?, &seen, summary))
}

fn end(
    handle: &Handle,
    running: JoinHandle<Result<Summary, rt::emulator::EmulatorError>>,
) -> Result<Summary, BenchError> {
    handle.stop();
    Ok(running.join().expect("the emulator does not panic")?)
}

/// Creates the two links, which carry nothing but the generator's packets.
fn wire_up() -> Result<(), NetlinkError> {
    let mut net = Netlink::open()?;
    for (one, other) in [("g", "a"), ("b", "s")] {
        net.create_veth(&VethEnd::new(one), &VethEnd::new(other))?;
        for name in [one, other] {
            // Without IPv6 the setting does not exist.
            let _ = rt::netlink::sysctl(&format!("net/ipv6/conf/{name}/disable_ipv6"), "1");
            net.disable_offloads(name)?;
            net.set_up(name)?;
        }
    }
    Ok(())
}

/// Captured packets: number and timestamp, in order.
#[derive(Default)]
struct Observed {
    arrivals: Vec<(u64, u64)>,
    departures: Vec<(u64, u64)>,
    dropped: u64,
}

fn capture(
    host: &Host,
    (mut a, mut s): (PacketSocket, PacketSocket),
    stop: Arc<AtomicBool>,
) -> JoinHandle<Observed> {
    host.spawn("capture", move || {
        let clock = Clock::new();
        let mut seen = Observed::default();
        loop {
            let last = stop.load(Ordering::Relaxed);
            let mut count = 0;
            for (socket, list) in [(&mut a, &mut seen.arrivals), (&mut s, &mut seen.departures)] {
                let took = socket.receive(64, |unix_ns, frame| {
                    list.extend(number(&frame).zip(unix_ns));
                });
                // An error is a gap, which appears as unexplained losses.
                count += took.unwrap_or(0);
            }
            if count == 0 {
                if last {
                    break;
                }
                clock.sleep_until(clock.now() + Span::from_millis(2));
            }
        }
        seen.dropped = a.kernel_counts().dropped + s.kernel_counts().dropped;
        seen
    })
}

/// Sends numbered packets at `rate` for `length`; returns the number that the kernel accepted.
fn generate(rate: BitRate, length: Span) -> Result<u64, PacketError> {
    let socket = PacketSocket::open("g", &PacketOptions::default())?;
    let clock = Clock::from_here();
    let mut sent = 0u64;
    let mut frames: Vec<Vec<u8>> = Vec::new();
    loop {
        let now = clock.now();
        if now.since(Instant::ZERO) >= length {
            return Ok(sent);
        }
        let due = rate.bytes_in(now.since(Instant::ZERO)) / PACKET as u64;
        // After a stall the backlog is sent in bounded bursts.
        frames.clear();
        frames.extend((sent..due.min(sent + 32)).map(numbered));
        if !frames.is_empty() {
            sent += socket.send(frames.iter().map(Vec::as_slice)).unwrap_or(0) as u64;
        }
        if sent >= due {
            clock.sleep_until(now + TICK);
        }
    }
}

fn numbered(number: u64) -> Vec<u8> {
    let mut frame = vec![0u8; 14 + PACKET];
    frame[..12].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
    frame[12..14].copy_from_slice(&ETHERTYPE.to_be_bytes());
    frame[14..22].copy_from_slice(&number.to_be_bytes());
    frame
}

fn number(frame: &[u8]) -> Option<u64> {
    let ours = frame.get(12..14)? == ETHERTYPE.to_be_bytes();
    let bytes = frame.get(14..22)?.try_into().ok()?;
    ours.then(|| u64::from_be_bytes(bytes))
}

/// A packet of the reference simulation.
#[derive(Clone)]
struct Numbered(u64);

impl Frame for Numbered {
    fn len(&self) -> usize {
        PACKET
    }
}

/// Returns when the link delivers each packet of `arrivals`, in order: number, and nanoseconds
/// since 1970.
fn expected(link: &LinkConfig, summary: &Summary, arrivals: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let start = &summary.start;
    let mut model = Link::new(link, start.seed, start.run).expect("the emulator took it too");
    let mut out = Vec::new();
    let mut deliver = |model: &mut Link<Numbered>, until| {
        while let Some(delivery) = model.poll_delivery(until) {
            out.push((delivery.frame.0, start.epoch_unix_ns + delivery.at.as_nanos()));
        }
    };
    for &(number, unix_ns) in arrivals {
        let at = Instant::from_nanos(unix_ns.saturating_sub(start.epoch_unix_ns));
        deliver(&mut model, at);
        match model.offer(at, Direction::Forward, Numbered(number)) {
            Admission::Queued | Admission::Dropped(_, _) => {}
        }
    }
    deliver(&mut model, Instant::FAR_FUTURE);
    out
}

fn compare(link: &LinkConfig, sent: u64, seen: &Observed, summary: Summary) -> Outcome {
    let expected = expected(link, &summary, &seen.arrivals);
    let mut due: BTreeMap<u64, u64> = expected.iter().copied().collect();
    let (mut late_ns, mut early, mut unexpected, mut out_of_order) = (Vec::new(), 0, 0, 0);
    let mut highest = None;
    for &(number, unix_ns) in &seen.departures {
        let Some(at) = due.remove(&number) else {
            unexpected += 1;
            continue;
        };
        early += u64::from(unix_ns < at);
        late_ns.push(unix_ns.saturating_sub(at));
        // This link keeps the order, and the generator counts upwards.
        out_of_order += u64::from(highest > Some(number));
        highest = highest.max(Some(number));
    }
    late_ns.sort_unstable();
    let span = match (seen.arrivals.first(), seen.arrivals.last()) {
        (Some((_, first)), Some((_, last))) => last.saturating_sub(*first),
        (None, _) | (_, None) => 0,
    };
    let arrived = seen.arrivals.len() as u64;
    Outcome {
        sent,
        arrived,
        as_expected: late_ns.len() as u64,
        dropped_by_link: arrived - expected.len() as u64,
        unexplained_losses: due.len() as u64,
        unexpected,
        out_of_order,
        early,
        late_ns,
        arrival_seconds: span as f64 / 1e9,
        capture_dropped: seen.dropped,
        summary,
    }
}

fn report(case: &Case, options: &Options, runs: &[Outcome]) -> Value {
    let median = |of: &dyn Fn(&Outcome) -> f64| median(runs.iter().map(of).collect());
    json!({
        "name": case.name,
        "link": case.link,
        "offered_bits_per_second": case.offered.as_bps(),
        "seconds": options.length.as_secs_f64(),
        "median": {
            "unexplained_losses": median(&|run| run.unexplained_losses as f64),
            "p50_lateness_seconds": median(&|run| run.late(0.5).as_secs_f64()),
            "p99_lateness_seconds": median(&|run| run.late(0.99).as_secs_f64()),
            "max_lateness_seconds": median(&|run| run.late(1.0).as_secs_f64()),
        },
        "runs": runs.iter().map(run_report).collect::<Vec<_>>(),
    })
}

fn run_report(run: &Outcome) -> Value {
    let end = &run.summary.end;
    json!({
        "sent": run.sent,
        "arrived": run.arrived,
        "bits_per_second": run.arrived as f64 * PACKET as f64 * 8.0 / run.arrival_seconds.max(1e-9),
        "dropped_by_link": run.dropped_by_link,
        "as_expected": run.as_expected,
        "unexplained_losses": run.unexplained_losses,
        "unexpected": run.unexpected,
        "out_of_order": run.out_of_order,
        "early": run.early,
        "p50_lateness_seconds": run.late(0.5).as_secs_f64(),
        "p99_lateness_seconds": run.late(0.99).as_secs_f64(),
        "p999_lateness_seconds": run.late(0.999).as_secs_f64(),
        "max_lateness_seconds": run.late(1.0).as_secs_f64(),
        "capture_dropped": run.capture_dropped,
        "emulator": {
            "kept_up": end.kept_up,
            "reasons": end.reasons,
            "kernel_dropped": end.forward.kernel_dropped,
            "lateness": end.lateness,
            "late_stamps": end.late_stamps,
            "cpu_share": end.cpu_seconds / end.seconds,
            "scheduling": run.summary.start.scheduling,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_light_load_has_no_unexplained_losses() {
        if let Err(refusal) = Host::new("probe") {
            eprintln!("skipped: {refusal}");
            return;
        }
        let case = Case {
            name: "gentle",
            offered: BitRate::from_mbps(5),
            link: "delay 5ms rate 6mbit limit 100 loss 5%",
        };
        let outcome = run_once(&case, 0, Span::from_millis(400)).unwrap();
        assert!(outcome.sent > 100 && outcome.arrived == outcome.sent);
        assert!(outcome.dropped_by_link > 0);
        assert_eq!(outcome.arrived, outcome.as_expected + outcome.dropped_by_link);
        let faults = (outcome.unexplained_losses, outcome.unexpected, outcome.out_of_order);
        assert_eq!(faults, (0, 0, 0));
        assert_eq!(outcome.early, 0);
    }

    #[test]
    fn the_evaluation_detects_all_kinds_of_errors() {
        let case = Case { name: "", offered: BitRate::from_mbps(1), link: "delay 10ms" };
        let link = words::parse_link(case.link).unwrap();
        let ports = Ports::UdpRelay {
            listen: "127.0.0.1:0".parse().unwrap(),
            target: "127.0.0.1:9".parse().unwrap(),
        };
        let mut config = EmulatorConfig::new(link.clone(), ports);
        config.duration = Some(Span::ZERO);
        let summary = Emulator::open(config).unwrap().run(&AtomicBool::new(false)).unwrap();
        let at = |ms: u64| summary.start.epoch_unix_ns + ms * 1_000_000;
        // Sent as 0 to 4; 1 is lost, 3 comes before 2 and too early, 9 was never sent.
        let arrivals = (0..5).map(|n| (n, at(n))).collect();
        let departures = vec![(0, at(11)), (3, at(12)), (2, at(12)), (9, at(13)), (4, at(14))];
        let seen = Observed { arrivals, departures, dropped: 0 };
        let outcome = compare(&link, 5, &seen, summary);
        assert_eq!((outcome.unexplained_losses, outcome.unexpected), (1, 1));
        assert_eq!((outcome.out_of_order, outcome.early), (1, 1));
        assert_eq!(outcome.late_ns, [0, 0, 0, 1_000_000]);
        assert_eq!(outcome.late(1.0), Span::from_millis(1));
    }
}
