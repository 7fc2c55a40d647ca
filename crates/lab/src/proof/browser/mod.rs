//! Chromium behind the terminal, over a geostationary link: pages by HTTP/1.1 and by HTTP/2 with
//! TLS, names included, beside plain TCP; WebSocket, server-sent events, media by ranges, uploads,
//! and a link that is cut during a download.
//!
//! ```text
//!   chromium ── unbound, socat ══ emulator ══ hub ── nginx, unbound
//!   client      terminal                             server
//! ```
//!
//! Each visit is a first one: the browser's profile and the terminal's cache of names are empty.
//! The page measures itself and posts its results to the server.

mod application;
mod programs;

use super::network::{Setup, TestNetwork};
use super::{ProofConfig, Verdict, failed};
use crate::LabError;
use application::Report;
use programs::{Folder, IMAGES_ADDRESS, NearNames, PAGE, browse, serve};
use rt::netlink::Netlink;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;
use units::Span;

/// Time limit of the browser between two reports.
const PATIENCE: Duration = Duration::from_secs(60);
/// Length of the outage during a download, and its delay after the request.
const OUTAGE: Span = Span::from_secs(3);
const OUTAGE_AFTER_MS: u64 = 1_500;
/// What the page does besides loading, in order.
const CHECKS: [(&str, &str); 5] = [
    ("websocket", "messages of a WebSocket are returned in order, and its close is clean"),
    ("events", "server-sent events arrive one by one"),
    ("media", "a medium is played from its end by a range request"),
    ("upload", "an upload arrives whole"),
    ("download", "a download during which the link is cut for 3 s arrives whole"),
];

pub(super) fn run(config: &ProofConfig, verdict: &mut Verdict) -> Result<(), LabError> {
    let setup = Setup {
        link: "delay 300ms limit 1bdp forward rate 10mbit return rate 1mbit",
        rates: "rate_up = \"1mbit\"\nrate_down = \"10mbit\"\nround_trip = \"600ms\"",
        ..Setup::new(config.seed)
    };
    if let Some(program) = programs::missing() {
        verdict.note(format!("not tested: {program} is not installed"));
        return Ok(());
    }
    let mut network = TestNetwork::without_gateways(&setup)?;
    let added = network.net.server.run(|| {
        Netlink::open().and_then(|mut net| net.add_address("eth0", IMAGES_ADDRESS.into(), 24))
    });
    added.map_err(|error| LabError::Proof(error.to_string()))?;
    let reports = application::start(&network.net.server).map_err(failed("the application"))?;
    let folder = Folder::write()?;
    let _servers = serve(&folder, &network)?;
    let visits = if config.quick { 1 } else { 5 };

    let plain = loads(
        &Visits { folder: &folder, network: &network, reports: &reports, pair: false },
        visits,
    )?;
    network.start_both()?;
    let pair = Visits { folder: &folder, network: &network, reports: &reports, pair: true };
    let by_pair = loads(&pair, visits)?;
    for (name, times) in &by_pair {
        let without = plain.get(name).copied().unwrap_or(f64::NAN);
        verdict.figure(&format!("{name}_plain_s"), without);
        verdict.figure(&format!("{name}_s"), *times);
        verdict.figure(&format!("{name}_ratio"), times / without);
    }
    verdict.demand(true, "the page loads whole by HTTP/1.1 and HTTP/2, without and with gateways");
    everything(&pair, verdict)?;
    let ranges = folder.requests().iter().filter(|line| line.contains(" 206 ")).count();
    verdict.demand(ranges > 0, "the server has answered requests for ranges");
    network.check()
}

/// What visits have in common.
struct Visits<'a> {
    folder: &'a Folder,
    network: &'a TestNetwork,
    reports: &'a Receiver<Report>,
    /// Whether there are gateways, and a name server at the terminal.
    pair: bool,
}

impl Visits<'_> {
    /// Visits `url` with an empty profile and hands each report to `take` until it returns false.
    fn visit(
        &self,
        url: &str,
        mut take: impl FnMut(&str, &Value) -> Result<bool, LabError>,
    ) -> Result<(), LabError> {
        let names = self.pair.then(|| NearNames::start(self.folder, self.network)).transpose()?;
        let at = if names.is_some() { "near" } else { "far" };
        let browser = browse((self.folder, self.network), at, url)?;
        loop {
            match self.reports.recv_timeout(PATIENCE) {
                Ok((name, value)) => {
                    if !take(&name, &value)? {
                        browser.stop();
                        // Reports that the visit has sent since belong to no other.
                        while self.reports.try_recv().is_ok() {}
                        return Ok(());
                    }
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    let said = browser.errors();
                    let text = format!("{url}: no report of the page within 60 s: {said}");
                    return Err(LabError::Proof(text));
                }
            }
        }
    }
}

/// Returns the median of the times in seconds that a first visit takes, by protocol.
fn loads(visits: &Visits<'_>, count: usize) -> Result<BTreeMap<&'static str, f64>, LabError> {
    let mut medians = BTreeMap::new();
    for (name, scheme, protocol) in [("http1", "http", "http/1.1"), ("http2", "https", "h2")] {
        let mut times = Vec::new();
        for _ in 0..count {
            visits.visit(&format!("{scheme}://{PAGE}/"), |_, value| {
                if value["ok"] != true || value["protocol"] != protocol {
                    return Err(LabError::Proof(format!(
                        "{scheme}: the page is not whole: {value}"
                    )));
                }
                times.extend(value["seconds"].as_f64());
                Ok(false)
            })?;
        }
        times.sort_by(f64::total_cmp);
        medians.insert(name, times[times.len() / 2]);
    }
    Ok(medians)
}

/// Visits the page that does everything, and cuts the link during its download.
fn everything(visits: &Visits<'_>, verdict: &mut Verdict) -> Result<(), LabError> {
    let mut results = BTreeMap::new();
    visits.visit(&format!("https://{PAGE}/#all"), |name, value| {
        if name == "cut" {
            super::sleep_ms(OUTAGE_AFTER_MS);
            visits.network.outage(OUTAGE)?;
        }
        results.insert(name.to_owned(), value.clone());
        Ok(name != "download")
    })?;
    for (name, promise) in CHECKS {
        let result = &results[name];
        verdict.demand(result["ok"] == true, promise);
        if result["ok"] != true {
            verdict.note(format!("{name}: {result}"));
        }
        verdict.figure(&format!("{name}_s"), result["seconds"].as_f64().unwrap_or(f64::NAN));
    }
    Ok(())
}
