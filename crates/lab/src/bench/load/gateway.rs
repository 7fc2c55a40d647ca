//! Bulk data: rate, processor time and memory.

use super::{LATER, LoadConfig, Loaded, SETTLING, System, failed, run, wait};
use crate::LabError;
use crate::bench::ends::{Bulk, Direction, received};
use crate::bench::figures::{BenchReport, Figures};
use crate::live::{Carrier, Usage};
use rt::Clock;
use units::Span;

/// Numbers of concurrent flows.
const FLOWS: [usize; 4] = [1, 10, 100, 1000];
/// Numbers of concurrent flows in the quick form.
const QUICK_FLOWS: [usize; 2] = [1, 100];

/// Measures bulk data in each direction, with one flow and with many.
///
/// # Errors
/// If a name matches no case, a network cannot be built, or a gateway ends.
pub fn gateway(config: &LoadConfig, note: &mut dyn FnMut(&str)) -> Result<BenchReport, LabError> {
    let length = config.length.unwrap_or(Span::from_secs(if config.quick { 2 } else { 5 }));
    let flows: &[usize] = if config.quick { &QUICK_FLOWS } else { &FLOWS };
    let cases: Vec<String> = ["download", "upload"]
        .iter()
        .flat_map(|direction| flows.iter().map(move |flows| format!("{direction}-{flows}")))
        .collect();
    let measure = |case: &str, system: System<'_>| {
        let (direction, flows) = parse(case);
        match system {
            System::Network(carrier) => bulk(config, carrier, (direction, flows), length),
            System::Reference => super::reference::bulk(length),
        }
    };
    run("gateway", config, &cases, length, measure, note)
}

fn parse(case: &str) -> (Direction, usize) {
    let (direction, flows) = case.split_once('-').expect("a case is direction-flows");
    let direction = if direction == "download" { Direction::Download } else { Direction::Upload };
    (direction, flows.parse().expect("a case is direction-flows"))
}

fn bulk(
    config: &LoadConfig,
    carrier: Carrier<'_>,
    (direction, flows): (Direction, usize),
    length: Span,
) -> Result<Figures, LabError> {
    let mut loaded = Loaded::start(config, carrier, flows)?;
    let network = &mut loaded.network;
    let load = Bulk::start(&network.net().client, network.reach(), flows, direction)
        .map_err(failed("opening flows"))?;
    wait(SETTLING.min(length));
    let clock = Clock::new();
    let before = (octets(&loaded, &load, direction)?, loaded.network.usage()?, busy_seconds());
    let start = clock.now();
    wait(length);
    let after = (octets(&loaded, &load, direction)?, loaded.network.usage()?, busy_seconds());
    let seconds = clock.now().since(start).as_secs_f64();
    load.stop().map_err(failed("a flow"))?;
    let gbit = (after.0 - before.0) as f64 * 8.0 / 1e9;
    let mut figures = Figures::default();
    figures.add("rate", "Gbit/s", gbit / seconds);
    let usages = before.1.zip(after.1);
    if let (Some((before, after)), true) = (usages, gbit > 0.0) {
        costs(&mut figures, [before, after].map(|both| both.map(|usage| usage.cpu)), gbit);
    }
    if let (Some(before), Some(after), true) = (before.2, after.2, gbit > 0.0) {
        figures.add("cpu-machine", "core-s/Gbit", (after - before) / gbit);
    }
    if let Some(peak) = after.1 {
        wait(LATER);
        let later = loaded.network.usage()?;
        memory(&mut figures, peak, later.unwrap_or_default());
    }
    Ok(figures)
}

/// Returns the octets received.
fn octets(loaded: &Loaded, load: &Bulk, direction: Direction) -> Result<u64, LabError> {
    match direction {
        Direction::Download => Ok(load.octets()),
        Direction::Upload => {
            let server = loaded.network.server();
            let host = &loaded.network.net().server;
            host.run(|| received(server, Span::from_secs(10))).map_err(failed("the server"))
        }
    }
}

/// Returns the processor time per 10^9 bits, of the terminal's programs, the hub's, and both.
pub(super) fn costs(figures: &mut Figures, [before, after]: [[f64; 2]; 2], gbit: f64) {
    let [terminal, hub] = [0, 1].map(|end| (after[end] - before[end]) / gbit);
    figures.add("cpu-terminal", "core-s/Gbit", terminal);
    figures.add("cpu-hub", "core-s/Gbit", hub);
    figures.add("cpu-both", "core-s/Gbit", terminal + hub);
}

fn memory(figures: &mut Figures, peak: [Usage; 2], later: [Usage; 2]) {
    let megabytes = |octets: u64| octets as f64 / 1e6;
    for (name, end) in [("terminal", 0), ("hub", 1)] {
        figures.add(format!("memory-peak-{name}"), "MB", megabytes(peak[end].peak));
        figures.add(format!("memory-later-{name}"), "MB", megabytes(later[end].resident));
    }
}

/// Returns the processor time of the whole machine since its start; `None` if it is unknown.
fn busy_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/stat").ok()?;
    // user, nice, system, idle, iowait, irq, softirq, in hundredths of a second (`proc(5)`).
    let fields: Vec<u64> = stat
        .lines()
        .next()?
        .split_whitespace()
        .skip(1)
        .take(7)
        .map_while(|field| field.parse().ok())
        .collect();
    let &[user, nice, system, _, _, irq, softirq] = &fields[..] else { return None };
    Some((user + nice + system + irq + softirq) as f64 / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_those_of_each_end_and_their_sum() {
        let mut figures = Figures::default();
        costs(&mut figures, [[1.0, 2.0], [2.0, 4.0]], 10.0);
        let values: Vec<f64> = figures.0.iter().map(|figure| figure.2).collect();
        assert_eq!(values, [0.1, 0.2, 0.1 + 0.2]);
        assert!(busy_seconds().is_some_and(|seconds| seconds > 0.0));
    }
}
