//! Section 6.1: bit corruption, figures 6 to 8, page 7 to 9.

use super::super::conditions::{CORRUPTION_1, CORRUPTION_10, Condition};
use super::super::trial::Party::{self, Off, On};
use super::super::variants::{AS_CHOSEN, NO_SLOT, Variant};
use super::figures;
use super::measure::{COST, SPEED, WINDOW};
use super::seen::{Seen, extremes, listed};
use super::shapes::{Own, judge, probe_each_round_trip};
use crate::experiments::publication::{Found, Side::Above, page};
use crate::experiments::statistics::relative_gain;
use crate::experiments::{Section, Summary};

page!(pub(super) PAGE = "elaasar-2003/corruption");

/// Both tests, the longer sojourn time first.
const STAYS: [Condition; 2] = [CORRUPTION_10, CORRUPTION_1];

pub(super) fn section(seen: &Seen<'_>) -> Section {
    let mut figures = figures::of(seen, CORRUPTION_10, ["6", "7", "8"]);
    figures.extend(figures::of(seen, CORRUPTION_1, ["", "", ""]));
    Section {
        figures,
        tables: STAYS.map(|test| figures::table(seen, test)).into(),
        cells: judge(&PAGE, OWN, seen),
        ..PAGE.section()
    }
}

/// Claims without a common form of criterion.
const OWN: &[(&str, Own)] = &[
    ("least-gain", Own::Number(|seen| gains(seen, 0).0)),
    ("greatest-gain", Own::Number(|seen| gains(seen, 1).1)),
    ("larger-windows-at-10-s", Own::That(windows_grow)),
    ("small-windows-at-1-s", Own::That(windows_stay)),
    ("cycles-lengthen", Own::That(cycles_lengthen)),
    ("back-to-slow-start", Own::That(slow_starts)),
    ("light-errors-short-cycles", Own::That(light_is_quick)),
    ("light-errors-same-speed", Own::That(light_goes_on)),
    ("one-halving-a-window", Own::That(one_halving)),
    ("a-probe-each-round-trip", Own::That(|seen| probe_each_round_trip(seen, CORRUPTION_10))),
    ("earlier-polls-help", Own::That(sooner_answers)),
    (
        "overhead-saved-at-50-percent",
        Own::Number(|seen| COST.gain(seen, (CORRUPTION_10, 50)).scaled(-1.0)),
    ),
];

/// Returns the smallest and largest gain in throughput from `from` percent on. The paper's range
/// includes the point without loss, because it says "throughout".
fn gains(seen: &Seen<'_>, from: u32) -> (Summary, Summary) {
    let points = seen.points(CORRUPTION_10).iter().filter(|&&percent| percent >= from);
    extremes(points.map(|&percent| SPEED.gain(seen, (CORRUPTION_10, percent))))
}

fn windows_grow(seen: &Seen<'_>) -> Found {
    let [off, on] = [Off, On].map(|party: Party| {
        let [ten, one] = STAYS.map(|test| WINDOW.values(seen, (test, 20), party));
        let [long, short] = [&ten, &one].map(|values| Summary::of(values).mean);
        (relative_gain(&ten, &one), format!("{long:.1} and {short:.1}"))
    });
    let ours = format!("segments with 10 s and 1 s: OFF {}, ON {}", off.1, on.1);
    Found::all(ours, [off.0, on.0].map(|more| (more, Above, 0.5)))
}

fn windows_stay(seen: &Seen<'_>) -> Found {
    let window = Summary::of(&WINDOW.values(seen, (CORRUPTION_1, 20), Off));
    Found::new(format!("{:.1} segments", window.mean)).below(window, 10.0)
}

fn cycle(seen: &Seen<'_>, percent: u32) -> f64 {
    seen.cycle((CORRUPTION_10, percent)).unwrap_or(0.0)
}

/// Returns the ratio of the mean cycles at 50 % and at 5 %.
fn severe_over_light(seen: &Seen<'_>) -> Summary {
    seen.jackknife(|seen| cycle(seen, 50) / cycle(seen, 5).max(f64::MIN_POSITIVE))
}

fn cycles_lengthen(seen: &Seen<'_>) -> Found {
    let lossy = seen.lossy(CORRUPTION_10);
    let grows = lossy.windows(2).all(|pair| cycle(seen, pair[1]) > cycle(seen, pair[0]));
    let listed = listed(&lossy, |percent| cycle(seen, percent), 2);
    let more = severe_over_light(seen);
    let ours = format!("mean cycle in s: {listed}; {:.1} times as long at 50 % as at 5", more.mean);
    let found = Found::new(ours).above(more, 2.0);
    Found { holds: found.holds && grows, ..found }
}

fn light_is_quick(seen: &Seen<'_>) -> Found {
    let [light, severe] = [5, 50].map(|percent| cycle(seen, percent));
    let ours = format!("mean cycle {light:.2} s at 5 %, {severe:.2} s at 50 %");
    let found = Found::new(ours).above(severe_over_light(seen), 2.0);
    Found { by: None, ..found }
}

fn on_mean(seen: &Seen<'_>, percent: u32, name: &str) -> f64 {
    seen.mean((CORRUPTION_10, percent), On, name).mean
}

fn slow_starts(seen: &Seen<'_>) -> Found {
    let count = |seen: &Seen<'_>, percent| on_mean(seen, percent, "cycles_slow_start");
    let more = seen.jackknife(|seen| count(seen, 50) - count(seen, 5));
    let [severe, light] = [50, 5].map(|percent| count(seen, percent));
    let ours = format!("{severe:.2} a transfer at 50 %, {light:.2} at 5 %");
    Found::new(ours).above(more, 0.0)
}

fn light_goes_on(seen: &Seen<'_>) -> Found {
    let share = seen.jackknife(|seen| {
        let of = |name| on_mean(seen, 5, name);
        let kept = of("cycles_recovered") + of("cycles_premature");
        kept / of("cycles").max(f64::MIN_POSITIVE) * 100.0
    });
    Found::new(format!("{:.0} % of the cycles", share.mean)).above(share, 50.0)
}

fn one_halving(seen: &Seen<'_>) -> Found {
    let mean = |seen: &Seen<'_>, name| seen.mean((CORRUPTION_10, 20), Off, name).mean;
    let (lost, reductions) = ("segments_sent_again", "window_reductions");
    let each = seen.jackknife(|seen| mean(seen, lost) / mean(seen, reductions).max(1e-9));
    let ours = format!(
        "{:.0} reductions for {:.0} segments lost: {:.1} each",
        mean(seen, reductions),
        mean(seen, lost),
        each.mean
    );
    Found::new(ours).above(each, 2.0)
}

fn sooner_answers(seen: &Seen<'_>) -> Found {
    let cycle = |seen: &Seen<'_>, variant: &Variant| {
        let sum =
            |name| -> f64 { seen.varied(variant, (CORRUPTION_10, 20), On, name).iter().sum() };
        sum("probing_seconds") / sum("cycles").max(f64::MIN_POSITIVE)
    };
    let longer =
        seen.jackknife(|seen| (cycle(seen, &NO_SLOT) / cycle(seen, &AS_CHOSEN) - 1.0) * 100.0);
    let ours = format!(
        "mean cycle {:.3} s, {:.3} s without: {:+.1} %",
        cycle(seen, &AS_CHOSEN),
        cycle(seen, &NO_SLOT),
        longer.mean
    );
    Found::new(ours).above(longer, 0.0)
}
