//! Section 6.1.

use super::super::conditions::{CORRUPTION_1, CORRUPTION_10};
use super::super::trial::Party::{self, Off, On};
use super::super::variants::{AS_CHOSEN, NO_BACKOFF, NO_EARLY_TIMEOUT, NO_IDLE, NO_RECOVERY};
use super::published::corruption as paper;
use super::reasons::corruption as why;
use super::seen::{
    AGAIN, OVERHEAD, RATIO, Seen, THROUGHPUT, WINDOW, claim, claim_by, count, extremes, listed,
    number, over, rises, signed,
};
use super::{figures, reasons};
use crate::experiments::{Cell, Section};

/// Figures, table and cells of bit corruption.
pub(super) fn section(seen: &Seen<'_>) -> Section {
    let mut figures = figures::of(seen, CORRUPTION_10, ["6", "7", "8"]);
    figures.extend(figures::of(seen, CORRUPTION_1, ["", "", ""]));
    let mut cells = throughput(seen);
    cells.extend(mechanism(seen));
    cells.extend(overhead(seen));
    Section {
        title: "Bit corruption (section 6.1)".into(),
        text: reasons::CORRUPTION.map(str::to_owned).into(),
        figures,
        tables: vec![figures::table(seen, CORRUPTION_10), figures::table(seen, CORRUPTION_1)],
        cells,
    }
}

/// Where the ablations are tried, of the points that a quick run has too.
fn tried(seen: &Seen<'_>, points: &[u32]) -> Vec<u32> {
    if seen.setting.quick { vec![20] } else { points.to_vec() }
}

fn throughput(seen: &Seen<'_>) -> Vec<Cell> {
    let (ten, one) = (CORRUPTION_10, CORRUPTION_1);
    let lossy = seen.lossy(ten);
    let gain = |percent| seen.gain((ten, percent), THROUGHPUT);
    let gain_at_1 = |percent| seen.gain((one, percent), THROUGHPUT).mean;
    // The paper's range must hold the point without loss as well: it says "throughout".
    let (least, _) = extremes(seen.points(ten).iter().map(|&percent| gain(percent)));
    let (_, most) = extremes(lossy.iter().map(|&percent| gain(percent)));
    let ours = format!("gain in %: {}", signed(&lossy, |percent| gain(percent).mean));
    let (by_ten, by_one) = (over(&lossy, |p| gain(p).mean), over(&lossy, gain_at_1));
    let three = tried(seen, &[5, 20, 50]);
    let chosen = over(&three, |p| seen.gain_in(&AS_CHOSEN, (ten, p), THROUGHPUT).mean);
    let without = over(&three, |p| {
        // OFF is the same in both; what is left of ON's gain over it counts.
        let change = seen.change(&NO_RECOVERY, (ten, p), On, THROUGHPUT).mean / 100.0;
        let gain = seen.gain_in(&AS_CHOSEN, (ten, p), THROUGHPUT).mean / 100.0;
        ((1.0 + gain) * (1.0 + change) - 1.0) * 100.0
    });
    vec![
        claim(&paper::FASTER, lossy.iter().all(|&p| gain(p).mean > 0.0), ours, why::FASTER),
        number(&paper::LEAST_GAIN, least, why::LEAST_GAIN),
        number(&paper::MOST_GAIN, most, why::MOST_GAIN),
        claim(
            &paper::BY_RECOVERY,
            without < chosen / 2.0,
            format!("mean gain {chosen:.0} %, without immediate recovery {without:.0} %"),
            why::BY_RECOVERY,
        ),
        claim(
            &paper::MORE_AT_10_S,
            by_ten > by_one,
            format!("mean gain {by_ten:.0} % with 10 s, {by_one:.0} % with 1 s"),
            why::MORE_AT_10_S,
        ),
    ]
}

fn mechanism(seen: &Seen<'_>) -> Vec<Cell> {
    let (ten, one) = (CORRUPTION_10, CORRUPTION_1);
    let window = |condition, party| seen.mean((condition, 20), party, WINDOW);
    let windows = [Off, On].map(|party| (window(ten, party).mean, window(one, party).mean));
    let lossy = seen.lossy(ten);
    let cycle = |percent| seen.cycle((ten, percent)).unwrap_or(0.0);
    let (light, severe) = (cycle(5), cycle(50));
    let grows = lossy.windows(2).all(|pair| cycle(pair[1]) > cycle(pair[0]));
    let mean = |percent, name: &str| seen.mean((ten, percent), On, name);
    let (slow, slow_light) = (mean(50, "cycles_slow_start"), mean(5, "cycles_slow_start"));
    let kept = mean(5, "cycles_recovered").mean + mean(5, "cycles_premature").mean;
    let share = kept / mean(5, "cycles").mean.max(f64::MIN_POSITIVE) * 100.0;
    let off = |name: &str| seen.mean((ten, 20), Off, name).mean;
    let (reductions, lost) = (off("window_reductions"), off("segments_sent_again"));
    let listed_windows = windows.map(|(ten, one)| format!("{ten:.1} and {one:.1}"));
    let mut cells = vec![
        claim(
            &paper::WINDOWS_GROW,
            windows.iter().all(|(ten, one)| *ten >= 1.5 * one),
            format!(
                "segments with 10 s and 1 s: OFF {}, ON {}",
                listed_windows[0], listed_windows[1]
            ),
            why::WINDOWS_GROW,
        ),
        claim_by(
            &paper::WINDOWS_STAY,
            windows[0].1 < 10.0,
            format!("{:.1} segments", windows[0].1),
            window(one, Off),
            why::WINDOWS_STAY,
        ),
        claim(
            &paper::CYCLES_LENGTHEN,
            grows && severe >= 2.0 * light,
            format!("mean cycle in s: {}", listed(&lossy, cycle, 2)),
            why::CYCLES_LENGTHEN,
        ),
        claim_by(
            &paper::SLOW_STARTS,
            slow.mean > slow_light.mean,
            format!("{:.2} a transfer at 50 %, {:.2} at 5 %", slow.mean, slow_light.mean),
            slow,
            why::SLOW_STARTS,
        ),
        claim(
            &paper::LIGHT_IS_QUICK,
            light < severe / 2.0,
            format!("mean cycle {light:.2} s at 5 %, {severe:.2} s at 50 %"),
            why::LIGHT_IS_QUICK,
        ),
        claim(
            &paper::LIGHT_GOES_ON,
            share > 50.0,
            format!("{share:.0} % of the cycles"),
            why::LIGHT_GOES_ON,
        ),
        claim(
            &paper::ONE_HALVING,
            reductions * 2.0 < lost,
            format!("{reductions:.0} reductions for {lost:.0} segments lost"),
            why::ONE_HALVING,
        ),
    ];
    cells.extend(varied(seen));
    cells
}

fn varied(seen: &Seen<'_>) -> Vec<Cell> {
    let ten = CORRUPTION_10;
    let severe = tried(seen, &[50])[0];
    let slow_start = seen.change(&NO_IDLE, (ten, severe), On, THROUGHPUT);
    let backoff = seen.change(&NO_BACKOFF, (ten, severe), Off, THROUGHPUT);
    vec![
        claim_by(
            &paper::SLOW_STARTS_COST,
            slow_start.mean >= 0.0,
            format!("{:+.1} % throughput without an idle threshold", slow_start.mean),
            slow_start,
            why::SLOW_STARTS_COST,
        ),
        claim_by(
            &paper::BACKOFF_COSTS,
            backoff.clearly_above(0.0),
            format!("{:+.1} % throughput without back-off", backoff.mean),
            backoff,
            why::BACKOFF_COSTS,
        ),
    ]
}

fn overhead(seen: &Seen<'_>) -> Vec<Cell> {
    let ten = CORRUPTION_10;
    let lossy = seen.lossy(ten);
    let change = |percent| seen.gain((ten, percent), OVERHEAD);
    let list = format!("ON over OFF in %: {}", signed(&lossy, |p| change(p).mean));
    let lower = count(&lossy, |p| change(p).mean < 0.0);
    let window = |p, party: Party| seen.mean((ten, p), party, WINDOW).mean;
    let larger = lossy.iter().all(|&p| window(p, On) > window(p, Off));
    let lost = [Off, On].map(|party| seen.per_event((ten, 5), party, "segments_sent_again"));
    let from_20: Vec<u32> = lossy.iter().copied().filter(|&p| p >= 20).collect();
    let at = tried(seen, &[20, 50]);
    let early = over(&at, |p| seen.change(&NO_EARLY_TIMEOUT, (ten, p), On, AGAIN).mean);
    let ratio = |party| move |p| seen.mean((ten, p), party, RATIO);
    let risen = [Off, On].map(|party| rises(seen.points(ten), ratio(party)));
    let better = |p| ratio(On)(p).mean > ratio(Off)(p).mean;
    let gain = |p| seen.gain((ten, p), RATIO).mean;
    vec![
        claim(&paper::LESS_OVERHEAD, 2 * lower > lossy.len(), list.clone(), why::LESS_OVERHEAD),
        claim(
            &paper::LARGER_WINDOWS,
            larger,
            format!(
                "OFF's segments: {}; ON's: {}",
                listed(&lossy, |p| window(p, Off), 1),
                listed(&lossy, |p| window(p, On), 1)
            ),
            why::LARGER_WINDOWS,
        ),
        claim(
            &paper::MORE_AT_FIRST,
            lost[1].mean > lost[0].mean,
            format!("OFF {:.1}, ON {:.1} segments each bad stay", lost[0].mean, lost[1].mean),
            why::MORE_AT_FIRST,
        ),
        claim_by(
            &paper::NOT_AT_5,
            change(5).mean >= 0.0,
            format!("{:+.1} % at 5 %", change(5).mean),
            change(5),
            why::NOT_AT_5,
        ),
        paper::NOT_AT_20.not_comparable(why::NOT_AT_20),
        claim(&paper::FROM_20, from_20.iter().all(|&p| change(p).mean < 0.0), list, why::FROM_20),
        claim(
            &paper::BY_EARLY_TIMEOUT,
            early > 0.0,
            format!("{early:+.1} % retransmissions without early timeouts"),
            why::BY_EARLY_TIMEOUT,
        ),
        number(&paper::OVERHEAD_AT_50, change(50).scaled(-1.0), why::OVERHEAD_AT_50),
        claim(
            &paper::RATIO_FALLS,
            risen == [None, None],
            format!(
                "kbit/s per %: OFF {}; ON {}",
                listed(seen.points(ten), |p| ratio(Off)(p).mean / 1e3, 0),
                listed(seen.points(ten), |p| ratio(On)(p).mean / 1e3, 0)
            ),
            why::RATIO_FALLS,
        ),
        claim(
            &paper::BETTER_RATIO,
            lossy.iter().all(|&p| better(p)),
            format!("gain of the ratio in %: {}", signed(&lossy, gain)),
            why::BETTER_RATIO,
        ),
    ]
}
