//! Annex 3, section 3: figures 30 to 34.

use super::super::ATM;
use super::super::atm::{
    ENDLESS, FTP_SOCKETS, FULL, GRID, QUEUES, RECOVERIES, SOCKETS, TAKEN, Trial, WINDOWS,
};
use crate::experiments::publication::{Found, Measure, number, page, that};
use crate::experiments::{Results, Section, Series, Summary, Table};

fn of(results: &Results, trial: Trial, name: &str) -> Summary {
    results.summary(ATM, &trial.key(), name)
}

fn mbps(results: &Results, trial: Trial) -> Summary {
    of(results, trial, "mbps")
}

fn atm(socket: u64, satellite: bool) -> Trial {
    Trial::Atm { socket, satellite }
}

fn gigabit(window: u64, queue: u64) -> Trial {
    Trial::Gigabit { window, queue }
}

/// Returns the connection of figure 31, with the recovery that was chosen.
pub(super) fn bursts() -> Trial {
    Trial::Recovery { recovery: TAKEN, queue: QUEUES[0] }
}

pub(super) fn section(results: &Results) -> Section {
    let by_socket = |satellite: bool, name: &str| {
        let at = |socket: u64| (socket as f64 / 1e3, mbps(results, atm(socket, satellite)));
        Series::new(name, SOCKETS.map(at))
    };
    let by_window = WINDOWS.map(|window| (window as f64, mbps(results, gigabit(window, ENDLESS))));
    let row = |queue: u64| {
        let value = |name| format!("{:.0}", of(results, gigabit(FULL, queue), name).mean);
        let name = if queue == ENDLESS { "without end".to_owned() } else { queue.to_string() };
        vec![name, value("mbps"), value("queue"), value("overflowed")]
    };
    Section {
        figures: vec![
            PAGE.figure("figure-30", vec![by_socket(true, "540 ms"), by_socket(false, "1 ms")]),
            PAGE.figure("figure-34", vec![Series::new("a queue without end", by_window)]),
        ],
        tables: vec![PAGE.table("queues-atm", QUEUES.map(row)), recoveries(results), ftp(results)],
        cells: PAGE.judge(CLAIMS, results),
        ..PAGE.section()
    }
}

/// Returns the grid of recovery and queue: throughput, timeouts, and the longest pause.
fn recoveries(results: &Results) -> Table {
    let row = |recovery: usize| {
        let cell = |queue| {
            let value = |name| of(results, Trial::Recovery { recovery, queue }, name).mean;
            let [mbps, timeouts, pause] = ["mbps", "timeouts", "pause_s"].map(value);
            format!("{mbps:.1}; {timeouts:.0}; {pause:.1} s")
        };
        let name = RECOVERIES[recovery].0.to_owned();
        std::iter::once(name).chain(GRID.map(cell)).collect()
    };
    PAGE.table("recoveries", (0..RECOVERIES.len()).map(row))
}

/// Returns the table of transfers between memories by socket buffer.
fn ftp(results: &Results) -> Table {
    let row = |socket: u64| {
        let found = mbps(results, Trial::File { socket });
        vec![socket.to_string(), format!("{:.1}", found.mean)]
    };
    PAGE.table("figure-46", FTP_SOCKETS.map(row))
}

page!(PAGE = "itu-s1711/atm");

const CLAIMS: &[(&str, Measure)] = &[
    number("sockets-of-6-mbytes-ipv4", |results| mbps(results, atm(6_000, true))),
    number("share-of-what-there-is-without-the-satellite", |results| {
        let [far, near] = [true, false].map(|satellite| mbps(results, atm(6_000, satellite)).mean);
        Summary::of(&[100.0 * far / near])
    }),
    that("about-6-mbytes-are-needed", |results| {
        let all = [4_000, 6_000, 8_000].map(|socket| mbps(results, atm(socket, true)).mean);
        let [less, enough] = [all[0] / all[2], all[1] / all[2]].map(|share| share * 100.0);
        Found::new(format!("{less:.0} and {enough:.0} %"))
            .below(Summary::of(&[less]), 90.0)
            .above(Summary::of(&[enough]), 95.0)
    }),
    that("routers-of-the-time-have-too-short-queues", |results| {
        let found = mbps(results, bursts());
        Found::new(format!("{:.1} Mbit/s", found.mean)).between(found, 1.8, 3.3)
    }),
    that("slow-start-again-after-27-s", |results| {
        let timeouts = of(results, bursts(), "timeouts");
        Found::new(format!("{:.0} timeouts in 60 s", timeouts.mean)).above(timeouts, 0.5)
    }),
    number("the-fullest-queue", |results| of(results, gigabit(FULL, ENDLESS), "queue")),
    that("no-more-than-half-of-the-window", |results| {
        let lost = of(results, gigabit(FULL, QUEUES[2]), "overflowed");
        Found::new(format!("{:.0} packets", lost.mean)).below(lost, 0.5)
    }),
    that("the-window-that-fills-the-line-is-the-best", |results| {
        let all = [4_500, FULL, 9_000].map(|window| mbps(results, gigabit(window, ENDLESS)).mean);
        Found::new(format!("{:.0}, {:.0} and {:.0} Mbit/s", all[0], all[1], all[2]))
            .above(Summary::of(&[all[1] / all[0]]), 1.1)
            .below(Summary::of(&[all[2] / all[1]]), 1.05)
    }),
];
