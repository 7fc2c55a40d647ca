//! The paper's figures, and tables of the values behind them.

use super::super::conditions::{self, Condition};
use super::super::trial::Party;
use super::seen::{OVERHEAD, RATIO, RETRANSMISSIONS, Seen, THROUGHPUT, WINDOW};
use crate::experiments::publication::page;
use crate::experiments::statistics::pm;
use crate::experiments::{Axis, Figure, Series, Summary, Table};
use units::Span;

page!(pub(super) OVERVIEW = "elaasar-2003/overview");

/// The quantity of a figure.
#[derive(Clone, Copy)]
struct Shown {
    value: &'static str,
    file: &'static str,
    heading: &'static str,
    axis: &'static str,
    scale: f64,
}

const SPEED: Shown = Shown {
    value: THROUGHPUT,
    file: "throughput",
    heading: "Effective throughput",
    axis: "effective throughput (kbit/s)",
    scale: 1e-3,
};
const COST: Shown = Shown {
    value: OVERHEAD,
    file: "overhead",
    heading: "Overhead",
    axis: "transmission overhead (% of the file)",
    scale: 1.0,
};
const WORTH: Shown = Shown {
    value: RATIO,
    file: "ratio",
    heading: "Throughput/overhead",
    axis: "throughput / overhead (kbit/s per %)",
    scale: 1e-3,
};

/// Returns throughput, overhead and ratio of a condition; `numbers` are the paper's figure numbers,
/// empty for figures of the thesis alone.
pub(super) fn of(seen: &Seen<'_>, condition: Condition, numbers: [&str; 3]) -> Vec<Figure> {
    let shown = [SPEED, COST, WORTH].into_iter().zip(numbers);
    shown.map(|(shown, number)| figure(seen, condition, shown, number)).collect()
}

fn figure(seen: &Seen<'_>, condition: Condition, shown: Shown, number: &str) -> Figure {
    let line = |party: Party| {
        let at = |&percent: &u32| {
            let mean = seen.mean((condition, percent), party, shown.value).scaled(shown.scale);
            (f64::from(percent), mean)
        };
        Series::new(party.title(), seen.points(condition).iter().map(at))
    };
    let words = words(condition);
    let place = match number {
        "" => "in the thesis".to_owned(),
        number => format!("figure {number}"),
    };
    Figure {
        id: format!("{}-{}", condition.name(), shown.file),
        title: format!("{}: {words} ({place})", shown.heading),
        x: Axis::linear(axis(condition)),
        y: Axis::linear(shown.axis),
        series: Party::ALL.map(line).into(),
        note: String::new(),
    }
}

/// Describes a condition.
pub(super) fn words(condition: Condition) -> String {
    let seconds = |stay: Span| stay.as_secs_f64();
    match condition {
        Condition::Corruption(stay) => format!("bit corruption, stays of {} s", seconds(stay)),
        Condition::Handoff(stay) => format!("hand-off, blackouts of {} s", seconds(stay)),
        Condition::Connectivity(stay) => {
            format!("limited connectivity, {} s at a time", seconds(stay))
        }
    }
}

fn axis(condition: Condition) -> &'static str {
    match condition {
        Condition::Corruption(_) => "dropped in the bad state (%)",
        Condition::Handoff(_) => "hand-off rate: share of time without link (%)",
        Condition::Connectivity(_) => "connectivity rate: share of time with link (%)",
    }
}

/// Returns the table of a condition: composition of the overhead, windows and probing.
pub(super) fn table(seen: &Seen<'_>, condition: Condition) -> Table {
    let mut rows = Vec::new();
    for &percent in seen.points(condition) {
        for party in Party::ALL {
            rows.push(row(seen, (condition, percent), party));
        }
    }
    let table = OVERVIEW.table("test", rows);
    let replications = seen.setting.replications.to_string();
    let title = table.title.replace("{replications}", &replications);
    let title = format!("{title}: {}", words(condition));
    Table { id: format!("{}-table", condition.name()), title, ..table }
}

fn row(seen: &Seen<'_>, at: (Condition, u32), party: Party) -> Vec<String> {
    let mean = |name| seen.mean(at, party, name);
    let polls = Summary::of(&seen.forward_control(at, party));
    let gain = match party {
        Party::On => pm(seen.gain(at, THROUGHPUT), 1),
        Party::Off | Party::Steady => String::new(),
    };
    let (cycles, cycle) = match party {
        Party::On => {
            let cycle = seen.cycle(at).map_or_else(String::new, |mean| format!("{mean:.2}"));
            (format!("{:.0}", mean("cycles").mean), cycle)
        }
        Party::Off | Party::Steady => (String::new(), String::new()),
    };
    let window = match party {
        Party::Steady => "–".to_owned(),
        Party::Off | Party::On => format!("{:.1}", mean(WINDOW).mean),
    };
    vec![
        at.1.to_string(),
        party.title().to_owned(),
        pm(mean(THROUGHPUT).scaled(1e-3), 0),
        gain,
        pm(mean(OVERHEAD), 2),
        format!("{:.2}", mean(RETRANSMISSIONS).mean),
        format!("{:.2}", polls.mean),
        format!("{:.2}", mean("data_headers_percent").mean),
        format!("{:.2}", mean("reverse_control_percent").mean),
        window,
        format!("{:.1}", Summary::of(&seen.per_event(at, party, "segments_sent_again")).mean),
        cycles,
        cycle,
    ]
}

/// Returns figures with the gains of all six tests.
pub(super) fn gains(seen: &Seen<'_>) -> Vec<Figure> {
    let figure = |value: &str, id: &str| {
        let line = |condition| gain_line(seen, condition, value);
        OVERVIEW.figure(id, conditions::ALL.map(line).into())
    };
    vec![figure(THROUGHPUT, "gains-throughput"), figure(OVERHEAD, "gains-overhead")]
}

fn gain_line(seen: &Seen<'_>, condition: Condition, value: &str) -> Series {
    let points = seen.points(condition);
    let (first, last) = (f64::from(points[0]), f64::from(points[points.len() - 1]));
    let at = |&percent: &u32| {
        ((f64::from(percent) - first) / (last - first), seen.gain((condition, percent), value))
    };
    Series::new(words(condition), points.iter().map(at))
}
