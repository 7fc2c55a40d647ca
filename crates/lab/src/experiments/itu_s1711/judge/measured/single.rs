//! What is stated of one connection.

use super::super::super::bench::{RATES, Trial, WINDOWS, Way, figure_5, rule};
use super::{TENTH, kbps, over};
use crate::experiments::Summary;
use crate::experiments::publication::{Found, Sentence, number, that};

const FIGURE_10: &str = "annex 3, section 2.1.3, figure 10";
const FIGURE_20: &str = "annex 3, section 2.3.3.1, figures 19 and 20";
const WINDOW: [&str; 2] = [
    "the window over the round trip",
    "six segments, to which these systems round 8 kbytes up, over 700 ms are 100 kbit/s; equation 1 \
     with 8,000 bytes gives 91, and a window that nothing rounds carries five segments (table)",
];

pub(super) const SENTENCES: &[Sentence] = &[
    number(
        "most throughput over 200 ms",
        FIGURE_10,
        (320.0, "kbit/s", TENTH),
        |results| kbps(results, Trial::one(Way::Plain, 45_000, 200)),
        WINDOW,
    ),
    number(
        "most throughput over 700 ms",
        FIGURE_10,
        (91.0, "kbit/s", TENTH),
        |results| kbps(results, Trial::one(Way::Plain, 45_000, 700)),
        WINDOW,
    ),
    that(
        "whatever the link's rate",
        FIGURE_10,
        (
            "the window limits it even if the link's rate is increased",
            "45 Mbit/s give at most 10 % more than 5, over 200 and 700 ms",
        ),
        |results| {
            let more = |round_trip| {
                let at = |rate| Trial::one(Way::Plain, rate, round_trip);
                over(results, at(45_000), at(5_000))
            };
            let [short, long] = [200, 700].map(more);
            Found::new(format!("{:+.1} and {:+.1} %", short.mean, long.mean))
                .below(short, 10.0)
                .below(long, 10.0)
        },
        ["the window over the round trip", ""],
    ),
    that(
        "a gateway uses the full bandwidth",
        FIGURE_20,
        (
            "with the gateway a connection takes advantage of the full bandwidth despite 700 ms",
            "at 1 to 45 Mbit/s, over 200 and 700 ms, at least 80 % of the link",
        ),
        |results| {
            let share = |round_trip: u64| {
                move |rate: u64| {
                    kbps(results, Trial::one(Way::Three, rate, round_trip))
                        .scaled(100.0 / rate as f64)
                }
            };
            let short = RATES.map(share(200));
            let long = RATES.map(share(700));
            let words = long.map(|share| format!("{:.0}", share.mean)).join(", ");
            let found = Found::new(format!("% over 700 ms at 1, 2, 5, 10 and 45 Mbit/s: {words}"));
            short.into_iter().chain(long).fold(found, |found, share| found.above(share, 80.0))
        },
        [
            "97 % of the link is what it is told to send, and 3 % of that are headers",
            "the hosts' windows of 8 kbytes limit the parts before and behind the gateways as well",
        ],
    ),
    that(
        "orders of magnitude",
        FIGURE_20,
        (
            "with the gateway throughput is orders of magnitude better",
            "at 45 Mbit/s at least 100 times over 700 ms, and 10 times over 200",
        ),
        |results| {
            let times = |round_trip| {
                let at = |way| Trial::one(way, 45_000, round_trip);
                over(results, at(Way::Three), at(Way::Plain)).scaled(0.01)
            };
            let [short, long] = [200, 700].map(times);
            let words = format!(
                "{:.0} times over 700 ms, {:.0} over 200",
                long.mean + 1.0,
                short.mean + 1.0
            );
            Found::new(words).above(long, 99.0).above(short, 9.0)
        },
        ["the link's rate in place of a window over the round trip", ""],
    ),
    that(
        "more than 70 % of the information rate",
        "annex 2, section 3.3",
        (
            "with the gateway throughput exceeds 70 % of the link's rate, at 1e-8 and 700 ms, above 256 kbit/s",
            "at 256 kbit/s, 1, 10 and 45 Mbit/s, one connection in one direction",
        ),
        |results| {
            let rates = [256, 1_000, 10_000, 45_000];
            let shares = rates.map(|rate| kbps(results, rule(rate)).scaled(100.0 / rate as f64));
            let words = shares.map(|share| format!("{:.0}", share.mean)).join(", ");
            let found = Found::new(format!("{words} %"));
            shares.into_iter().fold(found, |found, share| found.above(share, 70.0))
        },
        ["0.01 % of packets are lost and sent again at once", "see figures 19 and 20"],
    ),
    that(
        "errors hurt TCP",
        "annex 1, section 3.4, figure 5",
        (
            "TCP performs poorly under link errors",
            "with 64 kbytes throughput at 1e-5 is less than a fifth of that at 1e-9",
        ),
        |results| {
            let change = over(results, figure_5(65_535, 1e-5), figure_5(65_535, 1e-9));
            Found::new(format!("{:+.0} %", change.mean)).below(change, -80.0)
        },
        ["11 % of packets are lost, and each window with a loss is halved", ""],
    ),
    that(
        "larger windows are more sensitive to errors",
        "annex 1, section 3.4, figure 5",
        (
            "TCP is more sensitive to errors with larger windows",
            "at 1e-6, 512 kbytes have lost a larger share of what they have at 1e-9 than 64, and \
             those than 16",
        ),
        |results| {
            let lost =
                WINDOWS.map(|window| over(results, figure_5(window, 1e-6), figure_5(window, 1e-9)));
            let words = lost.map(|lost| format!("{:+.0}", lost.mean)).join(", ");
            let less = |a: Summary, b: Summary| Summary {
                mean: a.mean - b.mean,
                half: a.half + b.half,
                ..a
            };
            Found::new(format!("16, 64 and 512 kbytes: {words} %"))
                .below(less(lost[1], lost[0]), 0.0)
                .below(less(lost[2], lost[1]), 0.0)
        },
        ["a halved window matters when the whole of it was needed", ""],
    ),
];
