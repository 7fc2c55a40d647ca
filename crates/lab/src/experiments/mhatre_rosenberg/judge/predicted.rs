//! Demand that the hub predicts from the data that its transport has just sent.

use super::{Seen, shown};
use crate::experiments::Section;
use crate::experiments::mhatre_rosenberg::{FREE, PREDICTED};
use crate::experiments::publication::page;
use sim::multi_access::Prediction;

page!(PAGE = "mhatre-rosenberg/predicted");

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
    let table = PAGE.table("predicted", all);
    let gain = |(name, _): (&str, _)| {
        let [asked, .., known] = Prediction::ALL.map(|one| format!("{}/{name}", one.name()));
        shown(seen.gain(PREDICTED, &known, &asked, "mean_s").scaled(100.0), 1)
    };
    let [none, weighted] = FREE.map(gain);
    Section { tables: vec![table], ..PAGE.section_with(&[("none", none), ("weighted", weighted)]) }
}
