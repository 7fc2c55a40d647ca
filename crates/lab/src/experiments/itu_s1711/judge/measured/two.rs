//! What is stated of two segments.

use super::super::super::bench::{Errors, SESSIONS, Trial, VSAT, Way, test_a, test_b};
use super::{SHARES, TENTH, kbps, over, udp};
use crate::experiments::Summary;
use crate::experiments::publication::{Found, Sentence, number, that};

fn clean(way: Way, flows: u32, rate: u64) -> Trial {
    test_b(way, flows, rate, Errors::Ratio(1e-8))
}

const FIGURES_13: &str = "annex 3, section 2.2.2.2, figures 13 to 15";

pub(super) const SENTENCES: &[Sentence] = &[
    that(
        "more than 95 % of the maximum",
        "annex 3, section 2.2.2.1",
        (
            "the gateway's effect was observed throughout, with more than 95 % of the maximum",
            "in the five tests at least 95 % of UDP's throughput",
        ),
        |results| {
            let share = |(_, flows, rate, _): (&str, u32, u64, f64)| {
                kbps(results, test_a(flows, rate)).scaled(100.0 / udp(rate as f64))
            };
            let shares = SHARES.map(share);
            let words = shares.map(|share| format!("{:.1}", share.mean)).join(", ");
            let found = Found::new(format!("{words} %"));
            shares.into_iter().fold(found, |found, share| found.above(share, 95.0))
        },
        [
            "a window that fills the link, and a queue of one product",
            "what slow start loses is repaired while the line runs empty",
        ],
    ),
    number(
        "one session without a gateway",
        FIGURES_13,
        (200.0, "kbit/s", TENTH),
        |results| kbps(results, clean(Way::Plain, 1, 1_536)),
        [
            "the window of Windows 2000 over 500 ms and the line",
            "the window of Windows 2000 over 500 ms gives 272 kbit/s; 200 come with the same window \
             over 700 ms, as the document has elsewhere, or with 12 kbytes over 500 (table)",
        ],
    ),
    number(
        "two sessions without a gateway",
        FIGURES_13,
        (400.0, "kbit/s", TENTH),
        |results| kbps(results, clean(Way::Plain, 2, 1_536)),
        ["twice that", "twice that: the window of a host is not given (table)"],
    ),
    number(
        "eight sessions without a gateway",
        FIGURES_13,
        (1_500.0, "kbit/s", TENTH),
        |results| kbps(results, clean(Way::Plain, 8, 1_536)),
        ["the line is full", "together their windows hold just the product"],
    ),
    that(
        "with eight sessions a gateway does not matter",
        FIGURES_13,
        (
            "with eight sessions there is no remarkable difference with and without the gateway",
            "less than 10 % at each rate",
        ),
        |results| {
            let gains = VSAT
                .map(|rate| over(results, clean(Way::Two, 8, rate), clean(Way::Plain, 8, rate)));
            let words = gains.map(|gain| format!("{:+.1}", gain.mean)).join(", ");
            let found = Found::new(format!("{words} %"));
            gains.into_iter().fold(found, |found, gain| found.between(gain, -10.0, 10.0))
        },
        ["eight windows fill the line by themselves", ""],
    ),
    that(
        "with one and two sessions it does",
        FIGURES_13,
        (
            "the gateway's effect is observed with one and two sessions",
            "at 1,536 kbit/s at least twice as much",
        ),
        |results| {
            let gains = [1, 2].map(|flows| {
                over(results, clean(Way::Two, flows, 1_536), clean(Way::Plain, flows, 1_536))
            });
            Found::new(format!("{:+.0} and {:+.0} %", gains[0].mean, gains[1].mean))
                .above(gains[0], 100.0)
                .above(gains[1], 100.0)
        },
        ["the line's rate in place of one or two windows over the round trip", ""],
    ),
    that(
        "95 % of capacity with 1, 2 and 8 sessions",
        "annex 3, section 2.2.3",
        (
            "95 % of capacity was achieved with 1, 2 and 8 sessions",
            "at 1,536 kbit/s and 1e-8 at least 95 % of UDP's throughput",
        ),
        |results| {
            let share =
                |flows| kbps(results, clean(Way::Two, flows, 1_536)).scaled(100.0 / udp(1_536.0));
            let shares = SESSIONS.map(share);
            let words = shares.map(|share| format!("{:.1}", share.mean)).join(", ");
            let found = Found::new(format!("{words} %"));
            shares.into_iter().fold(found, |found, share| found.above(share, 95.0))
        },
        [
            "windows that fill the line",
            "one loss in ten thousand packets, and the halving after it",
        ],
    ),
    that(
        "less effect at 1e-6",
        "annex 3, section 2.2.2.2, figure 16",
        (
            "with higher error ratios the effect is reduced",
            "at 1,536 kbit/s the gateway gains less at 1e-6 than at 1e-7, in percent",
        ),
        |results| {
            let gain = |ratio| {
                let at = |way| test_b(way, 2, 1_536, Errors::Ratio(ratio));
                over(results, at(Way::Two), at(Way::Plain))
            };
            let [light, heavy] = [1e-7, 1e-6].map(gain);
            let less =
                Summary { mean: light.mean - heavy.mean, half: light.half + heavy.half, ..light };
            Found::new(format!("{:+.0} % at 1e-7, {:+.0} % at 1e-6", light.mean, heavy.mean))
                .above(less, 0.0)
        },
        ["TCP behind the gateway halves its window for errors too", ""],
    ),
    that(
        "significant up to 1e-7",
        "annex 3, section 2.2.3",
        (
            "splitting improves throughput significantly at 1e-7 or better",
            "two sessions at 1,536 kbit/s and 1e-7 have at least 1.5 times as much",
        ),
        |results| {
            let at = |way| test_b(way, 2, 1_536, Errors::Ratio(1e-7));
            let gain = over(results, at(Way::Two), at(Way::Plain));
            Found::new(format!("{:+.0} %", gain.mean)).above(gain, 50.0)
        },
        ["0.12 % of packets are lost: a halving every 800", ""],
    ),
    that(
        "bursts hurt less than as many single errors",
        "annex 3, section 2.2.2.2, figure 17",
        (
            "under burst errors the gateway's effect remains (figure 17 shows one session)",
            "with bursts of 16 packets and the losses of 1e-6 the gateway still gains",
        ),
        |results| {
            let at = |way| test_b(way, 1, 1_536, Errors::Bursts(1e-6, 16));
            let gain = over(results, at(Way::Two), at(Way::Plain));
            Found::new(format!("{:+.0} %", gain.mean)).above(gain, 0.0)
        },
        [
            "a burst is one loss to the window; the numbers of figure 17 are not legible",
            "a burst as long as a small window costs a timeout with either",
        ],
    ),
];
