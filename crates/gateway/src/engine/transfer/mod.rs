//! Bytes between sockets and streams, until both directions have ended or one is reset.

pub(crate) mod close_cause;
pub(crate) mod connection;
pub(crate) mod connection_info;
pub(crate) mod connections;
pub(crate) mod deadlines;
pub(crate) mod pipe;
pub(crate) mod reset_flush;
pub(crate) mod splice;
pub(crate) mod unresponsive;
