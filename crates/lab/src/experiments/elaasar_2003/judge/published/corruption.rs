//! Section 6.1: bit corruption, figures 6 to 8, page 7 to 9.

use super::{claim, percent};
use crate::experiments::Expected;

const FIGURE_6: &str = "section 6.1, figure 6";
const FIGURE_7: &str = "section 6.1, figure 7";
const FIGURE_8: &str = "section 6.1, figure 8";
const TEXT: &str = "section 6.1";

pub(in super::super::super) const FASTER: Expected = claim(
    "corruption: ON is faster",
    FIGURE_6,
    "ON's effective throughput is above OFF's throughout",
    "at every point with loss (10 s) ON's mean is above OFF's",
);
pub(in super::super::super) const LEAST_GAIN: Expected =
    percent("corruption: least gain", FIGURE_6, 3.0, 5.0);
pub(in super::super::super) const MOST_GAIN: Expected =
    percent("corruption: greatest gain", FIGURE_6, 150.0, 40.0);
pub(in super::super::super) const BY_RECOVERY: Expected = claim(
    "corruption: gain by immediate recovery",
    TEXT,
    "most of the gain comes from not slowing down when probing finds a link error",
    "without it (every end of a cycle halves the window) less than half of ON's gain is left, on \
     average over 5, 20 and 50 %",
);
pub(in super::super::super) const MORE_AT_10_S: Expected = claim(
    "corruption: more gain at 10 s",
    TEXT,
    "the advantage is greater in the 10-second than in the 1-second tests",
    "the mean gain over the points with loss is greater with 10 s",
);
pub(in super::super::super) const WINDOWS_GROW: Expected = claim(
    "corruption: larger windows at 10 s",
    TEXT,
    "the window reaches a much larger size in a 10-second phase than in a 1-second one",
    "OFF's and ON's mean windows at 20 % are at least 1.5 times as large with 10 s",
);
pub(in super::super::super) const WINDOWS_STAY: Expected = claim(
    "corruption: small windows at 1 s",
    TEXT,
    "after a 1-second phase the window is usually not far from the initial one",
    "OFF's mean window at 20 % with 1 s is below 10 segments",
);
pub(in super::super::super) const CYCLES_LENGTHEN: Expected = claim(
    "corruption: cycles lengthen",
    TEXT,
    "the worse the error condition, the longer a probing cycle takes",
    "the mean length of a cycle grows from each point to the next beyond 5 % (10 s), and is at \
     least doubled from 5 to 50 %",
);
pub(in super::super::super) const SLOW_STARTS: Expected = claim(
    "corruption: back to slow start",
    TEXT,
    "under severe errors with growing round trips a session may go back to slow start after \
     probing",
    "it happens at 50 % (10 s), and more often than at 5 %",
);
pub(in super::super::super) const SLOW_STARTS_COST: Expected = claim(
    "corruption: slow starts cost time",
    TEXT,
    "going back to slow start makes the connection longer",
    "without it (no idle threshold) ON's mean throughput at 50 % is not lower",
);
pub(in super::super::super) const LIGHT_IS_QUICK: Expected = claim(
    "corruption: light errors, short cycles",
    TEXT,
    "with light errors the cycle ends much sooner",
    "the mean length of a cycle at 5 % is less than half of that at 50 % (10 s)",
);
pub(in super::super::super) const LIGHT_GOES_ON: Expected = claim(
    "corruption: light errors, same speed",
    TEXT,
    "with light errors and no longer round trips the session goes on at the speed it had",
    "at 5 % (10 s) more than half of the cycles end with the window as it was",
);
pub(in super::super::super) const ONE_HALVING: Expected = claim(
    "corruption: one halving a window",
    TEXT,
    "OFF does not reduce its window again for losses of the window that it has reduced already",
    "OFF at 20 % (10 s) reduces its window less often than segments are lost, by a factor of 2",
);
pub(in super::super::super) const BACKOFF_COSTS: Expected = claim(
    "corruption: back-off costs OFF time",
    TEXT,
    "under severe errors OFF's polling, backed off, misses times without errors and the \
     connection takes longer",
    "without back-off OFF's mean throughput at 50 % (10 s) is higher, beyond the paired interval",
);
pub(in super::super::super) const LESS_OVERHEAD: Expected = claim(
    "corruption: less overhead",
    FIGURE_7,
    "probing generally lowers the overhead",
    "ON's mean is below OFF's at more than half of the points with loss (10 s)",
);
pub(in super::super::super) const LARGER_WINDOWS: Expected = claim(
    "corruption: larger windows with ON",
    TEXT,
    "probing tends to keep the window larger",
    "ON's mean window is above OFF's at every point with loss (10 s)",
);
pub(in super::super::super) const MORE_AT_FIRST: Expected = claim(
    "corruption: more losses at first",
    TEXT,
    "a larger window means more losses at the start of a loss event",
    "ON loses more segments each bad stay than OFF at 5 % (10 s)",
);
pub(in super::super::super) const NOT_AT_5: Expected = claim(
    "corruption: no less overhead at 5 %",
    FIGURE_7,
    "at 5 % the losses of a larger window outweigh what suspending saves",
    "ON's mean overhead at 5 % (10 s) is not below OFF's",
);
pub(in super::super::super) const NOT_AT_20: Expected = claim(
    "corruption: no less overhead at 20 %",
    FIGURE_7,
    "at 20 % the losses of a larger window outweigh what suspending saves",
    "none: the next sentence says the opposite of the same point",
);
pub(in super::super::super) const FROM_20: Expected = claim(
    "corruption: less overhead from 20 % on",
    FIGURE_7,
    "from some error rate on, 20 % here, probing lowers the overhead",
    "ON's mean is below OFF's at every point from 20 % on (10 s)",
);
pub(in super::super::super) const BY_EARLY_TIMEOUT: Expected = claim(
    "corruption: early timeout saves overhead",
    TEXT,
    "that is largely due to cycles that early timeouts begin sooner",
    "without early timeouts ON's retransmission overhead is higher, on average over 20 and 50 % \
     (10 s)",
);
pub(in super::super::super) const OVERHEAD_AT_50: Expected =
    percent("corruption: overhead saved at 50 %", FIGURE_7, 44.0, 11.0);
pub(in super::super::super) const RATIO_FALLS: Expected = claim(
    "corruption: ratio falls with errors",
    FIGURE_8,
    "throughput over overhead goes down as the error rate goes up",
    "neither party's mean rises from a point to the next beyond its intervals (10 s), and the \
     last is below the first",
);
pub(in super::super::super) const BETTER_RATIO: Expected = claim(
    "corruption: better ratio",
    FIGURE_8,
    "probing gets more throughput for less overhead",
    "ON's mean ratio is above OFF's at every point with loss (10 s)",
);
