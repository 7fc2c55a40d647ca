//! QUIC between the two gateways' hosts, one stream from memory to memory: the cost of an encrypted
//! transport over UDP without TCP on either side.

use super::gateway::costs;
use super::{SETTLING, failed};
use crate::LabError;
use crate::bench::ends;
use crate::bench::figures::Figures;
use crate::live::{Program, Usage};
use std::io::{self, BufRead, BufReader};
use std::process::ChildStdout;
use testbed::{Satellite, SatelliteConfig, addresses};
use units::Span;

/// Port of the server.
const PORT: u16 = 4433;

/// A stream from the hub's host to the terminal's.
pub(super) fn bulk(length: Span) -> Result<Figures, LabError> {
    let config = SatelliteConfig { emulated: false, offloads: true, ..SatelliteConfig::default() };
    let net = Satellite::new(&config)?;
    let server = format!("{}:{PORT}", addresses::HUB.0);
    let command = ends::command(&["quinn-serve", &server])?;
    let mut sender = Program::start(Some(&net.hub), command, "")?;
    Lines::of(&mut sender).next(&mut sender)?;
    let settling = SETTLING.min(length).as_secs_f64().to_string();
    let seconds = length.as_secs_f64().to_string();
    let command = ends::command(&["quinn-receive", &server, &settling, &seconds])?;
    let mut receiver = Program::start(Some(&net.terminal), command, "")?;
    let mut lines = Lines::of(&mut receiver);
    lines.next(&mut receiver)?;
    let usage = |receiver: &mut Program, sender: &mut Program| -> Result<[f64; 2], LabError> {
        Ok([Usage::of(receiver.id())?.cpu, Usage::of(sender.id())?.cpu])
    };
    let before = usage(&mut receiver, &mut sender)?;
    let octets = lines.next(&mut receiver)?;
    let after = usage(&mut receiver, &mut sender)?;
    let octets: f64 = octets
        .parse()
        .map_err(|_| LabError::Request(format!("quinn: found {octets:?}, expected a number")))?;
    let gbit = octets * 8.0 / 1e9;
    let mut figures = Figures::default();
    figures.add("rate", "Gbit/s", gbit / length.as_secs_f64());
    if gbit > 0.0 {
        costs(&mut figures, [before, after], gbit);
    }
    Ok(figures)
}

/// Output of an end on its standard output.
struct Lines(BufReader<ChildStdout>);

impl Lines {
    fn of(program: &mut Program) -> Self {
        let output = program.child().stdout.take().expect("standard output is a pipe");
        Self(BufReader::new(output))
    }

    /// Waits for the next line. The pipe ends when an end fails.
    fn next(&mut self, program: &mut Program) -> Result<String, LabError> {
        let mut line = String::new();
        self.0.read_line(&mut line).map_err(failed("quinn"))?;
        if line.ends_with('\n') {
            return Ok(line.trim().to_owned());
        }
        let _ = program.child().wait();
        let _ = program.ended();
        let ended = io::Error::other(program.errors());
        Err(failed("quinn")(ended))
    }
}
