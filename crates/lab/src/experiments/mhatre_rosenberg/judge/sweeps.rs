//! Sweeps of one parameter at a time, and the analytic model.

use super::{SWEEPS, Seen, key, shown};
use crate::experiments::mhatre_rosenberg::{Sweep, THREE};
use crate::experiments::publication::page;
use crate::experiments::{Cell, Figure, Section, Series};
use sim::multi_access::Scenario;
use sim::multi_access::model::{Model, Predicted, published_terminals};
use units::Span;

page!(PAGE = "mhatre-rosenberg/sweeps");

/// The pair of scenarios whose difference is the gain of weights.
const PAIR: [Scenario; 2] = [Scenario::Weighted, Scenario::Equal];
/// Smallest think time in seconds at which the model applies; below, demand dominates.
const MODELLED: f64 = 1.0;

pub(super) fn section(seen: &Seen<'_>) -> Section {
    let mut figures: Vec<Figure> = SWEEPS.iter().map(|sweep| responses(seen, sweep)).collect();
    figures.insert(1, worth(seen));
    figures.insert(2, modelled(seen));
    Section { figures, cells: vec![model(seen)], ..PAGE.section_with(&[("most", best(seen))]) }
}

fn responses(seen: &Seen<'_>, sweep: &Sweep) -> Figure {
    let line = |scenario: Scenario| {
        let points = sweep.values(seen.setting).iter().map(|&value| {
            (value, seen.results.summary(sweep.study, &key(scenario, value), "mean_s"))
        });
        Series::new(scenario.name(), points)
    };
    PAGE.figure(&format!("response-{}", sweep.study), THREE.map(line).into())
}

fn modelled(seen: &Seen<'_>) -> Figure {
    let load = &SWEEPS[0];
    let mut series = Vec::new();
    for (scenario, weighted) in [(Scenario::Equal, false), (Scenario::Weighted, true)] {
        let values = load.values(seen.setting).iter();
        let ours = values.clone().map(|&think| {
            (think, seen.results.summary(load.study, &key(scenario, think), "settled_s"))
        });
        series.push(Series::new(scenario.name(), ours));
        let by_hand = values.map(|&think| (think, said(think, weighted).response_s));
        series.push(Series::dashed(format!("{}, by hand", scenario.name()), by_hand));
    }
    PAGE.figure("model", series)
}

fn worth(seen: &Seen<'_>) -> Figure {
    let [load, uplink] = ["load", "uplink"].map(|study| {
        SWEEPS.iter().find(|sweep| sweep.study == study).expect("a sweep of that name")
    });
    let line = |sweep: &Sweep, name: &str| {
        let points = sweep.values(seen.setting).iter().map(|&value| {
            let place = if sweep.study == "load" { 2.0 / value } else { 100.0 / value };
            (place, seen.sweep_gain(sweep.study, value, PAIR, "objects").scaled(100.0))
        });
        Series::new(name, points)
    };
    PAGE.figure(
        "weights",
        vec![line(load, "clients think for less"), line(uplink, "the return link is slower")],
    )
}

/// Describes the point with the largest gain of weights.
fn best(seen: &Seen<'_>) -> String {
    let mut found: Vec<(f64, String)> = Vec::new();
    for study in ["load", "uplink"] {
        let sweep = SWEEPS.iter().find(|sweep| sweep.study == study).expect("a sweep");
        for &value in sweep.values(seen.setting) {
            let gain = seen.sweep_gain(study, value, PAIR, "objects").scaled(100.0);
            let response = seen.sweep_gain(study, value, PAIR, "mean_s").scaled(100.0);
            let unit = if study == "load" { "s between requests" } else { "kbit/s" };
            let text = format!(
                "at {value} {unit}, where they make {} % more objects and change the mean \
                 response by {} %",
                shown(gain, 1),
                shown(response, 1)
            );
            found.push((gain.mean, text));
        }
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found.swap_remove(0).1
}

fn said(think: f64, weighted: bool) -> Predicted {
    let model = Model { think: Span::from_secs_f64(think), ..Model::published() };
    model.all(&published_terminals(58.0, weighted))
}

fn model(seen: &Seen<'_>) -> Cell {
    let load = &SWEEPS[0];
    let mut worst = (0.0_f64, String::new());
    for &think in load.values(seen.setting).iter().filter(|&&think| think >= MODELLED) {
        for (scenario, weighted) in [(Scenario::Equal, false), (Scenario::Weighted, true)] {
            let ours = seen.results.summary(load.study, &key(scenario, think), "settled_s");
            let off = said(think, weighted).response_s / ours.mean - 1.0;
            if off.abs() >= worst.0.abs() {
                worst = (off, format!("{}, {think} s between requests", scenario.name()));
            }
        }
    }
    PAGE.claim("model").holds(
        worst.0.abs() <= 0.1,
        format!("at most {:+.1} % off: {}", worst.0 * 100.0, worst.1),
        None,
    )
}
