//! Figures 19, 20, 23 and 24 live, at up to 10 Mbit/s: the kernel's TCP in the hosts, and the
//! gateway's own program.
//!
//! ```text
//!   client ── terminal ══ emulator ══ hub ── server        no gateway: both forward
//!    8 kbytes  gateway                 gateway  reno
//! ```

use super::super::{Beside, Draw, Live, Point, Results, Section, Setting, Table, Values};
use super::bench::{Errors, RATIOS, System, Trial, Way, many};
use crate::LabError;
use crate::experiments::publication::{Found, Measure, page};
use crate::experiments::{Cell, Summary};
use crate::live::{self, Hosts, HostsConfig, bytes_by};
use rt::Clock;
use satlink::{DirectionConfig, Limit, LinkConfig, QueueConfig};
use sim::scenario::files::{Files, Transports};
use simtcp::{InitialWindow, TcpConfig};
use std::thread;
use testbed::traffic::{Limits, ReceiveBuffer, Transfer};
use units::{BitRate, Span};

/// What is run live.
pub(super) static LIVE: Live = Live {
    about: "figures 19, 20, 23 and 24 at up to 10 Mbit/s with the kernel's TCP and the gateways \
            (eight minutes)",
    at_once: 2,
    plan,
    judge,
};

/// The study of what stands beside live runs.
const TWINS: &str = "twins";
/// Links of figures 19 and 20, kbit/s.
const RATES: [u64; 4] = [1_000, 2_000, 5_000, 10_000];
/// Round trips, ms.
const ROUND_TRIPS: [u64; 2] = [200, 700];
/// The fastest link.
const MOST: u64 = 10_000;
/// Connections on it, as many for its rate as the paper's 350.
const FLOWS: u32 = 78;
/// Initial window of hosts without gateways, segments.
const INITIAL_WINDOW: u32 = 2;

/// One connection between hosts that are no Solaris.
fn one(way: Way, kbps: u64, round_trip_ms: u64) -> Trial {
    Trial { system: System::Usual, ..Trial::one(way, kbps, round_trip_ms) }
}

/// Many connections on a link that is slower than the paper's by as much as they are fewer.
fn crowd(way: Way, round_trip_ms: u64, ratio: f64) -> Trial {
    let paper = many(way, FLOWS, round_trip_ms, ratio);
    // Nothing but the link and the windows holds them back.
    Trial { kbps: MOST, each_kbps: None, seconds: 30, system: System::Usual, ..paper }
}

/// The same with a line of 128 kbit/s for each, over 700 ms; simulated alone.
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

/// Simulated: the same with the simulator's model of the kernel where no gateway is.
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
    LinkConfig::symmetric(DirectionConfig {
        rate: Some(BitRate::from_kbps(trial.kbps)),
        delay: Span::from_millis(trial.round_trip_ms) / 2,
        bit_error_ratio,
        queue: QueueConfig { limit: Limit::BandwidthDelay(1.0), ..QueueConfig::default() },
        ..DirectionConfig::default()
    })
}

/// A connection begins so much after the one before it.
fn stagger(trial: &Trial) -> Span {
    Span::from_millis(10).min(Span::from_secs(1) / u64::from(trial.flows))
}

fn plain(trial: &Trial, draw: &Draw) -> Values {
    let until = Span::from_secs(trial.seconds);
    let kernel = TcpConfig {
        receive_buffer: trial.window,
        initial_window: InitialWindow::Segments(INITIAL_WINDOW),
        ..TcpConfig::linux_reno()
    };
    let files = Files {
        carriage: Transports::Tcp(kernel),
        flows: trial.flows,
        bytes: u64::MAX,
        access: LinkConfig::symmetric(DirectionConfig {
            rate: Some(BitRate::from_kbps(trial.each_kbps.unwrap_or(100_000))),
            ..DirectionConfig::default()
        }),
        hops: vec![link(trial)],
        gateway: 0,
        beside: None,
        background_bps: 0.0,
        constant: None,
        stagger: stagger(trial),
        chance: Span::from_millis(50),
        until,
        seed: draw.seed,
        run: draw.run,
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

/// Downloads for a while and counts what comes after a fifth of the time, as `plain` does.
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
        // Four times, so that the window is what the kernel is told and not what it finds out.
        receive: Some(ReceiveBuffer { bytes: 4 * window, window }),
        seed: draw.seed,
    })?;
    let until = Span::from_secs(trial.seconds);
    let clock = Clock::new();
    let began = clock.now();
    let all: Vec<Transfer> = thread::scope(|scope| {
        let task = |flow: u32| {
            let hosts = &hosts;
            scope.spawn(move || {
                clock.sleep_until(began + stagger(trial) * u64::from(flow));
                let limits = Limits { after_first_byte: until, overall: until };
                hosts.download((u64::from(flow) + 1, u64::MAX), limits)
            })
        };
        let tasks: Vec<_> = (0..trial.flows).map(task).collect();
        let join = |task: thread::ScopedJoinHandle<'_, Transfer>| {
            task.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        tasks.into_iter().map(join).collect()
    });
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
    (
        "a-window-of-8-kbytes-over-200-ms",
        Measure::Number(|results| kbps(results, one(Way::Plain, MOST, 200))),
    ),
    (
        "a-window-of-8-kbytes-over-700-ms",
        Measure::Number(|results| kbps(results, one(Way::Plain, MOST, 700))),
    ),
    (
        "a-gateway-uses-the-full-bandwidth-to-10-mbit-s",
        Measure::That(|results| {
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
    ),
    (
        "orders-of-magnitude-to-10-mbit-s",
        Measure::That(|results| {
            let [with, without] =
                [Way::Three, Way::Plain].map(|way| kbps(results, one(way, MOST, 700)).mean);
            let times = with / without;
            Found::new(format!("{times:.0} times")).above(Summary::exact(times), 50.0)
        }),
    ),
    (
        "many-connections-a-substantial-increase-at-low-error-ratios",
        Measure::That(|results| {
            let gain =
                |ratio| more(results, crowd(Way::Three, 700, ratio), crowd(Way::Plain, 700, ratio));
            let [none, light] = [0.0, 1e-7].map(gain);
            Found::new(format!("{none:+.0} and {light:+.0} %"))
                .above(Summary::exact(none), 25.0)
                .above(Summary::exact(light), 25.0)
        }),
    ),
    (
        "many-connections-at-10-percent-three-times-as-much-over-700-ms",
        Measure::That(|results| {
            let gain = more(results, crowd(Way::Three, 700, 1e-5), crowd(Way::Plain, 700, 1e-5));
            Found::new(format!("{gain:+.0} %")).above(Summary::exact(gain), 100.0)
        }),
    ),
];

fn judge(_: &Setting, simulated: &Results, live: &Results) -> Beside {
    let pairs = PAGE.beside(CLAIMS, simulated, live);
    // These are cells of this section alone: the document's own are at 45 Mbit/s.
    let cells: Vec<Cell> = pairs.iter().map(|(simulated, _)| simulated.clone()).collect();
    let section = Section {
        tables: vec![
            one_connection(simulated, live),
            many_connections(simulated, live),
            lines(simulated),
        ],
        cells,
        ..PAGE.section()
    };
    Beside { cells: pairs, sections: vec![section] }
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

/// What gateways gain over 700 ms with lines of 128 kbit/s and without, simulated.
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
