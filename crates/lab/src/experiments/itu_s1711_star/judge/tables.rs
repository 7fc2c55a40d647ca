//! The tables as arithmetic.

use super::paper;
use crate::experiments::itu_s1711_star::data::{self, MONTHS};
use crate::experiments::statistics::Summary;
use crate::experiments::{Cell, Expected, Section};

pub(super) fn section() -> Section {
    let mut cells = years();
    cells.push(hours());
    cells.extend(highest());
    cells.extend(means());
    Section {
        title: "The tables as arithmetic".into(),
        text: vec![
            "Figures 42 to 44 draw columns of table 16. Tables 14 and 15 are what terminals and \
             modems are able to; figures 38 to 41 are drawings."
                .into(),
        ],
        cells,
        ..Section::default()
    }
}

fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let (count, sum) =
        values.into_iter().fold((0, 0.0), |(count, sum), one| (count + 1, sum + one));
    sum / f64::from(count.max(1))
}

fn years() -> Vec<Cell> {
    let cluster = |place: usize| mean(MONTHS.iter().filter_map(|month| month.clusters[place]));
    let system = |place: usize| mean(MONTHS.iter().map(|month| month.system[place]));
    let hours = |place: usize| mean(MONTHS.iter().map(|month| month.system_hours[place]));
    let ours = [cluster(0), cluster(1), cluster(2), system(0), system(1), hours(0), hours(1)];
    let why = "the mean of the months";
    paper::YEARS.iter().zip(ours).map(|(one, ours)| one.number(Summary::exact(ours), why)).collect()
}

fn hours() -> Cell {
    let fits = |month: &&data::Month| {
        (month.hours * month.system[1] / 100.0 - month.system_hours[0]).abs() <= 1e-3
            && (month.hours - month.system_hours[0] - month.system_hours[1]).abs() <= 1e-3
    };
    let wrong: Vec<&str> =
        MONTHS.iter().filter(|month| !fits(month)).map(|month| month.name).collect();
    paper::OUT.claim(
        wrong.is_empty(),
        format!("{} of 12; not {}", 12 - wrong.len(), wrong.join(", ")),
        None,
        "the document gives April, June and no other month of 30 days 744 hours, and May and July \
         720: their lengths are exchanged, and nothing was unavailable in them",
    )
}

fn highest() -> Vec<Cell> {
    let most = |values: &mut dyn Iterator<Item = f64>| Summary::exact(values.fold(0.0, f64::max));
    vec![
        paper::MAX_2.number(
            most(&mut data::THROUGHPUT_2.iter().map(|row| row[0])),
            "the highest day; its third platform has 324.09 four days later, above the 320 kbit/s \
             of table 14",
        ),
        paper::MAX_3.number(most(&mut data::THROUGHPUT_3.iter().map(|row| row[0])), ""),
    ]
}

fn means() -> Vec<Cell> {
    let counts = [
        fitting(&data::THROUGHPUT_2),
        fitting(&data::THROUGHPUT_3),
        fitting(&data::TRAFFIC_2),
        fitting(&data::TRAFFIC_3),
    ];
    let why = [
        "",
        "the column of the fourth platform repeats the third's; the means fit a fourth platform of \
         some 251 kbit/s",
        "",
        "",
    ];
    let cell = |((one, count), why): ((&Expected, usize), &str)| {
        one.number(Summary::exact(count as f64), why)
    };
    paper::MEANS.iter().zip(counts).zip(why).map(cell).collect()
}

/// Rows whose first value is the mean of the others, as far as digits are printed.
fn fitting<const N: usize>(rows: &[[f64; N]]) -> usize {
    let fits = |row: &&[f64; N]| (row[0] - mean(row[1..].iter().copied())).abs() <= 0.0101;
    rows.iter().filter(fits).count()
}

/// Pearson's coefficient of two tables' first columns.
pub(super) fn correlation<const N: usize, const M: usize>(
    first: &[[f64; N]],
    second: &[[f64; M]],
) -> f64 {
    let [x, y] = [mean(first.iter().map(|row| row[0])), mean(second.iter().map(|row| row[0]))];
    let pairs = || first.iter().zip(second).map(|(a, b)| (a[0] - x, b[0] - y));
    let sum = |part: fn((f64, f64)) -> f64| pairs().map(part).sum::<f64>();
    sum(|(a, b)| a * b) / (sum(|(a, _)| a * a) * sum(|(_, b)| b * b)).sqrt()
}
