//! Section 6.3.

use super::super::conditions::{CONNECTED_5, CONNECTED_10, Condition};
use super::super::return_of_link::{self, BLACKOUTS};
use super::super::trial::Party::{self, Off, On};
use super::super::variants::{NO_BACKOFF, NO_OUTAGE_PAUSE, NO_RECOVERY};
use super::published::connectivity as paper;
use super::reasons::connectivity as why;
use super::seen::{
    AGAIN, OVERHEAD, RATIO, Seen, THROUGHPUT, WINDOW, claim, claim_by, count, extremes, falls,
    listed, number, over, signed,
};
use super::{figures, reasons};
use crate::experiments::{Cell, Section, Summary};

const FIVE: Condition = CONNECTED_5;
const TEN: Condition = CONNECTED_10;

/// Figures, table and cells of limited connectivity.
pub(super) fn section(seen: &Seen<'_>) -> Section {
    let mut figures = figures::of(seen, FIVE, ["15", "16", "17"]);
    figures.extend(figures::of(seen, TEN, ["", "", ""]));
    let mut cells = finding(seen);
    cells.extend(throughput(seen));
    cells.extend(overhead(seen));
    cells.extend(long(seen));
    cells.extend(ratio(seen));
    cells.extend(causes(seen));
    Section {
        title: "Limited connectivity (section 6.3)".into(),
        text: reasons::CONNECTIVITY.map(str::to_owned).into(),
        figures,
        tables: vec![figures::table(seen, FIVE), figures::table(seen, TEN)],
        cells,
    }
}

/// Where other readings are tried, of the points that a quick run has too.
fn tried(seen: &Seen<'_>) -> &'static [u32] {
    if seen.setting.quick { &[10] } else { &[1, 10, 30] }
}

fn finding(seen: &Seen<'_>) -> Vec<Cell> {
    let points = seen.points(FIVE);
    let share = |party| move |p| seen.lost_share((FIVE, p), party).mean;
    let on: Vec<f64> = points.iter().map(|&p| share(On)(p)).collect();
    let backoff = |p: u32| seen.change(&NO_BACKOFF, (FIVE, p), Off, THROUGHPUT);
    let found = |party| {
        let of = |blackout| {
            let key = return_of_link::key(blackout, party);
            seen.results.values(return_of_link::STUDY, &key, "seconds")
        };
        Summary::of(&BLACKOUTS.iter().flat_map(|&blackout| of(blackout)).collect::<Vec<_>>())
    };
    // What is seen is when the first segment reaches the sink, 100 ms after it was sent.
    let (soon, late) = (found(On), found(Off));
    let first = points[0];
    let polls = [Off, On].map(|party| Summary::of(&seen.forward_control((FIVE, first), party)));
    vec![
        claim(
            &paper::OFF_DRAINS,
            over(points, share(Off)) >= 100.0 / 3.0,
            format!("{:.0} % of the mean window", over(points, share(Off))),
            why::OFF_DRAINS,
        ),
        number(&paper::ON_LOSES_A_PART, Summary::of(&on), why::ON_LOSES_A_PART),
        claim(
            &paper::BACKOFF_COSTS,
            tried(seen).iter().all(|&p| backoff(p).clearly_above(0.0)),
            format!("without back-off in %: {}", signed(tried(seen), |p| backoff(p).mean)),
            why::BACKOFF_COSTS,
        ),
        claim_by(
            &paper::FOUND_IN_A_ROUND_TRIP,
            soon.mean <= 0.2,
            format!("{:.0} ms", soon.mean * 1e3),
            soon,
            why::FOUND_IN_A_ROUND_TRIP,
        ),
        claim_by(
            &paper::OFF_FINDS_LATE,
            late.mean > 1.0,
            format!("{:.1} s", late.mean),
            late,
            why::OFF_FINDS_LATE,
        ),
        claim(
            &paper::MORE_POLLS,
            polls[1].mean > polls[0].mean,
            format!(
                "at {first} %: OFF {:.2} %, ON {:.2} % of the file",
                polls[0].mean, polls[1].mean
            ),
            why::MORE_POLLS,
        ),
    ]
}

fn throughput(seen: &Seen<'_>) -> Vec<Cell> {
    let points = seen.points(FIVE);
    let of = points.len();
    let speed = |test, party: Party| move |p| seen.mean((test, p), party, THROUGHPUT);
    let pairs = || [FIVE, TEN].into_iter().flat_map(|test| [Off, On].map(|party| (test, party)));
    let falling = pairs().filter_map(|(test, party)| falls(points, speed(test, party))).count();
    let longer = |name: &'static str| {
        [Off, On].map(|party| {
            let mean = |test, p| seen.mean((test, p), party, name).mean;
            count(points, |p| mean(TEN, p) > mean(FIVE, p))
        })
    };
    let (faster, wider) = (longer(THROUGHPUT), longer(WINDOW));
    let gain = |p| seen.gain((FIVE, p), THROUGHPUT);
    let (least, most) = extremes(points.iter().map(|&p| gain(p)));
    let again = |p| seen.gain((FIVE, p), AGAIN).mean;
    let line = |test, party| listed(points, |p| speed(test, party)(p).mean / 1e3, 0);
    let counts = |counts: [usize; 2]| {
        format!("at {} (OFF) and {} (ON) of {of} points", counts[0], counts[1])
    };
    vec![
        claim(
            &paper::FASTER_WITH_RATE,
            falling == 0,
            format!(
                "kbit/s with 5 s: OFF {}, ON {}; with 10 s: OFF {}, ON {}",
                line(FIVE, Off),
                line(FIVE, On),
                line(TEN, Off),
                line(TEN, On)
            ),
            why::FASTER_WITH_RATE,
        ),
        claim(
            &paper::LONGER_IS_FASTER,
            faster.iter().all(|count| 2 * count > of),
            counts(faster),
            why::LONGER_IS_FASTER,
        ),
        claim(
            &paper::LONGER_HAS_LARGER_WINDOWS,
            wider.iter().all(|count| 2 * count > of),
            counts(wider),
            why::LONGER_HAS_LARGER_WINDOWS,
        ),
        claim(
            &paper::FASTER,
            points.iter().all(|&p| gain(p).mean > 0.0),
            format!("gain in %: {}", signed(points, |p| gain(p).mean)),
            why::FASTER,
        ),
        number(&paper::LEAST_GAIN, least, why::LEAST_GAIN),
        number(&paper::MOST_GAIN, most, why::MOST_GAIN),
        claim(
            &paper::LESS_SENT_AGAIN,
            points.iter().all(|&p| again(p) < 0.0),
            format!("ON over OFF in %: {}", signed(points, again)),
            why::LESS_SENT_AGAIN,
        ),
    ]
}

fn overhead(seen: &Seen<'_>) -> Vec<Cell> {
    let points = seen.points(FIVE);
    let of = points.len();
    let mean = |party: Party, name| move |p| seen.mean((FIVE, p), party, name).mean;
    let spread = [Off, On].map(|party| {
        let all: Vec<f64> = points.iter().map(|&p| mean(party, AGAIN)(p)).collect();
        all.iter().copied().fold(0.0, f64::max) / all.iter().copied().fold(f64::INFINITY, f64::min)
    });
    let mostly = [Off, On].map(|party| {
        count(points, |p| mean(party, AGAIN)(p) > seen.control((FIVE, p), party).mean)
    });
    let ends = [points[0], points[of - 1]];
    let both =
        |value: &dyn Fn(u32, Party) -> f64| [Off, On].map(|party| ends.map(|p| value(p, party)));
    let windows = both(&|p, party| mean(party, WINDOW)(p));
    let lost = both(&|p, party| seen.per_event((FIVE, p), party, "segments_sent_again").mean);
    let events = both(&|p, party| seen.events((FIVE, p), party).mean);
    let words = |values: [[f64; 2]; 2], digits: usize| {
        let [off, on] = values.map(|[a, b]| format!("{a:.digits$} to {b:.digits$}"));
        format!("from {} to {} %: OFF {off}, ON {on}", ends[0], ends[1])
    };
    let rise = |values: [[f64; 2]; 2]| values.iter().all(|[first, last]| last > first);
    let change = |p| seen.gain((FIVE, p), OVERHEAD).mean;
    let fewer = |p| seen.gain((FIVE, p), "seconds").mean;
    vec![
        claim(
            &paper::OVERHEAD_IS_LEVEL,
            spread.iter().all(|ratio| *ratio <= 1.5),
            format!("highest over lowest: OFF {:.2}, ON {:.2}", spread[0], spread[1]),
            why::OVERHEAD_IS_LEVEL,
        ),
        claim(
            &paper::MOSTLY_SENT_AGAIN,
            mostly.iter().all(|count| 2 * count > of),
            format!("at {} (OFF) and {} (ON) of {of} points", mostly[0], mostly[1]),
            why::MOSTLY_SENT_AGAIN,
        ),
        claim(&paper::WINDOW_RISES, rise(windows), words(windows, 1), why::WINDOW_RISES),
        claim(&paper::MORE_LOST_EACH, rise(lost), words(lost, 1), why::MORE_LOST_EACH),
        claim(
            &paper::FEWER_EVENTS,
            events.iter().all(|[first, last]| last < first),
            words(events, 1),
            why::FEWER_EVENTS,
        ),
        claim(
            &paper::LESS_OVERHEAD,
            points.iter().all(|&p| change(p) < 0.0),
            format!("ON over OFF in %: {}", signed(points, change)),
            why::LESS_OVERHEAD,
        ),
        claim(
            &paper::FEWER_EVENTS_WITH_ON,
            points.iter().all(|&p| fewer(p) < 0.0),
            format!("ON over OFF in %: {}", signed(points, fewer)),
            why::FEWER_EVENTS_WITH_ON,
        ),
    ]
}

fn long(seen: &Seen<'_>) -> Vec<Cell> {
    let points = seen.points(FIVE);
    let saved = |test| over(points, |p| -seen.gain((test, p), OVERHEAD).mean);
    let slow_start = |p: u32| seen.change(&NO_OUTAGE_PAUSE, (TEN, p), Off, THROUGHPUT).mean;
    let mean = over(tried(seen), slow_start);
    let each = |name: &'static str| {
        count(points, |p| {
            let [five, ten] = [FIVE, TEN].map(|test| seen.per_event((test, p), On, name).mean);
            ten > five
        })
    };
    let (seconds, probes) = (each("probing_seconds"), each("probes"));
    let of = points.len();
    vec![
        claim(
            &paper::LESS_ADVANTAGE_AT_10_S,
            saved(TEN) < saved(FIVE),
            format!("mean saving {:.1} % with 5 s, {:.1} % with 10 s", saved(FIVE), saved(TEN)),
            why::LESS_ADVANTAGE_AT_10_S,
        ),
        claim(
            &paper::BY_SLOW_START,
            mean < 0.0,
            format!("{mean:+.1} % throughput of OFF without it"),
            why::BY_SLOW_START,
        ),
        claim(
            &paper::LONGER_CYCLES,
            seconds == of && probes == of,
            format!("longer at {seconds}, more probes at {probes} of {of} points"),
            why::LONGER_CYCLES,
        ),
    ]
}

fn ratio(seen: &Seen<'_>) -> Vec<Cell> {
    let points = seen.points(FIVE);
    let of = points.len();
    let ratio = |test, party: Party| move |p| seen.mean((test, p), party, RATIO);
    let falling = [Off, On].map(|party| falls(points, ratio(FIVE, party)));
    let better = [Off, On]
        .map(|party| count(points, |p| ratio(TEN, party)(p).mean > ratio(FIVE, party)(p).mean));
    let gain = |p| seen.gain((FIVE, p), RATIO).mean;
    let line = |party| listed(points, |p| ratio(FIVE, party)(p).mean / 1e3, 1);
    vec![
        claim(
            &paper::RATIO_RISES,
            falling == [None, None],
            format!("kbit/s per %: OFF {}; ON {}", line(Off), line(On)),
            why::RATIO_RISES,
        ),
        claim(
            &paper::RATIO_BETTER_AT_10_S,
            better.iter().all(|count| 2 * count > of),
            format!("higher at {} (OFF) and {} (ON) of {of} points", better[0], better[1]),
            why::RATIO_BETTER_AT_10_S,
        ),
        claim(
            &paper::BETTER_RATIO,
            points.iter().all(|&p| gain(p) > 0.0),
            format!("gain of the ratio in %: {}", signed(points, gain)),
            why::BETTER_RATIO,
        ),
    ]
}

fn causes(seen: &Seen<'_>) -> Vec<Cell> {
    let points = seen.points(FIVE);
    let of = points.len();
    let (kept, without) = seen.left_without(&NO_RECOVERY, FIVE, tried(seen));
    let mean = |p, party: Party, name| seen.mean((FIVE, p), party, name).mean;
    let larger = count(points, |p| mean(p, On, WINDOW) > mean(p, Off, WINDOW));
    let lost = |p, party| seen.per_event((FIVE, p), party, "segments_sent_again").mean;
    let fewer = count(points, |p| lost(p, On) < lost(p, Off));
    let seconds = over(points, |p| mean(p, On, "probing_seconds"));
    let probes = over(points, |p| mean(p, On, "probes")) / seconds.max(f64::MIN_POSITIVE);
    vec![
        claim(
            &paper::BY_RECOVERY,
            without < kept / 2.0,
            format!("mean gain {kept:.0} %, without immediate recovery {without:.0} %"),
            why::BY_RECOVERY,
        ),
        claim(
            &paper::LARGER_WINDOWS,
            larger == of,
            format!("larger at {larger} of {of} points"),
            why::LARGER_WINDOWS,
        ),
        claim(
            &paper::LOSES_LESS,
            fewer == of,
            format!("fewer at {fewer} of {of} points"),
            why::LOSES_LESS,
        ),
        claim(
            &paper::PROBE_EACH_ROUND_TRIP,
            (3.0..=5.5).contains(&probes),
            format!("{probes:.1} probes a second"),
            why::PROBE_EACH_ROUND_TRIP,
        ),
    ]
}
