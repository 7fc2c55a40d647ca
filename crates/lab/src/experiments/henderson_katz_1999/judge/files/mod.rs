//! Figures 3, 4, 7 and 9: file transfers.

mod end_to_end;
mod split;

use super::super::FILES;
use super::super::bench::{
    BUFFER_KB, BUFFERS_KB, FEW, GRID, LOADS, Others, QUEUE, QUEUES, RECOVERIES, RIDE_MS, RIDES_MS,
    ROUND_TRIPS, Router, Trial, Way,
};
use crate::experiments::statistics::relative_gain;
use crate::experiments::{Results, Section, Series, Summary, Table};

const DROP_TAIL: Others = Others::One(Router::DropTail);
const GEO: u64 = 600;
/// Bandwidth-delay product of the satellite, kbytes of 1,000.
const PRODUCT_KB: f64 = 97.5;

fn values(results: &Results, trial: Trial, name: &str) -> Vec<f64> {
    results.values(FILES, &trial.key(), name)
}

fn of(results: &Results, trial: Trial, name: &str) -> Summary {
    Summary::of(&values(results, trial, name))
}

fn alone(way: Way, round_trip: u64) -> Trial {
    Trial::new(way, round_trip, Others::Light)
}

fn crowded(way: Way, round_trip: u64) -> Trial {
    Trial::new(way, round_trip, DROP_TAIL)
}

fn bare(way: Way) -> Trial {
    Trial::new(way, GEO, Others::Nobody)
}

/// Returns the ratio of two means less one, in percent.
fn over(results: &Results, first: Trial, second: Trial, name: &str) -> Summary {
    let [first, second] = [first, second].map(|trial| values(results, trial, name));
    relative_gain(&first, &second).scaled(100.0)
}

fn kbps(results: &Results, trial: Trial) -> Summary {
    of(results, trial, "kbps")
}

/// Returns the summary of `make` over the replications of a transfer.
fn each(results: &Results, trial: Trial, make: fn(&crate::experiments::Values) -> f64) -> Summary {
    let all: Vec<f64> = results.of(FILES, &trial.key()).iter().map(make).collect();
    Summary::of(&all)
}

fn reverse_share(results: &Results, trial: Trial) -> Summary {
    each(results, trial, |values| 100.0 * values.get("reverse_kbps") / values.get("kbps"))
}

fn listed(results: &Results, trials: &[(u64, Trial)], name: &str) -> String {
    let one =
        |(at, trial): &(u64, Trial)| format!("{at} ms: {:.0}", of(results, *trial, name).mean);
    trials.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Figures 3 and 4.
pub(super) fn from_end_to_end(results: &Results) -> Section {
    let four = Way::FOUR.map(|way| {
        Series::new(way.name(), ROUND_TRIPS.map(|at| (at as f64, kbps(results, alone(way, at)))))
    });
    let crowd = Router::ALL.map(|router| {
        let at = |round_trip| {
            let trial = Trial::new(Way::SackNewReno, round_trip, Others::One(router));
            (round_trip as f64, kbps(results, trial))
        };
        Series::new(format!("beside one, {}", router.name()), FEW.map(at))
    });
    let lone = Series::new(
        "alone",
        ROUND_TRIPS.map(|at| (at as f64, kbps(results, alone(Way::SackNewReno, at)))),
    );
    let figures = vec![
        end_to_end::PAGE.figure("figure-3", four.into()),
        end_to_end::PAGE.figure("figure-4", std::iter::once(lone).chain(crowd).collect()),
    ];
    Section {
        figures,
        tables: vec![queues(results), recoveries(results)],
        cells: end_to_end::PAGE.judge(end_to_end::CLAIMS, results),
        ..end_to_end::PAGE.section()
    }
}

/// Figures 7 and 9.
pub(super) fn split_up(results: &Results) -> Section {
    let ways = [Way::SackNewReno, Way::SplitTcp, Way::SplitStp];
    let lines = |name: &'static str, ways: &[Way]| -> Vec<Series> {
        let line = |way: &Way| {
            let at = |at| (at as f64, of(results, crowded(*way, at), name));
            Series::new(way.name(), FEW.map(at))
        };
        ways.iter().map(line).collect()
    };
    let figures = vec![
        split::PAGE.figure("figure-7a", lines("kbps", &ways)),
        split::PAGE.figure("figure-7b", lines("reverse_kbps", &ways[1..])),
    ];
    Section {
        figures,
        tables: vec![rides(results), buffers(results), split::grid(results)],
        cells: split::PAGE.judge(split::CLAIMS, results),
        ..split::PAGE.section()
    }
}

/// Returns the sweep of the time by which POLLs are moved for piggybacking.
fn rides(results: &Results) -> Table {
    let row = |ride_ms: u64| {
        let trial = Trial { ride_ms, ..bare(Way::SplitStp) };
        let mut row = vec![ride_ms.to_string()];
        let columns = ["polls_per_s", "polls_alone_per_s", "kbps"];
        row.extend(columns.map(|name| format!("{:.2}", of(results, trial, name).mean)));
        row
    };
    split::PAGE.table("rides", RIDES_MS.into_iter().chain([RIDE_MS]).map(row))
}

/// Returns the sweep of a gateway's buffers.
fn buffers(results: &Results) -> Table {
    let row = |buffer_kb: u64| {
        let trial = Trial { buffer_kb, ..crowded(Way::SplitTcp, GEO) };
        let held = of(results, trial, "gateway_kbytes").mean;
        let carried = kbps(results, trial);
        vec![
            buffer_kb.to_string(),
            format!("{held:.0}"),
            format!("{:.1}", held / PRODUCT_KB),
            format!("{:.0} ± {:.0}", carried.mean, carried.half),
        ]
    };
    split::PAGE.table("gateway-buffers", BUFFERS_KB.into_iter().chain([BUFFER_KB]).map(row))
}

/// Returns the grid of recovery, load and queue: throughput at 20 and 600 ms.
fn recoveries(results: &Results) -> Table {
    let rows = RECOVERIES.into_iter();
    let rows = rows.flat_map(|way| LOADS.map(|(load, others)| (way, load, others)));
    let row = |(way, load, others): (Way, &str, Others)| {
        let cell = |queue| {
            let at = |round_trip| Trial { queue, ..Trial::new(way, round_trip, others) };
            let [short, long] = [20, GEO].map(|at_ms| kbps(results, at(at_ms)).mean);
            let change = over(results, at(GEO), at(20), "kbps");
            let halved = of(results, at(GEO), "recoveries").mean;
            let change = format!("{:+.1} ± {:.1} %", change.mean, change.half);
            format!("{short:.0}, {long:.0}: {change}; {halved:.1}")
        };
        let mut row = vec![way.name().to_owned(), load.to_owned()];
        row.extend(GRID.map(cell));
        row
    };
    let mut head = vec!["recovery".to_owned(), "beside".to_owned()];
    head.extend(GRID.map(|queue| format!("queue of {queue} packets")));
    Table { head, ..end_to_end::PAGE.table("recoveries", rows.map(row)) }
}

/// Returns the sweep of the queue limit, which the paper does not state.
fn queues(results: &Results) -> Table {
    let mut all: Vec<u64> = QUEUES.to_vec();
    all.push(QUEUE);
    all.sort_unstable();
    let row = |queue: u64| {
        let at = |trial: Trial| format!("{:.0}", kbps(results, Trial { queue, ..trial }).mean);
        let mut row = vec![queue.to_string()];
        row.push(at(alone(Way::SackNewReno, 20)));
        row.extend(Way::FOUR.map(|way| at(alone(way, GEO))));
        let beside = [Way::SackNewReno, Way::SplitTcp, Way::SplitStp];
        row.extend(beside.map(|way| at(crowded(way, GEO))));
        let split = Trial { queue, ..crowded(Way::SplitTcp, GEO) };
        row.push(format!("{:.2}", reverse_share(results, split).mean));
        row
    };
    let mut head = vec!["packets".to_owned(), "SACK-NewReno, 20 ms".to_owned()];
    head.extend(Way::FOUR.map(|way| format!("{}, 600 ms", way.name())));
    head.extend(
        [
            "beside one",
            "beside one, split TCP",
            "beside one, split STP",
            "of split TCP in return, %",
        ]
        .map(str::to_owned),
    );
    Table { head, ..end_to_end::PAGE.table("queues", all.into_iter().map(row)) }
}
