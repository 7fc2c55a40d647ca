//! Claims about three segments.

use super::super::super::bench::{Way, internet, many};
use super::{kbps, over};
use crate::experiments::publication::{Found, Measure, number, page, that};

page!(pub(super) PAGE = "itu-s1711/three-segments");

pub(super) const CLAIMS: &[(&str, Measure)] = &[
    that("200-ms-near-the-maximum-but-for-many-errors", |results| {
        let share =
            |ratio| kbps(results, many(Way::Plain, 350, 200, ratio)).scaled(100.0 / 44_800.0);
        let [none, light, heavy] = [0.0, 1e-7, 1e-5].map(share);
        Found::new(format!("{:.0}, {:.0} and {:.0} %", none.mean, light.mean, heavy.mean))
            .above(none, 85.0)
            .above(light, 85.0)
            .below(heavy, 60.0)
    }),
    number("350-connections-over-700-ms-without-errors", |results| {
        kbps(results, many(Way::Plain, 350, 700, 0.0)).scaled(1e-3)
    }),
    that("700-ms-errors-hurt", |results| {
        let at = |ratio| many(Way::Plain, 350, 700, ratio);
        let change = over(results, at(1e-5), at(0.0));
        Found::new(format!("{:+.0} %", change.mean)).below(change, -50.0)
    }),
    number("350-connections-over-700-ms-at-10-percent-without-gateways", |results| {
        kbps(results, many(Way::Plain, 350, 700, 1e-5)).scaled(1e-3)
    }),
    number("350-connections-over-700-ms-at-10-percent-with-gateways", |results| {
        kbps(results, many(Way::Three, 350, 700, 1e-5)).scaled(1e-3)
    }),
    that("up-to-280-connections-as-the-limit", |results| {
        let share = |round_trip| {
            move |flows: u32| {
                kbps(results, many(Way::Three, flows, round_trip, 0.0))
                    .scaled(100.0 / 128.0 / f64::from(flows))
            }
        };
        let [short, long] = [200, 700].map(|at| [50, 280].map(share(at)));
        let words = long.map(|share| format!("{:.0}", share.mean)).join(", ");
        let found = Found::new(format!("{words} % over 700 ms"));
        short.into_iter().chain(long).fold(found, |found, share| found.above(share, 90.0))
    }),
    that("gateways-at-10-percent-twice-as-much-over-200-ms", |results| {
        let at = |way| many(way, 350, 200, 1e-5);
        let gain = over(results, at(Way::Three), at(Way::Plain));
        Found::new(format!("{:+.0} %", gain.mean)).between(gain, 90.0, 110.0)
    }),
    that("a-substantial-increase-at-low-error-ratios", |results| {
        let gain = |ratio| {
            over(results, many(Way::Three, 350, 700, ratio), many(Way::Plain, 350, 700, ratio))
        };
        let [none, light] = [0.0, 1e-7].map(gain);
        Found::new(format!("{:+.0} and {:+.0} %", none.mean, light.mean))
            .above(none, 25.0)
            .above(light, 25.0)
    }),
    that("losses-in-the-internet-hardly-matter", |results| {
        let change = |loss| over(results, internet(loss), internet(0.0));
        let [tiny, light, heavy] = [0.001, 0.01, 0.1].map(change);
        Found::new(format!("{:+.1}, {:+.1} and {:+.1} %", tiny.mean, light.mean, heavy.mean))
            .above(tiny, -10.0)
            .above(light, -10.0)
            .below(heavy, -10.0)
    }),
    that("gateways-overcome-the-satellite-s-losses", |results| {
        let at = |ratio| many(Way::Three, 350, 700, ratio);
        let change = over(results, at(1e-7), at(0.0));
        Found::new(format!("{:+.1} %", change.mean)).above(change, -5.0)
    }),
];
