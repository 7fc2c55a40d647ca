//! Why cells of section 8 come out as they do.

use super::super::seen::Why;

pub(in super::super) const ALWAYS_BETTER: Why = Why {
    agrees: "faster at less overhead",
    differs: "at all points but limited connectivity of 1 %, where probes through blackouts of \
        minutes cost more octets than early timeouts save",
};

pub(in super::super) const BY_THROUGHPUT: Why = Why {
    agrees: "for the reason that the paper gives",
    differs: "overhead falls by as much as throughput rises",
};

pub(in super::super) const MORE_WITH_LINK_ERRORS: Why = Why {
    agrees: "a link error leaves the window as it was",
    differs: "congestion is not told from link errors at these settings",
};

pub(in super::super) const FALLS_WITH_CONGESTION: Why = Why {
    agrees: "each congested bad stay halves the window",
    differs: "the straight line goes down, but the intervals of its ends overlap",
};

pub(in super::super) const PIVOT_OF_THROUGHPUT: Why = Why {
    agrees: "in the paper's own model, with bad stays that drop 20 %, probing pays to the end, \
        and least with nothing but congestion. Where a real queue overflows it stops: nothing \
        is sent while a cycle asks, so the queue has drained when the answers come, most cycles \
        find no congestion, and the whole window goes into the queue again. That queue is \
        short, 8 packets; with room for 16 ON was nowhere worse at a first look",
    differs: "even with nothing but congestion, keeping still during a bad stay and finding its \
        end at once is worth more than its cycles cost",
};

pub(in super::super) const PIVOT_OF_OVERHEAD: Why = Why {
    agrees: "as for throughput, and sooner: what a cycle sends again into a queue that \
        overflows is lost again",
    differs: "even with nothing but congestion less is sent into bad stays",
};
