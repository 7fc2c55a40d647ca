//! New connections, and the latency of requests.

use super::{LoadConfig, Loaded, SETTLING, System, failed, run, wait};
use crate::LabError;
use crate::bench::ends::{Bulk, Direction, Paced, exchange};
use crate::bench::figures::{BenchReport, Figures, quantile};
use crate::live::Carrier;
use rt::Clock;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use testbed::traffic::Way;
use units::{Instant, Span};

/// Octets of a request and of its response.
const OCTETS: usize = 64;
/// Maximum number of connections of one measurement; more would measure ports in TIME-WAIT.
const CONNECTIONS: u64 = 10_000;
/// Number of concurrent connections.
const MANY: usize = 100;
/// The load during the measurement of request latency, as a fraction of the rate that one
/// flow reaches through the gateways.
const LOAD: f64 = 0.1;
/// Time between two requests.
const THOUGHT: Span = Span::from_millis(2);

/// New connections one after another and a hundred at once, and requests on an open connection.
///
/// # Errors
/// If a name matches no case, a network cannot be built, or a gateway ends.
pub fn connect(config: &LoadConfig, note: &mut dyn FnMut(&str)) -> Result<BenchReport, LabError> {
    let length = config.length.unwrap_or(Span::from_secs(if config.quick { 2 } else { 5 }));
    let many = format!("connect-{MANY}");
    let cases = ["connect-1".to_owned(), many.clone(), "request".to_owned()];
    let mut load = None;
    // Kernel TCP comes first in each run; its time is not part of the latency that gateways add.
    let mut base: Option<[f64; 2]> = None;
    let measure = |case: &str, system: System<'_>| {
        let carrier = match system {
            System::Network(carrier) => carrier,
            System::Reference => return Ok(Figures::default()),
        };
        if case != "request" {
            let at_once = if case == many { MANY } else { 1 };
            return connections(config, carrier, at_once, length);
        }
        let bps = match load {
            Some(bps) => bps,
            None => *load.insert(capacity(config, length.min(SETTLING))? * LOAD),
        };
        let mut figures = requests(config, carrier, bps as u64, length)?;
        let latencies = [0, 1].map(|index| figures.0[index].2);
        match (carrier, base) {
            (Carrier::Kernel, _) => base = Some(latencies),
            (Carrier::Gateways | Carrier::Other(_), Some([p50, p99])) => {
                figures.add("added-p50", "ms", latencies[0] - p50);
                figures.add("added-p99", "ms", latencies[1] - p99);
            }
            (Carrier::Gateways | Carrier::Other(_), None) => {}
        }
        Ok(figures)
    };
    run("connect", config, &cases, length, measure, note)
}

/// Returns the bits per second of one download through the gateways.
fn capacity(config: &LoadConfig, length: Span) -> Result<f64, LabError> {
    let loaded = Loaded::start(config, Carrier::Gateways, 1)?;
    let network = &loaded.network;
    let load = Bulk::start(&network.net().client, network.reach(), 1, Direction::Download)
        .map_err(failed("opening a flow"))?;
    wait(length);
    let (clock, before) = (Clock::new(), load.octets());
    let start = clock.now();
    wait(length);
    let seconds = clock.now().since(start).as_secs_f64();
    Ok((load.octets() - before) as f64 * 8.0 / seconds)
}

/// Opens connections, `at_once` at a time; each transfers a request and a response and is closed.
fn connections(
    config: &LoadConfig,
    carrier: Carrier<'_>,
    at_once: usize,
    length: Span,
) -> Result<Figures, LabError> {
    let mut loaded = Loaded::start(config, carrier, CONNECTIONS as usize)?;
    let network = &mut loaded.network;
    let before = network.usage()?;
    let clock = Clock::new();
    let (start, opened, latencies) = (clock.now(), AtomicU64::new(0), Mutex::new(Vec::new()));
    let (until, reach) = (start + length, network.reach());
    let worked: io::Result<()> = network.net().client.run(|| {
        thread::scope(|scope| {
            let work = || open_until(reach, until, &opened, &latencies);
            let workers: Vec<_> = (0..at_once).map(|_| scope.spawn(work)).collect();
            workers.into_iter().try_for_each(|worker| {
                worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
        })
    });
    worked.map_err(failed("a connection"))?;
    let seconds = clock.now().since(start).as_secs_f64();
    // Processing of connections after their end is part of their cost.
    wait(Span::from_millis(500));
    let after = network.usage()?;
    let mut latencies = latencies.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    latencies.sort_by(f64::total_cmp);
    let count = latencies.len() as f64;
    let mut figures = Figures::default();
    figures.add("rate", "connections/s", count / seconds);
    latency(&mut figures, &latencies);
    if let Some((before, after)) = before.zip(after) {
        for (name, end) in [("cpu-terminal", 0), ("cpu-hub", 1)] {
            let cpu = (after[end].cpu - before[end].cpu) / count;
            figures.add(name, "ms/connection", cpu * 1e3);
        }
    }
    Ok(figures)
}

fn open_until(
    reach: (Way, SocketAddr),
    until: Instant,
    opened: &AtomicU64,
    latencies: &Mutex<Vec<f64>>,
) -> io::Result<()> {
    let clock = Clock::new();
    let mut own = Vec::new();
    while clock.now() < until && opened.fetch_add(1, Ordering::Relaxed) < CONNECTIONS {
        let start = clock.now();
        exchange(reach, OCTETS)?;
        own.push(clock.now().since(start).as_secs_f64());
    }
    latencies.lock().unwrap_or_else(std::sync::PoisonError::into_inner).extend(own);
    Ok(())
}

/// Measures requests on an open connection, in parallel to a download of `bps`.
fn requests(
    config: &LoadConfig,
    carrier: Carrier<'_>,
    bps: u64,
    length: Span,
) -> Result<Figures, LabError> {
    let loaded = Loaded::start(config, carrier, 2)?;
    let (host, reach) = (&loaded.network.net().client, loaded.network.reach());
    let _load = Paced::start(host, reach, bps).map_err(failed("the load"))?;
    let mut stream = host.run(|| exchange(reach, OCTETS)).map_err(failed("a request"))?;
    wait(SETTLING.min(length));
    let clock = Clock::new();
    let until = clock.now() + length;
    let mut latencies = Vec::new();
    while clock.now() < until {
        let start = clock.now();
        request(&mut stream).map_err(failed("a request"))?;
        latencies.push(clock.now().since(start).as_secs_f64());
        wait(THOUGHT);
    }
    latencies.sort_by(f64::total_cmp);
    let mut figures = Figures::default();
    latency(&mut figures, &latencies);
    figures.add("load", "Gbit/s", bps as f64 / 1e9);
    Ok(figures)
}

fn request(stream: &mut TcpStream) -> io::Result<()> {
    let mut octets = [0x5a; OCTETS];
    stream.write_all(&octets)?;
    stream.read_exact(&mut octets)
}

fn latency(figures: &mut Figures, sorted_seconds: &[f64]) {
    for (name, part) in [("latency-p50", 0.5), ("latency-p99", 0.99)] {
        figures.add(name, "ms", quantile(sorted_seconds, part).unwrap_or(f64::NAN) * 1e3);
    }
}
