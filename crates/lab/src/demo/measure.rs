//! Measurements in the network of one transport: requests, a page and a download.

use super::report::{Checksum, DemoRun, intervals};
use super::{Plan, TIME_LIMIT};
use crate::LabError;
use crate::bench::return_bits;
use crate::live::{CrossTraffic, TestNetwork, TestNetworkConfig, Way};
use rt::Clock;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use testbed::traffic::{self, File, Limits, Progress, Transfer};
use units::{Instant, Span};

/// Repetitions of requests and pages, of which the median is reported.
const REPETITIONS: usize = 3;
/// Seed of the downloaded file.
const FILE: u64 = 1;
const PATIENCE: Span = Span::from_secs(30);

/// A transport with its progress.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) way: Way,
    pub(super) progress: Progress,
    stage: Mutex<Stage>,
}

/// Current activity of a transport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Building,
    Requests,
    Page,
    Download { since: Instant },
    Closing,
    Done,
    Failed(String),
}

impl Watched {
    pub(super) fn new(way: Way) -> Self {
        Self { way, progress: Progress::default(), stage: Mutex::new(Stage::Building) }
    }

    pub(super) fn stage(&self) -> Stage {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn enter(&self, stage: Stage) {
        *self.stage.lock().unwrap_or_else(PoisonError::into_inner) = stage;
    }
}

/// Measures one transport in its own network.
pub(super) fn way(plan: &Plan, watched: &Watched) -> Result<DemoRun, LabError> {
    let result = measured(plan, watched);
    watched.enter(match &result {
        Ok(_) => Stage::Done,
        Err(error) => Stage::Failed(error.to_string()),
    });
    result
}

fn measured(plan: &Plan, watched: &Watched) -> Result<DemoRun, LabError> {
    let way = watched.way;
    let network = TestNetwork::new(&TestNetworkConfig {
        link: plan.link.clone(),
        way,
        rates: None,
        keys: None,
        beside: CrossTraffic::Nothing,
        seed: plan.seed,
    })?;
    let client = &network.net().client;
    let mut run = DemoRun::new(way);
    client.run(|| {
        let route = traffic::Way::Direct;
        quick_things(&mut run, watched, route, network.files(), network.web());
    });
    let clock = Clock::new();
    watched.enter(Stage::Download { since: clock.now() });
    let transfer = client.run(|| {
        download(plan, traffic::Way::Direct, network.files(), way.congestion(), &watched.progress)
    });
    watched.enter(Stage::Closing);
    let readings = network.emulation().readings(transfer.started);
    let until = transfer.started + transfer.ended;
    run.return_bits_per_second = return_bits(&readings, until);
    run.return_bytes = readings.first().and_then(|first| {
        let last = readings.iter().rev().find(|reading| reading.at <= until)?;
        Some(last.return_.since(first.return_).bytes)
    });
    fill_in(&mut run, &transfer, plan);
    let served = network.served(FILE);
    let outcome = network.close()?;
    run.emulator_kept_up = outcome.emulator.end.kept_up;
    run.notes.extend(outcome.emulator.end.reasons.iter().cloned());
    run.retransmissions = match &outcome.gateways {
        None => served.map(|served| served.retransmissions),
        // The gateway counts octets, on one of its two sides.
        Some(_) if way == Way::Single => None,
        Some(gateways) => gateways.hub.get("retransmitted").and_then(serde_json::Value::as_u64),
    };
    Ok(run)
}

/// Measures requests of 4 KB and the page, with repetitions.
pub(super) fn quick_things(
    run: &mut DemoRun,
    watched: &Watched,
    route: traffic::Way,
    files: SocketAddr,
    web: SocketAddr,
) {
    watched.enter(Stage::Requests);
    let mut requests = Vec::new();
    for _ in 0..REPETITIONS {
        let exchange = traffic::ask(route, files, (4096, 4096), PATIENCE);
        requests.extend(exchange.took);
        run.notes.extend(exchange.error);
    }
    run.request_4k_seconds = median(requests);
    watched.enter(Stage::Page);
    let mut pages = Vec::new();
    for _ in 0..REPETITIONS {
        let page = traffic::load_page(route, web, 6);
        if page.matches {
            pages.extend(page.took);
        }
        run.notes.extend(page.error);
    }
    run.page_seconds = median(pages);
}

pub(super) fn download(
    plan: &Plan,
    route: traffic::Way,
    server: SocketAddr,
    congestion: &str,
    progress: &Progress,
) -> Transfer {
    let file = File { seed: FILE, bytes: plan.size, congestion };
    let limits = Limits { after_first_byte: TIME_LIMIT, overall: TIME_LIMIT + PATIENCE };
    traffic::download(route, server, file, limits, progress)
}

/// Adds the results of the download.
pub(super) fn fill_in(run: &mut DemoRun, transfer: &Transfer, plan: &Plan) {
    let first = transfer.first_byte.unwrap_or(transfer.ended);
    let window = transfer.ended.saturating_sub(first);
    run.seconds = Some(transfer.ended.as_secs_f64());
    run.first_byte_seconds = transfer.first_byte.map(Span::as_secs_f64);
    run.bytes = transfer.bytes;
    run.complete = transfer.complete;
    run.goodput_bits_per_second = transfer.goodput(window);
    run.bound_share = run.goodput_bits_per_second / plan.bound;
    run.checksums_match = transfer.matches && transfer.bytes > 0;
    run.checksum = Checksum::of(transfer, FILE);
    run.intervals = intervals(&transfer.series, transfer.ended);
    run.notes.extend(transfer.error.clone());
}

fn median(mut spans: Vec<Span>) -> Option<f64> {
    spans.sort_unstable();
    spans.get(spans.len() / 2).map(|span| span.as_secs_f64())
}
