//! Why cells of section 8 come out as they do.

use super::super::seen::Why;

pub(in super::super) const ALWAYS_BETTER: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const BY_THROUGHPUT: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const MORE_WITH_LINK_ERRORS: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const FALLS_WITH_CONGESTION: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const PIVOT_OF_THROUGHPUT: Why =
    Why { agrees: "as published", differs: "under examination" };
pub(in super::super) const PIVOT_OF_OVERHEAD: Why =
    Why { agrees: "as published", differs: "under examination" };
