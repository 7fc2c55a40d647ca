//! What sections V.A and IX state of files from end to end.

use super::super::super::FILES;
use super::super::super::bench::{FEW, Others, ROUND_TRIPS, Router, Trial, Way};
use super::{GEO, alone, crowded, each, kbps, listed, of, over};
use crate::experiments::Summary;
use crate::experiments::publication::{Found, Sentence, that};

const FIGURE_3: &str = "section V.A, figure 3";
const FIGURE_4: &str = "section V.A, figure 4";

pub(super) const END_TO_END: &[Sentence] = &[
    that(
        "short round trips: all four do well",
        FIGURE_3,
        (
            "below 100 ms throughput is relatively high for all four",
            "at 20, 40 and 80 ms each has more than 1,000 of the 1,300 kbit/s",
        ),
        |results| {
            let points = [20, 40, 80];
            let all = Way::FOUR.map(|way| points.map(|at| kbps(results, alone(way, at))));
            let least = all.iter().flatten().map(|one| one.mean).fold(f64::INFINITY, f64::min);
            let found = Found::new(format!("at least {least:.0} kbit/s"));
            all.iter().flatten().fold(found, |found, one| found.above(*one, 1_000.0))
        },
        [
            "the queue holds more than the line, and what is lost is soon had again",
            "one of them loses its window there",
        ],
    ),
    that(
        "long round trips: they differ",
        FIGURE_3,
        (
            "over 100 ms and for GEO the differences are evident",
            "at 400 and 600 ms the worst has at least 10 % less than the best",
        ),
        |results| {
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
        },
        [
            "what slow start loses at once takes each its own time to repair",
            "they are close together with this queue",
        ],
    ),
    that(
        "SACK-NewReno is the best",
        FIGURE_3,
        ("SACK-NewReno performs best", "at 600 ms it is above each of the three others"),
        |results| {
            let gains = [Way::SackReno, Way::NewReno, Way::Reno]
                .map(|way| over(results, alone(Way::SackNewReno, GEO), alone(way, GEO), "kbps"));
            let words = format!(
                "over SACK-Reno {:+.0} %, NewReno {:+.0} %, Reno {:+.0} %",
                gains[0].mean, gains[1].mean, gains[2].mean
            );
            gains.into_iter().fold(Found::new(words), |found, gain| found.above(gain, 0.0))
        },
        [
            "one halving, and all losses repaired in a round trip or two",
            "one of the others is as good with this queue",
        ],
    ),
    that(
        "SACK-NewReno from 20 to 600 ms",
        "section IX.ii",
        (
            "its throughput falls by no more than 10 % from 20 to 600 ms",
            "600 ms over 20 ms is above -10 %",
        ),
        |results| {
            let change =
                over(results, alone(Way::SackNewReno, GEO), alone(Way::SackNewReno, 20), "kbps");
            Found::new(format!("{:+.1} %", change.mean)).above(change, -10.0)
        },
        [
            "slow start's seconds are few in a minute",
            "it hangs on the queue, which is not given: slow start overflows a queue of 50 packets before the line is full, and the halved window takes long to fill it again. With 200 packets it holds (table of queues)",
        ],
    ),
    that(
        "close to the link's rate over GEO",
        "section V.A",
        (
            "SACK with NewReno sustains throughputs close to the bottleneck's rate over GEO",
            "at 600 ms at least 80 % of 1,300 kbit/s",
        ),
        |results| {
            let found = kbps(results, alone(Way::SackNewReno, GEO));
            Found::new(format!("{:.0} kbit/s", found.mean)).above(found, 1_040.0)
        },
        [
            "4 % are headers, 6 % the web's, the rest slow start",
            "with queues of 200 packets, as above, and not with 50",
        ],
    ),
    that(
        "SACK alone is not enough",
        "section V.A",
        (
            "SACK alone does not enable high performance: SACK-Reno halves its window several times",
            "SACK-Reno at 600 ms is below SACK-NewReno, and has more recoveries",
        ),
        |results| {
            let change =
                over(results, alone(Way::SackReno, GEO), alone(Way::SackNewReno, GEO), "kbps");
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
        },
        [
            "each loss of a burst that is found after the last repair halves it again",
            "the number of recoveries or the throughput does not show it with this queue",
        ],
    ),
    that(
        "NewReno alone is not enough",
        "section V.A",
        (
            "NewReno without SACK spends long on the losses of slow start, one in a round trip",
            "NewReno at 600 ms is below SACK-NewReno",
        ),
        |results| {
            let change =
                over(results, alone(Way::NewReno, GEO), alone(Way::SackNewReno, GEO), "kbps");
            Found::new(format!("{:+.0} %", change.mean)).below(change, 0.0)
        },
        ["dozens of segments are lost at once, and each takes 0.6 s", ""],
    ),
    that(
        "Reno times out",
        "section V.A",
        (
            "Reno rarely avoids several halvings followed by a timeout after slow start",
            "at 600 ms more than half of the transfers have a timeout",
        ),
        |results| {
            let share = each(results, alone(Way::Reno, GEO), |values| {
                f64::from(u8::from(values.get("timeouts") > 0.0))
            });
            Found::new(format!("{:.0} % of them", share.mean * 100.0)).above(share, 0.5)
        },
        [
            "it leaves recovery with the first new acknowledgement, and the next losses find no three duplicates",
            "",
        ],
    ),
    that(
        "NewReno avoids timeouts",
        "section V.A",
        ("NewReno helps to avoid coarse timeouts", "at 600 ms NewReno has fewer than Reno"),
        |results| {
            let fewer = results.paired(
                FILES,
                &alone(Way::Reno, GEO).key(),
                &alone(Way::NewReno, GEO).key(),
                "timeouts",
                |a, b| a - b,
            );
            Found::new(format!("{:.1} fewer a transfer", fewer.mean)).above(fewer, 0.0)
        },
        ["partial acknowledgements go on with the recovery", ""],
    ),
    that(
        "a transfer takes a minute",
        "section V.A",
        ("each transfer lasts at least 60 s", "the shortest mean of all points is"),
        |results| {
            let all = ROUND_TRIPS.map(|at| of(results, alone(Way::SackNewReno, at), "seconds"));
            let least = all.into_iter().fold(all[0], |a, b| if b.mean < a.mean { b } else { a });
            Found::new(format!("{:.1} s", least.mean)).above(least, 60.0)
        },
        ["10 MB at 1.3 Mbit/s", ""],
    ),
    that(
        "the web alone does not congest",
        "section V.A",
        (
            "the background does not congest the path by itself",
            "without the file less than one packet in 400 s overflows",
        ),
        |results| {
            let silent = Trial { file: false, ..alone(Way::SackNewReno, GEO) };
            let lost = of(results, silent, "satellite_overflowed");
            Found::new(format!("{:.2} packets", lost.mean)).below(lost, 1.0)
        },
        ["80 kbit/s of 1,300", "large replies of the traces fill the queue now and then"],
    ),
    that(
        "one short connection is enough",
        FIGURE_4,
        (
            "one connection over 20 ms drastically reduces throughput",
            "at 600 ms to less than half of what it is alone",
        ),
        |results| {
            let change =
                over(results, crowded(Way::SackNewReno, GEO), alone(Way::SackNewReno, GEO), "kbps");
            Found::new(format!("{:+.0} %", change.mean)).below(change, -50.0)
        },
        [
            "the other fills the router's queue again and again, and the long way takes 0.6 s for each segment of its window",
            "",
        ],
    ),
    that(
        "the longer, the less",
        "sections III.B and V.A",
        (
            "the bias is against long round trips",
            "beside the other, throughput at 600 ms is below that at 200, and that below that at 40",
        ),
        |results| {
            let change = |long, short| {
                over(
                    results,
                    crowded(Way::SackNewReno, long),
                    crowded(Way::SackNewReno, short),
                    "kbps",
                )
            };
            let [long, short] = [change(GEO, 200), change(200, 40)];
            Found::new(listed(results, &FEW.map(|at| (at, crowded(Way::SackNewReno, at))), "kbps"))
                .below(long, 0.0)
                .below(short, 0.0)
        },
        ["windows grow by a segment in a round trip", ""],
    ),
    that(
        "mostly without timeouts",
        FIGURE_4,
        (
            "timeouts are avoided in almost all transfers",
            "at 600 ms fewer than one transfer in four has one",
        ),
        |results| {
            let share = each(results, crowded(Way::SackNewReno, GEO), |values| {
                f64::from(u8::from(values.get("timeouts") > 0.0))
            });
            Found::new(format!("{:.0} % have one", share.mean * 100.0)).below(share, 0.25)
        },
        [
            "SACK finds what the queue drops",
            "segments sent again are dropped as others are, and only a timeout finds those; transfers last minutes here",
        ],
    ),
    that(
        "and more variable",
        FIGURE_4,
        (
            "throughput is much more variable under these conditions",
            "at 600 ms the standard deviation is at least three times as large a share of the mean as alone",
        ),
        |results| {
            let share = |trial| {
                let seen = kbps(results, trial);
                seen.deviation / seen.mean
            };
            let [beside, alone] =
                [crowded(Way::SackNewReno, GEO), alone(Way::SackNewReno, GEO)].map(share);
            Found::new(format!("{:.1} % and {:.1} %", beside * 100.0, alone * 100.0))
                .above(Summary::of(&[beside / alone.max(1e-6)]), 3.0)
        },
        [
            "which of its segments meet a full queue is chance",
            "it is more variable, but transfers alone vary too: the web beside them decides where slow start ends",
        ],
    ),
    that(
        "fair queueing helps the satellite most",
        "section IX",
        (
            "fair scheduling in routers would benefit satellites most",
            "at 600 ms fair queueing gives at least 1.5 times as much as drop tail",
        ),
        |results| {
            let fair = Trial::new(Way::SackNewReno, GEO, Others::One(Router::Fair));
            let change = over(results, fair, crowded(Way::SackNewReno, GEO), "kbps");
            Found::new(format!("{:+.0} %", change.mean)).above(change, 50.0)
        },
        ["the other can fill only its own queue", ""],
    ),
];
