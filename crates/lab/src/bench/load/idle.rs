//! Memory of idle connections.

use super::{HEADER, LATER, LoadConfig, Loaded, System, failed, run, wait};
use crate::LabError;
use crate::bench::ends::exchange;
use crate::bench::figures::{BenchReport, Figures};
use crate::live::Carrier;
use std::io;
use std::net::TcpStream;
use std::thread;

/// Number of threads that open connections.
const OPENERS: usize = 20;

/// Opens connections, leaves them idle, and measures the increase of memory of the processes at
/// both ends. The kernel's memory for sockets is not included.
///
/// # Errors
/// If a name matches no case, a network cannot be built, or a gateway ends.
pub fn idle(config: &LoadConfig, note: &mut dyn FnMut(&str)) -> Result<BenchReport, LabError> {
    let count = config.connections;
    let cases = [format!("idle-{count}")];
    let measure = |_: &str, system: System<'_>| match system {
        System::Network(carrier) => measure(config, carrier, count),
        System::Reference => Ok(Figures::default()),
    };
    run("idle", config, &cases, LATER, measure, note)
}

fn measure(config: &LoadConfig, carrier: Carrier<'_>, count: usize) -> Result<Figures, LabError> {
    // The probe's connection, and closing ones, count as well.
    let mut loaded = Loaded::start(config, carrier, count + OPENERS)?;
    let network = &mut loaded.network;
    let Some(before) = network.usage()? else { return Ok(Figures::default()) };
    let clock = rt::Clock::new();
    let start = clock.now();
    let reach = network.reach();
    let opened = network.net().client.run(|| {
        thread::scope(|scope| {
            let open = |number: usize| {
                let own = count / OPENERS + usize::from(number < count % OPENERS);
                scope.spawn(move || (0..own).map(|_| exchange(reach, HEADER)).collect())
            };
            let openers: Vec<_> = (0..OPENERS).map(open).collect();
            let join = |opener: thread::ScopedJoinHandle<'_, io::Result<Vec<TcpStream>>>| {
                opener.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            openers.into_iter().map(join).collect::<io::Result<Vec<_>>>()
        })
    });
    let connections = opened.map_err(failed("opening connections"))?;
    let seconds = clock.now().since(start).as_secs_f64();
    let open = network.usage()?.unwrap_or_default();
    wait(LATER);
    let middle = network.usage()?.unwrap_or_default();
    wait(LATER);
    let after = network.usage()?.unwrap_or_default();
    drop(connections);
    let mut figures = Figures::default();
    for (name, end) in [("terminal", 0), ("hub", 1)] {
        let grown = after[end].resident.saturating_sub(before[end].resident);
        figures.add(format!("memory-{name}"), "octets/connection", grown as f64 / count as f64);
        let cpu = (open[end].cpu - before[end].cpu) / count as f64;
        figures.add(format!("open-cpu-{name}"), "ms/connection", cpu * 1e3);
        let idle = (after[end].cpu - middle[end].cpu) / LATER.as_secs_f64();
        figures.add(format!("idle-cpu-{name}"), "cores", idle);
    }
    figures.add("open-rate", "connections/s", count as f64 / seconds);
    Ok(figures)
}
