//! Claims about two segments.

use super::super::super::bench::{Errors, SESSIONS, Trial, VSAT, Way, test_b};
use super::{SHARES, kbps, over, share, udp};
use crate::experiments::Summary;
use crate::experiments::publication::{Found, Measure, number, page, that};

fn clean(way: Way, flows: u32, rate: u64) -> Trial {
    test_b(way, flows, rate, Errors::Ratio(1e-8))
}

page!(pub(super) PAGE = "itu-s1711/two-segments");

pub(super) const CLAIMS: &[(&str, Measure)] = &[
    number("table-8", |results| share(results, SHARES[0])),
    number("table-9", |results| share(results, SHARES[1])),
    number("table-10", |results| share(results, SHARES[2])),
    number("table-11", |results| share(results, SHARES[3])),
    number("table-12", |results| share(results, SHARES[4])),
    that("more-than-95-percent-of-the-maximum", |results| {
        let shares = SHARES.map(|table| share(results, table));
        let words = shares.map(|share| format!("{:.1}", share.mean)).join(", ");
        let found = Found::new(format!("{words} %"));
        shares.into_iter().fold(found, |found, share| found.above(share, 95.0))
    }),
    number("one-session-without-a-gateway", |results| kbps(results, clean(Way::Plain, 1, 1_536))),
    number("two-sessions-without-a-gateway", |results| kbps(results, clean(Way::Plain, 2, 1_536))),
    number("eight-sessions-without-a-gateway", |results| {
        kbps(results, clean(Way::Plain, 8, 1_536))
    }),
    that("with-eight-sessions-a-gateway-does-not-matter", |results| {
        let gains =
            VSAT.map(|rate| over(results, clean(Way::Two, 8, rate), clean(Way::Plain, 8, rate)));
        let words = gains.map(|gain| format!("{:+.1}", gain.mean)).join(", ");
        let found = Found::new(format!("{words} %"));
        gains.into_iter().fold(found, |found, gain| found.between(gain, -10.0, 10.0))
    }),
    that("with-one-and-two-sessions-it-does", |results| {
        let gains = [1, 2].map(|flows| {
            over(results, clean(Way::Two, flows, 1_536), clean(Way::Plain, flows, 1_536))
        });
        Found::new(format!("{:+.0} and {:+.0} %", gains[0].mean, gains[1].mean))
            .above(gains[0], 100.0)
            .above(gains[1], 100.0)
    }),
    that("95-percent-of-capacity-with-1-2-and-8-sessions", |results| {
        let share =
            |flows| kbps(results, clean(Way::Two, flows, 1_536)).scaled(100.0 / udp(1_536.0));
        let shares = SESSIONS.map(share);
        let words = shares.map(|share| format!("{:.1}", share.mean)).join(", ");
        let found = Found::new(format!("{words} %"));
        shares.into_iter().fold(found, |found, share| found.above(share, 95.0))
    }),
    that("less-effect-at-1e-6", |results| {
        let gain = |ratio| {
            let at = |way| test_b(way, 2, 1_536, Errors::Ratio(ratio));
            over(results, at(Way::Two), at(Way::Plain))
        };
        let [light, heavy] = [1e-7, 1e-6].map(gain);
        let less =
            Summary { mean: light.mean - heavy.mean, half: light.half + heavy.half, ..light };
        Found::new(format!("{:+.0} % at 1e-7, {:+.0} % at 1e-6", light.mean, heavy.mean))
            .above(less, 0.0)
    }),
    that("significant-up-to-1e-7", |results| {
        let at = |way| test_b(way, 2, 1_536, Errors::Ratio(1e-7));
        let gain = over(results, at(Way::Two), at(Way::Plain));
        Found::new(format!("{:+.0} %", gain.mean)).above(gain, 50.0)
    }),
    that("bursts-hurt-less-than-as-many-single-errors", |results| {
        let at = |way| test_b(way, 1, 1_536, Errors::Bursts(1e-6, 16));
        let gain = over(results, at(Way::Two), at(Way::Plain));
        Found::new(format!("{:+.0} %", gain.mean)).above(gain, 0.0)
    }),
];
