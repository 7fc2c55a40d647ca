//! `bentpipe emulate`.

use crate::{Outcome, values};
use rt::emulator::star::{self, StarEmulatorConfig};
use rt::emulator::{EmulatorConfig, Foreground, run_in_foreground};
use satlink::{Direction, Trace, words};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use units::Span;

/// Emulate a satellite link between two interfaces, or as a UDP relay; or a hub with terminals
///
/// IF_A IF_B LINK are two interfaces and the link between them, udp LISTEN TARGET LINK a relay of
/// datagrams.
///
/// The link description has netem's syntax: delay, rate, loss, limit, gemodel, reorder, duplicate;
/// and framing, ber, queue, profile, outage, fade. `forward` and `return` select the direction of
/// what follows them; forward is from IF_A to IF_B (from TARGET to the clients of LISTEN).
///
/// With --mac the terminals share the return link by bandwidth on demand, as configured in FILE (if
/// empty: 100 kbit/s in cells). A terminal is an interface, NAME=INTERFACE, or PREFIX* for all
/// interfaces with this prefix.
#[derive(clap::Args)]
#[command(
    verbatim_doc_comment,
    after_help = "Examples:\n  \
                  bentpipe emulate eth0 eth1 delay 300ms rate 10mbit loss 0.1%\n  \
                  bentpipe emulate udp 127.0.0.1:4500 192.0.2.7:4500 profile geo\n  \
                  bentpipe emulate --mac star.txt hub0 boat=veth1"
)]
pub struct Arguments {
    /// Emulate a hub and terminals on a shared return link configured by this file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["pcap_a", "pcap_b"])]
    mac: Option<PathBuf>,
    /// Unix socket on which a hub reports the numbers of its terminals' connections
    #[arg(long, value_name = "PATH", requires = "mac")]
    counts: Option<PathBuf>,
    /// Capture the traffic of side A to this file (pcap)
    #[arg(long, value_name = "FILE")]
    pcap_a: Option<PathBuf>,
    /// Capture the traffic of side B to this file (pcap)
    #[arg(long, value_name = "FILE")]
    pcap_b: Option<PathBuf>,
    /// Write a summary as JSON at the end; - is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// A course of rate, delay and loss of the forward direction: CSV (*.csv) or Mahimahi's format
    #[arg(long, value_name = "FILE", conflicts_with = "mac")]
    trace_forward: Option<PathBuf>,
    /// The same of the return direction
    #[arg(long, value_name = "FILE", conflicts_with = "mac")]
    trace_return: Option<PathBuf>,
    /// Seed of all random processes
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Replication number: selects other random numbers of the same distributions
    #[arg(long, value_name = "N", default_value_t = 0)]
    run: u64,
    /// Stop after this time
    #[arg(long, value_name = "SECONDS", value_parser = values::seconds)]
    duration: Option<Span>,
    /// Do not print a line of progress every second
    #[arg(long)]
    quiet: bool,
    /// Read commands from standard input: set WORDS, outage TIME, stop; with --mac forward WORDS,
    /// weight NAME N, off, on or vanish NAME, claim NAME SLOTS, intrude NAME, stop
    #[arg(long)]
    orders: bool,
    /// IF_A IF_B, or udp LISTEN TARGET, followed by the link; with --mac only interfaces
    #[arg(required = true)]
    words: Vec<String>,
}

/// Emulates a link until it is interrupted, or for the given time.
///
/// # Errors
/// If an argument is invalid, or an interface or file cannot be used.
pub fn run(arguments: Arguments) -> Outcome {
    if let Some(path) = arguments.mac.clone() {
        return run_star(arguments, &path);
    }
    let mut config =
        EmulatorConfig::from_words(&arguments.words).map_err(|error| error.to_string())?;
    for (direction, path) in [
        (Direction::Forward, &arguments.trace_forward),
        (Direction::Return, &arguments.trace_return),
    ] {
        if let Some(path) = path {
            config.link.direction_mut(direction).trace = Some(Arc::new(read_trace(path)?));
            config.link_words += &format!(" trace {direction} {}", path.display());
        }
    }
    if let Some(path) = &arguments.json {
        values::reserve(path)?;
    }
    config.pcap_a = arguments.pcap_a;
    config.pcap_b = arguments.pcap_b;
    config.seed = arguments.seed;
    config.run = arguments.run;
    config.duration = arguments.duration;
    config.report_every = (!arguments.quiet).then_some(Span::from_secs(1));
    let foreground = Foreground { json: arguments.json, orders_from_stdin: arguments.orders };
    let stop = values::stop_flag()?;
    let summary =
        run_in_foreground(config, &foreground, &stop).map_err(|error| error.to_string())?;
    kept_up(&summary.end.reasons)
}

fn read_trace(path: &Path) -> Result<Trace, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let text = fs::read_to_string(path).map_err(|error| failed(&error))?;
    Trace::parse(&path.to_string_lossy(), &text).map_err(|error| failed(&error))
}

/// Emulates a hub and terminals as configured in the file at `path`.
fn run_star(arguments: Arguments, path: &Path) -> Outcome {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let star = words::parse_star(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut config = StarEmulatorConfig::from_words(star, &arguments.words)
        .map_err(|error| error.to_string())?;
    if let Some(path) = &arguments.json {
        values::reserve(path)?;
    }
    config.star_words = text;
    config.counts = arguments.counts;
    config.seed = arguments.seed;
    config.run = arguments.run;
    config.duration = arguments.duration;
    config.report_every = (!arguments.quiet).then_some(Span::from_secs(1));
    let foreground = Foreground { json: arguments.json, orders_from_stdin: arguments.orders };
    let stop = values::stop_flag()?;
    let summary =
        star::run_in_foreground(config, &foreground, &stop).map_err(|error| error.to_string())?;
    kept_up(&summary.end.reasons)
}

fn kept_up(reasons: &[String]) -> Outcome {
    if reasons.is_empty() {
        Ok(())
    } else {
        Err(format!("the emulator did not keep up: {}", reasons.join("; ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    #[test]
    fn options_may_follow_the_link() {
        let line = "emulate eth0 eth1 delay 300ms --pcap-a a.pcapng loss 0.1% --duration 5";
        let arguments = Line::try_parse_from(line.split(' ')).unwrap().arguments;
        assert_eq!(arguments.words, ["eth0", "eth1", "delay", "300ms", "loss", "0.1%"]);
        assert_eq!(arguments.pcap_a, Some(PathBuf::from("a.pcapng")));
        assert_eq!(arguments.duration, Some(Span::from_secs(5)));
    }

    #[test]
    fn an_invalid_star_is_reported_with_its_error() {
        let path = std::env::temp_dir().join(format!("bentpipe-{}.star", std::process::id()));
        let error = |text: &str, rest: &str| {
            fs::write(&path, text).unwrap();
            let line = format!("emulate --mac {} {rest}", path.display());
            run(Line::try_parse_from(line.split(' ')).unwrap().arguments).unwrap_err()
        };
        let found = error("return carriers none", "hub0 eth1");
        assert!(
            found.ends_with(
                "line 1, column 17: carriers: found \"none\", expected a whole \
                                 number above 0"
            ),
            "{found}"
        );
        assert!(error("", "hub0").contains("then those of its terminals"));
        assert!(error("terminal boat", "hub0 hut=eth1").contains("terminal boat is described"));
        fs::remove_file(&path).unwrap();
        assert!(error_of("emulate --mac /no/such hub0 eth1").starts_with("/no/such: "));
        assert!(Line::try_parse_from("emulate --counts x a b".split(' ')).is_err());
    }

    fn error_of(line: &str) -> String {
        run(Line::try_parse_from(line.split(' ')).unwrap().arguments).unwrap_err()
    }

    #[test]
    fn an_invalid_trace_is_reported_with_its_line() {
        let path = std::env::temp_dir().join(format!("bentpipe-{}.csv", std::process::id()));
        fs::write(&path, "time_s,loss\n0,0\n1,2\n").unwrap();
        let path = path.display();
        let line = format!("emulate udp 127.0.0.1:0 127.0.0.1:9 --trace-return {path}");
        assert_eq!(error_of(&line), format!("{path}: line 3: expected a loss from 0 to 1"));
        fs::remove_file(path.to_string()).unwrap();
        let line = "emulate udp 127.0.0.1:0 127.0.0.1:9 --trace-forward /no/such.trace";
        assert!(error_of(line).starts_with("/no/such.trace: "));
    }

    #[test]
    fn the_report_path_is_checked_before_the_run() {
        let line = "emulate udp 127.0.0.1:0 127.0.0.1:9 --json /no/such/place --duration 0.1";
        let error = run(Line::try_parse_from(line.split(' ')).unwrap().arguments).unwrap_err();
        assert!(error.starts_with("/no/such/place: "), "{error}");
    }
}
