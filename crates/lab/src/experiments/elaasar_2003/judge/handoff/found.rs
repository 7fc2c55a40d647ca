//! What sentences of no usual shape stand on.

use super::super::super::conditions::{CORRUPTION_10, Condition, HANDOFF_1, HANDOFF_HALF};
use super::super::super::trial::Party::{Off, On};
use super::super::measure::{CONTROL, COST, SPEED};
use super::super::seen::{Seen, extremes, over};
use super::super::sentence::Found;
use super::super::sentence::Side::{Above, Below};
use super::TESTS;
use crate::experiments::Summary;

pub(super) fn gains(seen: &Seen<'_>) -> (Summary, Summary) {
    let places = TESTS.iter().flat_map(|&test| seen.points(test).iter().map(move |&p| (test, p)));
    extremes(places.map(|at| SPEED.gain(seen, at)))
}

/// The last point of the longer blackouts.
pub(super) fn overhead_saved(seen: &Seen<'_>) -> Summary {
    let points = seen.points(HANDOFF_1);
    COST.gain(seen, (HANDOFF_1, points[points.len() - 1])).scaled(-1.0)
}

/// The mean share of its window that OFF (first) and ON lose each blackout.
fn shares(seen: &Seen<'_>, test: Condition) -> [f64; 2] {
    [Off, On].map(|party| {
        over(seen.points(test), |p| Summary::of(&seen.lost_share((test, p), party)).mean)
    })
}

pub(super) fn off_drains(seen: &Seen<'_>) -> Found {
    let [half, one] =
        [HANDOFF_HALF, HANDOFF_1].map(|test| seen.jackknife(|seen| shares(seen, test)[0]));
    let ours =
        format!("{:.0} % of the mean window with 0.5 s, {:.0} % with 1 s", half.mean, one.mean);
    Found::all(ours, &[half, one].map(|share| (share, Above, 100.0 / 3.0)))
}

pub(super) fn on_loses_a_part(seen: &Seen<'_>) -> Summary {
    let places = TESTS.iter().flat_map(|&test| seen.points(test).iter().map(move |&p| (test, p)));
    let shares: Vec<f64> = places.map(|at| Summary::of(&seen.lost_share(at, On)).mean).collect();
    Summary::of(&shares)
}

pub(super) fn loses_less(seen: &Seen<'_>) -> Found {
    let tests = [HANDOFF_HALF, HANDOFF_1];
    let less = tests.map(|test| {
        let less = seen.jackknife(|seen| {
            let [off, on] = shares(seen, test);
            on - off
        });
        (less, Below, 0.0)
    });
    let [half, one] = tests.map(|test| {
        let [off, on] = shares(seen, test);
        format!("{on:.0} % (OFF {off:.0} %)")
    });
    Found::all(format!("with 0.5 s {half}, with 1 s {one}"), &less)
}

pub(super) fn false_alarms(seen: &Seen<'_>) -> Found {
    let alarms = SPEED.gain(seen, (CORRUPTION_10, 0));
    Found::one(format!("{:+.2} %", alarms.mean), alarms, Above, -3.0)
}

pub(super) fn control_hardly_matters(seen: &Seen<'_>) -> Found {
    let most = seen.jackknife(|seen| {
        let places =
            TESTS.iter().flat_map(|&test| seen.points(test).iter().map(move |&p| (test, p)));
        let apart = places.map(|at| {
            let [off, on] =
                [Off, On].map(|party| Summary::of(&CONTROL.values(seen, at, party)).mean);
            (on - off).abs()
        });
        apart.fold(0.0, f64::max)
    });
    Found::one(format!("at most {:.2} % of the file apart", most.mean), most, Below, 1.0)
}
