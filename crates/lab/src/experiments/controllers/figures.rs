//! The picture of all cases: a column per controller, a row per case, darker for higher
//! utilization.

use super::key;
use crate::experiments::{Picture, Results, Setting};
use sim::scenario::controllers::{Case, Metric, RateControl};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Values that the gateways and the kernel's TCP reached over the emulator, by
/// `study/point/way`: the `values` of `bench control`, shown unless others are given.
const LIVE: &str = include_str!("live.json");

/// Row headings of the studies.
const STUDIES: [(&str, &str); 9] = [
    ("loss", "packets lost, both ways"),
    ("blackout", "the 20 s after a blackout of"),
    ("handoff", "hand-off each 15 s, delay changes by"),
    ("queue", "queue, in bandwidth-delay products"),
    ("return", "return channel"),
    ("demand", "return delay varies, granted on demand"),
    ("fade", "rain: the rate falls for 20 s"),
    ("compete", "beside one flow of CUBIC: × fair share"),
    ("own", "two flows of its own: Jain's index"),
];

const LEFT: f64 = 330.0;
const TOP: f64 = 64.0;
const COLUMN: f64 = 96.0;
const ROW: f64 = 24.0;
const GAP: f64 = 8.0;
const FONT: &str = "font-family=\"Helvetica, Arial, sans-serif\"";

pub(super) fn picture(setting: &Setting, results: &Results, cases: &[Case]) -> Picture {
    let live = Live(setting.measured.clone().unwrap_or_else(kept));
    Picture {
        id: "controllers".into(),
        title: "Share of the link that each way of controlling the rate uses, case by case".into(),
        svg: draw(results, cases, &live),
        note: "Left in each field: simulated. Right, where there is one: live, the gateways and \
               the kernel's TCP over the emulator."
            .into(),
    }
}

/// The live values.
struct Live(BTreeMap<String, f64>);

fn kept() -> BTreeMap<String, f64> {
    serde_json::from_str(LIVE).expect("live.json is an object of numbers")
}

impl Live {
    fn of(&self, case: &Case, way: &str) -> Option<f64> {
        self.0.get(&format!("{}/{}", case.study, key(case, way))).copied()
    }

    /// Returns the controllers that were only run live.
    fn others(&self) -> Vec<&'static str> {
        let has = |way: &&str| self.0.keys().any(|key| key.ends_with(&format!("/{way}")));
        ["bbr"].into_iter().filter(has).collect()
    }
}

fn draw(results: &Results, cases: &[Case], live: &Live) -> String {
    let others = live.others();
    let ways: Vec<&str> =
        RateControl::ALL.map(RateControl::name).into_iter().chain(others.clone()).collect();
    let width = LEFT + COLUMN * ways.len() as f64 + 10.0;
    let height = TOP + ROW * cases.len() as f64 + GAP * STUDIES.len() as f64 + 40.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
    );
    text(&mut svg, (10.0, 22.0), "start", 15, true, "Share of the link that is used");
    for (column, way) in ways.iter().enumerate() {
        let x = LEFT + COLUMN * (column as f64 + 0.5);
        text(&mut svg, (x, TOP - 10.0), "middle", 14, *way == "steady", way);
    }
    let label_x = LEFT + COLUMN * 1.5;
    text(&mut svg, (label_x, 22.0), "middle", 11, false, "rate configured");
    rule(&mut svg, LEFT + 6.0, LEFT + 3.0 * COLUMN - 6.0, 28.0);
    let mut y = TOP;
    for (study, heading) in STUDIES {
        let mut label = heading;
        for case in cases.iter().filter(|case| case.study == study) {
            let middle = y + ROW / 2.0 + 4.5;
            text(&mut svg, (10.0, middle), "start", 12, false, label);
            label = "";
            text(&mut svg, (LEFT - 8.0, middle), "end", 12, false, point(case));
            for (column, way) in ways.iter().enumerate() {
                let simulated = (column < RateControl::ALL.len())
                    .then(|| results.summary(case.study, &key(case, way), "value").mean);
                let place = (LEFT + COLUMN * column as f64, y);
                field(&mut svg, place, case, simulated, live.of(case, way));
            }
            y += ROW;
        }
        y += GAP;
    }
    let below = "darker: more of what can pass is used. Left simulated, right (italic) live";
    text(&mut svg, (10.0, y + 16.0), "start", 11, false, below);
    svg + "</svg>\n"
}

/// Returns the label of a case's row; empty where the heading of its study says all.
fn point(case: &Case) -> &str {
    match case.metric {
        Metric::Share => case.point,
        Metric::OfFair | Metric::Jain => "",
    }
}

/// Draws one field: one colour and number for each value.
fn field(
    svg: &mut String,
    (x, y): (f64, f64),
    case: &Case,
    simulated: Option<f64>,
    live: Option<f64>,
) {
    let whole = COLUMN - 3.0;
    let shares = match (simulated, live) {
        (Some(_), Some(_)) => [0.56, 0.44],
        (Some(_), None) => [1.0, 0.0],
        (None, _) => [0.0, 1.0],
    };
    let mut at = x + 1.5;
    for ((value, share), is_live) in [simulated, live].into_iter().zip(shares).zip([false, true]) {
        let Some(value) = value else { continue };
        let wide = whole * share;
        let (fill, ink) = colours(score(case, value));
        let _ = writeln!(
            svg,
            "<rect x=\"{at:.1}\" y=\"{:.1}\" width=\"{wide:.1}\" height=\"{:.1}\" fill=\"{fill}\"/>",
            y + 1.0,
            ROW - 2.0
        );
        let size = if is_live { 11 } else { 13 };
        let style = if is_live { " font-style=\"italic\"" } else { "" };
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"{size}\"{style} \
             fill=\"{ink}\" {FONT}>{}</text>",
            at + wide / 2.0,
            y + ROW / 2.0 + 4.5,
            number(case, value)
        );
        at += wide;
    }
}

/// Rates a value from 0 to 1.
fn score(case: &Case, value: f64) -> f64 {
    let score = match case.metric {
        Metric::Share => value,
        // Half and twice the fair share are equally unfair.
        Metric::OfFair => value.min(1.0 / value.max(1e-9)),
        Metric::Jain => 2.0 * value - 1.0,
    };
    score.clamp(0.0, 1.0)
}

fn number(case: &Case, value: f64) -> String {
    match case.metric {
        Metric::Share => format!("{:.0} %", value * 100.0),
        Metric::OfFair => format!("{value:.2} ×"),
        Metric::Jain => format!("{value:.3}"),
    }
}

/// Returns the colours of a field and of its text: one hue, for readers with any colour vision.
fn colours(score: f64) -> (String, &'static str) {
    let (pale, dark) = ([247.0, 244.0, 238.0], [10.0, 80.0, 140.0]);
    let mix = |channel: usize| pale[channel] + (dark[channel] - pale[channel]) * score * score;
    let [red, green, blue] = [0, 1, 2].map(|channel| mix(channel) as u8);
    let ink = if score > 0.72 { "#ffffff" } else { "#222222" };
    (format!("#{red:02x}{green:02x}{blue:02x}"), ink)
}

fn rule(svg: &mut String, from: f64, to: f64, y: f64) {
    let _ = writeln!(
        svg,
        "<path d=\"M{from:.1} {:.1}V{y:.1}H{to:.1}V{:.1}\" fill=\"none\" stroke=\"#888888\"/>",
        y + 4.0,
        y + 4.0
    );
}

fn text(svg: &mut String, (x, y): (f64, f64), anchor: &str, size: u32, bold: bool, words: &str) {
    if words.is_empty() {
        return;
    }
    let weight = if bold { " font-weight=\"bold\"" } else { "" };
    let words = words.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-size=\"{size}\"{weight} \
         fill=\"#222222\" {FONT}>{words}</text>"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_and_twice_the_fair_share_have_equal_scores() {
        let cases = sim::scenario::controllers::all();
        let case = cases.iter().find(|case| case.metric == Metric::OfFair).unwrap();
        assert_eq!(score(case, 0.5), score(case, 2.0));
        assert_eq!(score(case, 1.0), 1.0);
        assert_eq!(score(case, 0.0), 0.0);
    }

    #[test]
    fn every_study_has_a_heading_and_live_values_belong_to_cases() {
        let cases = sim::scenario::controllers::all();
        for case in &cases {
            assert!(STUDIES.iter().any(|(study, _)| *study == case.study), "{}", case.study);
        }
        let live = Live(kept());
        let mut known = 0;
        for way in RateControl::ALL.map(RateControl::name).into_iter().chain(["bbr"]) {
            known += cases.iter().filter(|case| live.of(case, way).is_some()).count();
        }
        assert_eq!(known, live.0.len(), "a key of live.json belongs to no case");
    }
}
