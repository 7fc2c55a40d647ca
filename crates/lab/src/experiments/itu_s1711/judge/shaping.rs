//! Annex 3, section 3.3.2: figures 35 to 37.

use super::super::SHAPING;
use super::super::shaping::{BEST, BUCKETS, QUEUES, SOCKET, SOCKETS, Trial};
use crate::experiments::publication::{Found, Sentence, judge, number, that};
use crate::experiments::{Axis, Criterion, Figure, Results, Section, Series, Summary, Table};

fn of(results: &Results, trial: Trial, name: &str) -> Summary {
    results.summary(SHAPING, &trial.key(), name)
}

fn mbps(results: &Results, trial: Trial) -> Summary {
    of(results, trial, "mbps")
}

fn unshaped() -> Trial {
    Trial { bucket: None, ..Trial::bucket(BEST) }
}

/// The section.
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
    let figure = |id: &str, title: &str, x: Axis, series| Figure {
        id: id.into(),
        title: title.into(),
        x,
        y: Axis::linear("throughput (Mbit/s)"),
        series,
        note: String::new(),
    };
    Section {
        title: "Shaping by the sender (figures 35 to 37)".into(),
        text: vec![
            "The sender lets its packets go by a token bucket (figure 35) of 100 Mbit/s, so that \
             no burst reaches the router's queue of 100 packets. Its kernel's clock moves 100 \
             times in a second, and so do the tokens: a bucket of 125 kbytes is what 100 Mbit/s \
             bring in a step, and with a smaller one the rate is not reached."
                .into(),
        ],
        figures: vec![
            figure(
                "figure-36",
                "Shaped, by the size of sockets (figure 36)",
                Axis::linear("socket (Mbytes)"),
                vec![by_socket(true, "540 ms"), by_socket(false, "1 ms")],
            ),
            figure(
                "figure-37",
                "Shaped, by the size of the bucket (figure 37)",
                Axis::log("bucket (kbytes)"),
                by_bucket.into(),
            ),
        ],
        tables: vec![table(results)],
        cells: judge(SENTENCES, results),
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
    Table {
        id: "buckets".into(),
        title: format!("Socket of {SOCKET} kbytes over 540 ms, by the bucket"),
        head: ["bucket, kbytes", "Mbit/s", "lost in the router"].map(str::to_owned).into(),
        rows,
    }
}

const FIGURE_36: &str = "annex 3, sections 3.3.2 and 3.4, figure 36";
const FIGURE_37: &str = "annex 3, section 3.3.2, figure 37";

const SENTENCES: &[Sentence] = &[
    number(
        "shaped, over 540 ms",
        FIGURE_36,
        (95.0, "Mbit/s", Criterion::Within(0.1)),
        |results| mbps(results, Trial::socket(SOCKET, true)),
        ["the bucket's rate, and no loss", ""],
    ),
    number(
        "share of what there is without the satellite",
        FIGURE_36,
        (95.0, "%", Criterion::Within(0.1)),
        |results| {
            let [far, near] =
                [true, false].map(|satellite| mbps(results, Trial::socket(SOCKET, satellite)).mean);
            Summary::of(&[100.0 * far / near])
        },
        ["the window holds what is under way at the bucket's rate", ""],
    ),
    that(
        "shaping makes up for the router's queue",
        FIGURE_36,
        (
            "a sender that shapes has 95 Mbit/s where one that does not has 2 to 3",
            "with the bucket at least ten times as much as without",
        ),
        |results| {
            let [with, without] =
                [Trial::bucket(BEST), unshaped()].map(|trial| mbps(results, trial).mean);
            Found::new(format!("{with:.0} in place of {without:.1} Mbit/s"))
                .above(Summary::of(&[with / without]), 10.0)
        },
        ["the router's queue never has more than a bucket to take", ""],
    ),
    that(
        "a bucket of 120 to 130 kbytes is the best",
        FIGURE_37,
        (
            "a bucket of 120 to 130 kbytes has the best throughput",
            "125 kbytes have at least 98 % of the best, 96 and less not 90 %",
        ),
        |results| {
            let all = BUCKETS.map(|bucket| mbps(results, Trial::bucket(bucket)).mean);
            let best = all.iter().copied().fold(0.0, f64::max);
            let share = |bucket| 100.0 * mbps(results, Trial::bucket(bucket)).mean / best;
            let found = [96, BEST].map(share);
            Found::new(format!("96 and 125 kbytes: {:.0} and {:.0} %", found[0], found[1]))
                .below(Summary::of(&[found[0]]), 90.0)
                .above(Summary::of(&[found[1]]), 98.0)
        },
        ["what the bucket's rate brings in a step of the clock", ""],
    ),
    that(
        "above that there are losses",
        FIGURE_37,
        (
            "above 130 kbytes packets are lost in the router (Mbytes, it says, which no bucket has)",
            "nothing is lost with 125 kbytes; 160 lose packets",
        ),
        |results| {
            let lost = |bucket| of(results, Trial::bucket(bucket), "overflowed");
            let found = [BEST, 160, 200, 256].map(lost);
            let words = found.map(|lost| format!("{:.0}", lost.mean)).join(", ");
            Found::new(format!("125, 160, 200 and 256 kbytes: {words} packets"))
                .below(found[0], 0.5)
                .above(found[1], 0.0)
        },
        [
            "a bucket comes at 500 Mbit/s and leaves at 135",
            "a bucket of 160 kbytes is 110 packets, of which 80 find room in a queue of 100: \
             losses begin at 200. With a queue of 50 they begin sooner (figure); the router's is \
             not told",
        ],
    ),
];
