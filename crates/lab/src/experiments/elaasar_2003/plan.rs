//! The points to run.

use super::super::{Draw, Parameter, Point, Setting};
use super::conditions::Condition;
use super::trial::{Party, Trial};
use super::variants::Variant;
use super::{conditions, congestion, grid, joint, radio, return_of_link, variants};

/// Returns a parameter with its default, minimum and maximum.
const fn parameter(name: &'static str, about: &'static str, range: [f64; 3]) -> Parameter {
    let [default, min, max] = range;
    Parameter { name, about, default, min, max, whole: false }
}

/// Returns the same for integers.
const fn count(name: &'static str, about: &'static str, range: [f64; 3]) -> Parameter {
    Parameter { whole: true, ..parameter(name, about, range) }
}

pub(super) const PARAMETERS: &[Parameter] = &[
    count("file_bytes", "size of the file", [1e7, 1e4, 1e9]),
    parameter("tolerance", "RTT_TOLERANCE, a share of the round trip", [0.1, 0.0, 10.0]),
    count("max_probes", "MAX_PROBES", [4.0, 2.0, 256.0]),
    count("required_probes", "REQ_PROBES", [2.0, 1.0, 2.0]),
    parameter("idle_threshold_s", "idle time after which slow start restarts, s", [3.0, 0.1, 1e6]),
    count("polls_per_round_trip", "POLLS_PER_RTT", [3.0, 1.0, 100.0]),
    parameter("link_rate_kbps", "rate of the line in kbit/s; 0: none", [0.0, 0.0, 1e7]),
    count("grid", "1: run the stored grid of what the paper leaves open again", [0.0, 0.0, 1.0]),
];

/// The study of figures 6 to 17.
pub(super) const FIGURES: &str = "figures";
/// The study of other interpretations.
pub(super) const AMBIGUITIES: &str = "ambiguities";

/// Returns the key of a point of a figure.
pub(super) fn figure_key(condition: Condition, percent: u32, party: Party) -> String {
    format!("{}/{percent}/{}", condition.name(), party.name())
}

/// Points at which other interpretations are tested.
pub(super) const TRIED_AT: [(Condition, [u32; 3]); 4] = [
    (conditions::CORRUPTION_10, [5, 20, 50]),
    (conditions::HANDOFF_1, [1, 5, 15]),
    (conditions::CONNECTED_5, [1, 10, 30]),
    (conditions::CONNECTED_10, [1, 10, 30]),
];

/// Returns the key of a point under another interpretation.
pub(super) fn variant_key(
    variant: &Variant,
    condition: Condition,
    percent: u32,
    party: Party,
) -> String {
    format!("{}/{}", variant.name, figure_key(condition, percent, party))
}

/// Returns the conditions and points at which other interpretations are tested.
pub(super) fn tried_at(quick: bool) -> impl Iterator<Item = (Condition, u32)> {
    // A quick run has only the middle point.
    let points = move |(condition, points): (Condition, [u32; 3])| {
        let kept = move |percent: &u32| !quick || *percent == points[1];
        points.into_iter().filter(kept).map(move |percent| (condition, percent))
    };
    TRIED_AT.into_iter().flat_map(points)
}

pub(super) fn plan(setting: &Setting) -> Vec<Point> {
    let mut points = Vec::new();
    for condition in conditions::ALL {
        for &percent in condition.points(setting.quick) {
            for party in Party::ALL {
                let trial = Trial::new(setting, party, condition, percent);
                let key = figure_key(condition, percent, party);
                let simulate = move |draw: &Draw| trial.run(draw);
                points.push(Point::new(FIGURES, key, setting.replications, simulate));
            }
        }
    }
    points.extend(congestion::plan(setting));
    points.extend(return_of_link::plan(setting));
    points.extend(plan_variants(setting));
    points.extend(joint::plan(setting));
    points.extend(radio::plan(setting));
    points.extend(grid::plan(setting));
    points
}

pub(super) fn plan_variants(setting: &Setting) -> Vec<Point> {
    let mut points = Vec::new();
    for variant in variants::all() {
        // The interpretations without cells are informative.
        let replications = if variant.judged() { setting.replications } else { setting.at_most(5) };
        for (condition, percent) in tried_at(setting.quick) {
            for party in Party::PAPER {
                let trial = variant.of(Trial::new(setting, party, condition, percent));
                let key = variant_key(variant, condition, percent, party);
                let simulate = move |draw: &Draw| trial.run(draw);
                points.push(Point::new(AMBIGUITIES, key, replications, simulate));
            }
        }
    }
    points
}
