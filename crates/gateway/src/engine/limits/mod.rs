//! What is shared among clients and terminals: slots, rates of new connections, and lines of the log.

pub(crate) mod client_network;
pub(crate) mod log_budget;
pub(crate) mod rates;
pub(crate) mod slots;
