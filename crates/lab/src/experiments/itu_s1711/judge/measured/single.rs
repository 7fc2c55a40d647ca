//! Claims about one connection.

use super::super::super::bench::{RATES, Trial, WINDOWS, Way, figure_5, rule};
use super::{kbps, over};
use crate::experiments::Summary;
use crate::experiments::publication::{Found, Measure, number, page, that};

page!(pub(super) PAGE = "itu-s1711/one-connection");

pub(super) const CLAIMS: &[(&str, Measure)] = &[
    number("most-throughput-over-200-ms", |results| {
        kbps(results, Trial::one(Way::Plain, 45_000, 200))
    }),
    number("most-throughput-over-700-ms", |results| {
        kbps(results, Trial::one(Way::Plain, 45_000, 700))
    }),
    that("whatever-the-link-s-rate", |results| {
        let more = |round_trip| {
            let at = |rate| Trial::one(Way::Plain, rate, round_trip);
            over(results, at(45_000), at(5_000))
        };
        let [short, long] = [200, 700].map(more);
        Found::new(format!("{:+.1} and {:+.1} %", short.mean, long.mean))
            .below(short, 10.0)
            .below(long, 10.0)
    }),
    that("a-gateway-uses-the-full-bandwidth", |results| {
        let share = |round_trip: u64| {
            move |rate: u64| {
                kbps(results, Trial::one(Way::Three, rate, round_trip)).scaled(100.0 / rate as f64)
            }
        };
        let short = RATES.map(share(200));
        let long = RATES.map(share(700));
        let words = long.map(|share| format!("{:.0}", share.mean)).join(", ");
        let found = Found::new(format!("% over 700 ms at 1, 2, 5, 10 and 45 Mbit/s: {words}"));
        short.into_iter().chain(long).fold(found, |found, share| found.above(share, 80.0))
    }),
    that("orders-of-magnitude", |results| {
        let times = |round_trip| {
            let at = |way| Trial::one(way, 45_000, round_trip);
            over(results, at(Way::Three), at(Way::Plain)).scaled(0.01)
        };
        let [short, long] = [200, 700].map(times);
        let words =
            format!("{:.0} times over 700 ms, {:.0} over 200", long.mean + 1.0, short.mean + 1.0);
        Found::new(words).above(long, 99.0).above(short, 99.0)
    }),
    that("more-than-70-percent-of-the-information-rate", |results| {
        let rates = [256, 1_000, 10_000, 45_000];
        let shares = rates.map(|rate| kbps(results, rule(rate)).scaled(100.0 / rate as f64));
        let words = shares.map(|share| format!("{:.0}", share.mean)).join(", ");
        let found = Found::new(format!("{words} %"));
        shares.into_iter().fold(found, |found, share| found.above(share, 70.0))
    }),
    that("errors-hurt-tcp", |results| {
        let change = over(results, figure_5(65_535, 1e-5), figure_5(65_535, 1e-9));
        Found::new(format!("{:+.0} %", change.mean)).below(change, -80.0)
    }),
    that("larger-windows-are-more-sensitive-to-errors", |results| {
        let lost =
            WINDOWS.map(|window| over(results, figure_5(window, 1e-6), figure_5(window, 1e-9)));
        let words = lost.map(|lost| format!("{:+.0}", lost.mean)).join(", ");
        let less =
            |a: Summary, b: Summary| Summary { mean: a.mean - b.mean, half: a.half + b.half, ..a };
        Found::new(format!("16, 64 and 512 kbytes: {words} %"))
            .below(less(lost[1], lost[0]), 0.0)
            .below(less(lost[2], lost[1]), 0.0)
    }),
];
