//! What sections VI and VII state of split connections.

use super::super::super::bench::{FEW, JITTER_MS, Trial, Way};
use super::{GEO, PRODUCT_KB, bare, crowded, each, kbps, of, over, reverse_share, values};
use crate::experiments::Summary;
use crate::experiments::publication::{Found, Measure, page};
use crate::experiments::statistics::relative_gain;

page!(pub(super) PAGE = "henderson-katz-1999/split");

pub(super) const CLAIMS: &[(&str, Measure)] = &[
    (
        "split-it-has-its-share",
        Measure::That(|results| {
            let change =
                over(results, crowded(Way::SplitTcp, GEO), crowded(Way::SackNewReno, GEO), "kbps");
            Found::new(format!("{:+.0} %", change.mean)).above(change, 100.0)
        }),
    ),
    (
        "split-throughput-stays-high",
        Measure::That(|results| {
            let found = kbps(results, crowded(Way::SplitTcp, GEO));
            Found::new(format!("{:.0} kbit/s", found.mean)).above(found, 975.0)
        }),
    ),
    (
        "return-channel-of-split-tcp",
        Measure::Number(|results| of(results, crowded(Way::SplitTcp, GEO), "reverse_kbps")),
    ),
    (
        "its-share-of-the-forward-throughput",
        Measure::Number(|results| reverse_share(results, crowded(Way::SplitTcp, GEO))),
    ),
    (
        "it-scales-with-the-throughput",
        Measure::That(|results| {
            let slow = Trial { kbps: 650, ..bare(Way::SplitTcp) };
            let change = over(results, slow, bare(Way::SplitTcp), "reverse_kbps");
            Found::new(format!("{:+.1} %", change.mean)).between(change, -55.0, -45.0)
        }),
    ),
    (
        "split-stp-as-fast-as-split-tcp",
        Measure::That(|results| {
            let changes = FEW.map(|at| {
                over(results, crowded(Way::SplitStp, at), crowded(Way::SplitTcp, at), "kbps")
            });
            let words = FEW
                .iter()
                .zip(&changes)
                .map(|(at, change)| format!("{at} ms: {:+.1}", change.mean));
            let found = Found::new(format!("in %: {}", words.collect::<Vec<_>>().join(", ")));
            changes.into_iter().fold(found, |found, change| found.between(change, -10.0, 10.0))
        }),
    ),
    (
        "slightly-slower-over-long-round-trips",
        Measure::That(|results| {
            let change =
                over(results, crowded(Way::SplitStp, GEO), crowded(Way::SplitTcp, GEO), "kbps");
            Found::new(format!("{:+.1} %", change.mean)).between(change, -15.0, 0.0)
        }),
    ),
    (
        "lower-overhead-forward",
        Measure::That(|results| {
            let on_air = |way| {
                each(results, bare(way), |values| {
                    100.0 * (values.get("forward_kbps") / values.get("kbps") - 1.0)
                })
            };
            let [stp, tcp] = [Way::SplitStp, Way::SplitTcp].map(on_air);
            let less = Summary { mean: tcp.mean - stp.mean, half: tcp.half + stp.half, ..stp };
            Found::new(format!("{:.2} % of STP, {:.2} % of TCP", stp.mean, tcp.mean))
                .above(less, 0.0)
        }),
    ),
    (
        "far-less-in-return",
        Measure::That(|results| {
            let change = over(
                results,
                crowded(Way::SplitStp, GEO),
                crowded(Way::SplitTcp, GEO),
                "reverse_kbps",
            );
            Found::new(format!("{:+.0} %", change.mean)).below(change, -80.0)
        }),
    ),
    (
        "up-to-an-order-of-magnitude",
        Measure::That(|results| {
            let ratio = |at| {
                let [tcp, stp] = [Way::SplitTcp, Way::SplitStp]
                    .map(|way| values(results, crowded(way, at), "reverse_kbps"));
                relative_gain(&tcp, &stp)
            };
            let all = FEW.map(ratio);
            let most = all.into_iter().fold(all[0], |a, b| if b.mean > a.mean { b } else { a });
            Found::new(format!("{:.1} times", most.mean + 1.0)).above(most, 7.0)
        }),
    ),
    (
        "less-with-longer-round-trips",
        Measure::That(|results| {
            let changes = FEW.windows(2).map(|pair| {
                over(
                    results,
                    crowded(Way::SplitStp, pair[1]),
                    crowded(Way::SplitStp, pair[0]),
                    "reverse_kbps",
                )
            });
            let each = FEW.map(|at| {
                format!(
                    "{at} ms: {:.1}",
                    of(results, crowded(Way::SplitStp, at), "reverse_kbps").mean
                )
            });
            changes.fold(Found::new(format!("kbit/s: {}", each.join(", "))), |found, change| {
                found.below(change, 0.0)
            })
        }),
    ),
    (
        "whatever-the-throughput",
        Measure::That(|results| {
            let slow = Trial { kbps: 650, ..bare(Way::SplitStp) };
            let change = over(results, slow, bare(Way::SplitStp), "reverse_kbps");
            Found::new(format!("{:+.1} %", change.mean)).between(change, -25.0, 25.0)
        }),
    ),
    (
        "polls-alone-without-riding-over-with-it",
        Measure::Number(|results| {
            let apart = Trial { ride_ms: 0, ..bare(Way::SplitStp) };
            let [apart, riding] = [apart, bare(Way::SplitStp)]
                .map(|trial| values(results, trial, "polls_alone_per_s"));
            let ratio = relative_gain(&apart, &riding);
            Summary { mean: ratio.mean + 1.0, ..ratio }
        }),
    ),
    (
        "less-sensitive-to-varying-round-trips",
        Measure::That(|results| {
            let loss = |way| {
                let varied = Trial { jitter_ms: JITTER_MS, ..bare(way) };
                over(results, varied, bare(way), "kbps")
            };
            let [stp, tcp] = [Way::SplitStp, Way::SplitTcp].map(loss);
            let better = Summary { mean: stp.mean - tcp.mean, half: stp.half + tcp.half, ..stp };
            Found::new(format!("STP {:+.1} %, TCP {:+.1} %", stp.mean, tcp.mean)).above(better, 0.0)
        }),
    ),
    (
        "memory-of-a-gateway-products",
        Measure::That(|results| {
            let need =
                of(results, crowded(Way::SplitTcp, GEO), "gateway_kbytes").scaled(1.0 / PRODUCT_KB);
            Found::new(format!("{:.2} times", need.mean)).between(need, 1.5, 3.5)
        }),
    ),
    (
        "memory-of-a-gateway-bytes",
        Measure::That(|results| {
            let need = of(results, crowded(Way::SplitTcp, GEO), "gateway_kbytes");
            Found::new(format!("{:.0} kbytes", need.mean)).between(need, 200.0, 500.0)
        }),
    ),
];
