//! Connecting to servers: which of them may be reached, in which order their addresses are tried,
//! and connections that a terminal makes without a hub.

pub(crate) mod address_order;
pub(crate) mod happy_eyeballs;
pub(crate) mod hub_lookup;
pub(crate) mod measurement;
pub(crate) mod server_connect;
pub(crate) mod source_addresses;
pub(crate) mod terminal_admission;
