//! What is measured at the hosts of each kind of traffic.

use super::file::Kind;
use super::traffic::{Receiver, Sender};
use crate::experiments::statistics::quantile;
use sim::Network;
use sim::host::EndToEndId;
use sim::network::NodeId;
use sim::scenario::shared::jain;
use sim::traffic::{Client, Exchanged};
use units::{Instant, Span};

/// A measure: name and unit.
pub(super) type Measure = (&'static str, &'static str);
/// Measures that have a value.
pub(super) type Found = Vec<(&'static str, f64)>;

impl Kind {
    /// The measures of a traffic, the most important one first.
    pub(super) fn measures(self) -> &'static [Measure] {
        const GOODPUT: Measure = ("goodput", "Mbit/s");
        match self {
            Self::Bulk => &[
                GOODPUT,
                ("time", "s"),
                ("completed", "%"),
                ("fairness", ""),
                ("retransmitted", "%"),
                ("timeouts", ""),
            ],
            Self::Request | Self::Background => &[
                ("latency", "s"),
                ("latency_p95", "s"),
                ("first_byte", "s"),
                ("completed", "%"),
                GOODPUT,
            ],
            Self::Page | Self::Web => {
                &[("page_time", "s"), ("page_time_p95", "s"), ("pages", ""), ("failed", "")]
            }
            Self::Constant => {
                &[("loss", "%"), GOODPUT, ("delay_min", "s"), ("delay_max", "s"), ("jitter", "s")]
            }
        }
    }
}

/// One bulk flow at the end of a run.
pub(super) struct BulkRun {
    goodput_mbps: f64,
    /// Seconds from the start to the last octet, if all arrived.
    time: Option<f64>,
    /// Data segments, retransmitted ones, and timeouts, while the connection is known.
    sent: Option<[u64; 3]>,
}

pub(super) fn bulk_run(
    net: &Network,
    (source, sink, start): (NodeId, NodeId, Instant),
    bytes: u64,
    settle: Span,
) -> BulkRun {
    let receiver = &net.node::<Receiver>(sink).application;
    let last = receiver.streams().filter_map(|stream| stream.last).max();
    let done = last.filter(|_| receiver.received() >= bytes);
    let (from, to) = (start + settle, done.unwrap_or(net.now()));
    let seconds = to.since(from).as_secs_f64();
    let before = receiver.arrived().between(Instant::ZERO, from).bytes;
    let received = receiver.received().saturating_sub(if settle.is_zero() { 0 } else { before });
    let first = net.node::<Sender>(source).transport.first();
    let sent =
        first.map(|(_, seen)| [seen.data_segments, seen.retransmitted_segments, seen.timeouts]);
    BulkRun {
        goodput_mbps: if seconds > 0.0 { received as f64 * 8.0 / seconds / 1e6 } else { 0.0 },
        time: done.map(|done| done.since(start).as_secs_f64()),
        sent,
    }
}

pub(super) fn bulk_measures(runs: &[BulkRun]) -> Found {
    let goodputs: Vec<f64> = runs.iter().map(|run| run.goodput_mbps).collect();
    let times: Vec<f64> = runs.iter().filter_map(|run| run.time).collect();
    let mut all = vec![
        ("goodput", goodputs.iter().sum()),
        ("completed", times.len() as f64 * 100.0 / runs.len() as f64),
    ];
    if times.len() == runs.len() {
        all.push(("time", mean(&times)));
    }
    if runs.len() > 1 {
        all.push(("fairness", jain(&goodputs)));
    }
    let sent: Option<Vec<[u64; 3]>> = runs.iter().map(|run| run.sent).collect();
    if let Some(sent) = sent {
        let sum = |place: usize| sent.iter().map(|one| one[place]).sum::<u64>() as f64;
        all.push(("retransmitted", sum(1) * 100.0 / sum(0).max(1.0)));
        all.push(("timeouts", sum(2)));
    }
    all
}

pub(super) fn latencies(clients: &[&Client<EndToEndId>]) -> Found {
    let exchanged: Vec<&Exchanged> = clients.iter().flat_map(|client| client.exchanged()).collect();
    if exchanged.is_empty() {
        return Vec::new();
    }
    let since = |one: &Exchanged, at: Option<Instant>| Some(at?.since(one.asked).as_secs_f64());
    let done: Vec<f64> = exchanged.iter().filter_map(|one| since(one, one.done)).collect();
    let first: Vec<f64> = exchanged.iter().filter_map(|one| since(one, one.first_byte)).collect();
    let mut all = vec![("completed", done.len() as f64 * 100.0 / exchanged.len() as f64)];
    if let (Some(start), Some(end)) = (
        exchanged.iter().map(|one| one.asked).min(),
        exchanged.iter().filter_map(|one| one.done).max(),
    ) {
        let bytes: u64 = clients.iter().map(|client| client.received().total().bytes).sum();
        let seconds = end.since(start).as_secs_f64().max(1e-9);
        all.push(("goodput", bytes as f64 * 8.0 / seconds / 1e6));
        all.push(("latency", mean(&done)));
        all.extend(quantile(&done, 0.95).map(|value| ("latency_p95", value)));
        all.push(("first_byte", mean(&first)));
    }
    all
}

pub(super) fn pages(clients: &[&Client<EndToEndId>]) -> Found {
    let time = |client: &&Client<EndToEndId>| {
        let done = client.is_done() && client.lost() == 0;
        let first = client.exchanged().iter().map(|one| one.asked).min()?;
        let last = client.exchanged().iter().filter_map(|one| one.done).max()?;
        done.then(|| last.since(first).as_secs_f64())
    };
    let times: Vec<f64> = clients.iter().filter_map(time).collect();
    let failed = (clients.len() - times.len()) as u64;
    page_measures(&times, failed)
}

pub(super) fn page_measures(times: &[f64], failed: u64) -> Found {
    let mut all = vec![("pages", times.len() as f64), ("failed", failed as f64)];
    if !times.is_empty() {
        all.push(("page_time", mean(times)));
        all.extend(quantile(times, 0.95).map(|value| ("page_time_p95", value)));
    }
    all
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
