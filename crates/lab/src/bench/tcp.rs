//! `bentpipe bench tcp`: the simulator's TCP models compared with the kernel's TCP.
//!
//! A client downloads a file over the same link: in real time over the emulator with the kernel's
//! TCP, and under virtual time with the models. The result is the time from the first SYN to the
//! last octet.

use super::figures::median;
use crate::LabError;
use crate::live::{CrossTraffic, TestNetwork, TestNetworkConfig, Way};
use satlink::{DirectionConfig, Limit, LinkConfig, QueueConfig};
use serde::Serialize;
use sim::Network;
use sim::host::{Host, Tcp, TcpId};
use sim::network::Address;
use sim::traffic::{Client, ConnectionPlan, Server};
use simtcp::TcpConfig;
use testbed::traffic::{self, File, Limits, Progress};
use units::{BitRate, Instant, Span};

/// File size in octets.
const BYTES: u64 = 10_000_000;
const RATE: BitRate = BitRate::from_mbps(10);
const ONE_WAY: Span = Span::from_millis(300);
/// Time limit of a transfer.
const PATIENCE: Span = Span::from_secs(300);

/// A transfer.
#[derive(Clone, Copy, Debug)]
struct Case {
    /// The kernel's name of the congestion control.
    congestion: &'static str,
    /// Queue limit before the link in bandwidth-delay products.
    queue: f64,
    /// Tolerance of the model as a fraction of the kernel's time.
    within: f64,
}

const CASES: &[Case] = &[
    Case { congestion: "reno", queue: 1.0, within: 0.05 },
    Case { congestion: "reno", queue: 0.25, within: 0.05 },
    Case { congestion: "cubic", queue: 1.0, within: 0.05 },
    Case { congestion: "cubic", queue: 0.25, within: 0.05 },
    Case { congestion: "bbr", queue: 1.0, within: 0.05 },
    Case { congestion: "bbr", queue: 0.25, within: 0.05 },
];

/// A transfer by kernel and model.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    /// Name, such as `reno, queue 1`.
    pub name: String,
    /// The kernel's times in seconds, by repetition.
    pub kernel_seconds: Vec<f64>,
    /// Median of these times.
    pub kernel_median: f64,
    /// The kernel's retransmitted segments, by repetition.
    pub kernel_retransmissions: Vec<u64>,
    /// The model's time in seconds.
    pub model_seconds: f64,
    /// The model's retransmitted segments.
    pub model_retransmissions: u64,
    /// Relative difference (model − kernel) / kernel.
    pub difference: f64,
    /// Tolerance of the difference.
    pub within: f64,
    /// Whether the difference is within the tolerance.
    pub agrees: bool,
}

/// Results of the benchmark.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// `tcp`.
    pub bench: &'static str,
    /// Description of link and file.
    pub about: String,
    /// Kernel release.
    pub kernel: String,
    /// The transfers.
    pub cases: Vec<Compared>,
}

/// Runs each transfer whose name contains one of `only` (all if empty) `repeats` times with the
/// kernel and once in the simulator; calls `progress` with a line after each.
///
/// # Errors
/// If a network cannot be created, or a transfer does not complete.
pub fn run(
    only: &[String],
    repeats: u32,
    mut progress: impl FnMut(&str),
) -> Result<Report, LabError> {
    let mut cases = Vec::new();
    let wanted = |case: &&Case| {
        only.is_empty() || only.iter().any(|part| name(case).contains(part.as_str()))
    };
    for case in CASES.iter().filter(wanted) {
        let mut seconds = Vec::new();
        let mut retransmissions = Vec::new();
        for _ in 0..repeats.max(1) {
            let (took, again) = kernel(case)?;
            seconds.push(took);
            retransmissions.push(again);
        }
        let kernel_median = median(seconds.clone()).unwrap_or_default();
        let (model_seconds, model_retransmissions) = model(case)?;
        let difference = (model_seconds - kernel_median) / kernel_median;
        let compared = Compared {
            name: name(case),
            kernel_seconds: seconds,
            kernel_median,
            kernel_retransmissions: retransmissions,
            model_seconds,
            model_retransmissions,
            difference,
            within: case.within,
            agrees: difference.abs() <= case.within,
        };
        progress(&line(&compared));
        cases.push(compared);
    }
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    Ok(Report {
        bench: "tcp",
        about: format!("{BYTES} bytes over {RATE} and {ONE_WAY} each way, loss in the queue only"),
        kernel: kernel.trim().to_owned(),
        cases,
    })
}

fn name(case: &Case) -> String {
    format!("{}, queue {}", case.congestion, case.queue)
}

fn line(compared: &Compared) -> String {
    format!(
        "{:<18} kernel {:>7.2} s ({:?} retransmissions), model {:>7.2} s ({} retransmissions): {:+.1} %, {}",
        compared.name,
        compared.kernel_median,
        compared.kernel_retransmissions,
        compared.model_seconds,
        compared.model_retransmissions,
        compared.difference * 100.0,
        if compared.agrees { "agrees" } else { "differs" }
    )
}

fn link(case: &Case) -> LinkConfig {
    let direction = |products| DirectionConfig {
        rate: Some(RATE),
        delay: ONE_WAY,
        queue: QueueConfig { limit: Limit::BandwidthDelay(products), ..QueueConfig::default() },
        ..DirectionConfig::default()
    };
    LinkConfig { forward: direction(case.queue), ..LinkConfig::symmetric(direction(1.0)) }
}

/// Returns the kernel's time in seconds and its retransmitted segments.
fn kernel(case: &Case) -> Result<(f64, u64), LabError> {
    let network = TestNetwork::new(&TestNetworkConfig {
        link: link(case),
        way: Way::Cubic,
        rates: None,
        keys: None,
        beside: CrossTraffic::Nothing,
        seed: 1,
    })?;
    let file = File { seed: 1, bytes: BYTES, congestion: case.congestion };
    let limits = Limits { after_first_byte: PATIENCE, overall: PATIENCE };
    let done = network.net().client.run(|| {
        let way = traffic::Way::Direct;
        traffic::download(way, network.files(), file, limits, &Progress::default())
    });
    let served = network.served(1);
    network.close()?;
    if !done.complete || !done.matches {
        return Err(LabError::Request(format!("{}: the transfer did not end", name(case))));
    }
    Ok((done.ended.as_secs_f64(), served.map_or(0, |served| served.retransmissions)))
}

/// Returns the model of the kernel's TCP.
fn config(congestion: &str) -> TcpConfig {
    match congestion {
        "bbr" => TcpConfig::bbr(),
        "reno" => TcpConfig::linux_reno(),
        _ => TcpConfig::linux_cubic(),
    }
}

/// Returns the model's time in seconds and its retransmitted segments.
fn model(case: &Case) -> Result<(f64, u64), LabError> {
    let tcp = config(case.congestion);
    let mut net = Network::new(1, 0);
    let server =
        net.host_with(|node| Host::new(Tcp::server(node, &tcp, 80), Server::<TcpId>::new()));
    let client = net.host_with(|node| {
        let transport = Tcp::client(node, &tcp, Address::new(server, 80));
        let plan = ConnectionPlan::download(Instant::ZERO, BYTES);
        Host::new(transport, Client::<TcpId>::new(vec![plan]))
    });
    net.link(server, client, &link(case));
    type Asking = Host<Tcp, Client<TcpId>>;
    type Serving = Host<Tcp, Server<TcpId>>;
    let mut again = 0;
    net.run_while(Instant::ZERO + PATIENCE, |net| {
        let connections = net.node::<Serving>(server).transport.connections();
        again = connections
            .map(|(_, endpoint)| endpoint.counters().retransmitted_segments)
            .max()
            .unwrap_or(again);
        !net.node::<Asking>(client).application.is_done()
    });
    let exchanged = net.node::<Asking>(client).application.exchanged();
    let took = exchanged.first().and_then(|one| Some(one.done?.since(one.asked)));
    let missing = || LabError::Request(format!("{}: the model's transfer did not end", name(case)));
    Ok((took.ok_or_else(missing)?.as_secs_f64(), again))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_model_completes_within_four_times_the_minimum() {
        for case in CASES {
            let (seconds, _) = model(case).unwrap_or_else(|error| panic!("{error}"));
            // 10 MB in segments of 1448 of 1500 bytes, and two round trips.
            let least = 10e6 * 8.0 / 10e6 * 1_500.0 / 1_448.0 + 1.2;
            assert!((least..4.0 * least).contains(&seconds), "{}: {seconds}", name(case));
        }
    }
}
