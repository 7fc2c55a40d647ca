//! Calculations on the tables.

use crate::experiments::itu_s1711_star::data::{self, DATA};
use crate::experiments::publication::page;
use crate::experiments::statistics::Summary;
use crate::experiments::{Cell, Section};

page!(PAGE = "itu-s1711-star/tables");

pub(super) fn section() -> Section {
    let mut cells = years();
    cells.push(hours());
    cells.extend(highest());
    cells.extend(means());
    Section { cells, ..PAGE.section() }
}

fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let (count, sum) =
        values.into_iter().fold((0, 0.0), |(count, sum), one| (count + 1, sum + one));
    sum / f64::from(count.max(1))
}

fn years() -> Vec<Cell> {
    let cluster = |place: usize| {
        mean(DATA.months.iter().filter_map(|month| month.clusters.get(place).copied()))
    };
    let system = |place: usize| mean(DATA.months.iter().map(|month| month.system[place]));
    let hours = |place: usize| mean(DATA.months.iter().map(|month| month.system_hours[place]));
    let ours = [cluster(0), cluster(1), cluster(2), system(0), system(1), hours(0), hours(1)];
    const IDS: [&str; 7] =
        ["cluster-1", "cluster-2", "cluster-3", "system", "system-out", "hours-out", "hours"];
    let cell = |(id, ours): (&str, f64)| PAGE.claim(id).number(Summary::exact(ours));
    IDS.into_iter().zip(ours).map(cell).collect()
}

fn hours() -> Cell {
    let fits = |month: &&data::Month| {
        (month.hours * month.system[1] / 100.0 - month.system_hours[0]).abs() <= 1e-3
            && (month.hours - month.system_hours[0] - month.system_hours[1]).abs() <= 1e-3
    };
    let wrong: Vec<&str> =
        DATA.months.iter().filter(|month| !fits(month)).map(|month| month.name.as_str()).collect();
    PAGE.claim("out").holds(
        wrong.is_empty(),
        format!("{} of 12; not {}", 12 - wrong.len(), wrong.join(", ")),
        None,
    )
}

fn highest() -> Vec<Cell> {
    let most = |values: &mut dyn Iterator<Item = f64>| Summary::exact(values.fold(0.0, f64::max));
    vec![
        PAGE.claim("max-2").number(most(&mut DATA.throughput_2.iter().map(|row| row[0]))),
        PAGE.claim("max-3").number(most(&mut DATA.throughput_3.iter().map(|row| row[0]))),
    ]
}

fn means() -> Vec<Cell> {
    let counts = [
        ("means-throughput-2", fitting(&DATA.throughput_2)),
        ("means-throughput-3", fitting(&DATA.throughput_3)),
        ("means-traffic-2", fitting(&DATA.traffic_2)),
        ("means-traffic-3", fitting(&DATA.traffic_3)),
    ];
    counts.map(|(id, days)| PAGE.claim(id).number(Summary::exact(days as f64))).into()
}

/// Returns the number of rows whose first value is the mean of the others within the printed
/// digits.
fn fitting<const N: usize>(rows: &[[f64; N]]) -> usize {
    let fits = |row: &&[f64; N]| (row[0] - mean(row[1..].iter().copied())).abs() <= 0.0101;
    rows.iter().filter(fits).count()
}

/// Returns Pearson's correlation coefficient of two tables' first columns.
pub(super) fn correlation<const N: usize, const M: usize>(
    first: &[[f64; N]],
    second: &[[f64; M]],
) -> f64 {
    let [x, y] = [mean(first.iter().map(|row| row[0])), mean(second.iter().map(|row| row[0]))];
    let pairs = || first.iter().zip(second).map(|(a, b)| (a[0] - x, b[0] - y));
    let sum = |part: fn((f64, f64)) -> f64| pairs().map(part).sum::<f64>();
    sum(|(a, b)| a * b) / (sum(|(a, _)| a * a) * sum(|(_, b)| b * b)).sqrt()
}
