//! Section 8: what probing is worth in all, and where it stops paying.

use super::super::conditions::{self, Condition};
use super::super::congestion::{MODELLED, QUEUED, STAYS, losses, modelled_key, queued_key, shares};
use super::super::trial::Party::{self, Off, On};
use super::measure::{COST, Measure, SPEED, WORTH};
use super::seen::{OVERHEAD, Seen, THROUGHPUT, WINDOW};
use super::sentence::Side::Above;
use super::sentence::{Found, Says, Sentence, Test, why};
use super::words;
use crate::experiments::statistics::{relative_gain, slope};
use crate::experiments::{Axis, Figure, Section, Series, Summary, Table};

const SENTENCES: &[Sentence] = &[
    Sentence {
        name: "conclusion: better ratio everywhere",
        place: "section 8",
        says: Says::That(
            "probing consistently reaches a better ratio of throughput to overhead",
            "ON's mean ratio is above OFF's at every point with loss of all six tests",
            Test::Own(always_better),
        ),
        why: why(
            "faster at less overhead",
            "at all points but limited connectivity of 1 %, where probes through blackouts of \
             minutes cost more octets than early timeouts save",
        ),
    },
    Sentence {
        name: "conclusion: mainly by throughput",
        place: "section 8",
        says: Says::That(
            "that is mainly by more throughput, with overhead kept low",
            "over all points with loss, the mean logarithm of the throughput's gain is more than \
             half of the ratio's",
            Test::Own(by_throughput),
        ),
        why: why(
            "for the reason that the paper gives",
            "overhead falls by as much as throughput rises",
        ),
    },
    Sentence {
        name: "conclusion: most help with link errors",
        place: "section 8",
        says: Says::That(
            "probing helps most where link errors outnumber congestion",
            "the gain in throughput is greater with no congestion among the losses than with \
             nothing else",
            Test::Own(more_with_link_errors),
        ),
        why: why(
            "a link error leaves the window as it was",
            "congestion is not told from link errors at these settings",
        ),
    },
    Sentence {
        name: "conclusion: congestion makes it careful",
        place: "section 8",
        says: Says::That(
            "the more losses are congestion, the more conservative the session becomes",
            "ON's mean window falls as the share of congestion grows: the straight line through \
             the means goes down, and the last is below the first beyond the intervals",
            Test::Own(falls_with_congestion),
        ),
        why: why(
            "each congested bad stay halves the window",
            "the straight line goes down, but the intervals of its ends overlap",
        ),
    },
    Sentence {
        name: "conclusion: a pivot of throughput",
        place: "section 8",
        says: Says::That(
            "at some share of congestion probing stops paying in throughput (left to future work)",
            "in the paper's model or where a queue overflows: the gain is clearly above zero \
             with the least congestion, and from some share on its mean is not",
            Test::Own(pivot_of_throughput),
        ),
        why: why(
            "in the paper's own model, with bad stays that drop 20 %, probing pays to the end, \
             and least with nothing but congestion. Where a real queue overflows it stops: \
             nothing is sent while a cycle asks, so the queue has drained when the answers come, \
             most cycles find no congestion, and the whole window goes into the queue again. \
             That queue is short, 8 packets; with room for 16 ON was nowhere worse at a first \
             look",
            "even with nothing but congestion, keeping still during a bad stay and finding its \
             end at once is worth more than its cycles cost",
        ),
    },
    Sentence {
        name: "conclusion: a pivot of overhead",
        place: "section 8",
        says: Says::That(
            "the same may happen to overhead",
            "in the paper's model or where a queue overflows: ON's overhead is clearly below \
             OFF's with the least congestion, and from some share on its mean is not",
            Test::Own(pivot_of_overhead),
        ),
        why: why(
            "as for throughput, and sooner: what a cycle sends again into a queue that overflows \
             is lost again",
            "even with nothing but congestion less is sent into bad stays",
        ),
    },
];

/// Figures, table and cells of section 8.
pub(super) fn section(seen: &Seen<'_>) -> Section {
    let mut text: Vec<String> = words::CONGESTION.map(str::to_owned).into();
    text.push(found(seen));
    text.push(found_in_queue(seen));
    Section {
        title: "How much congestion until probing stops paying (section 8)".into(),
        text,
        figures: vec![
            modelled(seen, THROUGHPUT, "throughput", "Gain in throughput"),
            modelled(seen, OVERHEAD, "overhead", "Change of overhead"),
            queued(seen),
        ],
        tables: vec![queued_table(seen)],
        cells: SENTENCES.iter().map(|sentence| sentence.judge(seen)).collect(),
    }
}

/// The share of overflows among the losses at which the line through neighbouring points crosses
/// zero.
fn crossing(seen: &Seen<'_>, name: &str) -> Option<f64> {
    let share =
        |loss: u32| seen.results.summary(QUEUED, &queued_key(loss, Off), "congestion_percent").mean;
    let mut points: Vec<(f64, f64)> = losses(seen.setting.quick)
        .iter()
        .map(|&loss| (share(loss), queued_gain(seen, loss, name).mean))
        .collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    // At both ends it must be clear on which side it is.
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

/// ON over OFF in percent, at a share of congestion among the bad states.
fn gain(seen: &Seen<'_>, stay: u64, share: u32, name: &str) -> Summary {
    let of = |party| seen.of(MODELLED, &modelled_key(stay, share, party), name);
    relative_gain(&of(On), &of(Off)).scaled(100.0)
}

fn queued_gain(seen: &Seen<'_>, loss: u32, name: &str) -> Summary {
    let of = |party| seen.of(QUEUED, &queued_key(loss, party), name);
    relative_gain(&of(On), &of(Off)).scaled(100.0)
}

/// The smallest share from which on a mean gain is no longer on the good side; `None` when it is
/// there to the end, or not clearly so at the beginning.
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

/// All points with loss of all tests.
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
    Found::over_points(seen, Above, better == of, ours, gains)
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
    Found::one(ours, share, Above, 50.0)
}

/// The first and the last share of congestion that is tried.
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
    Found::all(ours, &more)
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
    Found {
        holds: STAYS.into_iter().all(falls),
        // The criterion has the intervals in it.
        margins: Vec::new(),
        mean: None,
        ours: format!(
            "mean window from {a:.1} to {b:.1} segments (10 s), from {c:.1} to {d:.1} (1 s)"
        ),
        by: Some(window(STAYS[0], ends(seen)[1])),
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
    Found {
        holds: modelled.iter().any(Option::is_some) || queued.is_some(),
        // The criterion has the intervals in it.
        margins: Vec::new(),
        mean: None,
        ours: format!("{}; where a queue overflows {crossed}", pivot_words(modelled)),
        by: None,
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
    Figure {
        id: format!("congestion-{file}"),
        title: format!("{title} by the share of congestion among losses"),
        x: Axis::linear("bad states that are congested (%)"),
        y: Axis::linear("ON over OFF (%)"),
        series: STAYS.map(line).into(),
        note: "Bad states drop 20 %; congested ones come with 50 ms more delay each way.".into(),
    }
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
    Figure {
        id: "congestion-queue".into(),
        title: "The same where a real queue overflows".into(),
        x: Axis::linear("OFF's losses that are overflows (%)"),
        y: Axis::linear("ON over OFF (%)"),
        series: vec![line(THROUGHPUT, "throughput"), line(OVERHEAD, "overhead")],
        note: "A line of 800 kbit/s and 200 ms with a queue of 8 packets, which a window of 64 \
               segments overflows, and random loss besides."
            .into(),
    }
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
        id: "congestion-queue-table".into(),
        title: "Where a real queue overflows".into(),
        head,
        rows: losses(seen.setting.quick).iter().map(row).collect(),
    }
}
