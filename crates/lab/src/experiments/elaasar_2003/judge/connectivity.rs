//! Section 6.3: limited connectivity, figures 15 to 17, page 11 to 13.

mod found;

use super::super::conditions::{CONNECTED_5, CONNECTED_10, Condition};
use super::super::trial::Party::{Off, On};
use super::super::variants::{NO_BACKOFF, NO_OUTAGE_PAUSE};
use super::measure::{AGAIN, COST, EVENTS, LOST, POLLS, SPEED, WINDOW, WORTH};
use super::seen::Seen;
use super::sentence::Side::{Above, Below};
use super::sentence::{Need, Says, Sentence, Test, Where, probe_each_round_trip, why};
use super::{figures, words};
use crate::experiments::Section;
use found::{
    found_in_a_round_trip, gains, longer_cycles, mostly_sent_again, off_drains, off_finds_late,
    on_loses_a_part, overhead_is_level,
};

const TESTS: &[Condition] = &[CONNECTED_5];
const EVERYWHERE: Where = Where(TESTS, |_| true);
/// Both, the longer first.
const STAYS: [Condition; 2] = [CONNECTED_10, CONNECTED_5];

/// Figures, table and cells of limited connectivity.
pub(super) fn section(seen: &Seen<'_>) -> Section {
    let mut figures = figures::of(seen, CONNECTED_5, ["15", "16", "17"]);
    figures.extend(figures::of(seen, CONNECTED_10, ["", "", ""]));
    Section {
        title: "Limited connectivity (section 6.3)".into(),
        text: words::CONNECTIVITY.map(str::to_owned).into(),
        figures,
        tables: vec![figures::table(seen, CONNECTED_5), figures::table(seen, CONNECTED_10)],
        cells: SENTENCES.iter().map(|sentence| sentence.judge(seen)).collect(),
    }
}

const SENTENCES: &[Sentence] = &[
    Sentence {
        name: "connectivity: OFF drains its window",
        place: "section 6.3",
        says: Says::That(
            "OFF does not notice the loss of connectivity and may lose some or all of its window",
            "OFF loses at least a third of its mean window each blackout (5 s)",
            Test::Own(off_drains),
        ),
        why: why(
            "it sends until its window is full",
            "what a STAT enables is spread over a round trip, and the file ends before",
        ),
    },
    Sentence {
        name: "connectivity: ON loses a part of its window",
        place: "section 6.3",
        says: Says::Number(33.3, "% of the window", 12.0, on_loses_a_part),
        why: why(
            "a third is what leaves until the next POLL is due; what was under way besides is \
             lost too",
            "ON loses what was under way when connectivity ended, and what it sends until the \
             next POLL is due",
        ),
    },
    Sentence {
        name: "connectivity: back-off misses windows",
        place: "section 6.3",
        says: Says::That(
            "backed-off polling makes OFF miss connectivity, or find it late",
            "without back-off OFF's mean throughput is higher beyond the paired interval at 1, \
             10 and 30 % (5 s)",
            Test::WithoutAtEach(&NO_BACKOFF, SPEED, Off, Above, EVERYWHERE),
        ),
        why: why(
            "each blackout adds half of the backed-off interval, of a stay of five seconds",
            "the mean is higher at all of these points, by a third to nearly double; but files \
             meet few blackouts of very different length, and with five replications some \
             intervals reach zero",
        ),
    },
    Sentence {
        name: "connectivity: found within a round trip",
        place: "section 6.3",
        says: Says::That(
            "a probe each round trip finds connectivity again within one round trip",
            "after single blackouts of 5 to 100 s the first probe reaches the sink on average \
             within one round trip (200 ms) of the link's return",
            Test::Own(found_in_a_round_trip),
        ),
        why: why(
            "a probe leaves each round trip of 200 ms, and takes 100 ms to the sink",
            "the smoothed round trip was longer than the link's",
        ),
    },
    Sentence {
        name: "connectivity: OFF finds it late",
        place: "section 6.3",
        says: Says::That(
            "OFF finds it long after it began",
            "after the same blackouts OFF's first POLL comes on average more than five round \
             trips after the link's return",
            Test::Own(off_finds_late),
        ),
        why: why(
            "its POLLs are up to 4.3 s apart: 64 thirds of a round trip",
            "POLLs are not backed off far enough at these settings",
        ),
    },
    Sentence {
        name: "connectivity: a probe each round trip",
        place: "section 6.3",
        says: Says::That(
            "probing sends one probe each round trip, without back-off",
            "over all points (5 s) between 3 and 5.5 probes a second: round trips of 200 to 300 ms",
            Test::Own(|seen| probe_each_round_trip(seen, CONNECTED_5)),
        ),
        why: why(
            "the smoothed round trip lies between the two that the delays make",
            "the smoothed round trip is another at these settings",
        ),
    },
    Sentence {
        name: "connectivity: more POLLs",
        place: "section 6.3",
        says: Says::That(
            "probing without back-off may cost more POLLs during long blackouts",
            "ON's mean forward control overhead, data headers left out, is above OFF's at the \
             lowest rate (5 s)",
            Test::Parties(POLLS, Above, Need::Every, Where(TESTS, |percent| percent == 1)),
        ),
        why: why(
            "a probe of 16 octets each 200 ms through blackouts of minutes",
            "blackouts are short at these settings",
        ),
    },
    Sentence {
        name: "connectivity: throughput rises with the rate",
        place: "section 6.3, figure 15",
        says: Says::That(
            "throughput goes up with the connectivity rate",
            "neither party's mean falls from a point to the next beyond its intervals in either \
             test, and the last is above the first",
            Test::Trend(SPEED, Above, &STAYS),
        ),
        why: why(
            "there is more time with link",
            "a point is out of order beyond its interval: files meet few blackouts of very \
             different length",
        ),
    },
    Sentence {
        name: "connectivity: longer is faster",
        place: "section 6.3",
        says: Says::That(
            "throughput is higher when each stay of connectivity is longer",
            "each party's mean is higher with 10 s than with 5 s at more than half of the points",
            Test::Lengths(SPEED, Above, Need::Most, STAYS, &[Off, On]),
        ),
        why: why(
            "half as many beginnings for the same time",
            "files end within a stay or two, whose lengths are left to chance",
        ),
    },
    Sentence {
        name: "connectivity: larger windows at 10 s",
        place: "section 6.3",
        says: Says::That(
            "the window grows much larger in longer stays of connectivity",
            "each party's mean window is larger with 10 s at more than half of the points",
            Test::Lengths(WINDOW, Above, Need::Most, STAYS, &[Off, On]),
        ),
        why: why("for the reason that the paper gives", "windows are bound by 64 segments in both"),
    },
    Sentence {
        name: "connectivity: ON is faster",
        place: "section 6.3, figure 15",
        says: Says::That(
            "ON's effective throughput is above OFF's throughout",
            "at every point (5 s) ON's mean is above OFF's",
            Test::Parties(SPEED, Above, Need::Every, EVERYWHERE),
        ),
        why: why(
            "it finds the link sooner and goes on with its old window",
            "at a point chance outweighs it: files meet few blackouts of very different length",
        ),
    },
    Sentence {
        name: "connectivity: least gain",
        place: "section 6.3, figure 15",
        says: Says::Number(13.0, "%", 10.0, |seen| gains(seen).0),
        why: why(
            "the least gain is at the lowest rates, where both wait for most of the time",
            "more than published throughout: OFF finds the link by POLLs up to 4.3 s apart, of \
             stays of 5 s, and then begins with one segment. The paper gives no cap for the \
             back-off; with a cap of 4 intervals instead of 64 gains are 0 to 10 %, so the \
             published ones lie between (see the readings tried)",
        ),
    },
    Sentence {
        name: "connectivity: greatest gain",
        place: "section 6.3, figure 15",
        says: Says::Number(77.0, "%", 25.0, |seen| gains(seen).1),
        why: why(
            "the greatest is where stays without link are shortest",
            "of another size: it hangs on how far OFF's polling backs off and on whether it \
             slow-starts or halves when the link is back. The paper gives neither a cap nor the \
             idle threshold; other values lead from a third to three times the published gain \
             (see the readings tried)",
        ),
    },
    Sentence {
        name: "connectivity: gain by telling causes apart",
        place: "section 6.3",
        says: Says::That(
            "the main reason for the gain is that lost connectivity is told from congestion",
            "without immediate recovery less than half of ON's gain is left, on average over 1, \
             10 and 30 % (5 s)",
            Test::ByRecovery(CONNECTED_5),
        ),
        why: why(
            "without it every blackout halves ON's window as well",
            "most of the gain stays: it comes from finding the link again within a round trip. \
             Blackouts of minutes end in slow start for OFF, which has its old window back in \
             six round trips; a window kept is worth little beside the seconds that OFF takes to \
             ask. Without early timeouts nearly all of the gain is gone (see the readings tried)",
        ),
    },
    Sentence {
        name: "connectivity: larger windows with ON",
        place: "section 6.3",
        says: Says::That(
            "probing keeps a larger window",
            "ON's mean window is above OFF's at every point (5 s)",
            Test::Parties(WINDOW, Above, Need::Every, EVERYWHERE),
        ),
        why: why(
            "a blackout leaves ON's window as it was when the path is no slower afterwards",
            "windows stand as they were left through long blackouts, for OFF as well",
        ),
    },
    Sentence {
        name: "connectivity: fewer retransmissions",
        place: "section 6.3",
        says: Says::That(
            "suspending early avoids many retransmissions",
            "ON's mean retransmission overhead is below OFF's at every point (5 s)",
            Test::Parties(AGAIN, Below, Need::Every, EVERYWHERE),
        ),
        why: why(
            "cycles begin at the first POLL without a STAT",
            "larger windows lose more at that point",
        ),
    },
    Sentence {
        name: "connectivity: overhead hardly changes",
        place: "section 6.3, figure 16",
        says: Says::That(
            "overhead hardly depends on the connectivity rate",
            "each party's highest mean of retransmission overhead is at most 1.5 times its \
             lowest (5 s)",
            Test::Own(overhead_is_level),
        ),
        why: why(
            "each file needs about as many stays, and each stay loses about as much",
            "the number of stays that a file needs changes with the rate",
        ),
    },
    Sentence {
        name: "connectivity: retransmissions prevail",
        place: "section 6.3",
        says: Says::That(
            "retransmissions are the major part of the overhead",
            "at more than half of the points (5 s) each party's retransmission overhead is more \
             than its control overhead, data headers left out",
            Test::Own(mostly_sent_again),
        ),
        why: why(
            "POLLs are small, but for the longest blackouts",
            "probes through long blackouts outweigh what is sent again",
        ),
    },
    Sentence {
        name: "connectivity: windows rise with the rate",
        place: "section 6.3",
        says: Says::That(
            "the mean window goes up with the connectivity rate",
            "each party's mean window is larger at 30 % than at 1 % (5 s)",
            Test::Ends(WINDOW, Above, CONNECTED_5),
        ),
        why: why(
            "for the reason that the paper gives",
            "in the paper's own set-up a stay with link is 5 s on average at every rate; only \
             blackouts differ, so windows have no more time to grow at a higher rate. What \
             changes: at 30 % a quarter of the blackouts is shorter than the idle threshold; \
             after these OFF halves instead of slow-starting up to its old window, and its mean \
             window falls",
        ),
    },
    Sentence {
        name: "connectivity: more lost each time",
        place: "section 6.3",
        says: Says::That(
            "larger windows lose more segments each blackout",
            "each party loses more segments each blackout at 30 % than at 1 % (5 s)",
            Test::Ends(LOST, Above, CONNECTED_5),
        ),
        why: why(
            "windows are larger",
            "stays with link are as long at every rate, and so are windows at their ends: what \
             is lost each time hardly depends on the rate",
        ),
    },
    Sentence {
        name: "connectivity: fewer blackouts",
        place: "section 6.3",
        says: Says::That(
            "larger windows mean a shorter connection and fewer blackouts in it",
            "each party meets fewer blackouts at 30 % than at 1 % (5 s)",
            Test::Ends(EVENTS, Below, CONNECTED_5),
        ),
        why: why(
            "fewer stays for the same file",
            "each stay with link is as long and carries as much at every rate, whatever lies \
             between, so a file needs as many; OFF needs more at 30 %, where it halves after \
             blackouts shorter than its idle threshold",
        ),
    },
    Sentence {
        name: "connectivity: less overhead",
        place: "section 6.3, figure 16",
        says: Says::That(
            "ON has less overhead than OFF",
            "ON's mean is below OFF's at every point (5 s)",
            Test::Parties(COST, Below, Need::Every, EVERYWHERE),
        ),
        why: why(
            "fewer retransmissions",
            "not at 1 %: a probe of 16 octets each 200 ms through a blackout of 495 s is 39.6 \
             kB, as much as 39 segments, where an early timeout saves some 25 of at most 64. \
             Probing can only save octets where blackouts are shorter than about 320 s, at rates \
             above 1.6 %. The paper says itself that probes cost most there",
        ),
    },
    Sentence {
        name: "connectivity: fewer lost each time",
        place: "section 6.3",
        says: Says::That(
            "noticing a loss of connectivity early drops fewer segments each time",
            "ON loses fewer segments each blackout than OFF at every point (5 s)",
            Test::Parties(LOST, Below, Need::Every, EVERYWHERE),
        ),
        why: why(
            "nothing new is sent from the first POLL without a STAT on",
            "ON's window is larger, and so is what is under way",
        ),
    },
    Sentence {
        name: "connectivity: ON meets fewer blackouts",
        place: "section 6.3",
        says: Says::That(
            "a shorter connection meets fewer blackouts",
            "ON meets fewer blackouts than OFF at every point (5 s)",
            Test::Parties(EVENTS, Below, Need::Every, EVERYWHERE),
        ),
        why: why("it is done sooner", "chance outweighs it at a point"),
    },
    Sentence {
        name: "connectivity: less advantage at 10 s",
        place: "section 6.3",
        says: Says::That(
            "the advantage in overhead is smaller in the 10-second tests",
            "the mean saving of overhead over the points is smaller with 10 s than with 5 s",
            Test::Advantage(COST, Above, STAYS),
        ),
        why: why(
            "OFF makes more of longer stays",
            "about as much is saved in both: with 10 s stays blackouts are longer too and probes \
             cost more, but fewer stays are needed. The difference is within the intervals of \
             both",
        ),
    },
    Sentence {
        name: "connectivity: OFF's slow start at 10 s",
        place: "section 6.3",
        says: Says::That(
            "that is mainly because OFF slow-starts when connectivity is back, which keeps it fast",
            "without slow start after a pause OFF's mean throughput is lower with 10 s, on \
             average over 1, 10 and 30 %",
            Test::Without(&NO_OUTAGE_PAUSE, SPEED, Off, Below, Where(&[CONNECTED_10], |_| true)),
        ),
        why: why(
            "halving again and again would leave it with small windows; slow start reaches the \
             old window in six round trips",
            "slow start from one segment is the slower way here",
        ),
    },
    Sentence {
        name: "connectivity: OFF sends less again at 10 s",
        place: "section 6.3",
        says: Says::That(
            "a shorter connection meets fewer losses of connectivity and so has fewer \
             retransmissions",
            "OFF's mean retransmission overhead is lower with 10 s than with 5 s at more than \
             half of the points",
            Test::Lengths(AGAIN, Below, Need::Most, STAYS, &[Off]),
        ),
        why: why(
            "half as many stays carry the file, and a stay loses a window at most",
            "OFF's windows are larger with 10 s, and each stay loses as much more",
        ),
    },
    Sentence {
        name: "connectivity: longer cycles at 10 s",
        place: "section 6.3",
        says: Says::That(
            "longer blackouts lengthen probing, which costs more control",
            "the mean probing time each blackout is longer with 10 s than with 5 s at every \
             point, and so are the probes in it",
            Test::Own(longer_cycles),
        ),
        why: why(
            "a cycle lasts as long as the blackout, and probes are sent throughout",
            "chance of few blackouts outweighs it at a point",
        ),
    },
    Sentence {
        name: "connectivity: ratio rises with the rate",
        place: "section 6.3, figure 17",
        says: Says::That(
            "throughput over overhead goes up with the connectivity rate",
            "neither party's mean falls from a point to the next beyond its intervals (5 s), and \
             the last is above the first",
            Test::Trend(WORTH, Above, TESTS),
        ),
        why: why("faster at hardly more overhead", "a point is out of order beyond its interval"),
    },
    Sentence {
        name: "connectivity: better ratio at 10 s",
        place: "section 6.3",
        says: Says::That(
            "at the same rate the ratio is higher with 10 s",
            "each party's mean ratio is higher with 10 s than with 5 s at more than half of the \
             points",
            Test::Lengths(WORTH, Above, Need::Most, STAYS, &[Off, On]),
        ),
        why: why("faster, at less overhead for each stay", "chance of few blackouts outweighs it"),
    },
    Sentence {
        name: "connectivity: better ratio",
        place: "section 6.3, figure 17",
        says: Says::That(
            "probing gets more throughput for the same overhead",
            "ON's mean ratio is above OFF's at every point (5 s)",
            Test::Parties(WORTH, Above, Need::Every, EVERYWHERE),
        ),
        why: why(
            "faster at less overhead",
            "not at 1 %, where probes through blackouts of minutes cost more than early timeouts \
             save (see \"less overhead\"); at all other points",
        ),
    },
];
