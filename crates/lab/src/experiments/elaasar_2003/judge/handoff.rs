//! Section 6.2.

use super::super::conditions::{CORRUPTION_10, Condition, HANDOFF_1, HANDOFF_HALF};
use super::super::trial::Party::{self, Off, On};
use super::super::variants::NO_RECOVERY;
use super::published::handoff as paper;
use super::reasons::handoff as why;
use super::seen::{
    AGAIN, OVERHEAD, RATIO, Seen, THROUGHPUT, WINDOW, claim, claim_by, count, extremes, falls,
    listed, number, over, rises, signed,
};
use super::{figures, reasons};
use crate::experiments::{Cell, Section, Summary};

const TESTS: [Condition; 2] = [HANDOFF_HALF, HANDOFF_1];

/// Figures, table and cells of hand-off.
pub(super) fn section(seen: &Seen<'_>) -> Section {
    let mut figures = figures::of(seen, HANDOFF_HALF, ["9", "11", "13"]);
    figures.extend(figures::of(seen, HANDOFF_1, ["10", "12", "14"]));
    let mut cells = losses(seen);
    cells.extend(throughput(seen));
    cells.extend(overhead(seen));
    cells.extend(ratio(seen));
    cells.extend(causes(seen));
    Section {
        title: "Hand-off (section 6.2)".into(),
        text: reasons::HANDOFF.map(str::to_owned).into(),
        figures,
        tables: TESTS.map(|test| figures::table(seen, test)).into(),
        cells,
    }
}

fn losses(seen: &Seen<'_>) -> Vec<Cell> {
    let points = seen.points(HANDOFF_1);
    let share = |test, party: Party| over(points, |p| seen.lost_share((test, p), party).mean);
    let off = TESTS.map(|test| share(test, Off));
    let on = TESTS.map(|test| share(test, On));
    let all = TESTS.iter().flat_map(|&test| points.iter().map(move |&p| (test, p)));
    let shares: Vec<f64> = all.map(|at| seen.lost_share(at, On).mean).collect();
    let alarms = seen.gain((CORRUPTION_10, 0), THROUGHPUT);
    vec![
        claim(
            &paper::OFF_DRAINS,
            off.iter().all(|share| *share >= 100.0 / 3.0),
            format!("{:.0} % of the mean window with 0.5 s, {:.0} % with 1 s", off[0], off[1]),
            why::OFF_DRAINS,
        ),
        number(&paper::ON_LOSES_A_PART, Summary::of(&shares), why::ON_LOSES_A_PART),
        claim(
            &paper::LOSES_LESS,
            on[0] < off[0] && on[1] < off[1],
            format!(
                "with 0.5 s {:.0} % (OFF {:.0} %), with 1 s {:.0} % (OFF {:.0} %)",
                on[0], off[0], on[1], off[1]
            ),
            why::LOSES_LESS,
        ),
        claim_by(
            &paper::FALSE_ALARMS_ARE_CHEAP,
            alarms.mean >= -3.0,
            format!("{:+.2} %", alarms.mean),
            alarms,
            why::FALSE_ALARMS_ARE_CHEAP,
        ),
    ]
}

fn throughput(seen: &Seen<'_>) -> Vec<Cell> {
    let points = seen.points(HANDOFF_1);
    let speed = |test, party: Party| move |p| seen.mean((test, p), party, THROUGHPUT);
    let pairs = || TESTS.into_iter().flat_map(|test| [Off, On].map(|party| (test, party)));
    let rising = pairs().filter_map(|(test, party)| rises(points, speed(test, party))).count();
    let longer = |name: &'static str, party: Party| {
        move |p| {
            let [half, one] = TESTS.map(|test| seen.mean((test, p), party, name).mean);
            one >= half
        }
    };
    let faster = [Off, On].map(|party| count(points, longer(THROUGHPUT, party)));
    let wider = [Off, On].map(|party| count(points, longer(WINDOW, party)));
    let gain = |test| move |p| seen.gain((test, p), THROUGHPUT).mean;
    let all = TESTS.map(|test| points.iter().map(move |&p| seen.gain((test, p), THROUGHPUT)));
    let (least, most) = extremes(all.into_iter().flatten());
    let mean = TESTS.map(|test| over(points, gain(test)));
    let again = |p| TESTS.iter().all(|&test| seen.gain((test, p), AGAIN).mean < 0.0);
    let lost = |test, p| seen.per_event((test, p), Off, "segments_sent_again").mean;
    let of = points.len();
    vec![
        claim(&paper::SLOWER_WITH_RATE, rising == 0, kbps(seen, points), why::SLOWER_WITH_RATE),
        claim(
            &paper::LONGER_IS_NO_SLOWER,
            faster.iter().all(|count| 2 * count > of),
            format!("not lower at {} (OFF) and {} (ON) of {of} points", faster[0], faster[1]),
            why::LONGER_IS_NO_SLOWER,
        ),
        claim(
            &paper::LONGER_HAS_LARGER_WINDOWS,
            wider == [of, of],
            format!("larger at {} (OFF) and {} (ON) of {of} points", wider[0], wider[1]),
            why::LONGER_HAS_LARGER_WINDOWS,
        ),
        claim(&paper::FASTER, least.mean > 0.0, gains(seen, points), why::FASTER),
        number(&paper::LEAST_GAIN, least, why::LEAST_GAIN),
        number(&paper::MOST_GAIN, most, why::MOST_GAIN),
        claim(
            &paper::LESS_SENT_AGAIN,
            count(points, again) == of,
            format!(
                "ON over OFF in %: 0.5 s {}; 1 s {}",
                signed(points, |p| seen.gain((HANDOFF_HALF, p), AGAIN).mean),
                signed(points, |p| seen.gain((HANDOFF_1, p), AGAIN).mean)
            ),
            why::LESS_SENT_AGAIN,
        ),
        claim(
            &paper::MORE_AT_1_S,
            mean[1] > mean[0],
            format!("mean gain {:.0} % with 0.5 s, {:.0} % with 1 s", mean[0], mean[1]),
            why::MORE_AT_1_S,
        ),
        claim(
            &paper::MORE_LOST_AT_1_S,
            points.iter().all(|&p| lost(HANDOFF_1, p) > lost(HANDOFF_HALF, p)),
            format!(
                "segments each blackout: 0.5 s {}; 1 s {}",
                listed(points, |p| lost(HANDOFF_HALF, p), 1),
                listed(points, |p| lost(HANDOFF_1, p), 1)
            ),
            why::MORE_LOST_AT_1_S,
        ),
    ]
}

fn kbps(seen: &Seen<'_>, points: &[u32]) -> String {
    let line = |test, party: Party| {
        listed(points, |p| seen.mean((test, p), party, THROUGHPUT).mean / 1e3, 0)
    };
    let words = TESTS.map(|test| format!("OFF {}; ON {}", line(test, Off), line(test, On)));
    format!("kbit/s with 0.5 s: {}; with 1 s: {}", words[0], words[1])
}

fn gains(seen: &Seen<'_>, points: &[u32]) -> String {
    let line = |test| signed(points, |p| seen.gain((test, p), THROUGHPUT).mean);
    format!("gain in %: 0.5 s {}; 1 s {}", line(HANDOFF_HALF), line(HANDOFF_1))
}

fn overhead(seen: &Seen<'_>) -> Vec<Cell> {
    let points = seen.points(HANDOFF_1);
    let of = points.len();
    let cost = |test, party: Party| move |p| seen.mean((test, p), party, OVERHEAD);
    let pairs = || TESTS.into_iter().flat_map(|test| [Off, On].map(|party| (test, party)));
    let falling = pairs().filter_map(|(test, party)| falls(points, cost(test, party))).count();
    let cheaper = [Off, On].map(|party| {
        count(points, |p| cost(HANDOFF_1, party)(p).mean < cost(HANDOFF_HALF, party)(p).mean)
    });
    let control = |test, p, party| seen.control((test, p), party).mean;
    let less = |p| TESTS.map(|test| control(test, p, On) < control(test, p, Off));
    let fewer = points.iter().flat_map(|&p| less(p)).filter(|less| *less).count();
    let apart = points
        .iter()
        .flat_map(|&p| TESTS.map(|test| (control(test, p, On) - control(test, p, Off)).abs()));
    let apart = apart.fold(0.0, f64::max);
    let change = |test| move |p| seen.gain((test, p), OVERHEAD);
    let lower = TESTS.map(|test| count(points, |p| change(test)(p).mean < 0.0));
    let last = points[of - 1];
    let list = |test| signed(points, |p| change(test)(p).mean);
    vec![
        claim(
            &paper::OVERHEAD_RISES,
            falling == 0,
            format!(
                "% with 0.5 s: OFF {}; with 1 s: OFF {}",
                listed(points, |p| cost(HANDOFF_HALF, Off)(p).mean, 1),
                listed(points, |p| cost(HANDOFF_1, Off)(p).mean, 1)
            ),
            why::OVERHEAD_RISES,
        ),
        claim(
            &paper::LONGER_COSTS_NO_MORE,
            cheaper.iter().all(|count| 2 * count > of),
            format!("lower at {} (OFF) and {} (ON) of {of} points", cheaper[0], cheaper[1]),
            why::LONGER_COSTS_NO_MORE,
        ),
        claim(
            &paper::LESS_CONTROL,
            fewer > of,
            format!("below OFF's at {fewer} of {} points", 2 * of),
            why::LESS_CONTROL,
        ),
        claim(
            &paper::CONTROL_HARDLY_MATTERS,
            apart < 1.0,
            format!("at most {apart:.2} % of the file apart"),
            why::CONTROL_HARDLY_MATTERS,
        ),
        claim(
            &paper::LESS_OVERHEAD,
            lower.iter().all(|count| 2 * count > of),
            format!("ON over OFF in %: 0.5 s {}; 1 s {}", list(HANDOFF_HALF), list(HANDOFF_1)),
            why::LESS_OVERHEAD,
        ),
        number(&paper::OVERHEAD_SAVED, change(HANDOFF_1)(last).scaled(-1.0), why::OVERHEAD_SAVED),
    ]
}

fn ratio(seen: &Seen<'_>) -> Vec<Cell> {
    let points = seen.points(HANDOFF_1);
    let of = points.len();
    let ratio = |test, party: Party| move |p| seen.mean((test, p), party, RATIO);
    let pairs = || TESTS.into_iter().flat_map(|test| [Off, On].map(|party| (test, party)));
    let rising = pairs().filter_map(|(test, party)| rises(points, ratio(test, party))).count();
    let better = [Off, On].map(|party| {
        count(points, |p| ratio(HANDOFF_1, party)(p).mean > ratio(HANDOFF_HALF, party)(p).mean)
    });
    let gain = |test| move |p| seen.gain((test, p), RATIO).mean;
    let all = TESTS.map(|test| count(points, |p| gain(test)(p) > 0.0));
    let mean = TESTS.map(|test| over(points, gain(test)));
    let line = |test, party| listed(points, |p| ratio(test, party)(p).mean / 1e3, 0);
    vec![
        claim(
            &paper::RATIO_FALLS,
            rising == 0,
            format!(
                "kbit/s per %: 0.5 s OFF {}, ON {}; 1 s OFF {}, ON {}",
                line(HANDOFF_HALF, Off),
                line(HANDOFF_HALF, On),
                line(HANDOFF_1, Off),
                line(HANDOFF_1, On)
            ),
            why::RATIO_FALLS,
        ),
        claim(
            &paper::RATIO_BETTER_AT_1_S,
            better == [of, of],
            format!("higher at {} (OFF) and {} (ON) of {of} points", better[0], better[1]),
            why::RATIO_BETTER_AT_1_S,
        ),
        claim(
            &paper::BETTER_RATIO,
            all == [of, of],
            format!(
                "gain of the ratio in %: 0.5 s {}; 1 s {}",
                signed(points, gain(HANDOFF_HALF)),
                signed(points, gain(HANDOFF_1))
            ),
            why::BETTER_RATIO,
        ),
        claim(
            &paper::RATIO_GAIN_AT_1_S,
            mean[1] > mean[0],
            format!(
                "mean gain of the ratio {:.0} % with 0.5 s, {:.0} % with 1 s",
                mean[0], mean[1]
            ),
            why::RATIO_GAIN_AT_1_S,
        ),
    ]
}

fn causes(seen: &Seen<'_>) -> Vec<Cell> {
    let points = seen.points(HANDOFF_1);
    let at: &[u32] = if seen.setting.quick { &[5] } else { &[1, 5, 15] };
    let (kept, without) = seen.left_without(&NO_RECOVERY, HANDOFF_1, at);
    let window = |test, p, party: Party| seen.mean((test, p), party, WINDOW).mean;
    let larger = |test| count(points, |p| window(test, p, On) > window(test, p, Off));
    let [half, one] = TESTS.map(larger);
    let of = points.len();
    vec![
        claim(
            &paper::BY_RECOVERY,
            without < kept / 2.0,
            format!("mean gain {kept:.0} %, without immediate recovery {without:.0} %"),
            why::BY_RECOVERY,
        ),
        claim(
            &paper::LARGER_WINDOWS,
            half == of && one == of,
            format!("larger at {half} (0.5 s) and {one} (1 s) of {of} points"),
            why::LARGER_WINDOWS,
        ),
    ]
}
