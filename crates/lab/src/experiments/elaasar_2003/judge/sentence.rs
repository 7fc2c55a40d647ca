//! Sentences of the paper as data: what they state, when ours agrees, and why it does or not.
//!
//! A statement agrees when its criterion holds for the means, and beyond chance: the 95 %
//! interval of the comparison, or of the mean over points where the same is compared at several,
//! must lie on the stated side. What holds for means alone differs, and says that it is within
//! chance. Most sentences have one of a few shapes, which are the variants of [`Test`].

use super::super::conditions::Condition;
use super::super::trial::Party::{self, Off, On};
use super::super::{tried_at, variants};
use super::measure::Measure;
use super::seen::{Seen, falls, length, listed, over, rises, short, signed};
use crate::experiments::statistics::relative_gain;
use crate::experiments::{Cell, Criterion, Expected, Published, Summary, Verdict};

/// A sentence, and what becomes of it.
pub(super) struct Sentence {
    /// A short name.
    pub(super) name: &'static str,
    /// Where it stands.
    pub(super) place: &'static str,
    /// What it says.
    pub(super) says: Says,
    /// Why it comes out as it does.
    pub(super) why: Why,
}

/// What a sentence says.
pub(super) enum Says {
    /// A number of this unit, how far ours may be beside it, and ours.
    Number(f64, &'static str, f64, fn(&Seen<'_>) -> Summary),
    /// A statement in our words, when ours agrees in words, and the same as a test.
    That(&'static str, &'static str, Test),
    /// A statement that nothing can be held against, and why the criterion is none.
    Nothing(&'static str, &'static str),
}

/// Why a cell agrees, and why it would not.
#[derive(Clone, Copy)]
pub(super) struct Why {
    pub(super) agrees: &'static str,
    pub(super) differs: &'static str,
    /// Why it would hold for the means, but within chance.
    pub(super) chance: &'static str,
}

/// Reasons for either verdict.
pub(super) const fn why(agrees: &'static str, differs: &'static str) -> Why {
    Why { agrees, differs, chance: CHANCE }
}

const CHANCE: &str = "the means are as published, but the interval reaches to the other side: \
                      chance alone could make such a difference";

impl Why {
    /// The same with a reason of its own for a difference within chance.
    pub(super) const fn within_chance(self, chance: &'static str) -> Self {
        Self { chance, ..self }
    }
}

/// Which side the paper says.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Side {
    Above,
    Below,
}

use Side::{Above, Below};

/// At how many of the points it must be so.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Need {
    /// At every one.
    Every,
    /// At more than half of those of each test or party.
    Most,
}

/// The points of some tests that a sentence is about.
#[derive(Clone, Copy)]
pub(super) struct Where(pub(super) &'static [Condition], pub(super) fn(u32) -> bool);

/// Shapes of statements.
#[derive(Clone, Copy)]
pub(super) enum Test {
    /// ON's mean lies on this side of OFF's.
    Parties(Measure, Side, Need, Where),
    /// Means of these parties lie on this side, in the first test, of those in the second.
    Lengths(Measure, Side, Need, [Condition; 2], &'static [Party]),
    /// Both parties' means rise (above) or fall from point to point: none goes the other way
    /// beyond its intervals, and the last lie on this side of the first beyond chance.
    Trend(Measure, Side, &'static [Condition]),
    /// Both parties' means at the last point lie on this side of those at the first.
    Ends(Measure, Side, Condition),
    /// ON over OFF, on average over the points with loss, lies on this side in the first test of
    /// the second.
    Advantage(Measure, Side, [Condition; 2]),
    /// Without a part of the mechanism a party's mean lies on this side of what it is with it,
    /// on average over points at which that is tried.
    Without(&'static variants::Variant, Measure, Party, Side, Where),
    /// The same at each of these points, beyond its interval.
    WithoutAtEach(&'static variants::Variant, Measure, Party, Side, Where),
    /// Without immediate recovery less than half of ON's gain in throughput is left.
    ByRecovery(Condition),
    /// No shape but its own.
    Own(fn(&Seen<'_>) -> Found),
}

/// What was found.
pub(super) struct Found {
    /// Whether the criterion holds for the means.
    pub(super) holds: bool,
    /// The comparisons that it stands on; above zero where it holds. Each must be beyond chance,
    /// unless their mean is given.
    pub(super) margins: Vec<Summary>,
    /// Their mean, percent, and the side that it must be on.
    pub(super) mean: Option<(Summary, Side)>,
    /// The same in words.
    pub(super) ours: String,
    /// The number that the words stand on, where it is one.
    pub(super) by: Option<Summary>,
}

impl Sentence {
    /// Holds results against the sentence.
    pub(super) fn judge(&self, seen: &Seen<'_>) -> Cell {
        match self.says {
            Says::Number(value, unit, tolerance, ours) => {
                let published = Published::Number { value, unit };
                let expected = self.expected(published, Criterion::Absolute(tolerance));
                let mut cell = expected.number(ours(seen), self.why.agrees);
                if cell.verdict == Verdict::Differs {
                    cell.reason = self.why.differs.to_owned();
                }
                cell
            }
            Says::That(statement, criterion, test) => {
                let published = Published::Claim(statement);
                let expected = self.expected(published, Criterion::Holds(criterion));
                test.find(seen).cell(&expected, &self.why)
            }
            Says::Nothing(statement, criterion) => {
                let published = Published::Claim(statement);
                let expected = self.expected(published, Criterion::Holds(criterion));
                expected.not_comparable(self.why.differs)
            }
        }
    }

    fn expected(&self, published: Published, criterion: Criterion) -> Expected {
        Expected { name: self.name, place: self.place, published, criterion }
    }
}

impl Found {
    /// Of several numbers, each with its side and bound: all must be so.
    pub(super) fn all(ours: String, numbers: &[(Summary, Side, f64)]) -> Self {
        let margins: Vec<Summary> =
            numbers.iter().map(|&(seen, side, bound)| side.margin(seen, bound)).collect();
        let by = if let [(seen, ..)] = numbers { Some(*seen) } else { None };
        Self {
            holds: margins.iter().all(|margin| margin.mean > 0.0),
            margins,
            mean: None,
            ours,
            by,
        }
    }

    /// Of one number.
    pub(super) fn one(ours: String, number: Summary, side: Side, bound: f64) -> Self {
        Self::all(ours, &[(number, side, bound)])
    }

    /// The same comparison at several points: what each comes to in percent, less zero.
    pub(super) fn over_points(
        seen: &Seen<'_>,
        side: Side,
        holds: bool,
        ours: String,
        all: impl Fn(&Seen<'_>) -> Vec<Summary>,
    ) -> Self {
        let compared = all(seen);
        let margins: Vec<Summary> = compared.iter().map(|&one| side.margin(one, 0.0)).collect();
        if let [one] = compared.as_slice() {
            return Self { holds, margins, mean: None, ours, by: Some(*one) };
        }
        let mean = seen.jackknife(|seen| {
            let all = all(seen);
            all.iter().map(|one| one.mean).sum::<f64>() / all.len() as f64
        });
        Self { holds, margins, mean: Some((mean, side)), ours, by: Some(mean) }
    }

    fn cell(self, expected: &Expected, why: &Why) -> Cell {
        let of = self.margins.len();
        let alone = self.margins.iter().filter(|margin| clear(margin)).count();
        let beyond = match self.mean {
            Some((mean, side)) => clear(&side.margin(mean, 0.0)),
            None => alone == of,
        };
        let reason = match (self.holds, beyond) {
            (true, true) => why.agrees,
            (true, false) => why.chance,
            (false, _) => why.differs,
        };
        let mut ours = self.ours;
        if let Some((mean, _)) = self.mean {
            ours += &format!("; mean {:+.1} %, beyond chance alone at {alone} of {of}", mean.mean);
        }
        if self.holds && !beyond {
            ours += "; within chance";
        }
        expected.claim(self.holds && beyond, ours, self.by, reason)
    }
}

/// Whether a margin is beyond chance. A single replication has no interval; then the mean alone
/// counts.
fn clear(margin: &Summary) -> bool {
    margin.mean > margin.interval().map_or(0.0, |_| margin.half)
}

impl Side {
    /// How far a number is beyond `bound`.
    fn margin(self, number: Summary, bound: f64) -> Summary {
        match self {
            Above => Summary { mean: number.mean - bound, ..number },
            Below => Summary { mean: bound - number.mean, ..number },
        }
    }

    /// How many are on this side of zero.
    pub(super) fn count(self, compared: &[Summary]) -> usize {
        compared.iter().filter(|&&one| self.margin(one, 0.0).mean > 0.0).count()
    }

    fn word(self) -> &'static str {
        match self {
            Above => "above",
            Below => "below",
        }
    }
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
    fn find(self, seen: &Seen<'_>) -> Found {
        match self {
            Self::Parties(of, side, need, at) => parties(seen, of, side, need, at),
            Self::Lengths(of, side, need, tests, who) => lengths(seen, of, side, need, tests, who),
            Self::Trend(of, side, tests) => trend(seen, of, side, tests),
            Self::Ends(of, side, test) => ends(seen, of, side, test),
            Self::Advantage(of, side, tests) => advantage(seen, of, side, tests),
            Self::Without(variant, of, party, side, at) => {
                let places = tried(seen, at.0, at.1);
                let change = seen.jackknife(|seen| {
                    let at =
                        |&at: &(Condition, u32)| seen.change(variant, at, party, of.field).mean;
                    places.iter().map(at).sum::<f64>() / places.len() as f64
                });
                let ours =
                    format!("{} of {} without it: {:+.1} %", of.name, short(party), change.mean);
                Found::one(ours, change, side, 0.0)
            }
            Self::WithoutAtEach(variant, of, party, side, at) => {
                let places = tried(seen, at.0, at.1);
                let change = |at| seen.change(variant, at, party, of.field);
                let changes: Vec<(u32, Summary)> =
                    places.iter().map(|&at| (at.1, change(at))).collect();
                let words: Vec<String> = (changes.iter())
                    .map(|(percent, change)| format!("{percent} %: {:+.1}", change.mean))
                    .collect();
                let ours = format!(
                    "{} of {} without it in %: {}",
                    of.name,
                    short(party),
                    words.join(", ")
                );
                let all: Vec<_> = changes.iter().map(|(_, seen)| (*seen, side, 0.0)).collect();
                Found::all(ours, &all)
            }
            Self::ByRecovery(condition) => by_recovery(seen, condition),
            Self::Own(find) => find(seen),
        }
    }
}

fn parties(seen: &Seen<'_>, of: Measure, side: Side, need: Need, at: Where) -> Found {
    let points = |test| -> Vec<u32> {
        seen.points(test).iter().copied().filter(|&percent| (at.1)(percent)).collect()
    };
    let gains = |seen: &Seen<'_>, test| -> Vec<Summary> {
        points(test).iter().map(|&percent| of.gain(seen, (test, percent))).collect()
    };
    let holds = at.0.iter().all(|&test| need.met(side, &gains(seen, test)));
    let words = |&test: &Condition| {
        let label = if at.0.len() > 1 { format!("{} ", length(test)) } else { String::new() };
        format!("{label}{}", signed(&points(test), |p| of.gain(seen, (test, p)).mean))
    };
    let words: Vec<String> = at.0.iter().map(words).collect();
    let ours = format!("{}, ON over OFF in %: {}", of.name, words.join("; "));
    Found::over_points(seen, side, holds, ours, |seen| {
        at.0.iter().flat_map(|&test| gains(seen, test)).collect()
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
    Found::over_points(seen, side, holds, ours, |seen| {
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
    let ends: Vec<(Summary, Side, f64)> =
        ends.map(|(test, party)| (from_first_to_last(seen, of, test, party), side, 0.0)).collect();
    let found = Found::all(format!("{}: {}", of.unit, words.join("; ")), &ends);
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
    Found::all(ours, &[Off, On].map(of_party))
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
    Found::one(ours, more, side, 0.0)
}

fn by_recovery(seen: &Seen<'_>, condition: Condition) -> Found {
    let places = tried(seen, &[condition], |_| true);
    let points: Vec<u32> = places.iter().map(|at| at.1).collect();
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
    Found::one(ours, share, Below, 50.0)
}

/// Those points of `at` where other readings are tried; a quick run has the middle one alone.
fn tried(seen: &Seen<'_>, tests: &[Condition], only: fn(u32) -> bool) -> Vec<(Condition, u32)> {
    let quick = seen.setting.quick;
    let here = |at: &(Condition, u32)| tests.contains(&at.0) && (quick || only(at.1));
    tried_at(quick).filter(here).collect()
}

/// Whether probes follow each other by round trips of 200 to 300 ms.
pub(super) fn probe_each_round_trip(seen: &Seen<'_>, test: Condition) -> Found {
    let rate = seen.jackknife(|seen| {
        let mean = |name| over(&seen.lossy(test), |p| seen.mean((test, p), On, name).mean);
        mean("probes") / mean("probing_seconds").max(f64::MIN_POSITIVE)
    });
    let ours = format!("{:.1} probes a second", rate.mean);
    let found = Found::all(ours, &[(rate, Above, 3.0), (rate, Below, 5.5)]);
    Found { by: Some(rate), ..found }
}
