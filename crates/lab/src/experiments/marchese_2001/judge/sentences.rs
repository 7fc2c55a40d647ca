//! Claims of the text and the figures.

use super::super::bench::{LARGE, MEDIUM, SECONDS, SMALL, test};
use super::super::{TESTS, bench::Test, taken};
use super::tables::seconds;
use crate::experiments::publication::{Found, Measure, number, page, that};
use crate::experiments::{Results, Summary};

fn one(value: f64) -> Summary {
    Summary::of(&[value])
}

fn time(results: &Results, bytes: u64, window: u32, buffer: u64) -> f64 {
    seconds(results, "taken", test(bytes, window, buffer))
}

fn gain(results: &Results, bytes: u64, from: (u32, u64), to: (u32, u64)) -> f64 {
    let [from, to] = [from, to].map(|(window, buffer)| time(results, bytes, window, buffer));
    100.0 * (1.0 - to / from)
}

/// Returns the average throughput after so many seconds in kbyte/s.
pub(super) fn average(results: &Results, test: Test, after: u64) -> f64 {
    let place = SECONDS.iter().position(|&seconds| seconds == after).unwrap_or(0);
    results.of(TESTS, &taken(test))[0].series("kbytes_per_s")[place]
}

fn after_5(results: &Results, window: u32, buffer: u64) -> Summary {
    one(average(results, test(MEDIUM, window, buffer), 5))
}

fn overflowed(results: &Results, buffer: u64) -> f64 {
    results.summary(TESTS, &taken(test(MEDIUM, 6, buffer)), "overflowed").mean
}

page!(pub(in super::super) PAGE = "marchese-2001/windows-and-buffers");

pub(in super::super) const CLAIMS: &[(&str, Measure)] = &[
    number("after-5-s-window-1-64-kbytes", |results| after_5(results, 1, 64)),
    number("after-5-s-window-6-64-kbytes", |results| after_5(results, 6, 64)),
    number("after-5-s-window-1-320-kbytes", |results| after_5(results, 1, 320)),
    number("after-5-s-window-6-320-kbytes", |results| after_5(results, 6, 320)),
    that("larger-initial-windows-start-faster", |results| {
        let at = |window| average(results, test(MEDIUM, window, 64), 3);
        let all = [1, 2, 4, 6].map(at);
        let ours =
            format!("kbyte/s: {:.0}, {:.0}, {:.0} and {:.0}", all[0], all[1], all[2], all[3]);
        all.windows(2).fold(Found::new(ours), |found, pair| found.above(one(pair[1]), pair[0]))
    }),
    that("the-initial-window-matters-more-to-short-files", |results| {
        let [short, long] = [SMALL, MEDIUM].map(|bytes| gain(results, bytes, (1, 64), (6, 64)));
        Found::new(format!("{short:.1} % of 100 kbytes, {long:.1} % of 2.8 Mbytes"))
            .above(one(short), long)
    }),
    that("no-congestion-with-64-kbytes", |results| {
        let lost = overflowed(results, 64);
        Found::new(format!("{lost:.0} packets")).below(one(lost), 0.5)
    }),
    that("larger-buffers-are-faster", |results| {
        let all = [64, 128, 320].map(|buffer| time(results, MEDIUM, 1, buffer));
        Found::new(format!("{:.1}, {:.1} and {:.1} s", all[0], all[1], all[2]))
            .below(one(all[1]), all[0])
            .below(one(all[2]), all[1])
    }),
    number("below-16-s-in-the-best-case", |results| one(time(results, MEDIUM, 1, 320))),
    number("improvement-in-the-best-case", |results| one(gain(results, MEDIUM, (1, 64), (1, 320)))),
    that("too-large-a-buffer-congests", |results| {
        let lost = overflowed(results, 640);
        let [large, right] = [640, 320].map(|buffer| time(results, MEDIUM, 1, buffer));
        Found::new(format!(
            "{lost:.0} packets lost (window 6); {large:.1} s with 640, {right:.1} s with 320"
        ))
        .above(one(lost), 0.5)
        .above(one(large), right)
    }),
    that("the-router-saturates-above-384-kbytes", |results| {
        let lost = [320, 384, 448, 512, 640].map(|buffer| overflowed(results, buffer));
        let words = lost.map(|lost| format!("{lost:.0}")).join(", ");
        Found::new(format!("packets lost with 320, 384, 448, 512 and 640 kbytes: {words}"))
            .below(one(lost[0]), 0.5)
            .below(one(lost[1]), 0.5)
            .above(one(lost[2]), 0.5)
            .above(one(lost[3]), 0.5)
            .above(one(lost[4]), 0.5)
    }),
    that("buffers-hardly-matter-to-short-files", |results| {
        let [short, medium, long] =
            [SMALL, MEDIUM, LARGE].map(|bytes| gain(results, bytes, (6, 64), (6, 320)));
        Found::new(format!("{short:.1}, {medium:.1} and {long:.1} %"))
            .below(one(short), medium / 4.0)
            .below(one(short), long / 4.0)
    }),
    that("the-gain-is-mainly-the-buffer-s", |results| {
        let [buffer, both] = [(1, 320), (6, 320)].map(|to| gain(results, MEDIUM, (1, 64), to));
        Found::new(format!("{buffer:.1} of {both:.1} %")).above(one(buffer / both), 0.75)
    }),
    number("gain-of-both", |results| one(gain(results, MEDIUM, (1, 64), (6, 320)))),
    that("the-initial-window-rules-the-first-phase", |results| {
        let ratio = |buffer| after_5(results, 6, buffer).mean / after_5(results, 1, buffer).mean;
        let [small, large] = [64, 320].map(ratio);
        Found::new(format!("{small:.2} times with 64 kbytes, {large:.2} with 320"))
            .above(one(small), 1.5)
            .above(one(large), 1.5)
    }),
];
