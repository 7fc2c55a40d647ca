//! Figure 3 live with the kernel's Reno, and the same file through gateways: one at the hub, and a
//! pair.

use super::super::network::{limited, transfer};
use super::super::{CrossTraffic, Draw, Live, Point, Results, Section, Series, Setting};
use super::super::{Summary, Values};
use super::bench::QUEUE;
use crate::LabError;
use crate::experiments::publication::page;
use crate::live::{Hosts, HostsConfig, Way, whole};
use satlink::{Limit, LinkConfig};
use sim::scenario::files::{Files, Transports};
use simtcp::TcpConfig;
use testbed::traffic::Limits;
use units::{BitRate, Span};
use xstp::congestion::Controller;
use xstp::session::{SessionConfig, StpPolicy};

pub(super) static LIVE: Live = Live {
    about: "figure 3's file with the kernel's reno, and through one gateway and a pair (five \
            minutes)",
    at_once: 4,
    plan,
    judge,
};

page!(PAGE = "henderson-katz-1999/live");

/// The study of the live runs and their simulated counterparts.
const TODAY: &str = "today";
/// File size in octets, as in figure 3.
const FILE: u64 = 10_000_000;
/// Satellite rate.
const RATE: BitRate = BitRate::from_kbps(1_300);
/// Round trips in ms.
const ROUND_TRIPS: [u64; 4] = [20, 150, 300, 600];
/// Time limit of a transfer.
const PATIENCE: Span = Span::from_secs(400);

/// Transports over the satellite.
const WAYS: [(Way, &str); 3] =
    [(Way::Cubic, "reno"), (Way::Single, "one gateway"), (Way::Bentpipe, "two gateways")];

fn key(way: &str, round_trip_ms: u64) -> String {
    format!("{way}/{round_trip_ms}")
}

fn link(round_trip_ms: u64) -> LinkConfig {
    let way = |limit| limited(RATE, Span::from_millis(round_trip_ms) / 2, limit);
    let forward = way(Limit::Packets(QUEUE));
    LinkConfig { forward, ..LinkConfig::symmetric(way(Limit::Packets(1_000))) }
}

/// Returns the simulated counterparts: models of the same kernel and gateways.
pub(super) fn twins() -> Vec<Point> {
    let point = |(way, name): (Way, &'static str), round_trip: u64| {
        Point::new(TODAY, key(name, round_trip), 3, move |draw: &Draw| {
            Ok(simulate(way, round_trip, draw))
        })
    };
    WAYS.into_iter().flat_map(|way| ROUND_TRIPS.map(|at| point(way, at))).collect()
}

fn simulate(way: Way, round_trip_ms: u64, draw: &Draw) -> Values {
    let (reno, bbr) = (TcpConfig::linux_reno(), TcpConfig::bbr());
    let carriage = match way {
        Way::Cubic | Way::Bbr | Way::Other(_) => Transports::Tcp(reno),
        Way::Single => Transports::SplitTcp(reno, bbr),
        Way::Bentpipe | Way::Unconfigured | Way::Tls | Way::TlsCubic => {
            Transports::ThreeSegments(reno.clone(), space(), reno)
        }
    };
    let hops = vec![link(round_trip_ms), LinkConfig::default()];
    let files = transfer(carriage, FILE, hops, PATIENCE, draw);
    let files = Files { chance: Span::from_millis(50), ..files };
    let took = files.carry().took.unwrap_or(PATIENCE);
    Values::new().with("kbps", kbps(took))
}

/// Returns XSTP at the link rate, with a larger number window than a product needs.
fn space() -> SessionConfig {
    let (window, stp) = (256, SessionConfig::stp_1999());
    SessionConfig {
        controller: Controller::Fixed,
        max_rate: Some(RATE.mul_ratio(97, 100)),
        number_window: 4 * window,
        receive_window: window,
        initial_peer_window: window,
        send_buffer: window as usize * 1_460,
        stp: StpPolicy { poll_after_bytes: None, ..stp.stp },
        ..stp
    }
    .with_low_rate_rules(4)
}

fn kbps(took: Span) -> f64 {
    FILE as f64 * 8.0 / took.as_secs_f64() / 1e3
}

fn plan(_: &Setting) -> Vec<Point> {
    let point = |(way, name): (Way, &'static str), round_trip: u64| {
        Point::new(TODAY, key(name, round_trip), 1, move |draw: &Draw| {
            measure(way, round_trip, draw).map_err(|error| error.to_string())
        })
    };
    WAYS.into_iter().flat_map(|way| ROUND_TRIPS.map(|at| point(way, at))).collect()
}

fn measure(way: Way, round_trip_ms: u64, draw: &Draw) -> Result<Values, LabError> {
    let hosts = Hosts::new(&HostsConfig {
        link: link(round_trip_ms),
        way,
        initial_window: None,
        send_buffer: None,
        receive: None,
        seed: draw.seed,
    })?;
    let limits = Limits { after_first_byte: PATIENCE, overall: PATIENCE };
    let done = hosts.download((1, FILE), limits);
    let counted = hosts.close(1..=1)?;
    whole(&done)?;
    Ok(Values::new()
        .with("kbps", kbps(done.ended))
        .with("retransmissions", counted.retransmissions as f64))
}

fn judge(_: &Setting, simulated: &Results, live: &Results) -> CrossTraffic {
    let at = |results: &Results, name: &str, round_trip: u64| {
        results.summary(TODAY, &key(name, round_trip), "kbps")
    };
    let mut rows = Vec::new();
    let mut series = Vec::new();
    for (_, name) in WAYS {
        for round_trip in ROUND_TRIPS {
            let [ours, measured] = [simulated, live].map(|results| at(results, name, round_trip));
            let beside = 100.0 * (measured.mean / ours.mean - 1.0);
            let numbers = [ours.mean, measured.mean].map(|kbps| format!("{kbps:.0}"));
            let [ours, measured] = numbers;
            let beside = format!("{beside:+.1} %");
            rows.push(vec![name.to_owned(), format!("{round_trip} ms"), ours, measured, beside]);
        }
        let points = |results| {
            ROUND_TRIPS.map(|round_trip| {
                let Summary { mean, .. } = at(results, name, round_trip);
                (round_trip as f64, Summary::exact(mean))
            })
        };
        series.push(Series::new(format!("{name}, live"), points(live)));
        let model = points(simulated).map(|(x, summary)| (x, summary.mean));
        series.push(Series::dashed(format!("{name}, simulated"), model));
    }
    let figure = PAGE.figure("today", series);
    let table = PAGE.table("today-table", rows);
    let section = Section { figures: vec![figure], tables: vec![table], ..PAGE.section() };
    CrossTraffic { cells: Vec::new(), sections: vec![section] }
}
