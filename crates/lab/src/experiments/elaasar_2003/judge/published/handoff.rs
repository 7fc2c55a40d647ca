//! Section 6.2: hand-off, figures 9 to 14, page 9 to 11.

use super::{claim, percent};
use crate::experiments::{Criterion, Expected, Published};

const TEXT: &str = "section 6.2";
const FIGURES_9_10: &str = "section 6.2, figures 9 and 10";
const FIGURES_11_12: &str = "section 6.2, figures 11 and 12";
const FIGURES_13_14: &str = "section 6.2, figures 13 and 14";

pub(in super::super::super) const OFF_DRAINS: Expected = claim(
    "hand-off: OFF drains its window",
    TEXT,
    "OFF does not notice the blackout and may lose some or all of its window",
    "in both tests OFF loses at least a third of its mean window each blackout, on average",
);
pub(in super::super::super) const ON_LOSES_A_PART: Expected = Expected {
    name: "hand-off: ON loses a part of its window",
    place: TEXT,
    published: Published::Number { value: 33.3, unit: "% of the window" },
    criterion: Criterion::Absolute(12.0),
};
pub(in super::super::super) const LOSES_LESS: Expected = claim(
    "hand-off: ON loses a smaller part than OFF",
    TEXT,
    "noticing a blackout early spares a part of the window",
    "in both tests ON loses a smaller share of its mean window each blackout",
);
pub(in super::super::super) const FALSE_ALARMS_ARE_CHEAP: Expected = claim(
    "hand-off: false alarms cost little",
    TEXT,
    "an early timeout by a longer round trip ends at once, with hardly any loss of throughput",
    "without any loss, only changes of delay (the 0 % point of the corruption test), ON's mean \
     throughput is at most 3 % below OFF's",
);
pub(in super::super::super) const SLOWER_WITH_RATE: Expected = claim(
    "hand-off: throughput falls with the rate",
    FIGURES_9_10,
    "throughput goes down as hand-offs become more frequent",
    "neither party's mean rises from a point to the next beyond its intervals in either test, and \
     the last is below the first",
);
pub(in super::super::super) const LONGER_IS_NO_SLOWER: Expected = claim(
    "hand-off: twice as long is no slower",
    FIGURES_9_10,
    "throughput is not lower with blackouts of 1 s than of 0.5 s at the same rate: good stays are \
     twice as long too",
    "each party's mean is not lower with 1 s at more than half of the points",
);
pub(in super::super::super) const LONGER_HAS_LARGER_WINDOWS: Expected = claim(
    "hand-off: larger windows at 1 s",
    TEXT,
    "twice as long good stays give larger windows",
    "each party's mean window is larger with 1 s at every point",
);
pub(in super::super::super) const FASTER: Expected = claim(
    "hand-off: ON is faster",
    FIGURES_9_10,
    "ON's effective throughput is above OFF's throughout",
    "at every point of both tests ON's mean is above OFF's",
);
pub(in super::super::super) const LEAST_GAIN: Expected =
    percent("hand-off: least gain", FIGURES_9_10, 4.0, 5.0);
pub(in super::super::super) const MOST_GAIN: Expected =
    percent("hand-off: greatest gain", FIGURES_9_10, 86.0, 25.0);
pub(in super::super::super) const LESS_SENT_AGAIN: Expected = claim(
    "hand-off: fewer retransmissions",
    TEXT,
    "suspending early avoids many retransmissions",
    "ON's mean retransmission overhead is below OFF's at every point of both tests",
);
pub(in super::super::super) const MORE_AT_1_S: Expected = claim(
    "hand-off: more gain at 1 s",
    FIGURES_9_10,
    "the advantage is greater with 1 s",
    "the mean gain over the points is greater with 1 s",
);
pub(in super::super::super) const MORE_LOST_AT_1_S: Expected = claim(
    "hand-off: more lost each blackout at 1 s",
    TEXT,
    "each blackout drops more segments with 1 s, because windows are larger",
    "OFF loses more segments each blackout with 1 s at every point",
);
pub(in super::super::super) const OVERHEAD_RISES: Expected = claim(
    "hand-off: overhead rises with the rate",
    FIGURES_11_12,
    "overhead goes up as hand-offs become more frequent",
    "neither party's mean falls from a point to the next beyond its intervals in either test, and \
     the last is above the first",
);
pub(in super::super::super) const LONGER_COSTS_NO_MORE: Expected = claim(
    "hand-off: twice as long costs no more",
    FIGURES_11_12,
    "overhead is not higher with 1 s than with 0.5 s at the same rate",
    "each party's mean is lower with 1 s at more than half of the points",
);
pub(in super::super::super) const LESS_CONTROL: Expected = claim(
    "hand-off: slightly fewer POLLs and STATs",
    FIGURES_11_12,
    "ON causes slightly less POLL and STAT traffic than OFF",
    "ON's mean control overhead, data headers left out, is below OFF's at more than half of the \
     points of both tests",
);
pub(in super::super::super) const CONTROL_HARDLY_MATTERS: Expected = claim(
    "hand-off: slower polling hardly matters",
    TEXT,
    "the lower polling rate has no noticeable effect on overhead",
    "ON's and OFF's mean control overheads differ by less than one percent of the file at every \
     point",
);
pub(in super::super::super) const LESS_OVERHEAD: Expected = claim(
    "hand-off: less overhead",
    FIGURES_11_12,
    "probing generally lowers the overhead",
    "ON's mean is below OFF's at more than half of the points of each test",
);
/// The paper says "at the 50 % point", which its figure 12 does not have: rates end at 15 %.
pub(in super::super::super) const OVERHEAD_SAVED: Expected =
    percent("hand-off: overhead saved at the last point", FIGURES_11_12, 34.0, 11.0);
pub(in super::super::super) const RATIO_FALLS: Expected = claim(
    "hand-off: ratio falls with the rate",
    FIGURES_13_14,
    "throughput over overhead goes down as hand-offs become more frequent",
    "neither party's mean rises from a point to the next beyond its intervals in either test, and \
     the last is below the first",
);
pub(in super::super::super) const RATIO_BETTER_AT_1_S: Expected = claim(
    "hand-off: better ratio at 1 s",
    FIGURES_13_14,
    "at the same rate the ratio is higher with 1 s",
    "each party's mean ratio is higher with 1 s at every point",
);
pub(in super::super::super) const BETTER_RATIO: Expected = claim(
    "hand-off: better ratio",
    FIGURES_13_14,
    "probing gets more throughput for the same overhead",
    "ON's mean ratio is above OFF's at every point of both tests",
);
pub(in super::super::super) const RATIO_GAIN_AT_1_S: Expected = claim(
    "hand-off: more of the ratio at 1 s",
    FIGURES_13_14,
    "the advantage in the ratio is greater with 1 s",
    "the mean gain of the ratio over the points is greater with 1 s",
);
pub(in super::super::super) const BY_RECOVERY: Expected = claim(
    "hand-off: gain by telling causes apart",
    TEXT,
    "the main reason for the gain is that hand-offs are told from congestion",
    "without immediate recovery less than half of ON's gain is left, on average over 1, 5 and 15 % \
     (1 s)",
);
pub(in super::super::super) const LARGER_WINDOWS: Expected = claim(
    "hand-off: larger windows with ON",
    TEXT,
    "probing keeps a larger window",
    "ON's mean window is above OFF's at every point of both tests",
);
