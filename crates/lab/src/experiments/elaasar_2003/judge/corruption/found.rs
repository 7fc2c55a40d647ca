//! What sentences of no usual shape stand on.

use super::super::super::conditions::{CORRUPTION_1, CORRUPTION_10};
use super::super::super::trial::Party::{self, Off, On};
use super::super::super::variants::{AS_CHOSEN, NO_SLOT, Variant};
use super::super::measure::{SPEED, WINDOW};
use super::super::seen::{Seen, extremes, listed};
use super::super::sentence::Found;
use super::super::sentence::Side::{Above, Below};
use super::STAYS;
use crate::experiments::Summary;
use crate::experiments::statistics::relative_gain;

/// The least and the greatest gain in throughput from `from` percent on. The paper's range must
/// hold the point without loss as well: it says "throughout".
pub(super) fn gains(seen: &Seen<'_>, from: u32) -> (Summary, Summary) {
    let points = seen.points(CORRUPTION_10).iter().filter(|&&percent| percent >= from);
    extremes(points.map(|&percent| SPEED.gain(seen, (CORRUPTION_10, percent))))
}

pub(super) fn windows_grow(seen: &Seen<'_>) -> Found {
    let [off, on] = [Off, On].map(|party: Party| {
        let [ten, one] = STAYS.map(|test| WINDOW.values(seen, (test, 20), party));
        let [long, short] = [&ten, &one].map(|values| Summary::of(values).mean);
        (relative_gain(&ten, &one), format!("{long:.1} and {short:.1}"))
    });
    let ours = format!("segments with 10 s and 1 s: OFF {}, ON {}", off.1, on.1);
    Found::all(ours, &[off.0, on.0].map(|more| (more, Above, 0.5)))
}

pub(super) fn windows_stay(seen: &Seen<'_>) -> Found {
    let window = Summary::of(&WINDOW.values(seen, (CORRUPTION_1, 20), Off));
    Found::one(format!("{:.1} segments", window.mean), window, Below, 10.0)
}

fn cycle(seen: &Seen<'_>, percent: u32) -> f64 {
    seen.cycle((CORRUPTION_10, percent)).unwrap_or(0.0)
}

/// The mean cycle at 50 % over that at 5 %.
fn severe_over_light(seen: &Seen<'_>) -> Summary {
    seen.jackknife(|seen| cycle(seen, 50) / cycle(seen, 5).max(f64::MIN_POSITIVE))
}

pub(super) fn cycles_lengthen(seen: &Seen<'_>) -> Found {
    let lossy = seen.lossy(CORRUPTION_10);
    let grows = lossy.windows(2).all(|pair| cycle(seen, pair[1]) > cycle(seen, pair[0]));
    let listed = listed(&lossy, |percent| cycle(seen, percent), 2);
    let more = severe_over_light(seen);
    let ours = format!("mean cycle in s: {listed}; {:.1} times as long at 50 % as at 5", more.mean);
    let found = Found::one(ours, more, Above, 2.0);
    Found { holds: found.holds && grows, ..found }
}

pub(super) fn light_is_quick(seen: &Seen<'_>) -> Found {
    let [light, severe] = [5, 50].map(|percent| cycle(seen, percent));
    let ours = format!("mean cycle {light:.2} s at 5 %, {severe:.2} s at 50 %");
    let found = Found::one(ours, severe_over_light(seen), Above, 2.0);
    Found { by: None, ..found }
}

fn on_mean(seen: &Seen<'_>, percent: u32, name: &str) -> f64 {
    seen.mean((CORRUPTION_10, percent), On, name).mean
}

pub(super) fn slow_starts(seen: &Seen<'_>) -> Found {
    let count = |seen: &Seen<'_>, percent| on_mean(seen, percent, "cycles_slow_start");
    let more = seen.jackknife(|seen| count(seen, 50) - count(seen, 5));
    let [severe, light] = [50, 5].map(|percent| count(seen, percent));
    let ours = format!("{severe:.2} a transfer at 50 %, {light:.2} at 5 %");
    Found::one(ours, more, Above, 0.0)
}

pub(super) fn light_goes_on(seen: &Seen<'_>) -> Found {
    let share = seen.jackknife(|seen| {
        let of = |name| on_mean(seen, 5, name);
        let kept = of("cycles_recovered") + of("cycles_premature");
        kept / of("cycles").max(f64::MIN_POSITIVE) * 100.0
    });
    Found::one(format!("{:.0} % of the cycles", share.mean), share, Above, 50.0)
}

pub(super) fn one_halving(seen: &Seen<'_>) -> Found {
    let mean = |seen: &Seen<'_>, name| seen.mean((CORRUPTION_10, 20), Off, name).mean;
    let (lost, reductions) = ("segments_sent_again", "window_reductions");
    let each = seen.jackknife(|seen| mean(seen, lost) / mean(seen, reductions).max(1e-9));
    let ours = format!(
        "{:.0} reductions for {:.0} segments lost: {:.1} each",
        mean(seen, reductions),
        mean(seen, lost),
        each.mean
    );
    Found::one(ours, each, Above, 2.0)
}

pub(super) fn sooner_answers(seen: &Seen<'_>) -> Found {
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
    Found::one(ours, longer, Above, 0.0)
}
