//! Start, reload, drain and end of an engine, and what it reports meanwhile.

pub(crate) mod drain;
#[cfg(any(test, feature = "simulation"))]
pub(crate) mod held;
pub(crate) mod packet_filter;
pub(crate) mod reload;
pub(crate) mod status;
pub(crate) mod timeout;
pub(crate) mod view;
