//! Section 8: what probing is worth in all, and where it stops paying.

use super::super::conditions;
use super::super::congestion::{MODELLED, QUEUED, STAYS, losses, modelled_key, queued_key, shares};
use super::super::trial::Party::{self, Off, On};
use super::published::conclusion as paper;
use super::reasons::{self, conclusion as why};
use super::seen::{OVERHEAD, RATIO, Seen, THROUGHPUT, WINDOW, claim, claim_by};
use crate::experiments::statistics::{relative_gain, slope};
use crate::experiments::{Axis, Cell, Figure, Section, Series, Summary, Table};

/// Figures, table and cells of section 8.
pub(super) fn section(seen: &Seen<'_>) -> Section {
    let mut cells = everywhere(seen);
    cells.extend(pivots(seen));
    let mut text: Vec<String> = reasons::CONGESTION.map(str::to_owned).into();
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
        cells,
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
    let of = |party| seen.results.values(MODELLED, &modelled_key(stay, share, party), name);
    relative_gain(&of(On), &of(Off)).scaled(100.0)
}

fn queued_gain(seen: &Seen<'_>, loss: u32, name: &str) -> Summary {
    let of = |party| seen.results.values(QUEUED, &queued_key(loss, party), name);
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

fn words(pivots: [Option<u32>; 2]) -> String {
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
        words(STAYS.map(|stay| throughput_pivot(seen, stay))),
        words(STAYS.map(|stay| overhead_pivot(seen, stay))),
        speed[0],
        speed[1],
        cost[0],
        cost[1]
    )
}

fn everywhere(seen: &Seen<'_>) -> Vec<Cell> {
    let mut all = Vec::new();
    for condition in conditions::ALL {
        all.extend(seen.lossy(condition).into_iter().map(|percent| (condition, percent)));
    }
    let better = all.iter().filter(|&&at| seen.gain(at, RATIO).mean > 0.0).count();
    let log = |name: &'static str| {
        let sum: f64 = all.iter().map(|&at| (1.0 + seen.gain(at, name).mean / 100.0).ln()).sum();
        sum / all.len() as f64
    };
    let share = log(THROUGHPUT) / (log(THROUGHPUT) - log(OVERHEAD)) * 100.0;
    vec![
        claim(
            &paper::ALWAYS_BETTER,
            better == all.len(),
            format!("better at {better} of {} points", all.len()),
            why::ALWAYS_BETTER,
        ),
        claim(
            &paper::BY_THROUGHPUT,
            share > 50.0,
            format!("{share:.0} % of the ratio's gain is throughput"),
            why::BY_THROUGHPUT,
        ),
    ]
}

fn pivots(seen: &Seen<'_>) -> Vec<Cell> {
    let shares = shares(seen.setting.quick);
    let ends = [shares[0], shares[shares.len() - 1]];
    let gains = STAYS.map(|stay| ends.map(|share| gain(seen, stay, share, THROUGHPUT)));
    let window =
        |stay, share| seen.results.summary(MODELLED, &modelled_key(stay, share, On), WINDOW);
    let falls = STAYS.map(|stay| {
        let means: Vec<(f64, f64)> =
            shares.iter().map(|&s| (f64::from(s), window(stay, s).mean)).collect();
        let [first, last] = ends.map(|share| window(stay, share));
        let apart = first.mean - last.mean > 0.0 && !overlap(first, last);
        slope(&means).is_some_and(|slope| slope < 0.0) && apart
    });
    let speed = STAYS.map(|stay| throughput_pivot(seen, stay));
    let cost = STAYS.map(|stay| overhead_pivot(seen, stay));
    let queue = [THROUGHPUT, OVERHEAD].map(|name| crossing(seen, name));
    vec![
        claim(
            &paper::MORE_WITH_LINK_ERRORS,
            gains.iter().all(|[none, all]| none.mean > all.mean),
            format!(
                "{:+.0} % without, {:+.0} % with nothing but congestion (10 s); {:+.0} % and \
                 {:+.0} % (1 s)",
                gains[0][0].mean, gains[0][1].mean, gains[1][0].mean, gains[1][1].mean
            ),
            why::MORE_WITH_LINK_ERRORS,
        ),
        claim_by(
            &paper::FALLS_WITH_CONGESTION,
            falls == [true, true],
            format!(
                "mean window from {:.1} to {:.1} segments (10 s), from {:.1} to {:.1} (1 s)",
                window(STAYS[0], ends[0]).mean,
                window(STAYS[0], ends[1]).mean,
                window(STAYS[1], ends[0]).mean,
                window(STAYS[1], ends[1]).mean
            ),
            window(STAYS[0], ends[1]),
            why::FALLS_WITH_CONGESTION,
        ),
        claim(
            &paper::PIVOT_OF_THROUGHPUT,
            speed.iter().any(Option::is_some) || queue[0].is_some(),
            format!("{}; where a queue overflows {}", words(speed), crossing_words(queue[0])),
            why::PIVOT_OF_THROUGHPUT,
        ),
        claim(
            &paper::PIVOT_OF_OVERHEAD,
            cost.iter().any(Option::is_some) || queue[1].is_some(),
            format!("{}; where a queue overflows {}", words(cost), crossing_words(queue[1])),
            why::PIVOT_OF_OVERHEAD,
        ),
    ]
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
