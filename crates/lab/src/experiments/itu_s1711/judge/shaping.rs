//! Annex 3, section 3.3.2: figures 35 to 37.

use super::super::shaping::{BEST, BUCKETS, QUEUES, SOCKET, SOCKETS, Trial};
use super::super::{ATM, SHAPING};
use super::atm;
use crate::experiments::publication::{Found, Measure, number, page, that};
use crate::experiments::{Results, Section, Series, Summary, Table};

fn of(results: &Results, trial: Trial, name: &str) -> Summary {
    results.summary(SHAPING, &trial.key(), name)
}

fn mbps(results: &Results, trial: Trial) -> Summary {
    of(results, trial, "mbps")
}

fn unshaped() -> Trial {
    Trial { bucket: None, ..Trial::bucket(BEST) }
}

pub(super) fn section(results: &Results) -> Section {
    let by_socket = |satellite: bool, name: &str| {
        let at = |socket| (socket as f64 / 1e3, mbps(results, Trial::socket(socket, satellite)));
        Series::new(name, SOCKETS.map(at))
    };
    let by_bucket = QUEUES.map(|queue| {
        let at = |bucket| {
            let trial = Trial { queue, ..Trial::bucket(bucket) };
            (bucket as f64, mbps(results, trial))
        };
        Series::new(format!("a queue of {queue}"), BUCKETS.map(at))
    });
    Section {
        figures: vec![
            PAGE.figure("figure-36", vec![by_socket(true, "540 ms"), by_socket(false, "1 ms")]),
            PAGE.figure("figure-37", by_bucket.into()),
        ],
        tables: vec![table(results)],
        cells: PAGE.judge(CLAIMS, results),
        ..PAGE.section()
    }
}

fn table(results: &Results) -> Table {
    let row = |bucket: u64| {
        let trial = Trial::bucket(bucket);
        let value = |name| format!("{:.0}", of(results, trial, name).mean);
        vec![bucket.to_string(), value("mbps"), value("overflowed")]
    };
    let mut rows: Vec<Vec<String>> = BUCKETS.map(row).into();
    let value = |name| format!("{:.0}", of(results, unshaped(), name).mean);
    rows.push(vec!["not shaped".into(), value("mbps"), value("overflowed")]);
    PAGE.table("buckets", rows)
}

page!(PAGE = "itu-s1711/shaping");

const CLAIMS: &[(&str, Measure)] = &[
    number("shaped-over-540-ms", |results| mbps(results, Trial::socket(SOCKET, true))),
    number("share-of-what-there-is-without-the-satellite", |results| {
        let [far, near] =
            [true, false].map(|satellite| mbps(results, Trial::socket(SOCKET, satellite)).mean);
        Summary::of(&[100.0 * far / near])
    }),
    that("shaping-makes-up-for-the-router-s-queue", |results| {
        let with = mbps(results, Trial::bucket(BEST));
        let without = results.summary(ATM, &atm::bursts().key(), "mbps");
        Found::new(format!("{:.0} in place of {:.1} Mbit/s", with.mean, without.mean))
            .between(with, 85.5, 104.5)
            .between(without, 1.8, 3.3)
    }),
    that("a-bucket-of-120-to-130-kbytes-is-the-best", |results| {
        let all = BUCKETS.map(|bucket| mbps(results, Trial::bucket(bucket)).mean);
        let best = all.iter().copied().fold(0.0, f64::max);
        let share = |bucket| 100.0 * mbps(results, Trial::bucket(bucket)).mean / best;
        let found = [96, BEST].map(share);
        Found::new(format!("96 and 125 kbytes: {:.0} and {:.0} %", found[0], found[1]))
            .below(Summary::of(&[found[0]]), 90.0)
            .above(Summary::of(&[found[1]]), 98.0)
    }),
    that("above-that-there-are-losses", |results| {
        let lost = |bucket| of(results, Trial::bucket(bucket), "overflowed");
        let found = [BEST, 160, 200, 256].map(lost);
        let words = found.map(|lost| format!("{:.0}", lost.mean)).join(", ");
        Found::new(format!("125, 160, 200 and 256 kbytes: {words} packets"))
            .below(found[0], 0.5)
            .above(found[1], 0.0)
    }),
];
