//! What sentences of no usual shape stand on.

use super::super::super::conditions::CONNECTED_5;
use super::super::super::return_of_link::{self, BLACKOUTS};
use super::super::super::trial::Party::{self, Off, On};
use super::super::measure::{AGAIN, CONTROL, PROBES, PROBING, SPEED};
use super::super::seen::{Seen, extremes, over};
use super::super::sentence::Side::{Above, Below};
use super::super::sentence::{Found, Need, lengths};
use super::STAYS;
use crate::experiments::Summary;
use crate::experiments::statistics::relative_gain;

fn points(seen: &Seen<'_>) -> &'static [u32] {
    seen.points(CONNECTED_5)
}

pub(super) fn gains(seen: &Seen<'_>) -> (Summary, Summary) {
    extremes(points(seen).iter().map(|&p| SPEED.gain(seen, (CONNECTED_5, p))))
}

fn share(seen: &Seen<'_>, percent: u32, party: Party) -> f64 {
    Summary::of(&seen.lost_share((CONNECTED_5, percent), party)).mean
}

pub(super) fn off_drains(seen: &Seen<'_>) -> Found {
    let lost = seen.jackknife(|seen| over(points(seen), |p| share(seen, p, Off)));
    Found::one(format!("{:.0} % of the mean window", lost.mean), lost, Above, 100.0 / 3.0)
}

pub(super) fn on_loses_a_part(seen: &Seen<'_>) -> Summary {
    Summary::of(&points(seen).iter().map(|&p| share(seen, p, On)).collect::<Vec<_>>())
}

/// When a party's first segment after a blackout reaches the sink, 100 ms after it was sent.
fn found_after(seen: &Seen<'_>, party: Party) -> Summary {
    let of = |&blackout: &u64| {
        seen.of(return_of_link::STUDY, &return_of_link::key(blackout, party), "seconds")
    };
    Summary::of(&BLACKOUTS.iter().flat_map(of).collect::<Vec<_>>())
}

pub(super) fn found_in_a_round_trip(seen: &Seen<'_>) -> Found {
    let soon = found_after(seen, On);
    Found::one(format!("{:.0} ms", soon.mean * 1e3), soon, Below, 0.2)
}

pub(super) fn off_finds_late(seen: &Seen<'_>) -> Found {
    let late = found_after(seen, Off);
    Found::one(format!("{:.1} s", late.mean), late, Above, 1.0)
}

pub(super) fn overhead_is_level(seen: &Seen<'_>) -> Found {
    let spread = |seen: &Seen<'_>, party| {
        let mean = |&p: &u32| Summary::of(&AGAIN.values(seen, (CONNECTED_5, p), party)).mean;
        let all: Vec<f64> = points(seen).iter().map(mean).collect();
        let least = all.iter().copied().fold(f64::INFINITY, f64::min);
        all.iter().copied().fold(0.0, f64::max) / least
    };
    let [off, on] = [Off, On].map(|party| seen.jackknife(|seen| spread(seen, party)));
    let ours = format!("highest over lowest: OFF {:.2}, ON {:.2}", off.mean, on.mean);
    Found::all(ours, &[off, on].map(|spread| (spread, Below, 1.5)))
}

pub(super) fn mostly_sent_again(seen: &Seen<'_>) -> Found {
    let of = points(seen).len();
    let more = |seen: &Seen<'_>, party| -> Vec<Summary> {
        let at = |&p: &u32| {
            let [again, control] =
                [AGAIN, CONTROL].map(|measure| measure.values(seen, (CONNECTED_5, p), party));
            relative_gain(&again, &control).scaled(100.0)
        };
        points(seen).iter().map(at).collect()
    };
    let [off, on] = [Off, On].map(|party| Above.count(&more(seen, party)));
    let ours = format!("more than control at {off} (OFF) and {on} (ON) of {of} points");
    let holds = 2 * off > of && 2 * on > of;
    Found::over_points(seen, Above, holds, ours, |seen| {
        [Off, On].into_iter().flat_map(|party| more(seen, party)).collect()
    })
}

pub(super) fn longer_cycles(seen: &Seen<'_>) -> Found {
    let [longer, more] =
        [PROBING, PROBES].map(|measure| lengths(seen, measure, Above, Need::Every, STAYS, &[On]));
    // Time and probes go together; the words of one stand for both.
    Found {
        holds: longer.holds && more.holds,
        ours: format!("{}; {}", more.ours, longer.ours),
        ..longer
    }
}
