//! `bentpipe emulate`.

use crate::{Outcome, values};
use rt::emulator::{EmulatorConfig, Foreground, run_in_foreground};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use units::Span;

/// Emulate a satellite link between two interfaces, or as a UDP relay
///
/// bentpipe emulate IF_A IF_B delay 300ms rate 10mbit loss 0.1%
/// bentpipe emulate udp LISTEN TARGET profile geo
///
/// The words are netem's: delay, rate, loss, limit, gemodel, reorder, duplicate; and framing,
/// ber, queue, profile, outage, fade. `forward` and `return` say which direction the words after
/// them are for; forward is from IF_A to IF_B (from TARGET to the clients of LISTEN).
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// Capture what passes on side A to this file (pcap)
    #[arg(long, value_name = "FILE")]
    pcap_a: Option<PathBuf>,
    /// Capture what passes on side B to this file (pcap)
    #[arg(long, value_name = "FILE")]
    pcap_b: Option<PathBuf>,
    /// Write a summary as JSON at the end; - is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The seed of everything random
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Replication: another number, another course of the same chances
    #[arg(long, value_name = "N", default_value_t = 0)]
    run: u64,
    /// Stop after this time
    #[arg(long, value_name = "SECONDS", value_parser = values::seconds)]
    duration: Option<Span>,
    /// Do not say every second how it goes
    #[arg(long)]
    quiet: bool,
    /// Take orders (set WORDS, outage TIME, stop) from standard input
    #[arg(long)]
    orders: bool,
    /// IF_A IF_B, or udp LISTEN TARGET; then the link
    #[arg(required = true)]
    words: Vec<String>,
}

pub(crate) fn run(arguments: Arguments) -> Outcome {
    let mut config =
        EmulatorConfig::from_words(&arguments.words).map_err(|error| error.to_string())?;
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
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))
            .map_err(|error| format!("signal {signal}: {error}"))?;
    }
    let summary =
        run_in_foreground(config, &foreground, &stop).map_err(|error| error.to_string())?;
    if summary.end.kept_up {
        Ok(())
    } else {
        Err(format!("the emulator did not keep up: {}", summary.end.reasons.join("; ")))
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
    fn options_may_stand_behind_the_link() {
        let line = "emulate eth0 eth1 delay 300ms --pcap-a a.pcapng loss 0.1% --duration 5";
        let arguments = Line::try_parse_from(line.split(' ')).unwrap().arguments;
        assert_eq!(arguments.words, ["eth0", "eth1", "delay", "300ms", "loss", "0.1%"]);
        assert_eq!(arguments.pcap_a, Some(PathBuf::from("a.pcapng")));
        assert_eq!(arguments.duration, Some(Span::from_secs(5)));
    }

    #[test]
    fn a_place_for_the_report_is_made_sure_of_before_the_run() {
        let line = "emulate udp 127.0.0.1:0 127.0.0.1:9 --json /no/such/place --duration 0.1";
        let error = run(Line::try_parse_from(line.split(' ')).unwrap().arguments).unwrap_err();
        assert!(error.starts_with("/no/such/place: "), "{error}");
    }
}
