//! Why cells of section 6.1 come out as they do.

use super::super::seen::Why;

pub(in super::super) const FASTER: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const LEAST_GAIN: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const MOST_GAIN: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const BY_RECOVERY: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const MORE_AT_10_S: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const WINDOWS_GROW: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const WINDOWS_STAY: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const CYCLES_LENGTHEN: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const SLOW_STARTS: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const SLOW_STARTS_COST: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const LIGHT_IS_QUICK: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const LIGHT_GOES_ON: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const ONE_HALVING: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const BACKOFF_COSTS: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const LESS_OVERHEAD: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const LARGER_WINDOWS: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const MORE_AT_FIRST: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const NOT_AT_5: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const NOT_AT_20: &str = "the text says of the same point, in the next sentence, that probing lowers the overhead there; that sentence has a cell";
pub(in super::super) const FROM_20: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const BY_EARLY_TIMEOUT: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const OVERHEAD_AT_50: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const RATIO_FALLS: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const BETTER_RATIO: Why =
    Why { agrees: "as published", differs: "under examination" };
