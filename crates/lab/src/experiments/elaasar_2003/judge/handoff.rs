//! Section 6.2: hand-off, figures 9 to 14, page 9 to 11.

mod found;

use super::super::conditions::{Condition, HANDOFF_1, HANDOFF_HALF};
use super::super::trial::Party::{Off, On};
use super::measure::{AGAIN, CONTROL, COST, LOST, SPEED, WINDOW, WORTH};
use super::seen::Seen;
use super::sentence::Side::{Above, Below};
use super::sentence::{Need, Says, Sentence, Test, Where, why};
use super::{figures, words};
use crate::experiments::Section;
use found::{
    control_hardly_matters, false_alarms, gains, loses_less, off_drains, on_loses_a_part,
    overhead_saved,
};

const TESTS: &[Condition] = &[HANDOFF_HALF, HANDOFF_1];
const EVERYWHERE: Where = Where(TESTS, |_| true);
/// Both, the longer first.
const BLACKOUTS: [Condition; 2] = [HANDOFF_1, HANDOFF_HALF];

/// Figures, table and cells of hand-off.
pub(super) fn section(seen: &Seen<'_>) -> Section {
    let mut figures = figures::of(seen, HANDOFF_HALF, ["9", "11", "13"]);
    figures.extend(figures::of(seen, HANDOFF_1, ["10", "12", "14"]));
    Section {
        title: "Hand-off (section 6.2)".into(),
        text: words::HANDOFF.map(str::to_owned).into(),
        figures,
        tables: TESTS.iter().map(|&test| figures::table(seen, test)).collect(),
        cells: SENTENCES.iter().map(|sentence| sentence.judge(seen)).collect(),
    }
}

const SENTENCES: &[Sentence] = &[
    Sentence {
        name: "hand-off: OFF drains its window",
        place: "section 6.2",
        says: Says::That(
            "OFF does not notice the blackout and may lose some or all of its window",
            "in both tests OFF loses at least a third of its mean window each blackout, on average",
            Test::Own(off_drains),
        ),
        why: why(
            "it sends until its window is full, or the blackout is over",
            "blackouts are short against the time in which OFF sends its window: what a STAT \
             enables is spread over a round trip",
        ),
    },
    Sentence {
        name: "hand-off: ON loses a part of its window",
        place: "section 6.2",
        says: Says::Number(33.3, "% of the window", 12.0, on_loses_a_part),
        why: why(
            "a third is what leaves until the next POLL is due; what was under way besides is \
             lost too",
            "ON loses what was under way when the blackout began, and what it sends until the \
             next POLL is due",
        ),
    },
    Sentence {
        name: "hand-off: ON loses a smaller part than OFF",
        place: "section 6.2",
        says: Says::That(
            "noticing a blackout early spares a part of the window",
            "in both tests ON loses a smaller share of its mean window each blackout",
            Test::Own(loses_less),
        ),
        why: why(
            "for the reason that the paper gives",
            "ON's window is larger, and so is what is under way",
        ),
    },
    Sentence {
        name: "hand-off: false alarms cost little",
        place: "section 6.2",
        says: Says::That(
            "an early timeout by a longer round trip ends at once, with hardly any loss of \
             throughput",
            "without any loss, only changes of delay (the 0 % point of the corruption test), \
             ON's mean throughput is at most 3 % below OFF's",
            Test::Own(false_alarms),
        ),
        why: why(
            "a false alarm ends with the next STAT, a third of a round trip later at most",
            "a cycle takes longer to end than the pause that a larger delay makes",
        ),
    },
    Sentence {
        name: "hand-off: throughput falls with the rate",
        place: "section 6.2, figures 9 and 10",
        says: Says::That(
            "throughput goes down as hand-offs become more frequent",
            "neither party's mean rises from a point to the next beyond its intervals in either \
             test, and the last is below the first",
            Test::Trend(SPEED, Below, TESTS),
        ),
        why: why(
            "each blackout costs retransmissions, and OFF half of its window",
            "a point is out of order beyond its interval",
        ),
    },
    Sentence {
        name: "hand-off: twice as long is no slower",
        place: "section 6.2, figures 9 and 10",
        says: Says::That(
            "throughput is not lower with blackouts of 1 s than of 0.5 s at the same rate: good \
             stays are twice as long too",
            "each party's mean is not lower with 1 s at more than half of the points",
            Test::Lengths(SPEED, Above, Need::Most, BLACKOUTS, &[Off, On]),
        ),
        why: why(
            "good stays are twice as long too, and windows have more time to open",
            "with ON windows stay open anyway, so longer blackouts just cost",
        ),
    },
    Sentence {
        name: "hand-off: larger windows at 1 s",
        place: "section 6.2",
        says: Says::That(
            "twice as long good stays give larger windows",
            "each party's mean window is larger with 1 s at every point",
            Test::Lengths(WINDOW, Above, Need::Every, BLACKOUTS, &[Off, On]),
        ),
        why: why(
            "for the reason that the paper gives",
            "true of OFF; ON's windows stay near 64 segments whatever the stays are, so there is \
             nothing to gain for them and points differ by chance",
        ),
    },
    Sentence {
        name: "hand-off: ON is faster",
        place: "section 6.2, figures 9 and 10",
        says: Says::That(
            "ON's effective throughput is above OFF's throughout",
            "at every point of both tests ON's mean is above OFF's",
            Test::Parties(SPEED, Above, Need::Every, EVERYWHERE),
        ),
        why: why(
            "it keeps its window when the path is no slower than before, and stops sooner",
            "ON's losses at a point outweigh its windows",
        ),
    },
    Sentence {
        name: "hand-off: least gain",
        place: "section 6.2, figures 9 and 10",
        says: Says::Number(4.0, "%", 5.0, |seen| gains(seen).0),
        why: why(
            "the least gain is where blackouts are rarest",
            "the point with the least gain is not the paper's",
        ),
    },
    Sentence {
        name: "hand-off: greatest gain",
        place: "section 6.2, figures 9 and 10",
        says: Says::Number(86.0, "%", 25.0, |seen| gains(seen).1),
        why: why(
            "the greatest is where blackouts are most frequent",
            "the greatest gain is at the highest rate here too, of another size: it depends on \
             how OFF recovers from a blackout longer than its idle threshold, which the paper \
             does not say",
        ),
    },
    Sentence {
        name: "hand-off: gain by telling causes apart",
        place: "section 6.2",
        says: Says::That(
            "the main reason for the gain is that hand-offs are told from congestion",
            "without immediate recovery less than half of ON's gain is left, on average over 1, \
             5 and 15 % (1 s)",
            Test::ByRecovery(HANDOFF_1),
        ),
        why: why(
            "without it nothing is left: every blackout halves ON's window as well",
            "what is left comes from cycles that begin early",
        ),
    },
    Sentence {
        name: "hand-off: larger windows with ON",
        place: "section 6.2",
        says: Says::That(
            "probing keeps a larger window",
            "ON's mean window is above OFF's at every point of both tests",
            Test::Parties(WINDOW, Above, Need::Every, EVERYWHERE),
        ),
        why: why(
            "a blackout leaves ON's window as it was when the path is no slower afterwards",
            "blackouts are so rare at that point that OFF's window is full as well",
        ),
    },
    Sentence {
        name: "hand-off: fewer retransmissions",
        place: "section 6.2",
        says: Says::That(
            "suspending early avoids many retransmissions",
            "ON's mean retransmission overhead is below OFF's at every point of both tests",
            Test::Parties(AGAIN, Below, Need::Every, EVERYWHERE),
        ),
        why: why(
            "cycles begin at the first POLL without a STAT",
            "ON's larger window has more under way when a blackout begins",
        ),
    },
    Sentence {
        name: "hand-off: more gain at 1 s",
        place: "section 6.2, figures 9 and 10",
        says: Says::That(
            "the advantage is greater with 1 s",
            "the mean gain over the points is greater with 1 s",
            Test::Advantage(SPEED, Above, BLACKOUTS),
        ),
        why: why(
            "OFF's window is larger when it is halved",
            "the other way round. OFF pays one halving for each blackout whatever its length, \
             since 0.5 s, two and a half round trips, already drain most of its window; at the \
             same rate blackouts of 1 s are half as many. So the cost over time halves, while \
             what each saves grows by a third at most. With windows of 32 or 256 segments it is \
             the same",
        ),
    },
    Sentence {
        name: "hand-off: more lost each blackout at 1 s",
        place: "section 6.2",
        says: Says::That(
            "each blackout drops more segments with 1 s, because windows are larger",
            "OFF loses more segments each blackout with 1 s at every point",
            Test::Lengths(LOST, Above, Need::Every, BLACKOUTS, &[Off]),
        ),
        why: why(
            "windows are larger, and more is sent into a longer blackout",
            "at all points but 1 %, where a file meets one blackout or two and chance outweighs it",
        ),
    },
    Sentence {
        name: "hand-off: overhead rises with the rate",
        place: "section 6.2, figures 11 and 12",
        says: Says::That(
            "overhead goes up as hand-offs become more frequent",
            "neither party's mean falls from a point to the next beyond its intervals in either \
             test, and the last is above the first",
            Test::Trend(COST, Above, TESTS),
        ),
        why: why(
            "each blackout costs about as many retransmissions as the next",
            "a point is out of order beyond its interval",
        ),
    },
    Sentence {
        name: "hand-off: retransmissions rise with the rate",
        place: "section 6.2",
        says: Says::That(
            "overhead goes up mainly because more frequent hand-offs have more sent again",
            "neither party's mean of retransmission overhead falls from a point to the next \
             beyond its intervals in either test, and the last is above the first",
            Test::Trend(AGAIN, Above, TESTS),
        ),
        why: why(
            "each blackout costs about as many retransmissions as the next",
            "a point is out of order beyond its interval",
        ),
    },
    Sentence {
        name: "hand-off: twice as long costs no more",
        place: "section 6.2, figures 11 and 12",
        says: Says::That(
            "overhead is not higher with 1 s than with 0.5 s at the same rate",
            "each party's mean is lower with 1 s at more than half of the points",
            Test::Lengths(COST, Below, Need::Most, BLACKOUTS, &[Off, On]),
        ),
        why: why(
            "half as many blackouts cost less than twice as many segments each",
            "each longer blackout costs more than two shorter ones",
        ),
    },
    Sentence {
        name: "hand-off: slightly fewer POLLs and STATs",
        place: "section 6.2, figures 11 and 12",
        says: Says::That(
            "ON causes slightly less POLL and STAT traffic than OFF",
            "ON's mean control overhead, data headers left out, is below OFF's at more than half \
             of the points of both tests",
            Test::Parties(CONTROL, Below, Need::Most, EVERYWHERE),
        ),
        why: why(
            "one POLL each round trip while a cycle lasts, and a shorter connection",
            "cycles add more probes than they spare POLLs",
        ),
    },
    Sentence {
        name: "hand-off: slower polling hardly matters",
        place: "section 6.2",
        says: Says::That(
            "the lower polling rate has no noticeable effect on overhead",
            "ON's and OFF's mean control overheads differ by less than one percent of the file \
             at every point",
            Test::Own(control_hardly_matters),
        ),
        why: why(
            "POLLs and STATs are small and blackouts short",
            "cycles are long at these settings",
        ),
    },
    Sentence {
        name: "hand-off: less overhead",
        place: "section 6.2, figures 11 and 12",
        says: Says::That(
            "probing generally lowers the overhead",
            "ON's mean is below OFF's at more than half of the points of each test",
            Test::Parties(COST, Below, Need::Most, EVERYWHERE),
        ),
        why: why("fewer retransmissions", "ON's larger windows lose more than cycles save"),
    },
    Sentence {
        name: "hand-off: overhead saved at the last point",
        place: "section 6.2, figures 11 and 12",
        says: Says::Number(34.0, "%", 11.0, overhead_saved),
        why: why(
            "at the last point, 15 %; the paper's own point, 50 %, is not in its figure. Headers \
             of first sendings, 1.6 % of the file, are in both sums; without them the saving is \
             the published one",
            "less is saved at the last point, 15 %; the paper's own point, 50 %, is not in its \
             figure. Headers of first sendings, 1.6 % of the file, are in both sums; without \
             them the saving is the published one",
        ),
    },
    Sentence {
        name: "hand-off: ratio falls with the rate",
        place: "section 6.2, figures 13 and 14",
        says: Says::That(
            "throughput over overhead goes down as hand-offs become more frequent",
            "neither party's mean rises from a point to the next beyond its intervals in either \
             test, and the last is below the first",
            Test::Trend(WORTH, Below, TESTS),
        ),
        why: why(
            "throughput falls and overhead rises",
            "a point is out of order beyond its interval",
        ),
    },
    Sentence {
        name: "hand-off: better ratio at 1 s",
        place: "section 6.2, figures 13 and 14",
        says: Says::That(
            "at the same rate the ratio is higher with 1 s",
            "each party's mean ratio is higher with 1 s at every point",
            Test::Lengths(WORTH, Above, Need::Every, BLACKOUTS, &[Off, On]),
        ),
        why: why(
            "as fast at less overhead",
            "true of all but a few points, whose intervals overlap",
        ),
    },
    Sentence {
        name: "hand-off: better ratio",
        place: "section 6.2, figures 13 and 14",
        says: Says::That(
            "probing gets more throughput for the same overhead",
            "ON's mean ratio is above OFF's at every point of both tests",
            Test::Parties(WORTH, Above, Need::Every, EVERYWHERE),
        ),
        why: why(
            "faster at less overhead",
            "at a point ON's overhead is higher by more than its throughput",
        ),
    },
    Sentence {
        name: "hand-off: more of the ratio at 1 s",
        place: "section 6.2, figures 13 and 14",
        says: Says::That(
            "the advantage in the ratio is greater with 1 s",
            "the mean gain of the ratio over the points is greater with 1 s",
            Test::Advantage(WORTH, Above, BLACKOUTS),
        ),
        why: why(
            "the throughput's advantage is greater with 1 s",
            "follows from the throughput's gain, which is greater with 0.5 s here (see \"more \
             gain at 1 s\")",
        ),
    },
    Sentence {
        name: "hand-off: more overhead saved at 1 s",
        place: "section 6.2",
        says: Says::That(
            "the saving of overhead is greater with 1 s",
            "ON's mean change of overhead over the points is further below zero with 1 s",
            Test::Advantage(COST, Below, BLACKOUTS),
        ),
        why: why(
            "a longer blackout would have taken more of OFF's window",
            "as much is saved in both: a blackout of 0.5 s, two and a half round trips, already \
             takes most of a window",
        ),
    },
];
