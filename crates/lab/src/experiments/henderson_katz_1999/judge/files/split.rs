//! Claims of sections VI and VII about split connections.

use super::super::super::bench::{
    BUFFER_KB, BUFFERS_KB, FEW, JITTER_MS, RIDE_MS, SPLIT_QUEUES, SPLIT_RIDES_MS, Trial, Way, split,
};
use super::{GEO, PRODUCT_KB, bare, crowded, each, kbps, of, over, reverse_share, values};
use crate::experiments::publication::{Found, Measure, number, page, that};
use crate::experiments::statistics::{pm, relative_gain};
use crate::experiments::{Results, Summary, Table};

page!(pub(super) PAGE = "henderson-katz-1999/split");

pub(super) const CLAIMS: &[(&str, Measure)] = &[
    that("split-it-has-its-share", |results| {
        let change =
            over(results, crowded(Way::SplitTcp, GEO), crowded(Way::SackNewReno, GEO), "kbps");
        Found::new(format!("{:+.0} %", change.mean)).above(change, 100.0)
    }),
    that("split-throughput-stays-high", |results| {
        let found = kbps(results, crowded(Way::SplitTcp, GEO));
        Found::new(format!("{:.0} kbit/s", found.mean)).above(found, 975.0)
    }),
    number("return-channel-of-split-tcp", |results| {
        of(results, crowded(Way::SplitTcp, GEO), "reverse_kbps")
    }),
    number("its-share-of-the-forward-throughput", |results| {
        reverse_share(results, crowded(Way::SplitTcp, GEO))
    }),
    that("it-scales-with-the-throughput", |results| {
        let slow = Trial { kbps: 650, ..bare(Way::SplitTcp) };
        let change = over(results, slow, bare(Way::SplitTcp), "reverse_kbps");
        Found::new(format!("{:+.1} %", change.mean)).between(change, -55.0, -45.0)
    }),
    that("split-stp-as-fast-as-split-tcp", |results| {
        let changes = FEW.map(|at| {
            over(results, crowded(Way::SplitStp, at), crowded(Way::SplitTcp, at), "kbps")
        });
        let words =
            FEW.iter().zip(&changes).map(|(at, change)| format!("{at} ms: {:+.1}", change.mean));
        let found = Found::new(format!("in %: {}", words.collect::<Vec<_>>().join(", ")));
        changes.into_iter().fold(found, |found, change| found.between(change, -10.0, 10.0))
    }),
    that("slightly-slower-over-long-round-trips", |results| {
        let change =
            over(results, crowded(Way::SplitStp, GEO), crowded(Way::SplitTcp, GEO), "kbps");
        Found::new(format!("{:+.1} %", change.mean)).between(change, -15.0, 0.0)
    }),
    that("lower-overhead-forward", |results| {
        let on_air = |way| {
            each(results, bare(way), |values| {
                100.0 * (values.get("forward_kbps") / values.get("kbps") - 1.0)
            })
        };
        let [stp, tcp] = [Way::SplitStp, Way::SplitTcp].map(on_air);
        let less = Summary { mean: tcp.mean - stp.mean, half: tcp.half + stp.half, ..stp };
        Found::new(format!("{:.2} % of STP, {:.2} % of TCP", stp.mean, tcp.mean)).above(less, 0.0)
    }),
    that("far-less-in-return", |results| {
        let change =
            over(results, crowded(Way::SplitStp, GEO), crowded(Way::SplitTcp, GEO), "reverse_kbps");
        Found::new(format!("{:+.0} %", change.mean)).below(change, -80.0)
    }),
    number("up-to-an-order-of-magnitude", |results| {
        let ratio = |at| {
            let [tcp, stp] = [Way::SplitTcp, Way::SplitStp]
                .map(|way| values(results, crowded(way, at), "reverse_kbps"));
            relative_gain(&tcp, &stp)
        };
        let all = FEW.map(ratio);
        let most = all.into_iter().fold(all[0], |a, b| if b.mean > a.mean { b } else { a });
        Summary { mean: most.mean + 1.0, ..most }
    }),
    that("less-with-longer-round-trips", |results| {
        let changes = FEW.windows(2).map(|pair| {
            over(
                results,
                crowded(Way::SplitStp, pair[1]),
                crowded(Way::SplitStp, pair[0]),
                "reverse_kbps",
            )
        });
        let each = FEW.map(|at| {
            format!("{at} ms: {:.1}", of(results, crowded(Way::SplitStp, at), "reverse_kbps").mean)
        });
        changes.fold(Found::new(format!("kbit/s: {}", each.join(", "))), |found, change| {
            found.below(change, 0.0)
        })
    }),
    that("whatever-the-throughput", |results| {
        let slow = Trial { kbps: 650, ..bare(Way::SplitStp) };
        let change = over(results, slow, bare(Way::SplitStp), "reverse_kbps");
        Found::new(format!("{:+.1} %", change.mean)).between(change, -10.0, 10.0)
    }),
    number("polls-alone-without-riding-over-with-it", |results| {
        let apart = Trial { ride_ms: 0, ..bare(Way::SplitStp) };
        let [apart, riding] =
            [apart, bare(Way::SplitStp)].map(|trial| values(results, trial, "polls_alone_per_s"));
        let ratio = relative_gain(&apart, &riding);
        Summary { mean: ratio.mean + 1.0, ..ratio }
    }),
    that("less-sensitive-to-varying-round-trips", |results| {
        let loss = |way| {
            let varied = Trial { jitter_ms: JITTER_MS, ..bare(way) };
            over(results, varied, bare(way), "kbps")
        };
        let [stp, tcp] = [Way::SplitStp, Way::SplitTcp].map(loss);
        let better = Summary { mean: stp.mean - tcp.mean, half: stp.half + tcp.half, ..stp };
        Found::new(format!("STP {:+.1} %, TCP {:+.1} %", stp.mean, tcp.mean)).above(better, 0.0)
    }),
    that("memory-of-a-gateway-products", |results| {
        let need = needed(results);
        Found::new(format!("{:.2} times", need.mean)).between(need, 1.8, 3.3)
    }),
    that("memory-of-a-gateway-bytes", |results| {
        let need = of(results, crowded(Way::SplitTcp, GEO), "gateway_kbytes");
        Found::new(format!("{:.0} kbytes", need.mean)).between(need, 200.0, 500.0)
    }),
];

/// Returns how much of the sweep of buffers a gateway needs, in products: the least that it held with
/// at least 95 % of the throughput of the largest.
fn needed(results: &Results) -> Summary {
    let trial = |buffer_kb| Trial { buffer_kb, ..crowded(Way::SplitTcp, GEO) };
    let enough = 0.95 * kbps(results, trial(BUFFER_KB)).mean;
    let sizes = BUFFERS_KB.into_iter().chain([BUFFER_KB]);
    let least = sizes.map(trial).find(|&trial| kbps(results, trial).mean >= enough);
    let least = least.unwrap_or(trial(BUFFER_KB));
    of(results, least, "gateway_kbytes").scaled(1.0 / PRODUCT_KB)
}

/// Returns the grid of queue, ride and round trip: STP beside TCP, both split, next to one other.
pub(super) fn grid(results: &Results) -> Table {
    let mut rows = Vec::new();
    for queue in SPLIT_QUEUES {
        for ride_ms in SPLIT_RIDES_MS {
            for round_trip in [40, GEO] {
                let [stp, tcp] = [(Way::SplitStp, ride_ms), (Way::SplitTcp, RIDE_MS)]
                    .map(|(way, ride_ms)| split(way, round_trip, queue, ride_ms));
                let apart = split(Way::SplitStp, round_trip, queue, 0);
                let mean = |trial, name| of(results, trial, name).mean;
                let [back, less] = [tcp, stp].map(|trial| mean(trial, "reverse_kbps"));
                let polls = mean(apart, "polls_alone_per_s") / mean(stp, "polls_alone_per_s");
                rows.push(vec![
                    queue.to_string(),
                    ride_ms.to_string(),
                    round_trip.to_string(),
                    pm(over(results, stp, tcp, "kbps"), 1),
                    format!("{back:.1}"),
                    format!("{:.1}", back / less),
                    format!("{polls:.1}"),
                ]);
            }
        }
    }
    PAGE.table("split-grid", rows)
}
