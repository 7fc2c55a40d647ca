//! Section 8, page 14.

use super::claim;
use crate::experiments::Expected;

const PLACE: &str = "section 8";

pub(in super::super::super) const ALWAYS_BETTER: Expected = claim(
    "conclusion: better ratio everywhere",
    PLACE,
    "probing consistently reaches a better ratio of throughput to overhead",
    "ON's mean ratio is above OFF's at every point with loss of all six tests",
);
pub(in super::super::super) const BY_THROUGHPUT: Expected = claim(
    "conclusion: mainly by throughput",
    PLACE,
    "that is mainly by more throughput, with overhead kept low",
    "over all points with loss, the mean logarithm of the throughput's gain is more than half of \
     the ratio's",
);
pub(in super::super::super) const MORE_WITH_LINK_ERRORS: Expected = claim(
    "conclusion: most help with link errors",
    PLACE,
    "probing helps most where link errors outnumber congestion",
    "the gain in throughput is greater with no congestion among the losses than with nothing else",
);
pub(in super::super::super) const FALLS_WITH_CONGESTION: Expected = claim(
    "conclusion: congestion makes it careful",
    PLACE,
    "the more losses are congestion, the more conservative the session becomes",
    "ON's mean window falls as the share of congestion grows: the straight line through the means \
     goes down, and the last is below the first beyond the intervals",
);
pub(in super::super::super) const PIVOT_OF_THROUGHPUT: Expected = claim(
    "conclusion: a pivot of throughput",
    PLACE,
    "at some share of congestion probing stops paying in throughput (left to future work)",
    "in the paper's model or where a queue overflows: the gain is clearly above zero with the \
     least congestion, and from some share on its mean is not",
);
pub(in super::super::super) const PIVOT_OF_OVERHEAD: Expected = claim(
    "conclusion: a pivot of overhead",
    PLACE,
    "the same may happen to overhead",
    "in the paper's model or where a queue overflows: ON's overhead is clearly below OFF's with \
     the least congestion, and from some share on its mean is not",
);
