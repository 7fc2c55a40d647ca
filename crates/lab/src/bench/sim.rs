//! `bentpipe bench sim`: processor time and memory of the simulator, compared with ns-2.
//!
//! Each run is a separate process, alternating with ns-2, so that other load affects both. Measured
//! are processor time (user and system) and peak memory.

use super::figures::{Figure, Figures, MAIN, Series, median};
use nix::sys::resource::{UsageWho, getrusage};
use serde::{Deserialize, Serialize};
use sim::scenario::benchmark;
use std::io::Write;
use std::process::{Command, Stdio};

/// The executable of ns-2.
const NS2: &str = "ns";

/// A workload for both simulators.
pub struct Case {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Runs it; returns simulated seconds, octets and packets.
    ours: fn() -> (f64, u64, u64),
    /// Returns the script for ns-2, if possible; it prints `done` and its time.
    script: Option<fn() -> String>,
}

/// All workloads.
pub const CASES: &[Case] = &[
    Case {
        name: "transfer",
        about: "100 MB in segments of 1,000 bytes over 100 Mbit/s and 1 ms, 1.3 Mbit/s and \
                300 ms, 100 Mbit/s and 1 ms; by XSTP with every byte carried and checked, in \
                ns-2 by SACK TCP, which carries none",
        ours: || measured(&benchmark::transfer(1, TRANSFER)),
        script: Some(transfer_script),
    },
    Case {
        name: "flows",
        about: "350 flows of SACK TCP for 60 s over 1 Gbit/s and 1 ms, 45 Mbit/s and 348 ms, \
                1 Gbit/s and 1 ms",
        ours: || measured(&benchmark::flows(1)),
        script: Some(flows_script),
    },
    Case {
        name: "star",
        about: "a minute of 8,000 terminals in three clusters of ten platforms, each with 48 \
                Mbit/s out and 140 return channels of 76.8 kbit/s by plan and by chance, web users \
                as many as send what ITU-R S.1711 reports",
        ours: || measured(&benchmark::star(1)),
        script: None,
    },
];

fn measured(done: &benchmark::Transferred) -> (f64, u64, u64) {
    (done.took.as_secs_f64(), done.bytes, done.packets)
}

/// Octets of the case `transfer`.
const TRANSFER: u64 = 100_000_000;

/// Cost of one run.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Cost {
    /// Processor time in seconds.
    pub cpu_seconds: f64,
    /// Peak memory in octets.
    pub peak_bytes: u64,
    /// Simulated time in seconds.
    pub simulated_seconds: f64,
    /// Octets that were transferred and verified, if any.
    pub bytes: u64,
    /// Packets that links delivered, if counted; for the star, objects of users.
    pub packets: u64,
}

/// Medians over the runs of one simulator.
#[derive(Clone, Debug, Serialize)]
pub struct Medians {
    /// Processor time in seconds.
    pub cpu_seconds: f64,
    /// Peak memory in octets.
    pub peak_bytes: u64,
    /// All runs.
    pub runs: Vec<Cost>,
}

/// Result of a case.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    /// Name of the case.
    pub name: &'static str,
    /// Description of the case.
    pub about: &'static str,
    /// This simulator.
    pub ours: Medians,
    /// ns-2; `None` if it is not installed.
    pub ns2: Option<Medians>,
    /// Processor time of ns-2 relative to this simulator's.
    pub faster: Option<f64>,
}

/// Results of the benchmark.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// `sim`.
    pub bench: &'static str,
    /// Reason for missing results of ns-2.
    pub note: Option<String>,
    /// Results of each case.
    pub cases: Vec<Compared>,
    /// The medians of the cases.
    pub results: Vec<Figure>,
}

/// Runs each case `repeats` times, alternating with ns-2 if it is installed. `child` returns the
/// command that calls [`child`] with the given arguments in a separate process; `progress` receives
/// a line after each run.
///
/// # Errors
/// If a run fails.
pub fn run(
    repeats: u32,
    child: impl Fn(&[&str]) -> Command,
    mut progress: impl FnMut(&str),
) -> Result<Report, String> {
    let missing = Command::new(NS2)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .err();
    let note =
        missing.map(|error| format!("ns-2 cannot be run ({error}); it is Debian's package ns2"));
    let (mut cases, mut series) = (Vec::new(), Series::default());
    for case in CASES {
        let (mut ours, mut others) = (Vec::new(), Vec::new());
        for repeat in 1..=repeats.max(1) {
            let one = |side: &str| measure(child(&[side, case.name]));
            let cost = one("ours")?;
            progress(&line(case.name, repeat, "bentpipe", &cost));
            series.add(MAIN, case.name, figures(&cost));
            ours.push(cost);
            if note.is_none() && case.script.is_some() {
                let cost = one("ns2")?;
                progress(&line(case.name, repeat, "ns-2", &cost));
                series.add("ns-2", case.name, figures(&cost));
                others.push(cost);
            }
        }
        let ours = Medians::of(ours);
        let ns2 = (!others.is_empty()).then(|| Medians::of(others));
        let faster = ns2.as_ref().map(|ns2| ns2.cpu_seconds / ours.cpu_seconds);
        cases.push(Compared { name: case.name, about: case.about, ours, ns2, faster });
    }
    Ok(Report { bench: "sim", note, cases, results: series.results(MAIN) })
}

fn figures(cost: &Cost) -> Figures {
    let mut figures = Figures::default();
    figures.add("cpu", "s", cost.cpu_seconds);
    figures.add("memory-peak", "MB", cost.peak_bytes as f64 / 1e6);
    figures
}

/// Performs one run in this process: `ours` or `ns2`, and the name of the case.
///
/// # Errors
/// If there is no such case, or ns-2 fails.
pub fn child(side: &str, name: &str) -> Result<Cost, String> {
    let case = CASES.iter().find(|case| case.name == name).ok_or_else(|| {
        let known: Vec<&str> = CASES.iter().map(|case| case.name).collect();
        format!("case: found {name:?}, expected one of {}", known.join(", "))
    })?;
    match side {
        "ours" => {
            let (simulated_seconds, bytes, packets) = (case.ours)();
            let (cpu_seconds, _) = usage(UsageWho::RUSAGE_SELF)?;
            let peak_bytes = own_peak()?;
            Ok(Cost { cpu_seconds, peak_bytes, simulated_seconds, bytes, packets })
        }
        "ns2" => {
            let script = case.script.ok_or_else(|| format!("{name}: nothing for ns-2"))?;
            let simulated_seconds = ns2(&script())?;
            // ns-2 is the only child of this process.
            let (cpu_seconds, peak_bytes) = usage(UsageWho::RUSAGE_CHILDREN)?;
            Ok(Cost { cpu_seconds, peak_bytes, simulated_seconds, bytes: 0, packets: 0 })
        }
        _ => Err(format!("side: found {side:?}, expected ours or ns2")),
    }
}

fn measure(mut command: Command) -> Result<Cost, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("{command:?}: {error}"))
}

/// Runs ns-2 on `script`, which prints `done` and its time.
fn ns2(script: &str) -> Result<f64, String> {
    let fail = |error: std::io::Error| format!("{NS2}: {error}");
    let mut running = Command::new(NS2)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(fail)?;
    if let Some(mut stdin) = running.stdin.take() {
        stdin.write_all(script.as_bytes()).map_err(fail)?;
    }
    let output = running.wait_with_output().map_err(fail)?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let time = said.lines().find_map(|line| line.strip_prefix("done ")?.trim().parse().ok());
    time.ok_or_else(|| {
        format!("{NS2} did not end: {said}{}", String::from_utf8_lossy(&output.stderr))
    })
}

/// Returns processor time in seconds and peak memory in octets.
fn usage(who: UsageWho) -> Result<(f64, u64), String> {
    let usage = getrusage(who).map_err(|error| format!("getrusage: {error}"))?;
    let seconds =
        |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    let cpu = seconds(usage.user_time()) + seconds(usage.system_time());
    Ok((cpu, u64::try_from(usage.max_rss()).unwrap_or(0) * 1024))
}

/// Returns the peak memory of this process. (The value of `getrusage` includes the parent's image
/// before `exec`.)
fn own_peak() -> Result<u64, String> {
    let status = std::fs::read_to_string("/proc/self/status")
        .map_err(|error| format!("/proc/self/status: {error}"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.map(|kilobytes| kilobytes * 1024).ok_or_else(|| "the status has no VmHWM".to_owned())
}

impl Medians {
    fn of(runs: Vec<Cost>) -> Self {
        let middle = |values| median(values).unwrap_or_default();
        Self {
            cpu_seconds: middle(runs.iter().map(|run| run.cpu_seconds).collect()),
            peak_bytes: middle(runs.iter().map(|run| run.peak_bytes as f64).collect()) as u64,
            runs,
        }
    }
}

fn line(case: &str, repeat: u32, who: &str, cost: &Cost) -> String {
    format!(
        "{case} run {repeat}: {who:<9} {:.3} s of processor time, {:.1} MB, {:.0} s simulated",
        cost.cpu_seconds,
        cost.peak_bytes as f64 / 1e6,
        cost.simulated_seconds
    )
}

/// Formats the report as text.
pub fn text(report: &Report) -> String {
    let mut out = String::new();
    for case in &report.cases {
        out += &format!("{}: {}\n", case.name, case.about);
        let sides = [("bentpipe", Some(&case.ours)), ("ns-2", case.ns2.as_ref())];
        for (who, medians) in sides {
            let Some(medians) = medians else { continue };
            out += &format!(
                "  {who:<9} {:.3} s of processor time, {:.1} MB of memory (medians of {})\n",
                medians.cpu_seconds,
                medians.peak_bytes as f64 / 1e6,
                medians.runs.len()
            );
        }
        let simulated = case.ours.runs.first().map_or(0.0, |run| run.simulated_seconds);
        out += &format!("  {:.1} times real time\n", simulated / case.ours.cpu_seconds);
        if let Some(faster) = case.faster {
            out += &format!("  ns-2 takes {faster:.2} times as long\n");
        }
    }
    report.note.iter().for_each(|note| out += &format!("{note}\n"));
    out
}

/// Returns a chain of nodes whose middle link has this rate, delay in milliseconds and queue in
/// packets; `hop` is the rate of the other links.
fn line_of_nodes(hop: &str, rate: &str, delay: u32, queue: u32) -> String {
    format!(
        "set ns [new Simulator]\n\
         set a [$ns node]\nset b [$ns node]\nset c [$ns node]\nset d [$ns node]\n\
         $ns duplex-link $a $b {hop} 1ms DropTail\n\
         $ns duplex-link $b $c {rate} {delay}ms DropTail\n\
         $ns duplex-link $c $d {hop} 1ms DropTail\n\
         $ns queue-limit $b $c {queue}\n\
         $ns queue-limit $c $b {queue}\n"
    )
}

/// Returns the script of one SACK TCP with the window of XSTP, 160 segments, which fills the link
/// without loss.
fn transfer_script() -> String {
    format!(
        "{line}\
         set tcp [new Agent/TCP/Sack1]\n\
         $tcp set packetSize_ {segment}\n\
         $tcp set window_ 160\n\
         set sink [new Agent/TCPSink/Sack1]\n\
         $ns attach-agent $a $tcp\n\
         $ns attach-agent $d $sink\n\
         $ns connect $tcp $sink\n\
         set ftp [new Application/FTP]\n\
         $ftp attach-agent $tcp\n\
         $tcp proc done {{}} {{ global ns; puts \"done [$ns now]\"; exit 0 }}\n\
         $ns at 0.0 \"$ftp send {TRANSFER}\"\n\
         $ns at 10000 \"exit 1\"\n\
         $ns run\n",
        line = line_of_nodes("100Mb", "1.3Mb", 300, 98),
        segment = benchmark::SEGMENT
    )
}

/// Returns the script of many SACK TCPs with delayed acknowledgements between two hosts.
fn flows_script() -> String {
    format!(
        "{line}\
         $ns queue-limit $a $b 100000\n\
         for {{set i 0}} {{$i < {flows}}} {{incr i}} {{\n\
         set tcp [new Agent/TCP/Sack1]\n\
         $tcp set packetSize_ {segment}\n\
         $tcp set window_ 1000\n\
         set sink [new Agent/TCPSink/Sack1/DelAck]\n\
         $ns attach-agent $a $tcp\n\
         $ns attach-agent $d $sink\n\
         $ns connect $tcp $sink\n\
         set ftp [new Application/FTP]\n\
         $ftp attach-agent $tcp\n\
         $ns at [expr $i * 0.01] \"$ftp start\"\n\
         }}\n\
         $ns at {end} {{ puts \"done [$ns now]\"; exit 0 }}\n\
         $ns run\n",
        line = line_of_nodes("1000Mb", "45Mb", 348, 3_937),
        flows = benchmark::FLOWS,
        segment = benchmark::SEGMENT,
        end = benchmark::FLOWS_RUN.as_secs_f64()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(cpu_seconds: f64, peak_bytes: u64) -> Cost {
        Cost { cpu_seconds, peak_bytes, simulated_seconds: 1.0, bytes: 0, packets: 0 }
    }

    #[test]
    fn medians_of_odd_and_even_counts() {
        let medians = Medians::of(vec![cost(3.0, 10), cost(1.0, 30), cost(2.0, 20)]);
        assert_eq!((medians.cpu_seconds, medians.peak_bytes), (2.0, 20));
        let medians = Medians::of(vec![cost(3.0, 10), cost(1.0, 30)]);
        assert_eq!((medians.cpu_seconds, medians.peak_bytes), (2.0, 20));
    }

    #[test]
    fn unknown_names_are_reported() {
        assert!(child("ours", "nothing").unwrap_err().contains("\"nothing\""));
        assert!(child("theirs", "transfer").unwrap_err().contains("\"theirs\""));
    }

    #[test]
    fn scripts_contain_their_parameters() {
        assert!(transfer_script().contains("send 100000000") && !transfer_script().contains("{{"));
        let flows = flows_script();
        assert!(flows.contains("$i < 350") && flows.contains("$ns at 60 {"), "{flows}");
    }

    #[test]
    fn resource_usage_is_measured() {
        let (cpu, peak) = usage(UsageWho::RUSAGE_SELF).expect("a system that counts");
        assert!(cpu > 0.0 && peak > 0);
        assert!(own_peak().expect("a system that counts") > 1_000_000);
    }

    #[test]
    fn a_report_without_ns2_has_a_note() {
        let report = Report {
            bench: "sim",
            note: Some("ns-2 cannot be run".to_owned()),
            cases: vec![Compared {
                name: "transfer",
                about: "a transfer",
                ours: Medians::of(vec![cost(0.1, 3_000_000)]),
                ns2: None,
                faster: None,
            }],
            results: Vec::new(),
        };
        let text = text(&report);
        assert!(text.contains("bentpipe  0.100 s") && text.contains("cannot be run"), "{text}");
    }
}
