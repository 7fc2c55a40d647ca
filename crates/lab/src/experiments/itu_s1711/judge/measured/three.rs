//! What is stated of three segments.

use super::super::super::bench::{Way, internet, many};
use super::{TENTH, kbps, over};
use crate::experiments::publication::{Found, Sentence, number, that};

const MANY_FLOWS: &str = "annex 3, section 2.3.3.3, figures 21 and 22";
const WITH_GATEWAY: &str = "annex 3, section 2.3.3.4, figures 23 and 24";
const RECOVERY: [&str; 2] = [
    "connections of 128 kbit/s, and what is lost sent again",
    "the gateways' own protocol is not told. 11.3 % of packets lost leave 38.8 Mbit/s of data at \
     most: ours has nearly all of it, theirs had 85 %. Windows that do not last for the repairs, or \
     a lower rate, have less (table)",
];

pub(super) const SENTENCES: &[Sentence] = &[
    that(
        "200 ms: near the maximum but for many errors",
        MANY_FLOWS,
        (
            "over 200 ms TCP is near the theoretical maximum except at high error ratios",
            "350 connections have at least 85 % of 44.8 Mbit/s without errors and at 1e-7, and \
             less than 60 % at 1e-5",
        ),
        |results| {
            let share =
                |ratio| kbps(results, many(Way::Plain, 350, 200, ratio)).scaled(100.0 / 44_800.0);
            let [none, light, heavy] = [0.0, 1e-7, 1e-5].map(share);
            Found::new(format!("{:.0}, {:.0} and {:.0} %", none.mean, light.mean, heavy.mean))
                .above(none, 85.0)
                .above(light, 85.0)
                .below(heavy, 60.0)
        },
        [
            "8 kbytes over 200 ms are more than 128 kbit/s",
            "windows of 8 kbytes, delayed acknowledgements and headers leave less of it",
        ],
    ),
    number(
        "350 connections over 700 ms without errors",
        MANY_FLOWS,
        (31.0, "Mbit/s", TENTH),
        |results| kbps(results, many(Way::Plain, 350, 700, 0.0)).scaled(1e-3),
        [
            "350 windows of 8 kbytes over 700 ms",
            "what held a connection to 128 kbit/s is not told: on a line of that rate a round trip \
             is longer by a packet of 94 ms and the wait of its acknowledgement, with the window \
             alone it is not, and 31 lies between (table)",
        ],
    ),
    that(
        "700 ms: errors hurt",
        MANY_FLOWS,
        (
            "at high error ratios TCP drops off rapidly",
            "350 connections over 700 ms have less than half at 1e-5 of what they have without",
        ),
        |results| {
            let at = |ratio| many(Way::Plain, 350, 700, ratio);
            let change = over(results, at(1e-5), at(0.0));
            Found::new(format!("{:+.0} %", change.mean)).below(change, -50.0)
        },
        ["timeouts, with windows of five segments", ""],
    ),
    number(
        "350 connections over 700 ms at 10 %, without gateways",
        WITH_GATEWAY,
        (10.0, "Mbit/s", TENTH),
        |results| kbps(results, many(Way::Plain, 350, 700, 1e-5)).scaled(1e-3),
        [
            "timeouts, with windows of five segments",
            "windows of five segments mostly time out, and how long a timeout is differs between systems",
        ],
    ),
    number(
        "350 connections over 700 ms at 10 %, with gateways",
        WITH_GATEWAY,
        (33.0, "Mbit/s", TENTH),
        |results| kbps(results, many(Way::Three, 350, 700, 1e-5)).scaled(1e-3),
        RECOVERY,
    ),
    that(
        "up to 280 connections as the limit",
        WITH_GATEWAY,
        (
            "with gateways performance is essentially the theoretical limit for up to 280 connections",
            "50 and 280 connections have at least 90 % of 128 kbit/s each, over 200 and 700 ms without errors",
        ),
        |results| {
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
        },
        [
            "headers take 3 %",
            "headers take 3 %, and an 8-kbyte window on a slow access line some more",
        ],
    ),
    that(
        "gateways at 10 %: twice as much over 200 ms",
        WITH_GATEWAY,
        (
            "at a packet loss of 10 % gateways give almost 100 % more over 200 ms",
            "350 connections over 200 ms have at least 60 % more",
        ),
        |results| {
            let at = |way| many(way, 350, 200, 1e-5);
            let gain = over(results, at(Way::Three), at(Way::Plain));
            Found::new(format!("{:+.0} %", gain.mean)).above(gain, 60.0)
        },
        ["losses are repaired between the gateways, and the hosts see none", ""],
    ),
    that(
        "a substantial increase at low error ratios",
        WITH_GATEWAY,
        (
            "over the satellite gateways give a substantial increase at low error ratios",
            "350 connections over 700 ms have at least 25 % more, without errors and at 1e-7",
        ),
        |results| {
            let gain = |ratio| {
                over(results, many(Way::Three, 350, 700, ratio), many(Way::Plain, 350, 700, ratio))
            };
            let [none, light] = [0.0, 1e-7].map(gain);
            Found::new(format!("{:+.0} and {:+.0} %", none.mean, light.mean))
                .above(none, 25.0)
                .above(light, 25.0)
        },
        ["128 kbit/s in place of a window over 700 ms", ""],
    ),
    that(
        "losses in the Internet hardly matter",
        "annex 3, section 2.3.3.5, figure 25",
        (
            "the gateway maintains full speed with almost no degradation except at high loss",
            "150 connections: 0.1 % and 1 % cost less than 10 %, and 10 % more than that",
        ),
        |results| {
            let change = |loss| over(results, internet(loss), internet(0.0));
            let [tiny, light, heavy] = [0.001, 0.01, 0.1].map(change);
            Found::new(format!("{:+.1}, {:+.1} and {:+.1} %", tiny.mean, light.mean, heavy.mean))
                .above(tiny, -10.0)
                .above(light, -10.0)
                .below(heavy, -10.0)
        },
        [
            "200 ms in place of 700, and a window for 128 kbit/s",
            "windows of 8 kbytes over 200 ms barely carry 128 kbit/s, and a loss halves them",
        ],
    ),
    that(
        "gateways overcome the satellite's losses",
        "annex 3, section 2.3.4",
        (
            "throughput through gateways is not affected as long as the error ratio is better than 1e-7",
            "350 connections over 700 ms lose less than 5 % at 1e-7",
        ),
        |results| {
            let at = |ratio| many(Way::Three, 350, 700, ratio);
            let change = over(results, at(1e-7), at(0.0));
            Found::new(format!("{:+.1} %", change.mean)).above(change, -5.0)
        },
        ["0.12 % of packets, sent again at once", ""],
    ),
];
