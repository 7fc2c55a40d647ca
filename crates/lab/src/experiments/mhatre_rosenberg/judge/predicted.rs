//! Demand that the hub sees coming, because its transport has just sent what will be answered.

use super::{Seen, shown};
use crate::experiments::mhatre_rosenberg::{FREE, PREDICTED};
use crate::experiments::{Section, Table};
use sim::multi_access::Prediction;

pub(super) fn section(seen: &Seen<'_>) -> Section {
    let row = |name: &str, prediction: Prediction| {
        let key = format!("{}/{name}", prediction.name());
        let value = |value: &str| seen.results.summary(PREDICTED, &key, value);
        vec![
            name.to_owned(),
            prediction.name().to_owned(),
            shown(value("mean_s"), 2),
            shown(value("objects"), 0),
            shown(value("granted"), 0),
            shown(value("used"), 0),
        ]
    };
    let all = FREE.iter().flat_map(|(name, _)| Prediction::ALL.map(|one| row(name, one)));
    let head = ["slots", "the others are", "mean response, s", "objects", "slots granted", "used"];
    let table = Table {
        id: "predicted".into(),
        title: "Pages of eight objects: what the hub grants before it is asked".into(),
        head: head.map(str::to_owned).into(),
        rows: all.collect(),
    };
    let gain = |(name, _): (&str, _)| {
        let [asked, .., known] = Prediction::ALL.map(|one| format!("{}/{name}", one.name()));
        shown(seen.gain(PREDICTED, &known, &asked, "mean_s").scaled(100.0), 1)
    };
    let [none, weighted] = FREE.map(gain);
    Section {
        title: "Demand that the hub sees coming".into(),
        text: vec![format!(
            "Users read pages of eight objects, one after the other, as often as they had asked for \
             single ones. The hub has just sent an object: it grants slots for the answer to its \
             POLL, and for the next request, in the plan that follows. Where nothing is free that \
             changes the mean response by {none} %, because the slots are there when the object is, \
             and the grant loop is not waited for; where slots are free by weight by {weighted} %: \
             requests go in free slots then, and nobody waits for a grant."
        )],
        tables: vec![table],
        ..Section::default()
    }
}
