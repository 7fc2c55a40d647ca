//! Claims of sections V.A and IX about end-to-end file transfers.

use super::super::super::FILES;
use super::super::super::bench::{FEW, Others, ROUND_TRIPS, Router, SMALL, Trial, Way};
use super::{GEO, alone, crowded, each, kbps, listed, of, over};
use crate::experiments::Summary;
use crate::experiments::publication::{Found, Measure, page, that};

page!(pub(super) PAGE = "henderson-katz-1999/end-to-end");

pub(super) const CLAIMS: &[(&str, Measure)] = &[
    that("short-round-trips-all-four-do-well", |results| {
        let points = [20, 40, 80];
        let all = Way::FOUR.map(|way| points.map(|at| kbps(results, alone(way, at))));
        let least = all.iter().flatten().map(|one| one.mean).fold(f64::INFINITY, f64::min);
        let found = Found::new(format!("at least {least:.0} kbit/s"));
        all.iter().flatten().fold(found, |found, one| found.above(*one, 1_000.0))
    }),
    that("long-round-trips-they-differ", |results| {
        let spread = |at| {
            let gain = |way| over(results, alone(Way::SackNewReno, at), alone(way, at), "kbps");
            let gains = Way::FOUR.map(gain);
            gains.into_iter().fold(gains[0], |a, b| if b.mean > a.mean { b } else { a })
        };
        let [long, geo] = [400, GEO].map(spread);
        Found::new(format!(
            "the best over the worst: {:+.0} % at 400 ms, {:+.0} % at 600",
            long.mean, geo.mean
        ))
        .above(long, 10.0)
        .above(geo, 10.0)
    }),
    that("sack-newreno-is-the-best", |results| {
        let gains = [Way::SackReno, Way::NewReno, Way::Reno]
            .map(|way| over(results, alone(Way::SackNewReno, GEO), alone(way, GEO), "kbps"));
        let words = format!(
            "over SACK-Reno {:+.0} %, NewReno {:+.0} %, Reno {:+.0} %",
            gains[0].mean, gains[1].mean, gains[2].mean
        );
        gains.into_iter().fold(Found::new(words), |found, gain| found.above(gain, 0.0))
    }),
    that("sack-newreno-from-20-to-600-ms", |results| {
        let change =
            over(results, alone(Way::SackNewReno, GEO), alone(Way::SackNewReno, 20), "kbps");
        Found::new(format!("{:+.1} %", change.mean)).above(change, -10.0)
    }),
    that("close-to-the-link-s-rate-over-geo", |results| {
        let found = kbps(results, alone(Way::SackNewReno, GEO));
        Found::new(format!("{:.0} kbit/s", found.mean)).above(found, 1_040.0)
    }),
    that("sack-alone-is-not-enough", |results| {
        let change = over(results, alone(Way::SackReno, GEO), alone(Way::SackNewReno, GEO), "kbps");
        let more = results.paired(
            FILES,
            &alone(Way::SackReno, GEO).key(),
            &alone(Way::SackNewReno, GEO).key(),
            "recoveries",
            |a, b| a - b,
        );
        Found::new(format!("{:+.0} % throughput, {:+.1} recoveries", change.mean, more.mean))
            .below(change, 0.0)
            .above(more, 0.0)
    }),
    that("newreno-alone-is-not-enough", |results| {
        let change = over(results, alone(Way::NewReno, GEO), alone(Way::SackNewReno, GEO), "kbps");
        Found::new(format!("{:+.0} %", change.mean)).below(change, 0.0)
    }),
    that("reno-times-out", |results| {
        let share = each(results, alone(Way::Reno, GEO), |values| {
            f64::from(u8::from(values.get("timeouts") > 0.0))
        });
        Found::new(format!("{:.0} % of them", share.mean * 100.0)).above(share, 0.5)
    }),
    that("newreno-avoids-timeouts", |results| {
        let fewer = results.paired(
            FILES,
            &alone(Way::Reno, GEO).key(),
            &alone(Way::NewReno, GEO).key(),
            "timeouts",
            |a, b| a - b,
        );
        Found::new(format!("{:.1} fewer a transfer", fewer.mean)).above(fewer, 0.0)
    }),
    that("a-transfer-takes-a-minute", |results| {
        let all = ROUND_TRIPS.map(|at| of(results, alone(Way::SackNewReno, at), "seconds"));
        let least = all.into_iter().fold(all[0], |a, b| if b.mean < a.mean { b } else { a });
        Found::new(format!("{:.1} s", least.mean)).above(least, 60.0)
    }),
    that("the-web-alone-does-not-congest", |results| {
        let silent = Trial::new(Way::SackNewReno, GEO, Others::Web);
        let silent = Trial { file: false, ..silent };
        let lost = of(results, silent, "satellite_overflowed");
        Found::new(format!("{:.2} packets", lost.mean)).below(lost, 1.0)
    }),
    that("one-short-connection-is-enough", |results| {
        let change =
            over(results, crowded(Way::SackNewReno, GEO), alone(Way::SackNewReno, GEO), "kbps");
        Found::new(format!("{:+.0} %", change.mean)).below(change, -50.0)
    }),
    that("several-with-small-windows-as-well", |results| {
        let beside = |flows: u32| Trial::new(Way::SackNewReno, GEO, Others::Small(flows));
        let change = |flows| over(results, beside(flows), alone(Way::SackNewReno, GEO), "kbps");
        let words = SMALL.map(|flows| format!("{flows}: {:+.0} %", change(flows).mean));
        Found::new(words.join(", ")).below(change(SMALL[2]), -50.0)
    }),
    that("the-longer-the-less", |results| {
        let change = |long, short| {
            over(results, crowded(Way::SackNewReno, long), crowded(Way::SackNewReno, short), "kbps")
        };
        let [long, short] = [change(GEO, 200), change(200, 40)];
        Found::new(listed(results, &FEW.map(|at| (at, crowded(Way::SackNewReno, at))), "kbps"))
            .below(long, 0.0)
            .below(short, 0.0)
    }),
    that("mostly-without-timeouts", |results| {
        let share = each(results, crowded(Way::SackNewReno, GEO), |values| {
            f64::from(u8::from(values.get("timeouts") > 0.0))
        });
        Found::new(format!("{:.0} % have one", share.mean * 100.0)).below(share, 0.25)
    }),
    that("and-more-variable", |results| {
        let share = |trial| {
            let seen = kbps(results, trial);
            seen.deviation / seen.mean
        };
        let [beside, alone] =
            [crowded(Way::SackNewReno, GEO), alone(Way::SackNewReno, GEO)].map(share);
        Found::new(format!("{:.1} % and {:.1} %", beside * 100.0, alone * 100.0))
            .above(Summary::of(&[beside / alone.max(1e-6)]), 3.0)
    }),
    that("fair-queueing-helps-the-satellite-most", |results| {
        let gain = |at| {
            let fair = Trial::new(Way::SackNewReno, at, Others::One(Router::Fair));
            over(results, fair, crowded(Way::SackNewReno, at), "kbps")
        };
        let [long, short] = [GEO, FEW[0]].map(gain);
        let words = format!("{:+.0} %; {:+.0} % at {} ms", long.mean, short.mean, FEW[0]);
        Found::new(words).above(long, 50.0).above(long, short.mean)
    }),
];
