//! Section 6.3: limited connectivity, figures 15 to 17, page 11 to 13.

use super::super::conditions::{CONNECTED_5, CONNECTED_10, Condition};
use super::super::return_of_link::{self, BLACKOUTS};
use super::super::trial::Party::{self, Off, On};
use super::figures;
use super::measure::{CONTROL, PROBES, PROBING, RETRANSMISSIONS, SPEED};
use super::seen::{Seen, extremes, over};
use super::shapes::{Need, Own, judge, lengths, over_points, probe_each_round_trip};
use crate::experiments::publication::{
    Found,
    Side::{Above, Below},
    page,
};
use crate::experiments::statistics::relative_gain;
use crate::experiments::{Section, Summary};

page!(pub(super) PAGE = "elaasar-2003/connectivity");

/// Both tests, the longer sojourn time first.
const STAYS: [Condition; 2] = [CONNECTED_10, CONNECTED_5];

pub(super) fn section(seen: &Seen<'_>) -> Section {
    let mut figures = figures::of(seen, CONNECTED_5, ["15", "16", "17"]);
    figures.extend(figures::of(seen, CONNECTED_10, ["", "", ""]));
    Section {
        figures,
        tables: vec![figures::table(seen, CONNECTED_5), figures::table(seen, CONNECTED_10)],
        cells: judge(&PAGE, OWN, seen),
        ..PAGE.section()
    }
}

/// Claims without a common form of criterion.
const OWN: &[(&str, Own)] = &[
    ("off-drains-its-window", Own::That(off_drains)),
    ("on-loses-a-part-of-its-window", Own::Number(on_loses_a_part)),
    ("found-within-a-round-trip", Own::That(found_in_a_round_trip)),
    ("off-finds-it-late", Own::That(off_finds_late)),
    ("a-probe-each-round-trip", Own::That(|seen| probe_each_round_trip(seen, CONNECTED_5))),
    ("least-gain", Own::Number(|seen| gains(seen).0)),
    ("greatest-gain", Own::Number(|seen| gains(seen).1)),
    ("overhead-hardly-changes", Own::That(overhead_is_level)),
    ("retransmissions-prevail", Own::That(mostly_retransmissions)),
    ("longer-cycles-at-10-s", Own::That(longer_cycles)),
];

fn points(seen: &Seen<'_>) -> &'static [u32] {
    seen.points(CONNECTED_5)
}

fn gains(seen: &Seen<'_>) -> (Summary, Summary) {
    extremes(points(seen).iter().map(|&p| SPEED.gain(seen, (CONNECTED_5, p))))
}

fn share(seen: &Seen<'_>, percent: u32, party: Party) -> f64 {
    Summary::of(&seen.lost_share((CONNECTED_5, percent), party)).mean
}

fn off_drains(seen: &Seen<'_>) -> Found {
    let lost = seen.jackknife(|seen| over(points(seen), |p| share(seen, p, Off)));
    Found::new(format!("{:.0} % of the mean window", lost.mean)).above(lost, 100.0 / 3.0)
}

fn on_loses_a_part(seen: &Seen<'_>) -> Summary {
    Summary::of(&points(seen).iter().map(|&p| share(seen, p, On)).collect::<Vec<_>>())
}

/// Returns when a party's first segment after a blackout reaches the sink, 100 ms after sending.
fn found_after(seen: &Seen<'_>, party: Party) -> Summary {
    let of = |&blackout: &u64| {
        seen.of(return_of_link::STUDY, &return_of_link::key(blackout, party), "seconds")
    };
    Summary::of(&BLACKOUTS.iter().flat_map(of).collect::<Vec<_>>())
}

fn found_in_a_round_trip(seen: &Seen<'_>) -> Found {
    let soon = found_after(seen, On);
    Found::new(format!("{:.0} ms", soon.mean * 1e3)).below(soon, 0.2)
}

fn off_finds_late(seen: &Seen<'_>) -> Found {
    let late = found_after(seen, Off);
    Found::new(format!("{:.1} s", late.mean)).above(late, 1.0)
}

fn overhead_is_level(seen: &Seen<'_>) -> Found {
    let spread = |seen: &Seen<'_>, party| {
        let mean =
            |&p: &u32| Summary::of(&RETRANSMISSIONS.values(seen, (CONNECTED_5, p), party)).mean;
        let all: Vec<f64> = points(seen).iter().map(mean).collect();
        let least = all.iter().copied().fold(f64::INFINITY, f64::min);
        all.iter().copied().fold(0.0, f64::max) / least
    };
    let [off, on] = [Off, On].map(|party| seen.jackknife(|seen| spread(seen, party)));
    let ours = format!("highest over lowest: OFF {:.2}, ON {:.2}", off.mean, on.mean);
    Found::all(ours, [off, on].map(|spread| (spread, Below, 1.5)))
}

fn mostly_retransmissions(seen: &Seen<'_>) -> Found {
    let of = points(seen).len();
    let more = |seen: &Seen<'_>, party| -> Vec<Summary> {
        let at = |&p: &u32| {
            let [again, control] = [RETRANSMISSIONS, CONTROL]
                .map(|measure| measure.values(seen, (CONNECTED_5, p), party));
            relative_gain(&again, &control).scaled(100.0)
        };
        points(seen).iter().map(at).collect()
    };
    let [off, on] = [Off, On].map(|party| Above.count(&more(seen, party)));
    let ours = format!("more than control at {off} (OFF) and {on} (ON) of {of} points");
    let holds = 2 * off > of && 2 * on > of;
    over_points(seen, Above, holds, ours, |seen| {
        [Off, On].into_iter().flat_map(|party| more(seen, party)).collect()
    })
}

fn longer_cycles(seen: &Seen<'_>) -> Found {
    let [longer, more] =
        [PROBING, PROBES].map(|measure| lengths(seen, measure, Above, Need::Every, STAYS, &[On]));
    // Time and number of probes are correlated; the finding about one represents both.
    Found {
        holds: longer.holds && more.holds,
        ours: format!("{}; {}", more.ours, longer.ours),
        ..longer
    }
}
