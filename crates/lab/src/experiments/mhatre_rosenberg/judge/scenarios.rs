//! Table I and the claims about it.

use super::{Seen, shown};
use crate::experiments::mhatre_rosenberg::{
    ASKED_ONLY, DEMAND_AND_FREE, FIXED_SPLIT, LOOP, OPPORTUNITIES, RAREST, REQUESTS, TABLE, asking,
};
use crate::experiments::publication::{Claim, Found, page};
use crate::experiments::statistics::Summary;
use crate::experiments::{Cell, Section, Table};
use sim::multi_access::Scenario;

page!(pub(super) TABLE_I = "mhatre-rosenberg/table-1");
page!(SENTENCES = "mhatre-rosenberg/sentences");

const ONE: &str = Scenario::Static.name();
const TWO: &str = Scenario::Equal.name();
const THREE: &str = Scenario::Weighted.name();

/// Rows of table I: name of the value, heading and decimals.
const ROWS: [(&str, &str, usize); 5] = [
    ("objects", "objects", 0),
    ("mean_s", "mean response, s", 2),
    ("longest_s", "longest response, s", 1),
    ("down_kbps", "downlink, kbit/s", 0),
    ("up_kbps", "uplink, kbit/s", 2),
];
/// The columns of the published table.
const COLUMNS: [Scenario; 3] = [Scenario::Static, Scenario::Equal, Scenario::Weighted];

/// Returns a claim of table I by value and column, counted from 0.
pub(super) fn entry(value: &str, column: usize) -> &'static Claim {
    TABLE_I.claim(&format!("{value}-{}", column + 1))
}

pub(super) fn table(seen: &Seen<'_>) -> Section {
    let mut cells = Vec::new();
    let mut rows = Vec::new();
    let extras = [Scenario::EndToEndOnDemand.name(), ASKED_ONLY, FIXED_SPLIT, DEMAND_AND_FREE];
    let columns: Vec<&str> = COLUMNS.map(Scenario::name).into_iter().chain(extras).collect();
    for (value, words, digits) in ROWS {
        let claims = [0, 1, 2].map(|column| entry(value, column));
        for (claim, key) in claims.into_iter().zip(&columns) {
            cells.push(match claim.is_comparable() {
                true => claim.number(seen.table(key, value)),
                false => claim.not_comparable(),
            });
        }
        let published = claims.map(|claim| claim.value().to_string()).join(" / ");
        let ours = columns.iter().map(|key| shown(seen.table(key, value), digits));
        rows.push([words.to_owned(), published].into_iter().chain(ours).collect());
    }
    let over_first = |key| plus_one(seen.gain(TABLE, key, ONE, "down_kbps"));
    cells.push(TABLE_I.claim("down-ratio-2").number(over_first(TWO)));
    cells.push(TABLE_I.claim("down-ratio-3").number(over_first(THREE)));
    let head = ["value", "table I"].into_iter().chain(columns.iter().copied());
    let table = Table { head: head.map(str::to_owned).collect(), ..TABLE_I.table("table-1", rows) };
    Section { tables: vec![table], cells, ..TABLE_I.section() }
}

pub(super) fn sentences(seen: &Seen<'_>) -> Section {
    let mut cells = gains(seen);
    cells.extend(directions(seen));
    cells.extend(weights(seen));
    cells.push(grant_loop(seen));
    Section { tables: vec![requests(seen)], cells, ..SENTENCES.section() }
}

/// Returns the table of how often a terminal without slots may send a request.
fn requests(seen: &Seen<'_>) -> Table {
    let row = |frames: u32| {
        let mut row = vec![frames.to_string()];
        for (name, _) in asking(frames) {
            row.push(shown(timeouts_each(seen, frames, name), 2));
            let key = format!("{frames}/{name}");
            row.push(shown(seen.results.summary(REQUESTS, &key, "mean_s"), 2));
        }
        row
    };
    SENTENCES.table("requests", OPPORTUNITIES.map(row))
}

/// Returns the timeouts for each object where a terminal may send a request once in `frames`.
fn timeouts_each(seen: &Seen<'_>, frames: u32, name: &str) -> Summary {
    let of = |value: &str| {
        let key = format!("{frames}/{name}");
        seen.results.values(REQUESTS, &key, value).into_iter()
    };
    let each = of("timeouts").zip(of("objects")).map(|(timeouts, objects)| timeouts / objects);
    Summary::of(&each.collect::<Vec<f64>>())
}

fn gains(seen: &Seen<'_>) -> Vec<Cell> {
    let gain = |first: &str, second: &str| seen.gain(TABLE, first, second, "objects").scaled(100.0);
    let slots = f64::from(satlink::mac::mf_tdma::MfTdmaConfig::mhatre_rosenberg(20).positions());
    vec![
        SENTENCES.claim("more-split").number(gain(TWO, ONE)),
        SENTENCES.claim("more-weighted").number(gain(THREE, TWO)),
        SENTENCES.claim("more-in-all").number(gain(THREE, ONE)),
        SENTENCES.claim("useful").number(Summary::exact(slots * 48.0 * 8.0 / 0.25 / 1e3)),
    ]
}

fn directions(seen: &Seen<'_>) -> Vec<Cell> {
    let mean = |key: &str| seen.table(key, "mean_s");
    let longer = |first: &str, second: &str| seen.gain(TABLE, first, second, "mean_s");
    let half = plus_one(longer(TWO, ONE));
    let fewer = [TWO, THREE].map(|other| seen.gain(TABLE, other, ONE, "objects"));
    let idle = seen.ratio(ONE, "used", "granted");
    let crowd = seen.ratio(ONE, "crowded_s", "alone_s");
    let timeouts = timeouts_each(seen, RAREST, asking(RAREST)[0].0);
    let [one, two] = [ONE, TWO].map(|key| seen.ratio(key, "up_kbps", "objects").scaled(1e4));
    let spare = seen.ratio_of(ONE, TWO, "up_kbps", "objects");
    let asked = longer(ASKED_ONLY, TWO);
    let halves = [TWO, THREE].map(|key| plus_one(seen.gain(TABLE, key, ONE, "up_kbps")));
    vec![
        SENTENCES.claim("half-delay").found(as_in_table(
            format!("{} of scenario 1's", shown(half, 3)),
            "mean_s",
            [(1, half)],
        )),
        SENTENCES.claim("poor").holds(
            mean(ONE).clearly_above(4.0 * 0.54) && fewer.iter().all(|gain| gain.clearly_above(0.0)),
            format!("{} s", shown(mean(ONE), 2)),
            Some(mean(ONE)),
        ),
        SENTENCES.claim("hungry").holds(
            spare.clearly_above(2.0),
            format!("{} bytes an object against {}", shown(one, 0), shown(two, 0)),
            Some(spare),
        ),
        SENTENCES.claim("wasted").holds(
            idle.clearly_below(0.75) && crowd.clearly_above(1.0),
            format!(
                "{} of the slots used; five at a terminal wait {} times as long as one",
                shown(idle, 2),
                shown(crowd, 2)
            ),
            Some(idle),
        ),
        SENTENCES.claim("on-demand").holds(
            timeouts.clearly_above(0.5),
            format!("{} timeouts for each object", shown(timeouts, 3)),
            Some(timeouts),
        ),
        SENTENCES.claim("every-packet").holds(
            asked.clearly_above(0.0),
            format!("{} times as long", shown(plus_one(asked), 2)),
            Some(plus_one(asked)),
        ),
        SENTENCES.claim("efficient").holds(
            mean(TWO).clearly_below(2.0 * 0.54),
            format!("{} s", shown(mean(TWO), 2)),
            Some(mean(TWO)),
        ),
        SENTENCES.claim("half-return").found(as_in_table(
            format!("{} and {}", shown(halves[0], 2), shown(halves[1], 2)),
            "up_kbps",
            [(1, halves[0]), (2, halves[1])],
        )),
    ]
}

/// Returns the finding that ratios of a value to that of scenario 1 are those of table I, within
/// 10 %. Each is given with its column, counted from 0.
fn as_in_table(
    ours: String,
    value: &str,
    ratios: impl IntoIterator<Item = (usize, Summary)>,
) -> Found {
    ratios.into_iter().fold(Found::new(ours), |found, (column, ratio)| {
        let published = entry(value, column).value() / entry(value, 0).value();
        found.between(ratio, 0.9 * published, 1.1 * published)
    })
}

fn weights(seen: &Seen<'_>) -> Vec<Cell> {
    let objects = seen.gain(TABLE, THREE, TWO, "objects").scaled(100.0);
    let mean = seen.gain(TABLE, THREE, TWO, "mean_s").scaled(100.0);
    let crowded = seen.gain(TABLE, THREE, TWO, "crowded_s").scaled(100.0);
    let alone = seen.gain(TABLE, THREE, TWO, "alone_s").scaled(100.0);
    vec![
        SENTENCES.claim("through").holds(
            objects.clearly_above(0.0),
            format!("{} % more objects", shown(objects, 1)),
            Some(objects),
        ),
        SENTENCES.claim("shorter").holds(
            mean.clearly_below(0.0),
            format!("{} %", shown(mean, 1)),
            Some(mean),
        ),
        SENTENCES.claim("longest").holds(
            crowded.clearly_below(0.0),
            format!("{} %; at terminals with one client {} %", shown(crowded, 1), shown(alone, 1)),
            Some(crowded),
        ),
    ]
}

fn grant_loop(seen: &Seen<'_>) -> Cell {
    let value = |name: &str| seen.results.summary(LOOP, "all", name);
    let all = |name: &str| seen.results.values(LOOP, "all", name);
    let least = all("least_s").into_iter().fold(f64::MAX, f64::min);
    let most = all("most_s").into_iter().fold(0.0, f64::max);
    let mean = value("mean_s");
    let holds = (0.54..0.59).contains(&least)
        && (1.24..=1.29).contains(&most)
        && (mean.mean - 0.915).abs() < 0.02;
    SENTENCES.claim("grant-loop").holds(
        holds,
        format!("{least:.3} to {most:.3} s, {} on average", shown(mean, 3)),
        Some(mean),
    )
}

fn plus_one(gain: Summary) -> Summary {
    Summary { mean: gain.mean + 1.0, ..gain }
}
