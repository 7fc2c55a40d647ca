//! What sections VI and VII state of split connections.

use super::super::super::bench::{FEW, JITTER_MS, Trial, Way};
use super::{GEO, PRODUCT_KB, bare, crowded, each, kbps, of, over, reverse_share, values};
use crate::experiments::publication::{Found, Sentence, number, that};
use crate::experiments::statistics::relative_gain;
use crate::experiments::{Criterion, Summary};

const FIGURE_7: &str = "section VI.B, figure 7";
const FIGURE_9: &str = "section VII.C, figure 9";

pub(super) const SPLIT: &[Sentence] = &[
    that(
        "split, it has its share",
        FIGURE_7,
        (
            "the split connection competes in the wide area and obtains its fair share",
            "at 600 ms split TCP has more than twice what end-to-end TCP has",
        ),
        |results| {
            let change =
                over(results, crowded(Way::SplitTcp, GEO), crowded(Way::SackNewReno, GEO), "kbps");
            Found::new(format!("{:+.0} %", change.mean)).above(change, 100.0)
        },
        ["the part that competes has 10 ms", ""],
    ),
    that(
        "split, throughput stays high",
        "section IX.iv",
        (
            "even with congestion in the wide area the connection maintains high throughput",
            "at 600 ms split TCP has at least 75 % of 1,300 kbit/s",
        ),
        |results| {
            let found = kbps(results, crowded(Way::SplitTcp, GEO));
            Found::new(format!("{:.0} kbit/s", found.mean)).above(found, 975.0)
        },
        [
            "the satellite's part has no competition",
            "the first part has less than the satellite could carry for some of the time, or slow start over it costs the rest",
        ],
    ),
    number(
        "return channel of split TCP",
        "section VI.B, figure 7b",
        (20.0, "kbit/s", Criterion::Within(0.25)),
        |results| of(results, crowded(Way::SplitTcp, GEO), "reverse_kbps"),
        ["one acknowledgement of 40 bytes for two segments", "it follows the forward throughput"],
    ),
    number(
        "its share of the forward throughput",
        "section VI.B",
        (2.0, "%", Criterion::Within(0.1)),
        |results| reverse_share(results, crowded(Way::SplitTcp, GEO)),
        [
            "40 bytes for 2,000",
            "40 bytes for 2,000 are 2 %; where slow start loses, each segment is acknowledged at once and with SACK blocks, which is the rest. With a queue of 200 packets, where less is lost, it agrees (table of queues)",
        ],
    ),
    that(
        "it scales with the throughput",
        "section VI.B",
        (
            "use of the return channel scales linearly with forward throughput",
            "with half of the satellite's rate it is half, within 10 %",
        ),
        |results| {
            let slow = Trial { kbps: 650, ..bare(Way::SplitTcp) };
            let change = over(results, slow, bare(Way::SplitTcp), "reverse_kbps");
            Found::new(format!("{:+.1} %", change.mean)).between(change, -55.0, -45.0)
        },
        ["acknowledgements follow segments", ""],
    ),
    that(
        "split STP as fast as split TCP",
        FIGURE_9,
        (
            "STP achieves approximately the same forward throughput",
            "within 10 % of split TCP at 40 to 600 ms",
        ),
        |results| {
            let changes = FEW.map(|at| {
                over(results, crowded(Way::SplitStp, at), crowded(Way::SplitTcp, at), "kbps")
            });
            let words = FEW
                .iter()
                .zip(&changes)
                .map(|(at, change)| format!("{at} ms: {:+.1}", change.mean));
            let found = Found::new(format!("in %: {}", words.collect::<Vec<_>>().join(", ")));
            changes.into_iter().fold(found, |found, change| found.between(change, -10.0, 10.0))
        },
        [
            "the same rules for the window",
            "at the longest round trips more than that is lost: what a STAT lets out is spread over a round trip",
        ],
    ),
    that(
        "slightly slower over long round trips",
        FIGURE_9,
        (
            "for long round trips STP's throughput is slightly smaller",
            "at 600 ms it is below split TCP's, by less than 15 %",
        ),
        |results| {
            let change =
                over(results, crowded(Way::SplitStp, GEO), crowded(Way::SplitTcp, GEO), "kbps");
            Found::new(format!("{:+.1} %", change.mean)).between(change, -15.0, 0.0)
        },
        [
            "what a STAT lets out is spread over the round trip",
            "STP counts bytes and polls its window open in slow start, which is ahead of TCP's delayed acknowledgements",
        ],
    ),
    that(
        "lower overhead forward",
        "section VII.C",
        (
            "STP's overhead in the forward direction is slightly lower than TCP's",
            "bytes on air for each byte of data are fewer, without a competitor",
        ),
        |results| {
            let on_air = |way| {
                each(results, bare(way), |values| {
                    100.0 * (values.get("forward_kbps") / values.get("kbps") - 1.0)
                })
            };
            let [stp, tcp] = [Way::SplitStp, Way::SplitTcp].map(on_air);
            let less = Summary { mean: tcp.mean - stp.mean, half: tcp.half + stp.half, ..stp };
            Found::new(format!("{:.2} % of STP, {:.2} % of TCP", stp.mean, tcp.mean))
                .above(less, 0.0)
        },
        [
            "smaller headers weigh more than POLLs",
            "segments that were sent again weigh more than headers of 36 instead of 40 bytes",
        ],
    ),
    that(
        "far less in return",
        FIGURE_9,
        ("in return STP uses much less than TCP", "at 600 ms less than a fifth"),
        |results| {
            let change = over(
                results,
                crowded(Way::SplitStp, GEO),
                crowded(Way::SplitTcp, GEO),
                "reverse_kbps",
            );
            Found::new(format!("{:+.0} %", change.mean)).below(change, -80.0)
        },
        ["three STATs a round trip", ""],
    ),
    that(
        "up to an order of magnitude",
        "abstract and section IX.v",
        (
            "the reduction of the return channel is up to an order of magnitude",
            "the largest ratio over 40 to 600 ms is at least 8",
        ),
        |results| {
            let ratio = |at| {
                let [tcp, stp] = [Way::SplitTcp, Way::SplitStp]
                    .map(|way| values(results, crowded(way, at), "reverse_kbps"));
                relative_gain(&tcp, &stp)
            };
            let all = FEW.map(ratio);
            let most = all.into_iter().fold(all[0], |a, b| if b.mean > a.mean { b } else { a });
            Found::new(format!("{:.1} times", most.mean + 1.0)).above(most, 7.0)
        },
        ["STATs follow the round trip and acknowledgements the throughput", ""],
    ),
    that(
        "less with longer round trips",
        FIGURE_9,
        (
            "STP's use of the return channel decreases with the round trip",
            "it falls at each step from 40 to 600 ms",
        ),
        |results| {
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
        },
        ["three POLLs a round trip", ""],
    ),
    that(
        "whatever the throughput",
        "section VII.C",
        (
            "the return bandwidth is independent of the forward throughput",
            "with half of the satellite's rate it changes by less than 25 %",
        ),
        |results| {
            let slow = Trial { kbps: 650, ..bare(Way::SplitStp) };
            let change = over(results, slow, bare(Way::SplitStp), "reverse_kbps");
            Found::new(format!("{:+.1} %", change.mean)).between(change, -25.0, 25.0)
        },
        [
            "POLLs go by the clock",
            "the narrower line has a longer queue, and round trips with it: POLLs go three in a round trip",
        ],
    ),
    number(
        "POLLs alone, without riding over with it",
        "section VII.B",
        (10.0, "times", Criterion::Within(0.5)),
        |results| {
            let apart = Trial { ride_ms: 0, ..bare(Way::SplitStp) };
            let [apart, riding] = [apart, bare(Way::SplitStp)]
                .map(|trial| values(results, trial, "polls_alone_per_s"));
            let ratio = relative_gain(&apart, &riding);
            Summary { mean: ratio.mean + 1.0, ..ratio }
        },
        [
            "a POLL waits up to 10 ms for a segment, and segments follow each other in 6 ms",
            "fewer are left: at 1.3 Mbit/s a segment is due every 6 ms, and a POLL waits up to 10. With rides of 3 ms it would be about the published number (table)",
        ],
    ),
    that(
        "less sensitive to varying round trips",
        "section VII.C",
        (
            "STP is less sensitive to variations of the round trip",
            "with a delay that varies by ±100 ms in order, split STP loses a smaller share of its throughput than split TCP",
        ),
        |results| {
            let loss = |way| {
                let varied = Trial { jitter_ms: JITTER_MS, ..bare(way) };
                over(results, varied, bare(way), "kbps")
            };
            let [stp, tcp] = [Way::SplitStp, Way::SplitTcp].map(loss);
            let better = Summary { mean: stp.mean - tcp.mean, half: stp.half + tcp.half, ..stp };
            Found::new(format!("STP {:+.1} %, TCP {:+.1} %", stp.mean, tcp.mean)).above(better, 0.0)
        },
        [
            "segments go by a clock of the sender, not by acknowledgements",
            "neither loses much: in order, a varying delay only bunches acknowledgements",
        ],
    ),
    that(
        "memory of a gateway: products",
        "section VI.A",
        (
            "each connection needs about 2 to 3 bandwidth-delay products at the gateway",
            "the most that split TCP held at 600 ms is 1.5 to 3.5 times 97.5 kbytes",
        ),
        |results| {
            let need =
                of(results, crowded(Way::SplitTcp, GEO), "gateway_kbytes").scaled(1.0 / PRODUCT_KB);
            Found::new(format!("{:.2} times", need.mean)).between(need, 1.5, 3.5)
        },
        [
            "what is on its way, and what came meanwhile",
            "the buffers of both sides, 240 kbytes each, fill up, as the first part is faster than the satellite; half of that carries as much (table of buffers)",
        ],
    ),
    that(
        "memory of a gateway: bytes",
        "section VI.A",
        (
            "roughly 200 to 500 kbytes for an active connection",
            "the most that split TCP held at 600 ms lies there",
        ),
        |results| {
            let need = of(results, crowded(Way::SplitTcp, GEO), "gateway_kbytes");
            Found::new(format!("{:.0} kbytes", need.mean)).between(need, 200.0, 500.0)
        },
        ["a buffer of 240 kbytes on each side", ""],
    ),
];
