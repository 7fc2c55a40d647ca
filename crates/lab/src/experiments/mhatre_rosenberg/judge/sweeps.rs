//! What one number at a time does, and the model beside it.

use super::expected::MODEL;
use super::{SWEEPS, Seen, key, shown};
use crate::experiments::mhatre_rosenberg::{Sweep, THREE};
use crate::experiments::{Axis, Cell, Figure, Section, Series};
use sim::multi_access::Scenario;
use sim::multi_access::model::{Model, Predicted, published_terminals};
use units::Span;

/// The pair whose difference is what weights are worth.
const PAIR: [Scenario; 2] = [Scenario::Weighted, Scenario::Equal];
/// Loads at which the model is held to what it says: below, demand takes over.
const MODELLED: f64 = 1.0;

pub(super) fn section(seen: &Seen<'_>) -> Section {
    let mut figures: Vec<Figure> = SWEEPS.iter().map(|sweep| responses(seen, sweep)).collect();
    figures.insert(1, worth(seen));
    figures.insert(2, modelled(seen));
    Section {
        title: "One number at a time".into(),
        text: vec![best(seen)],
        figures,
        cells: vec![model(seen)],
        ..Section::default()
    }
}

fn responses(seen: &Seen<'_>, sweep: &Sweep) -> Figure {
    let line = |scenario: Scenario| {
        let points = sweep.values(seen.setting).iter().map(|&value| {
            (value, seen.results.summary(sweep.study, &key(scenario, value), "mean_s"))
        });
        Series::new(scenario.name(), points)
    };
    let Words { title, axis, note } = words(sweep.study);
    Figure {
        id: format!("response-{}", sweep.study),
        title: title.into(),
        x: Axis::log(axis),
        y: Axis::log("mean response (s)"),
        series: THREE.map(line).into(),
        note: note.into(),
    }
}

/// What is said about a sweep.
struct Words {
    title: &'static str,
    axis: &'static str,
    note: &'static str,
}

fn words(study: &str) -> Words {
    let (title, axis, note) = match study {
        "load" => (
            "Mean response by how often clients ask",
            "mean time between an object and the next request (s)",
            "Clients who think for less ask more. Scenario 1 has no slots for that.",
        ),
        "uplink" => ("Mean response by the return link's rate", "return link (kbit/s)", ""),
        "terminals" => (
            "Mean response by the number of terminals",
            "terminals, with 5 kbit/s of the return link each",
            "The link grows along with the terminals, and what each has of it stays the same.",
        ),
        "object" => (
            "Mean response by the size of an object",
            "object (kB)",
            "Larger objects cost more acknowledgements of TCP's, and STP no more STATs. An object \
             of 1 kB is two segments, which fit TCP's first window: end to end it is the fastest.",
        ),
        "period" => (
            "Mean response by how often slots are granted",
            "time between two burst time plans (ms)",
            "With longer frames the grant loop is longer, and slots of one's own as far apart.",
        ),
        other => unreachable!("{other} is no sweep"),
    };
    Words { title, axis, note }
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
    Figure {
        id: "model".into(),
        title: "Mean response after 20 s and ten thoughts, and by hand".into(),
        x: Axis::log(words(load.study).axis),
        y: Axis::linear("mean response (s)"),
        series,
        note: "The model knows free slots alone: under much load demand moves slots to who needs \
               them. Windows open within some objects, for which clients who think for 8 s need 80 s: \
               from 20 s on their responses were an eighth above the model's."
            .into(),
    }
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
    Figure {
        id: "weights".into(),
        title: "More objects by weights: scenario 3 against scenario 2".into(),
        x: Axis::log("load of a slot (1: as published)"),
        y: Axis::linear("more objects (%)"),
        series: vec![
            line(load, "clients think for less"),
            line(uplink, "the return link is slower"),
        ],
        note: "Pairs of runs. The paper has 12 % at 1.".into(),
    }
}

/// Where weights matter most, in words.
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
    let (_, text) = found.swap_remove(0);
    format!(
        "Weights matter where slots are short and demand is late: of the loads and rates tried most \
         {text}. Where slots are plenty nobody waits for one; where all are asked for there are none \
         left to be given by weight."
    )
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
    MODEL.claim(
        worst.0.abs() <= 0.1,
        format!("at most {:+.1} % off: {}", worst.0 * 100.0, worst.1),
        None,
        "free slots as a server for each terminal, clients in a closed loop",
    )
}
