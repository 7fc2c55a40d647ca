//! Section 6.2: hand-off, figures 9 to 14, page 9 to 11.

use super::super::conditions::{CORRUPTION_10, Condition, HANDOFF_1, HANDOFF_HALF};
use super::super::trial::Party::{Off, On};
use super::figures;
use super::measure::{CONTROL, COST, SPEED};
use super::seen::{Seen, extremes, over};
use super::shapes::{Own, judge};
use crate::experiments::publication::{
    Found,
    Side::{Above, Below},
    page,
};
use crate::experiments::{Section, Summary};

page!(pub(super) PAGE = "elaasar-2003/handoff");

const TESTS: [Condition; 2] = [HANDOFF_HALF, HANDOFF_1];

pub(super) fn section(seen: &Seen<'_>) -> Section {
    let mut figures = figures::of(seen, HANDOFF_HALF, ["9", "11", "13"]);
    figures.extend(figures::of(seen, HANDOFF_1, ["10", "12", "14"]));
    Section {
        figures,
        tables: TESTS.map(|test| figures::table(seen, test)).into(),
        cells: judge(&PAGE, OWN, seen),
        ..PAGE.section()
    }
}

/// Claims without a common form of criterion.
const OWN: &[(&str, Own)] = &[
    ("off-drains-its-window", Own::That(off_drains)),
    ("on-loses-a-part-of-its-window", Own::Number(on_loses_a_part)),
    ("on-loses-a-smaller-part-than-off", Own::That(loses_less)),
    ("false-alarms-cost-little", Own::That(false_alarms)),
    ("least-gain", Own::Number(|seen| gains(seen).0)),
    ("greatest-gain", Own::Number(|seen| gains(seen).1)),
    ("slower-polling-hardly-matters", Own::That(control_hardly_matters)),
    ("overhead-saved-at-the-last-point", Own::Number(overhead_saved)),
];

/// Returns all points of both tests.
fn places(seen: &Seen<'_>) -> impl Iterator<Item = (Condition, u32)> {
    let quick = seen.setting.quick;
    TESTS.into_iter().flat_map(move |test| test.points(quick).iter().map(move |&p| (test, p)))
}

fn gains(seen: &Seen<'_>) -> (Summary, Summary) {
    extremes(places(seen).map(|at| SPEED.gain(seen, at)))
}

/// Returns the overhead saved at the last point of the longer blackouts, in percent.
fn overhead_saved(seen: &Seen<'_>) -> Summary {
    let points = seen.points(HANDOFF_1);
    COST.gain(seen, (HANDOFF_1, points[points.len() - 1])).scaled(-1.0)
}

/// Returns the mean fraction of the window that OFF and ON lose per blackout, in percent.
fn shares(seen: &Seen<'_>, test: Condition) -> [f64; 2] {
    [Off, On].map(|party| {
        over(seen.points(test), |p| Summary::of(&seen.lost_share((test, p), party)).mean)
    })
}

fn off_drains(seen: &Seen<'_>) -> Found {
    let [half, one] = TESTS.map(|test| seen.jackknife(|seen| shares(seen, test)[0]));
    let ours =
        format!("{:.0} % of the mean window with 0.5 s, {:.0} % with 1 s", half.mean, one.mean);
    Found::all(ours, [half, one].map(|share| (share, Above, 100.0 / 3.0)))
}

fn on_loses_a_part(seen: &Seen<'_>) -> Summary {
    let shares = places(seen).map(|at| Summary::of(&seen.lost_share(at, On)).mean);
    Summary::of(&shares.collect::<Vec<f64>>())
}

fn loses_less(seen: &Seen<'_>) -> Found {
    let less = TESTS.map(|test| {
        let less = seen.jackknife(|seen| {
            let [off, on] = shares(seen, test);
            on - off
        });
        (less, Below, 0.0)
    });
    let [half, one] = TESTS.map(|test| {
        let [off, on] = shares(seen, test);
        format!("{on:.0} % (OFF {off:.0} %)")
    });
    Found::all(format!("with 0.5 s {half}, with 1 s {one}"), less)
}

fn false_alarms(seen: &Seen<'_>) -> Found {
    let alarms = SPEED.gain(seen, (CORRUPTION_10, 0));
    Found::new(format!("{:+.2} %", alarms.mean)).above(alarms, -3.0)
}

fn control_hardly_matters(seen: &Seen<'_>) -> Found {
    let most = seen.jackknife(|seen| {
        let apart = places(seen).map(|at| {
            let [off, on] =
                [Off, On].map(|party| Summary::of(&CONTROL.values(seen, at, party)).mean);
            (on - off).abs()
        });
        apart.fold(0.0, f64::max)
    });
    Found::new(format!("at most {:.2} % of the file apart", most.mean)).below(most, 1.0)
}
