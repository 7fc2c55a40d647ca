//! Criteria of the paper's claims: most have one of the forms of [`Test`], which their data file
//! states; the others are in code.

use super::super::conditions::{self, Condition};
use super::super::trial::Party::{self, Off, On};
use super::super::tried_at;
use super::super::variants::{self, Variant};
use super::measure::{self, Measure};
use super::seen::{Seen, falls, length, listed, over, rises, short, signed};
use crate::experiments::publication::Side::{self, Above, Below};
use crate::experiments::publication::{Claim, Found, Page};
use crate::experiments::statistics::relative_gain;
use crate::experiments::{Cell, Summary};
use serde::Deserialize;

/// The measured value of a claim without a common form of criterion.
pub(super) enum Own {
    /// A number, in the claim's unit.
    Number(fn(&Seen<'_>) -> Summary),
    /// The finding about a statement.
    That(fn(&Seen<'_>) -> Found),
}

/// Evaluates each claim of a section.
pub(super) fn judge(page: &Page, own: &[(&str, Own)], seen: &Seen<'_>) -> Vec<Cell> {
    page.claims().iter().map(|claim| judge_one(claim, own, seen)).collect()
}

fn judge_one(claim: &Claim, own: &[(&str, Own)], seen: &Seen<'_>) -> Cell {
    if !claim.is_comparable() {
        return claim.not_comparable();
    }
    if let Some(test) = claim.test::<Test>() {
        return claim.found(test.find(seen));
    }
    match own.iter().find(|(id, _)| *id == claim.id()) {
        Some((_, Own::Number(ours))) => claim.number(ours(seen)),
        Some((_, Own::That(found))) => claim.found(found(seen)),
        None => panic!("{}: neither a test nor a measure of the claim", claim.id()),
    }
}

/// At how many of the points the criterion must hold.
#[derive(Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Need {
    /// At every one.
    Every,
    /// At more than half of those of each test or party.
    Most,
}

/// Forms of criteria. Tests, measures, parties and parts of the mechanism are given by name; `from`
/// and `to` bound the points in percent.
#[derive(Deserialize)]
#[serde(tag = "shape", rename_all = "kebab-case", deny_unknown_fields)]
enum Test {
    /// ON's mean is on this side of OFF's.
    Parties {
        of: String,
        side: Side,
        need: Need,
        tests: Vec<String>,
        #[serde(default)]
        from: u32,
        #[serde(default = "all")]
        to: u32,
    },
    /// Means of these parties in the first test are on this side of those in the second.
    Lengths { of: String, side: Side, need: Need, tests: [String; 2], who: Vec<String> },
    /// Both parties' means rise (above) or fall from point to point: none moves the other way by
    /// more than its intervals, and the last is significantly on this side of the first.
    Trend { of: String, side: Side, tests: Vec<String> },
    /// Both parties' means at the last point are on this side of those at the first.
    Ends { of: String, side: Side, test: String },
    /// The ratio of ON to OFF, averaged over the points with loss, is on this side in the first
    /// test of that in the second.
    Advantage { of: String, side: Side, tests: [String; 2] },
    /// Without a part of the mechanism a party's mean is on this side of the mean with it, averaged
    /// over the points at which this is tested.
    Without {
        part: String,
        of: String,
        who: String,
        side: Side,
        tests: Vec<String>,
        #[serde(default)]
        from: u32,
        #[serde(default = "all")]
        to: u32,
    },
    /// As `Without`, at each of these points by more than its interval.
    WithoutAtEach { part: String, of: String, who: String, side: Side, tests: Vec<String> },
    /// Without immediate recovery less than half of ON's gain in throughput remains.
    ByRecovery { test: String },
}

const fn all() -> u32 {
    100
}

/// The points of tests that a claim concerns.
struct Where {
    tests: Vec<Condition>,
    from: u32,
    to: u32,
}

impl Where {
    fn new(tests: &[String], from: u32, to: u32) -> Self {
        Self { tests: tests.iter().map(|name| condition(name)).collect(), from, to }
    }

    fn has(&self, percent: u32) -> bool {
        (self.from..=self.to).contains(&percent)
    }
}

/// Returns the element of `all` called `name`.
fn named<T: Copy>(name: &str, all: impl IntoIterator<Item = T>, called: fn(&T) -> String) -> T {
    let found = all.into_iter().find(|one| called(one) == name);
    found.unwrap_or_else(|| panic!("nothing is called {name:?}"))
}

fn condition(name: &str) -> Condition {
    named(name, conditions::ALL, |condition| condition.name())
}

fn measure(name: &str) -> Measure {
    named(name, measure::ALL, |measure| measure.name.to_owned())
}

fn party(name: &str) -> Party {
    named(name, Party::PAPER, |party| party.name().to_owned())
}

fn part(name: &str) -> Variant {
    named(name, variants::PARTS, |variant| variant.name.to_owned())
}

/// Returns the finding of the same comparison at several points, each in percent relative to zero.
pub(super) fn over_points(
    seen: &Seen<'_>,
    side: Side,
    holds: bool,
    ours: String,
    all: impl Fn(&Seen<'_>) -> Vec<Summary>,
) -> Found {
    let compared = all(seen);
    let found = Found { holds, ..Found::all(ours, compared.iter().map(|&one| (one, side, 0.0))) };
    if compared.len() == 1 {
        return found;
    }
    let mean = seen.jackknife(|seen| {
        let all = all(seen);
        all.iter().map(|one| one.mean).sum::<f64>() / all.len() as f64
    });
    Found { mean: Some((mean, side)), by: Some(mean), ..found }
}

impl Need {
    fn met(self, side: Side, compared: &[Summary]) -> bool {
        let met = side.count(compared);
        match self {
            Self::Every => met == compared.len(),
            Self::Most => 2 * met > compared.len(),
        }
    }
}

impl Test {
    fn find(&self, seen: &Seen<'_>) -> Found {
        match self {
            Self::Parties { of, side, need, tests, from, to } => {
                parties(seen, measure(of), *side, *need, &Where::new(tests, *from, *to))
            }
            Self::Lengths { of, side, need, tests, who } => {
                let who: Vec<Party> = who.iter().map(|name| party(name)).collect();
                lengths(
                    seen,
                    measure(of),
                    *side,
                    *need,
                    tests.each_ref().map(|name| condition(name)),
                    &who,
                )
            }
            Self::Trend { of, side, tests } => {
                let tests: Vec<Condition> = tests.iter().map(|name| condition(name)).collect();
                trend(seen, measure(of), *side, &tests)
            }
            Self::Ends { of, side, test } => ends(seen, measure(of), *side, condition(test)),
            Self::Advantage { of, side, tests } => {
                advantage(seen, measure(of), *side, tests.each_ref().map(|name| condition(name)))
            }
            Self::Without { part: name, of, who, side, tests, from, to } => {
                let removed = Removed::new(name, of, who, *side);
                removed.on_average(seen, &tried(seen, &Where::new(tests, *from, *to)))
            }
            Self::WithoutAtEach { part: name, of, who, side, tests } => {
                let removed = Removed::new(name, of, who, *side);
                removed.at_each(seen, &tried(seen, &Where::new(tests, 0, all())))
            }
            Self::ByRecovery { test } => by_recovery(seen, condition(test)),
        }
    }
}

/// The comparison of a party's values without and with a part of the mechanism.
struct Removed {
    part: Variant,
    of: Measure,
    who: Party,
    side: Side,
}

impl Removed {
    fn new(name: &str, of: &str, who: &str, side: Side) -> Self {
        Self { part: part(name), of: measure(of), who: party(who), side }
    }

    fn change(&self, seen: &Seen<'_>, at: (Condition, u32)) -> Summary {
        seen.change(&self.part, at, self.who, self.of.field)
    }

    fn on_average(&self, seen: &Seen<'_>, places: &[(Condition, u32)]) -> Found {
        let change = seen.jackknife(|seen| {
            let sum: f64 = places.iter().map(|&at| self.change(seen, at).mean).sum();
            sum / places.len() as f64
        });
        let (name, who) = (self.of.name, short(self.who));
        let ours = format!("{name} of {who} without it: {:+.1} %", change.mean);
        Found::all(ours, [(change, self.side, 0.0)])
    }

    fn at_each(&self, seen: &Seen<'_>, places: &[(Condition, u32)]) -> Found {
        let changes: Vec<Summary> = places.iter().map(|&at| self.change(seen, at)).collect();
        let word = |(at, change): (&(Condition, u32), &Summary)| {
            format!("{} %: {:+.1}", at.1, change.mean)
        };
        let words: Vec<String> = places.iter().zip(&changes).map(word).collect();
        let (name, who) = (self.of.name, short(self.who));
        let ours = format!("{name} of {who} without it in %: {}", words.join(", "));
        Found::all(ours, changes.into_iter().map(|change| (change, self.side, 0.0)))
    }
}

fn parties(seen: &Seen<'_>, of: Measure, side: Side, need: Need, at: &Where) -> Found {
    let points = |test| -> Vec<u32> {
        seen.points(test).iter().copied().filter(|&percent| at.has(percent)).collect()
    };
    let gains = |seen: &Seen<'_>, test| -> Vec<Summary> {
        points(test).iter().map(|&percent| of.gain(seen, (test, percent))).collect()
    };
    let holds = at.tests.iter().all(|&test| need.met(side, &gains(seen, test)));
    let words = |&test: &Condition| {
        let label = if at.tests.len() > 1 { format!("{} ", length(test)) } else { String::new() };
        format!("{label}{}", signed(&points(test), |p| of.gain(seen, (test, p)).mean))
    };
    let words: Vec<String> = at.tests.iter().map(words).collect();
    let ours = format!("{}, ON over OFF in %: {}", of.name, words.join("; "));
    over_points(seen, side, holds, ours, |seen| {
        at.tests.iter().flat_map(|&test| gains(seen, test)).collect()
    })
}

pub(super) fn lengths(
    seen: &Seen<'_>,
    of: Measure,
    side: Side,
    need: Need,
    tests: [Condition; 2],
    who: &[Party],
) -> Found {
    let points = seen.points(tests[0]);
    let ratios = |seen: &Seen<'_>, party| -> Vec<Summary> {
        let at = |&percent: &u32| {
            let [first, second] = tests.map(|test| of.values(seen, (test, percent), party));
            relative_gain(&first, &second).scaled(100.0)
        };
        points.iter().map(at).collect()
    };
    let holds = who.iter().all(|&party| need.met(side, &ratios(seen, party)));
    let met = |&party: &Party| format!("{} ({})", side.count(&ratios(seen, party)), short(party));
    let ours = format!(
        "{} with {} {} that with {} at {} of {} points",
        of.name,
        length(tests[0]),
        side.word(),
        length(tests[1]),
        who.iter().map(met).collect::<Vec<_>>().join(" and "),
        points.len()
    );
    over_points(seen, side, holds, ours, |seen| {
        who.iter().flat_map(|&party| ratios(seen, party)).collect()
    })
}

fn trend(seen: &Seen<'_>, of: Measure, side: Side, tests: &[Condition]) -> Found {
    let line = |test, party| {
        let mean = |percent| Summary::of(&of.values(seen, (test, percent), party));
        let against = match side {
            Above => falls(seen.points(test), mean),
            Below => rises(seen.points(test), mean),
        };
        let line = listed(seen.points(test), |p| mean(p).mean * of.scale, of.digits);
        (against.is_none(), format!("{} {line}", short(party)))
    };
    let lines = |&test: &Condition| {
        let label =
            if tests.len() > 1 { format!("with {}: ", length(test)) } else { String::new() };
        let [off, on] = [Off, On].map(|party| line(test, party));
        (off.0 && on.0, format!("{label}{}, {}", off.1, on.1))
    };
    let (holds, words): (Vec<bool>, Vec<String>) = tests.iter().map(lines).unzip();
    let ends = tests.iter().flat_map(|&test| [Off, On].map(|party| (test, party)));
    let ends = ends.map(|(test, party)| (from_first_to_last(seen, of, test, party), side, 0.0));
    let found = Found::all(format!("{}: {}", of.unit, words.join("; ")), ends);
    Found { holds: found.holds && holds.into_iter().all(|holds| holds), ..found }
}

fn from_first_to_last(seen: &Seen<'_>, of: Measure, test: Condition, party: Party) -> Summary {
    let points = seen.points(test);
    let [first, last] =
        [points[0], points[points.len() - 1]].map(|p| of.values(seen, (test, p), party));
    relative_gain(&last, &first).scaled(100.0)
}

fn ends(seen: &Seen<'_>, of: Measure, side: Side, test: Condition) -> Found {
    let points = seen.points(test);
    let ends = [points[0], points[points.len() - 1]];
    let words = [Off, On].map(|party| {
        let mean = |p| Summary::of(&of.values(seen, (test, p), party)).mean * of.scale;
        let [first, last] = ends.map(mean).map(|mean| format!("{mean:.0$}", of.digits.max(1)));
        format!("{} {first} to {last}", short(party))
    });
    let ours = format!("{} from {} to {} %: {}", of.name, ends[0], ends[1], words.join(", "));
    let of_party = |party| (from_first_to_last(seen, of, test, party), side, 0.0);
    Found::all(ours, [Off, On].map(of_party))
}

fn advantage(seen: &Seen<'_>, of: Measure, side: Side, tests: [Condition; 2]) -> Found {
    let mean = |seen: &Seen<'_>, test: Condition| {
        over(&seen.lossy(test), |p| of.gain(seen, (test, p)).mean)
    };
    let more = seen.jackknife(|seen| mean(seen, tests[0]) - mean(seen, tests[1]));
    let [first, second] = tests.map(|test| mean(seen, test));
    let ours = format!(
        "{}, mean of ON over OFF: {first:+.1} % with {}, {second:+.1} % with {}; the interval is \
         of the difference, {:+.1}",
        of.name,
        length(tests[0]),
        length(tests[1]),
        more.mean
    );
    Found::all(ours, [(more, side, 0.0)])
}

fn by_recovery(seen: &Seen<'_>, condition: Condition) -> Found {
    let at = Where { tests: vec![condition], from: 0, to: all() };
    let points: Vec<u32> = tried(seen, &at).iter().map(|at| at.1).collect();
    let left = |seen: &Seen<'_>| seen.left_without(&variants::NO_RECOVERY, condition, &points);
    let (kept, without) = left(seen);
    let share = seen.jackknife(|seen| {
        let (kept, without) = left(seen);
        without / kept * 100.0
    });
    let ours = format!(
        "mean gain {kept:.0} %, without immediate recovery {without:.0} %: {:.0} % of it",
        share.mean
    );
    Found::new(ours).below(share, 50.0)
}

/// Returns the points at which other interpretations are tested; a quick run has only the middle
/// ones.
fn tried(seen: &Seen<'_>, at: &Where) -> Vec<(Condition, u32)> {
    let quick = seen.setting.quick;
    let here = |place: &(Condition, u32)| at.tests.contains(&place.0) && (quick || at.has(place.1));
    tried_at(quick).filter(here).collect()
}

/// Returns the finding whether probes follow each other at intervals of 200 to 300 ms.
pub(super) fn probe_each_round_trip(seen: &Seen<'_>, test: Condition) -> Found {
    let rate = seen.jackknife(|seen| {
        let mean = |name| over(&seen.lossy(test), |p| seen.mean((test, p), On, name).mean);
        mean("probes") / mean("probing_seconds").max(f64::MIN_POSITIVE)
    });
    let ours = format!("{:.1} probes a second", rate.mean);
    Found::new(ours).between(rate, 3.0, 5.5)
}
