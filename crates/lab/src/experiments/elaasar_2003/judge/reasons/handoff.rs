//! Why cells of section 6.2 come out as they do.

use super::super::seen::Why;

pub(in super::super) const OFF_DRAINS: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const ON_LOSES_A_PART: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const LOSES_LESS: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const FALSE_ALARMS_ARE_CHEAP: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const SLOWER_WITH_RATE: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const LONGER_IS_NO_SLOWER: Why =
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
pub(in super::super) const MORE_AT_1_S: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const MORE_LOST_AT_1_S: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const OVERHEAD_RISES: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const LONGER_COSTS_NO_MORE: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const LESS_CONTROL: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const CONTROL_HARDLY_MATTERS: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const LESS_OVERHEAD: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const OVERHEAD_SAVED: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const RATIO_FALLS: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const RATIO_BETTER_AT_1_S: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const BETTER_RATIO: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const RATIO_GAIN_AT_1_S: Why =
    Why { agrees: "as published", differs: "under examination" };
