//! Why cells of section 6.3 come out as they do.

use super::super::seen::Why;

pub(in super::super) const OFF_DRAINS: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const ON_LOSES_A_PART: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const BACKOFF_COSTS: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const FOUND_IN_A_ROUND_TRIP: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const OFF_FINDS_LATE: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const MORE_POLLS: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const FASTER_WITH_RATE: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const LONGER_IS_FASTER: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const LONGER_HAS_LARGER_WINDOWS: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const FASTER: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const LEAST_GAIN: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const MOST_GAIN: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const LESS_SENT_AGAIN: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const OVERHEAD_IS_LEVEL: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const MOSTLY_SENT_AGAIN: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const WINDOW_RISES: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const MORE_LOST_EACH: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const FEWER_EVENTS: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const LESS_OVERHEAD: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const FEWER_EVENTS_WITH_ON: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const LESS_ADVANTAGE_AT_10_S: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const BY_SLOW_START: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const LONGER_CYCLES: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const RATIO_RISES: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const RATIO_BETTER_AT_10_S: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const BETTER_RATIO: Why =
    Why { agrees: "as published", differs: "under examination" };
