//! Figures 19, 20, 23 and 24 live at up to 10 Mbit/s, with the kernel's TCP in the hosts and the
//! gateway program.
//!
//! ```text
//!   client ── terminal ══ emulator ══ hub ── server        no gateway: both forward
//!    8 kbytes  gateway                 gateway  reno
//! ```

use super::super::network::{ethernet, limited, transfer};
use super::super::{CrossTraffic, Draw, Live, Point, Results, Section, Setting, Table, Values};
use super::bench::{Errors, RATIOS, System, Trial, Way, many};
use crate::LabError;
use crate::experiments::publication::{Found, Measure, number, page, that};
use crate::experiments::{Cell, Summary};
use crate::live::{self, Hosts, HostsConfig, bytes_by};
use satlink::{DirectionConfig, Limit, LinkConfig};
use sim::scenario::files::{Files, Transports};
use simtcp::{InitialWindow, TcpConfig};
use testbed::traffic::{Limits, ReceiveBuffer, Transfer};
use units::{BitRate, Span};

pub(super) static LIVE: Live = Live {
    about: "figures 19, 20, 23 and 24 at up to 10 Mbit/s with the kernel's TCP and the gateways \
            (eight minutes)",
    at_once: 2,
    plan,
    judge,
};

/// The study of the live runs and their simulated counterparts.
const TWINS: &str = "twins";
/// Link rates of figures 19 and 20 in kbit/s.
const RATES: [u64; 4] = [1_000, 2_000, 5_000, 10_000];
/// Round trips in ms.
const ROUND_TRIPS: [u64; 2] = [200, 700];
/// Highest link rate in kbit/s.
const MOST: u64 = 10_000;
/// Connections at that rate, in proportion to the paper's 350.
const FLOWS: u32 = 78;
/// Initial window of hosts without gateways in segments.
const INITIAL_WINDOW: u32 = 2;

/// Returns a transfer of one connection between hosts with a common TCP.
fn one(way: Way, kbps: u64, round_trip_ms: u64) -> Trial {
    Trial { system: System::Usual, ..Trial::one(way, kbps, round_trip_ms) }
}

/// Returns many connections on a link whose rate is reduced in proportion to their number.
fn crowd(way: Way, round_trip_ms: u64, ratio: f64) -> Trial {
    let paper = many(way, FLOWS, round_trip_ms, ratio);
    // Only the link and the windows limit them.
    Trial { kbps: MOST, each_kbps: None, seconds: 30, system: System::Usual, ..paper }
}

/// Returns the same with an access rate of 128 kbit/s each, over 700 ms; only simulated.
fn on_lines(way: Way, ratio: f64) -> Trial {
    Trial { each_kbps: Some(128), ..crowd(way, 700, ratio) }
}

fn trials() -> Vec<Trial> {
    let mut all = Vec::new();
    for way in [Way::Plain, Way::Three] {
        for round_trip in ROUND_TRIPS {
            all.extend(RATES.map(|kbps| one(way, kbps, round_trip)));
            all.extend(RATIOS.map(|ratio| crowd(way, round_trip, ratio)));
        }
    }
    all
}

/// Returns the simulated counterparts, with the simulator's model of the kernel where there is no
/// gateway.
pub(super) fn twins() -> Vec<Point> {
    let point = |trial: Trial| {
        Point::new(TWINS, trial.key(), 3, move |draw: &Draw| {
            Ok(match trial.way {
                Way::Plain => plain(&trial, draw),
                Way::Two | Way::Three => trial.run(draw),
            })
        })
    };
    let lines = [Way::Plain, Way::Three].into_iter();
    let lines = lines.flat_map(|way| RATIOS.map(|ratio| on_lines(way, ratio)));
    trials().into_iter().chain(lines).map(point).collect()
}

fn link(trial: &Trial) -> LinkConfig {
    let bit_error_ratio = match trial.errors {
        Errors::Ratio(ratio) => ratio,
        Errors::Bursts(..) | Errors::Internet(_) => 0.0,
    };
    let delay = Span::from_millis(trial.round_trip_ms) / 2;
    let line = limited(BitRate::from_kbps(trial.kbps), delay, Limit::BandwidthDelay(1.0));
    LinkConfig::symmetric(DirectionConfig { bit_error_ratio, ..line })
}

fn plain(trial: &Trial, draw: &Draw) -> Values {
    let until = Span::from_secs(trial.seconds);
    let kernel = TcpConfig {
        receive_buffer: trial.window,
        initial_window: InitialWindow::Segments(INITIAL_WINDOW),
        ..TcpConfig::linux_reno()
    };
    let files = Files {
        flows: trial.flows,
        access: ethernet(BitRate::from_kbps(trial.each_kbps.unwrap_or(100_000))),
        stagger: trial.stagger(),
        chance: Span::from_millis(50),
        ..transfer(Transports::Tcp(kernel), u64::MAX, vec![link(trial)], until, draw)
    };
    Values::new().with("kbps", files.carry().rate_after(until / 5) / 1e3)
}

fn plan(_: &Setting) -> Vec<Point> {
    let point = |trial: Trial| {
        let run = move |draw: &Draw| measure(&trial, draw).map_err(|error| error.to_string());
        Point::new(TWINS, trial.key(), 1, run)
    };
    trials().into_iter().map(point).collect()
}

/// Downloads for some time and measures after a fifth of it, as `plain`.
fn measure(trial: &Trial, draw: &Draw) -> Result<Values, LabError> {
    let window = u32::try_from(trial.window).unwrap_or(u32::MAX);
    let (way, initial_window) = match trial.way {
        Way::Plain => (live::Way::Cubic, Some(INITIAL_WINDOW)),
        Way::Two | Way::Three => (live::Way::Bentpipe, None),
    };
    let hosts = Hosts::new(&HostsConfig {
        link: link(trial),
        way,
        initial_window,
        send_buffer: None,
        // The buffer is four times the window, so that the kernel's autotuning does not limit the
        // window.
        receive: Some(ReceiveBuffer { bytes: 4 * window, window }),
        seed: draw.seed,
    })?;
    let until = Span::from_secs(trial.seconds);
    let limits = Limits { after_first_byte: until, overall: until };
    let starts: Vec<Span> =
        (0..u64::from(trial.flows)).map(|flow| trial.stagger() * flow).collect();
    let (began, all) = hosts.download_all(&starts, u64::MAX, limits);
    hosts.close(1..=u64::from(trial.flows))?;
    if let Some(error) = all.iter().find_map(|one| one.error.clone()) {
        return Err(LabError::Request(format!("a download ended by itself: {error}")));
    }
    let settled = until / 5;
    let by = |at: Span| -> u64 {
        let since = |one: &Transfer| (began + at).since(one.started.min(began + at));
        all.iter().map(|one| bytes_by(one, since(one))).sum()
    };
    let bits = (by(until) - by(settled)) as f64 * 8.0;
    Ok(Values::new().with("kbps", bits / (until - settled).as_secs_f64() / 1e3))
}

fn kbps(results: &Results, trial: Trial) -> Summary {
    results.summary(TWINS, &trial.key(), "kbps")
}

fn more(results: &Results, first: Trial, second: Trial) -> f64 {
    100.0 * (kbps(results, first).mean / kbps(results, second).mean - 1.0)
}

page!(PAGE = "itu-s1711/live");

const CLAIMS: &[(&str, Measure)] = &[
    number("a-window-of-8-kbytes-over-200-ms", |results| kbps(results, one(Way::Plain, MOST, 200))),
    number("a-window-of-8-kbytes-over-700-ms", |results| kbps(results, one(Way::Plain, MOST, 700))),
    that("a-gateway-uses-the-full-bandwidth-to-10-mbit-s", |results| {
        let share = |round_trip| {
            move |rate: u64| {
                kbps(results, one(Way::Three, rate, round_trip)).scaled(100.0 / rate as f64)
            }
        };
        let [short, long] = [200, 700].map(|at| RATES.map(share(at)));
        let words = long.map(|share| format!("{:.0}", share.mean)).join(", ");
        let found = Found::new(format!("% over 700 ms at 1, 2, 5 and 10 Mbit/s: {words}"));
        short.into_iter().chain(long).fold(found, |found, share| found.above(share, 80.0))
    }),
    that("orders-of-magnitude-to-10-mbit-s", |results| {
        let [with, without] =
            [Way::Three, Way::Plain].map(|way| kbps(results, one(way, MOST, 700)).mean);
        let times = with / without;
        Found::new(format!("{times:.0} times")).above(Summary::exact(times), 90.0)
    }),
    that("many-connections-a-substantial-increase-at-low-error-ratios", |results| {
        let gain =
            |ratio| more(results, crowd(Way::Three, 700, ratio), crowd(Way::Plain, 700, ratio));
        let [none, light] = [0.0, 1e-7].map(gain);
        Found::new(format!("{none:+.0} and {light:+.0} %"))
            .above(Summary::exact(none), 25.0)
            .above(Summary::exact(light), 25.0)
    }),
    that("many-connections-at-10-percent-three-times-as-much-over-700-ms", |results| {
        let gain = more(results, crowd(Way::Three, 700, 1e-5), crowd(Way::Plain, 700, 1e-5));
        let times = 1.0 + gain / 100.0;
        Found::new(format!("{times:.1} times")).between(Summary::exact(times), 2.97, 3.63)
    }),
];

fn judge(_: &Setting, simulated: &Results, live: &Results) -> CrossTraffic {
    let pairs = PAGE.beside(CLAIMS, simulated, live);
    // The cells belong to this section alone: those of the document are at 45 Mbit/s.
    let cells: Vec<Cell> = pairs.iter().map(|(_, live)| live.clone()).collect();
    let section = Section {
        tables: vec![
            one_connection(simulated, live),
            many_connections(simulated, live),
            lines(simulated),
        ],
        cells,
        ..PAGE.section()
    };
    CrossTraffic { cells: pairs, sections: vec![section] }
}

fn row(name: [String; 3], trial: Trial, results: [&Results; 2]) -> Vec<String> {
    let [simulated, live] = results.map(|results| kbps(results, trial).mean);
    let beside = 100.0 * (live / simulated - 1.0);
    let numbers = [format!("{simulated:.0}"), format!("{live:.0}"), format!("{beside:+.1} %")];
    name.into_iter().chain(numbers).collect()
}

fn head(first: [&str; 3]) -> Vec<String> {
    let rest = ["kbit/s simulated", "kbit/s live", "live beside simulated"];
    first.into_iter().chain(rest).map(str::to_owned).collect()
}

fn one_connection(simulated: &Results, live: &Results) -> Table {
    let mut rows = Vec::new();
    for way in [Way::Plain, Way::Three] {
        for round_trip in ROUND_TRIPS {
            rows.extend(RATES.map(|kbps| {
                let rate = format!("{} Mbit/s", kbps / 1_000);
                let name = [way.name().to_owned(), format!("{round_trip} ms"), rate];
                row(name, one(way, kbps, round_trip), [simulated, live])
            }));
        }
    }
    Table { head: head(["", "round trip", "link"]), ..PAGE.table("live-one", rows) }
}

fn many_connections(simulated: &Results, live: &Results) -> Table {
    let mut rows = Vec::new();
    for way in [Way::Plain, Way::Three] {
        for round_trip in ROUND_TRIPS {
            rows.extend(RATIOS.map(|ratio| {
                let errors = format!("{ratio:e}");
                let name = [way.name().to_owned(), format!("{round_trip} ms"), errors];
                row(name, crowd(way, round_trip, ratio), [simulated, live])
            }));
        }
    }
    Table { head: head(["", "round trip", "bit error ratio"]), ..PAGE.table("live-many", rows) }
}

/// Returns the simulated gain of gateways over 700 ms with and without access rates of 128 kbit/s.
fn lines(simulated: &Results) -> Table {
    let row = |ratio: f64| {
        let mbps = |trial| format!("{:.2}", kbps(simulated, trial).mean / 1e3);
        let [free, lines] = [
            [Way::Plain, Way::Three].map(|way| crowd(way, 700, ratio)),
            [Way::Plain, Way::Three].map(|way| on_lines(way, ratio)),
        ];
        let gain = |[plain, split]: [Trial; 2]| format!("{:+.0} %", more(simulated, split, plain));
        let mut row = vec![format!("{ratio:e}")];
        for pair in [free, lines] {
            row.extend(pair.map(mbps));
            row.push(gain(pair));
        }
        row
    };
    PAGE.table("live-lines", RATIOS.map(row))
}
