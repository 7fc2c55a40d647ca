//! Section 8: the overall gain of probing, and the congestion at which it ends.

use super::super::conditions::{self, Condition};
use super::super::congestion::{MODELLED, QUEUED, STAYS, losses, modelled_key, queued_key, shares};
use super::super::trial::Party::{self, Off, On};
use super::measure::{COST, Measure, SPEED, WORTH};
use super::seen::{OVERHEAD, Seen, THROUGHPUT, WINDOW};
use super::shapes::{Own, judge, over_points};
use crate::experiments::publication::{Found, Side::Above, page};
use crate::experiments::statistics::{relative_gain, slope};
use crate::experiments::{Figure, Section, Series, Summary, Table};

page!(PAGE = "elaasar-2003/conclusion");

/// Claims without a common form of criterion.
const OWN: &[(&str, Own)] = &[
    ("better-ratio-everywhere", Own::That(always_better)),
    ("mainly-by-throughput", Own::That(by_throughput)),
    ("most-help-with-link-errors", Own::That(more_with_link_errors)),
    ("congestion-makes-it-careful", Own::That(falls_with_congestion)),
    ("a-pivot-of-throughput", Own::That(pivot_of_throughput)),
    ("a-pivot-of-overhead", Own::That(pivot_of_overhead)),
];

pub(super) fn section(seen: &Seen<'_>) -> Section {
    let values = [("modelled", found(seen)), ("queued", found_in_queue(seen))];
    Section {
        figures: vec![
            modelled(seen, THROUGHPUT, "throughput", "Gain in throughput"),
            modelled(seen, OVERHEAD, "overhead", "Change of overhead"),
            queued(seen),
        ],
        tables: vec![queued_table(seen)],
        cells: judge(&PAGE, OWN, seen),
        ..PAGE.section_with(&values)
    }
}

/// Returns the fraction of overflows among the losses, in percent, at which the interpolated gain
/// crosses zero.
fn crossing(seen: &Seen<'_>, name: &str) -> Option<f64> {
    let share =
        |loss: u32| seen.results.summary(QUEUED, &queued_key(loss, Off), "congestion_percent").mean;
    let mut points: Vec<(f64, f64)> = losses(seen.setting.quick)
        .iter()
        .map(|&loss| (share(loss), queued_gain(seen, loss, name).mean))
        .collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    // The sign at both ends must be significant.
    let losses = losses(seen.setting.quick);
    let least = queued_gain(seen, losses[losses.len() - 1], name);
    let most = queued_gain(seen, losses[0], name);
    let turns = least.clearly_above(0.0) && most.clearly_below(0.0)
        || least.clearly_below(0.0) && most.clearly_above(0.0);
    if !turns {
        return None;
    }
    let crossed = points.windows(2).find(|pair| pair[0].1 * pair[1].1 < 0.0)?;
    let ((x, y), (right, up)) = (crossed[0], crossed[1]);
    Some(x + (right - x) * y / (y - up))
}

fn crossing_words(crossing: Option<f64>) -> String {
    crossing.map_or_else(|| "nowhere".to_owned(), |share| format!("at {share:.0} % of the losses"))
}

fn found_in_queue(seen: &Seen<'_>) -> String {
    format!(
        "Where the queue overflows, the gain in throughput turns into a loss {}, the saving of \
         overhead {}.",
        crossing_words(crossing(seen, THROUGHPUT)),
        crossing_words(crossing(seen, OVERHEAD))
    )
}

/// Returns the gain of ON over OFF in percent, at a fraction of congestion among the bad states.
fn gain(seen: &Seen<'_>, stay: u64, share: u32, name: &str) -> Summary {
    let of = |party| seen.of(MODELLED, &modelled_key(stay, share, party), name);
    relative_gain(&of(On), &of(Off)).scaled(100.0)
}

fn queued_gain(seen: &Seen<'_>, loss: u32, name: &str) -> Summary {
    let of = |party| seen.of(QUEUED, &queued_key(loss, party), name);
    relative_gain(&of(On), &of(Off)).scaled(100.0)
}

/// Returns the smallest fraction of congestion from which on the mean gain is gone; `None` if it
/// persists to the end, or is not significant at the beginning.
fn pivot(
    seen: &Seen<'_>,
    clearly_good: impl Fn(u32) -> bool,
    good: impl Fn(u32) -> bool,
) -> Option<u32> {
    let shares = shares(seen.setting.quick);
    if !clearly_good(shares[0]) {
        return None;
    }
    let last_good = shares.iter().rposition(|&share| good(share))?;
    shares.get(last_good + 1).copied()
}

fn throughput_pivot(seen: &Seen<'_>, stay: u64) -> Option<u32> {
    let at = |share| gain(seen, stay, share, THROUGHPUT);
    pivot(seen, |share| at(share).clearly_above(0.0), |share| at(share).mean > 0.0)
}

fn overhead_pivot(seen: &Seen<'_>, stay: u64) -> Option<u32> {
    let at = |share| gain(seen, stay, share, OVERHEAD);
    pivot(seen, |share| at(share).clearly_below(0.0), |share| at(share).mean < 0.0)
}

fn pivot_words(pivots: [Option<u32>; 2]) -> String {
    let word = |pivot: Option<u32>| match pivot {
        Some(share) => format!("from {share} % on"),
        None => "at no share".to_owned(),
    };
    format!("with stays of 10 s {}, of 1 s {}", word(pivots[0]), word(pivots[1]))
}

fn found(seen: &Seen<'_>) -> String {
    let shares = shares(seen.setting.quick);
    let last = shares[shares.len() - 1];
    let ends = |name| {
        STAYS.map(|stay| {
            let [first, last] = [shares[0], last].map(|share| gain(seen, stay, share, name).mean);
            format!("{first:+.0} to {last:+.0} %")
        })
    };
    let (speed, cost) = (ends(THROUGHPUT), ends(OVERHEAD));
    format!(
        "In the model throughput stops gaining {}; overhead stops falling {}. From no congestion to \
         nothing else the gain in throughput goes from {} (stays of 10 s) and {} (1 s), the \
         change of overhead from {} and {}.",
        pivot_words(STAYS.map(|stay| throughput_pivot(seen, stay))),
        pivot_words(STAYS.map(|stay| overhead_pivot(seen, stay))),
        speed[0],
        speed[1],
        cost[0],
        cost[1]
    )
}

/// Returns all points with loss of all tests.
fn everywhere(seen: &Seen<'_>) -> Vec<(Condition, u32)> {
    let points = |condition: Condition| {
        seen.lossy(condition).into_iter().map(move |percent| (condition, percent))
    };
    conditions::ALL.into_iter().flat_map(points).collect()
}

fn always_better(seen: &Seen<'_>) -> Found {
    let gains = |seen: &Seen<'_>| -> Vec<Summary> {
        everywhere(seen).into_iter().map(|at| WORTH.gain(seen, at)).collect()
    };
    let (better, of) = (Above.count(&gains(seen)), gains(seen).len());
    let ours = format!("better at {better} of {of} points");
    over_points(seen, Above, better == of, ours, gains)
}

fn by_throughput(seen: &Seen<'_>) -> Found {
    let share = seen.jackknife(|seen| {
        let log = |measure: Measure| -> f64 {
            let all = everywhere(seen).into_iter();
            all.map(|at| (1.0 + measure.gain(seen, at).mean / 100.0).ln()).sum()
        };
        let speed = log(SPEED);
        speed / (speed - log(COST)) * 100.0
    });
    let ours = format!("{:.0} % of the ratio's gain is throughput", share.mean);
    Found::new(ours).above(share, 50.0)
}

/// Returns the smallest and largest tested fraction of congestion.
fn ends(seen: &Seen<'_>) -> [u32; 2] {
    let shares = shares(seen.setting.quick);
    [shares[0], shares[shares.len() - 1]]
}

fn more_with_link_errors(seen: &Seen<'_>) -> Found {
    let gains =
        |seen: &Seen<'_>, stay| ends(seen).map(|share| gain(seen, stay, share, THROUGHPUT).mean);
    let [[a, b], [c, d]] = STAYS.map(|stay| gains(seen, stay));
    let ours = format!(
        "{a:+.0} % without, {b:+.0} % with nothing but congestion (10 s); {c:+.0} % and {d:+.0} % \
         (1 s)"
    );
    let more = STAYS.map(|stay| {
        let more = seen.jackknife(|seen| {
            let [none, all] = gains(seen, stay);
            none - all
        });
        (more, Above, 0.0)
    });
    Found::all(ours, more)
}

fn falls_with_congestion(seen: &Seen<'_>) -> Found {
    let window =
        |stay, share| Summary::of(&seen.of(MODELLED, &modelled_key(stay, share, On), WINDOW));
    let falls = |stay| {
        let means: Vec<(f64, f64)> = (shares(seen.setting.quick).iter())
            .map(|&share| (f64::from(share), window(stay, share).mean))
            .collect();
        let [first, last] = ends(seen).map(|share| window(stay, share));
        let apart = first.mean - last.mean > 0.0 && !overlap(first, last);
        slope(&means).is_some_and(|slope| slope < 0.0) && apart
    };
    let [[a, b], [c, d]] = STAYS.map(|stay| ends(seen).map(|share| window(stay, share).mean));
    // The criterion includes the intervals.
    Found {
        holds: STAYS.into_iter().all(falls),
        by: Some(window(STAYS[0], ends(seen)[1])),
        ..Found::new(format!(
            "mean window from {a:.1} to {b:.1} segments (10 s), from {c:.1} to {d:.1} (1 s)"
        ))
    }
}

fn pivot_of_throughput(seen: &Seen<'_>) -> Found {
    pivots(STAYS.map(|stay| throughput_pivot(seen, stay)), crossing(seen, THROUGHPUT))
}

fn pivot_of_overhead(seen: &Seen<'_>) -> Found {
    pivots(STAYS.map(|stay| overhead_pivot(seen, stay)), crossing(seen, OVERHEAD))
}

fn pivots(modelled: [Option<u32>; 2], queued: Option<f64>) -> Found {
    let crossed = crossing_words(queued);
    // The criterion includes the intervals.
    Found {
        holds: modelled.iter().any(Option::is_some) || queued.is_some(),
        by: None,
        ..Found::new(format!("{}; where a queue overflows {crossed}", pivot_words(modelled)))
    }
}

fn overlap(a: Summary, b: Summary) -> bool {
    match (a.interval(), b.interval()) {
        (Some([a_low, a_high]), Some([b_low, b_high])) => a_low <= b_high && b_low <= a_high,
        (None, _) | (_, None) => false,
    }
}

fn modelled(seen: &Seen<'_>, name: &str, file: &str, title: &str) -> Figure {
    let line = |stay: u64| {
        let at = |&share: &u32| (f64::from(share), gain(seen, stay, share, name));
        Series::new(format!("stays of {stay} s"), shares(seen.setting.quick).iter().map(at))
    };
    let figure = PAGE.figure("congestion", STAYS.map(line).into());
    let title = format!("{title} {}", figure.title);
    Figure { id: format!("congestion-{file}"), title, ..figure }
}

fn queued(seen: &Seen<'_>) -> Figure {
    let line = |name: &str, title: &str| {
        let at = |&loss: &u32| {
            let share = seen.results.summary(QUEUED, &queued_key(loss, Off), "congestion_percent");
            (share.mean, queued_gain(seen, loss, name))
        };
        let mut points: Vec<(f64, Summary)> = losses(seen.setting.quick).iter().map(at).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        Series::new(title, points)
    };
    PAGE.figure(
        "congestion-queue",
        vec![line(THROUGHPUT, "throughput"), line(OVERHEAD, "overhead")],
    )
}

fn queued_table(seen: &Seen<'_>) -> Table {
    let of = |loss: u32, party: Party, name: &str| {
        seen.results.summary(QUEUED, &queued_key(loss, party), name).mean
    };
    let row = |&loss: &u32| {
        let mut row = vec![format!("{:.2}", f64::from(loss) / 1e4)];
        for party in Party::ALL {
            row.push(format!("{:.0}", of(loss, party, THROUGHPUT) / 1e3));
            row.push(format!("{:.2}", of(loss, party, OVERHEAD)));
            row.push(format!("{:.0}", of(loss, party, "queue_drops")));
        }
        row
    };
    let mut head = vec!["random loss, %".to_owned()];
    for party in Party::ALL {
        head.push(format!("{}, kbit/s", party.title()));
        head.push("overhead, %".to_owned());
        head.push("overflows".to_owned());
    }
    Table {
        head,
        ..PAGE.table("congestion-queue-table", losses(seen.setting.quick).iter().map(row))
    }
}
