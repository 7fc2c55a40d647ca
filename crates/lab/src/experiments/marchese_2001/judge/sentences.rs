//! What the text and the figures state.

use super::super::bench::{LARGE, MEDIUM, SECONDS, SMALL, test};
use super::super::{TESTS, bench::Test, taken};
use super::tables::seconds;
use crate::experiments::publication::{Found, Sentence, nothing, number, that};
use crate::experiments::{Criterion, Results, Summary};

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

/// Kbyte/s on average after so many seconds.
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

const FIGURE_6: &str = "section IV, figure 6";
const RESULTS: &str = "section IV";
const AT_5: Criterion = Criterion::Within(0.1);
const EARLY: [&str; 2] = [
    "what slow start has sent in 5 s, divided by 5 s",
    "read as bytes acknowledged so far over time so far. Ours is less than half a round trip of \
     growth behind: how fast a window grows that is not yet as large as the buffer hangs on how \
     long the odd last segment of a burst waits for its acknowledgement, which in Linux 2.2 falls \
     from 260 ms to 30 within a burst (50 ms are taken; others among the alternatives)",
];

pub(in super::super) const SENTENCES: &[Sentence] = &[
    number(
        "after 5 s, window 1, 64 kbytes",
        FIGURE_6,
        (26.0, "kbyte/s", AT_5),
        |results| after_5(results, 1, 64),
        EARLY,
    ),
    number(
        "after 5 s, window 6, 64 kbytes",
        FIGURE_6,
        (48.0, "kbyte/s", AT_5),
        |results| after_5(results, 6, 64),
        EARLY,
    ),
    number(
        "after 5 s, window 1, 320 kbytes",
        FIGURE_6,
        (35.0, "kbyte/s", AT_5),
        |results| after_5(results, 1, 320),
        EARLY,
    ),
    number(
        "after 5 s, window 6, 320 kbytes",
        FIGURE_6,
        (118.0, "kbyte/s", AT_5),
        |results| after_5(results, 6, 320),
        EARLY,
    ),
    that(
        "larger initial windows start faster",
        "section IV, figure 3",
        (
            "the larger the initial window, the higher the throughput at the start",
            "after 3 s, with 64 kbytes: 6 above 4, 4 above 2, 2 above 1",
        ),
        |results| {
            let at = |window| average(results, test(MEDIUM, window, 64), 3);
            let all = [1, 2, 4, 6].map(at);
            let ours =
                format!("kbyte/s: {:.0}, {:.0}, {:.0} and {:.0}", all[0], all[1], all[2], all[3]);
            all.windows(2).fold(Found::new(ours), |found, pair| found.above(one(pair[1]), pair[0]))
        },
        ["fewer round trips of slow start", ""],
    ),
    that(
        "the initial window matters more to short files",
        "section IV, figure 3 and table III",
        (
            "its advantage is more evident for shorter transfers",
            "the gain of 6 segments is larger for 100 kbytes than for 2.8 Mbytes",
        ),
        |results| {
            let [short, long] = [SMALL, MEDIUM].map(|bytes| gain(results, bytes, (1, 64), (6, 64)));
            Found::new(format!("{short:.1} % of 100 kbytes, {long:.1} % of 2.8 Mbytes"))
                .above(one(short), long)
        },
        ["the same seconds of a shorter time", ""],
    ),
    that(
        "no congestion with 64 kbytes",
        RESULTS,
        (
            "with 64 kbytes there is no congestion, and larger windows are more aggressive without harm",
            "the router's queue never overflows",
        ),
        |results| {
            let lost = overflowed(results, 64);
            Found::new(format!("{lost:.0} packets")).below(one(lost), 0.5)
        },
        [
            "windows of 32 KB are a quarter of what the line holds",
            "the queue is shorter than a window",
        ],
    ),
    that(
        "larger buffers are faster",
        "section IV, figure 4",
        (
            "more buffer puts more packets in flight and improves performance",
            "times fall from 64 to 128 and to 320 kbytes, window 1",
        ),
        |results| {
            let all = [64, 128, 320].map(|buffer| time(results, MEDIUM, 1, buffer));
            Found::new(format!("{:.1}, {:.1} and {:.1} s", all[0], all[1], all[2]))
                .below(one(all[1]), all[0])
                .below(one(all[2]), all[1])
        },
        ["the window over the round trip is the rate", ""],
    ),
    number(
        "below 16 s in the best case",
        RESULTS,
        (15.87, "s", Criterion::Within(0.1)),
        |results| one(time(results, MEDIUM, 1, 320)),
        ["the line is full after slow start", ""],
    ),
    number(
        "improvement in the best case",
        RESULTS,
        (68.0, "%", Criterion::Within(0.1)),
        |results| one(gain(results, MEDIUM, (1, 64), (1, 320))),
        ["as in table IV", ""],
    ),
    that(
        "too large a buffer congests",
        "section IV, figure 4",
        (
            "an excessively long buffer, 640 kbytes, makes the system congested",
            "the queue overflows with 640 kbytes, and it takes longer than with 320",
        ),
        |results| {
            let lost = overflowed(results, 640);
            let [large, right] = [640, 320].map(|buffer| time(results, MEDIUM, 1, buffer));
            Found::new(format!(
                "{lost:.0} packets lost (window 6); {large:.1} s with 640, {right:.1} s with 320"
            ))
            .above(one(lost), 0.5)
            .above(one(large), right)
        },
        [
            "a window of 320 KB does not fit into the line and a queue of 64 packets",
            "the queue overflows, but SACK repairs that in less time than larger windows gain",
        ],
    ),
    that(
        "the router saturates above 384 kbytes",
        "section IV, figure 5",
        (
            "buffers over 384 kbytes saturate the intermediate router, those up to 384 do not",
            "its queue overflows with 448, 512 and 640 kbytes, and not with 384 and 320",
        ),
        |results| {
            let lost = [320, 384, 448, 512, 640].map(|buffer| overflowed(results, buffer));
            let words = lost.map(|lost| format!("{lost:.0}")).join(", ");
            Found::new(format!("packets lost with 320, 384, 448, 512 and 640 kbytes: {words}"))
                .below(one(lost[0]), 0.5)
                .below(one(lost[1]), 0.5)
                .above(one(lost[2]), 0.5)
                .above(one(lost[3]), 0.5)
                .above(one(lost[4]), 0.5)
        },
        [
            "windows of half a buffer: 192 KB fit into line and queue, 224 do not",
            "where it begins to overflow hangs on the queue, which is not given (table of queues)",
        ],
    ),
    that(
        "buffers hardly matter to short files",
        "section IV, tables VI and VII",
        (
            "the gain of larger buffers is light for short files, where the initial window rules, \
             and meaningful for large ones",
            "with 320 instead of 64 kbytes, 100 kbytes gain less than a quarter of what 2.8 and \
             11 Mbytes each gain",
        ),
        |results| {
            let [short, medium, long] =
                [SMALL, MEDIUM, LARGE].map(|bytes| gain(results, bytes, (6, 64), (6, 320)));
            Found::new(format!("{short:.1}, {medium:.1} and {long:.1} %"))
                .below(one(short), medium / 4.0)
                .below(one(short), long / 4.0)
        },
        [
            "slow start is nearly all of a short file",
            "in ours the window of 32 KB already costs 100 kbytes a round trip",
        ],
    ),
    that(
        "the gain is mainly the buffer's",
        "section IV, table VIII",
        (
            "the gain in the overall time is mainly due to the buffer",
            "of the gain of both, the buffer alone has more than three quarters",
        ),
        |results| {
            let [buffer, both] = [(1, 320), (6, 320)].map(|to| gain(results, MEDIUM, (1, 64), to));
            Found::new(format!("{buffer:.1} of {both:.1} %")).above(one(buffer / both), 0.75)
        },
        ["it sets the rate for the whole file", ""],
    ),
    number(
        "gain of both",
        "sections IV and V",
        (71.63, "%", Criterion::Within(0.1)),
        |results| one(gain(results, MEDIUM, (1, 64), (6, 320))),
        ["as in table VIII", ""],
    ),
    that(
        "the initial window rules the first phase",
        "section IV, figure 6",
        (
            "with equal buffers the increase in speed with the initial window is outstanding",
            "after 5 s, 6 segments have at least 1.5 times as much as 1, with 64 and with 320 \
             kbytes",
        ),
        |results| {
            let ratio =
                |buffer| after_5(results, 6, buffer).mean / after_5(results, 1, buffer).mean;
            let [small, large] = [64, 320].map(ratio);
            Found::new(format!("{small:.2} times with 64 kbytes, {large:.2} with 320"))
                .above(one(small), 1.5)
                .above(one(large), 1.5)
        },
        [
            "two and a half round trips of slow start are saved",
            "windows that double leave it less: see the alternatives",
        ],
    ),
    nothing(
        "the emulator stands for the satellite",
        "section III.2",
        "the emulator gives accurate results and can replace the real bench",
        "no test was published on both; the one file that was sent over the emulator alone does \
         not fit the rate that the others were sent at",
    ),
];
