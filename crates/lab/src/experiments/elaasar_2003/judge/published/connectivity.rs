//! Section 6.3: limited connectivity, figures 15 to 17, page 11 to 13.

use super::{claim, percent};
use crate::experiments::{Criterion, Expected, Published};

const TEXT: &str = "section 6.3";
const FIGURE_15: &str = "section 6.3, figure 15";
const FIGURE_16: &str = "section 6.3, figure 16";
const FIGURE_17: &str = "section 6.3, figure 17";

pub(in super::super::super) const OFF_DRAINS: Expected = claim(
    "connectivity: OFF drains its window",
    TEXT,
    "OFF does not notice the loss of connectivity and may lose some or all of its window",
    "OFF loses at least a third of its mean window each blackout (5 s)",
);
pub(in super::super::super) const ON_LOSES_A_PART: Expected = Expected {
    name: "connectivity: ON loses a part of its window",
    place: TEXT,
    published: Published::Number { value: 33.3, unit: "% of the window" },
    criterion: Criterion::Absolute(12.0),
};
pub(in super::super::super) const BACKOFF_COSTS: Expected = claim(
    "connectivity: back-off misses windows",
    TEXT,
    "backed-off polling makes OFF miss connectivity, or find it late",
    "without back-off OFF's mean throughput is higher beyond the paired interval at 1, 10 and \
     30 % (5 s)",
);
pub(in super::super::super) const FOUND_IN_A_ROUND_TRIP: Expected = claim(
    "connectivity: found within a round trip",
    TEXT,
    "a probe each round trip finds connectivity again within one round trip",
    "after single blackouts of 5 to 100 s the first probe reaches the sink on average within one \
     round trip (200 ms) of the link's return",
);
pub(in super::super::super) const OFF_FINDS_LATE: Expected = claim(
    "connectivity: OFF finds it late",
    TEXT,
    "OFF finds it long after it began",
    "after the same blackouts OFF's first POLL comes on average more than five round trips after \
     the link's return",
);
pub(in super::super::super) const MORE_POLLS: Expected = claim(
    "connectivity: more POLLs",
    TEXT,
    "probing without back-off may cost more POLLs during long blackouts",
    "ON's mean forward control overhead, data headers left out, is above OFF's at the lowest rate \
     (5 s)",
);
pub(in super::super::super) const FASTER_WITH_RATE: Expected = claim(
    "connectivity: throughput rises with the rate",
    FIGURE_15,
    "throughput goes up with the connectivity rate",
    "neither party's mean falls from a point to the next beyond its intervals in either test, and \
     the last is above the first",
);
pub(in super::super::super) const LONGER_IS_FASTER: Expected = claim(
    "connectivity: longer is faster",
    TEXT,
    "throughput is higher when each stay of connectivity is longer",
    "each party's mean is higher with 10 s than with 5 s at more than half of the points",
);
pub(in super::super::super) const LONGER_HAS_LARGER_WINDOWS: Expected = claim(
    "connectivity: larger windows at 10 s",
    TEXT,
    "the window grows much larger in longer stays of connectivity",
    "each party's mean window is larger with 10 s at more than half of the points",
);
pub(in super::super::super) const FASTER: Expected = claim(
    "connectivity: ON is faster",
    FIGURE_15,
    "ON's effective throughput is above OFF's throughout",
    "at every point (5 s) ON's mean is above OFF's",
);
pub(in super::super::super) const LEAST_GAIN: Expected =
    percent("connectivity: least gain", FIGURE_15, 13.0, 10.0);
pub(in super::super::super) const MOST_GAIN: Expected =
    percent("connectivity: greatest gain", FIGURE_15, 77.0, 25.0);
pub(in super::super::super) const LESS_SENT_AGAIN: Expected = claim(
    "connectivity: fewer retransmissions",
    TEXT,
    "suspending early avoids many retransmissions",
    "ON's mean retransmission overhead is below OFF's at every point (5 s)",
);
pub(in super::super::super) const OVERHEAD_IS_LEVEL: Expected = claim(
    "connectivity: overhead hardly changes",
    FIGURE_16,
    "overhead hardly depends on the connectivity rate",
    "each party's highest mean of retransmission overhead is at most 1.5 times its lowest (5 s)",
);
pub(in super::super::super) const MOSTLY_SENT_AGAIN: Expected = claim(
    "connectivity: retransmissions prevail",
    TEXT,
    "retransmissions are the major part of the overhead",
    "at more than half of the points (5 s) each party's retransmission overhead is more than its \
     control overhead, data headers left out",
);
pub(in super::super::super) const WINDOW_RISES: Expected = claim(
    "connectivity: windows rise with the rate",
    TEXT,
    "the mean window goes up with the connectivity rate",
    "each party's mean window is larger at 30 % than at 1 % (5 s)",
);
pub(in super::super::super) const MORE_LOST_EACH: Expected = claim(
    "connectivity: more lost each time",
    TEXT,
    "larger windows lose more segments each blackout",
    "each party loses more segments each blackout at 30 % than at 1 % (5 s)",
);
pub(in super::super::super) const FEWER_EVENTS: Expected = claim(
    "connectivity: fewer blackouts",
    TEXT,
    "larger windows mean a shorter connection and fewer blackouts in it",
    "each party meets fewer blackouts at 30 % than at 1 % (5 s)",
);
pub(in super::super::super) const LESS_OVERHEAD: Expected = claim(
    "connectivity: less overhead",
    FIGURE_16,
    "ON has less overhead than OFF",
    "ON's mean is below OFF's at every point (5 s)",
);
pub(in super::super::super) const FEWER_EVENTS_WITH_ON: Expected = claim(
    "connectivity: ON meets fewer blackouts",
    TEXT,
    "a shorter connection meets fewer blackouts",
    "ON meets fewer blackouts than OFF at every point (5 s)",
);
pub(in super::super::super) const LESS_ADVANTAGE_AT_10_S: Expected = claim(
    "connectivity: less advantage at 10 s",
    TEXT,
    "the advantage in overhead is smaller in the 10-second tests",
    "the mean saving of overhead over the points is smaller with 10 s than with 5 s",
);
pub(in super::super::super) const BY_SLOW_START: Expected = claim(
    "connectivity: OFF's slow start at 10 s",
    TEXT,
    "that is mainly because OFF slow-starts when connectivity is back, which keeps it fast",
    "without slow start after a pause OFF's mean throughput is lower with 10 s, on average over \
     1, 10 and 30 %",
);
pub(in super::super::super) const LONGER_CYCLES: Expected = claim(
    "connectivity: longer cycles at 10 s",
    TEXT,
    "longer blackouts lengthen probing, which costs more control",
    "the mean probing time each blackout is longer with 10 s than with 5 s at every point, and \
     so are the probes in it",
);
pub(in super::super::super) const RATIO_RISES: Expected = claim(
    "connectivity: ratio rises with the rate",
    FIGURE_17,
    "throughput over overhead goes up with the connectivity rate",
    "neither party's mean falls from a point to the next beyond its intervals (5 s), and the last \
     is above the first",
);
pub(in super::super::super) const RATIO_BETTER_AT_10_S: Expected = claim(
    "connectivity: better ratio at 10 s",
    TEXT,
    "at the same rate the ratio is higher with 10 s",
    "each party's mean ratio is higher with 10 s than with 5 s at more than half of the points",
);
pub(in super::super::super) const BETTER_RATIO: Expected = claim(
    "connectivity: better ratio",
    FIGURE_17,
    "probing gets more throughput for the same overhead",
    "ON's mean ratio is above OFF's at every point (5 s)",
);
pub(in super::super::super) const BY_RECOVERY: Expected = claim(
    "connectivity: gain by telling causes apart",
    TEXT,
    "the main reason for the gain is that lost connectivity is told from congestion",
    "without immediate recovery less than half of ON's gain is left, on average over 1, 10 and \
     30 % (5 s)",
);
pub(in super::super::super) const LARGER_WINDOWS: Expected = claim(
    "connectivity: larger windows with ON",
    TEXT,
    "probing keeps a larger window",
    "ON's mean window is above OFF's at every point (5 s)",
);
pub(in super::super::super) const LOSES_LESS: Expected = claim(
    "connectivity: fewer lost each time",
    TEXT,
    "noticing a loss of connectivity early drops fewer segments each time",
    "ON loses fewer segments each blackout than OFF at every point (5 s)",
);
pub(in super::super::super) const PROBE_EACH_ROUND_TRIP: Expected = claim(
    "connectivity: a probe each round trip",
    TEXT,
    "probing sends one probe each round trip, without back-off",
    "over all points (5 s) between 3 and 5.5 probes a second: round trips of 200 to 300 ms",
);
