//! Combined readings: which of them the published gains choose, and what that one gives elsewhere.

use super::super::conditions::Condition;
use super::super::joint::{JOINT, Reading, TESTS};
use super::super::trial::Party;
use super::seen::{OVERHEAD, Seen, THROUGHPUT};
use super::{connectivity, corruption, handoff};
use crate::experiments::publication::page;
use crate::experiments::statistics::relative_gain;
use crate::experiments::{Section, Table};

page!(PAGE = "elaasar-2003/joint");

/// Relative difference from the published number within which a number agrees.
const TOLERANCE: f64 = 0.1;

/// The numbers of a combination: greatest gain of the three tests, by which it is chosen; least
/// gain of the three, overhead saved at the last point of corruption and of hand-off, on which it
/// is judged.
struct Row {
    reading: Reading,
    fitted: [f64; 3],
    judged: [f64; 5],
    /// Points of all at which ON is faster.
    faster: usize,
    points: usize,
}

impl Row {
    fn new(seen: &Seen<'_>, reading: Reading) -> Self {
        let change = |at: Condition, percent: u32, name: &str| {
            let of = |party| seen.of(JOINT, &reading.key(at, percent, party), name);
            relative_gain(&of(Party::On), &of(Party::Off)).mean * 100.0
        };
        let gains = TESTS.map(|(conditions, points)| {
            let each = |at| points.iter().map(move |&point| (at, point));
            let all = conditions.into_iter().flat_map(each);
            all.map(|(at, point)| change(at, point, THROUGHPUT)).collect::<Vec<f64>>()
        });
        let greatest = |all: &Vec<f64>| all.iter().copied().fold(f64::MIN, f64::max);
        let least = |all: &Vec<f64>| all.iter().copied().fold(f64::MAX, f64::min);
        let saved = |test: usize| {
            let (conditions, points) = TESTS[test];
            let last = points[points.len() - 1];
            conditions.map(|at| -change(at, last, OVERHEAD)).into_iter().fold(f64::MIN, f64::max)
        };
        let [a, b, c] = [0, 1, 2].map(|test| least(&gains[test]));
        Self {
            reading,
            fitted: [0, 1, 2].map(|test| greatest(&gains[test])),
            judged: [a, b, c, saved(0), saved(1)],
            faster: gains.iter().flatten().filter(|&&gain| gain > 0.0).count(),
            points: gains.iter().map(Vec::len).sum(),
        }
    }

    /// Returns the mean relative difference of the fitted numbers.
    fn error(&self, published: &[f64; 3]) -> f64 {
        let each = self.fitted.iter().zip(published);
        each.map(|(ours, published)| (ours / published - 1.0).abs()).sum::<f64>() / 3.0
    }
}

/// Returns the section.
pub(super) fn section(seen: &Seen<'_>) -> Section {
    let published = published();
    let rows: Vec<Row> = Reading::all().map(|reading| Row::new(seen, reading)).collect();
    let errors = rows.iter().map(|row| row.error(&published.0));
    let best = errors.enumerate().min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(row, _)| row);
    let best = &rows[best];
    let near = |(ours, published): (&f64, &f64)| (ours / published - 1.0).abs() <= TOLERANCE;
    let agree = best.judged.iter().zip(&published.1).filter(|pair| near(*pair)).count();
    let values = [
        ("best", words(&best.reading)),
        ("error", format!("{:.0}", best.error(&published.0) * 100.0)),
        ("agree", agree.to_string()),
        ("judged", published.1.len().to_string()),
        ("faster", format!("{} of {}", best.faster, best.points)),
    ];
    Section { tables: vec![table(&rows, &published)], ..PAGE.section_with(&values) }
}

/// Returns the published numbers, fitted and judged.
fn published() -> ([f64; 3], [f64; 5]) {
    let [of_corruption, of_handoff, of_connectivity] =
        [&corruption::PAGE, &handoff::PAGE, &connectivity::PAGE].map(|page| {
            let value = |id: &str| page.claim(id).value();
            [value("least-gain"), value("greatest-gain")]
        });
    let greatest = [of_corruption[1], of_handoff[1], of_connectivity[1]];
    let saved = [
        corruption::PAGE.claim("overhead-saved-at-50-percent").value(),
        handoff::PAGE.claim("overhead-saved-at-the-last-point").value(),
    ];
    (greatest, [of_corruption[0], of_handoff[0], of_connectivity[0], saved[0], saved[1]])
}

fn words(reading: &Reading) -> String {
    let Reading { tolerance, backoff_cap, drops_in_both } = reading;
    let states = if *drops_in_both { "both states" } else { "the bad state" };
    format!("tolerance {tolerance}, {} intervals, drops in {states}", 1 << backoff_cap)
}

fn table(rows: &[Row], published: &([f64; 3], [f64; 5])) -> Table {
    let numbers = |all: &[f64]| all.iter().map(|value| format!("{value:.0}")).collect::<Vec<_>>();
    let row = |row: &Row| {
        let Reading { tolerance, backoff_cap, drops_in_both } = row.reading;
        let states = if drops_in_both { "both" } else { "bad" };
        let mut cells =
            vec![tolerance.to_string(), (1_u32 << backoff_cap).to_string(), states.to_owned()];
        cells.extend(numbers(&row.fitted));
        cells.push(format!("{:.0}", row.error(&published.0) * 100.0));
        cells.extend(numbers(&row.judged));
        cells.push(format!("{} of {}", row.faster, row.points));
        cells
    };
    let mut first = ["published", "", ""].map(str::to_owned).to_vec();
    first.extend(numbers(&published.0));
    first.push(String::new());
    first.extend(numbers(&published.1));
    first.push("all".to_owned());
    PAGE.table("joint", std::iter::once(first).chain(rows.iter().map(row)))
}
