//! Bytes between sockets and streams, until both directions have ended or one is reset.

pub(crate) mod close_cause;
pub(crate) mod connection;
pub(crate) mod connection_info;
pub(crate) mod connections;
pub(crate) mod deadlines;
pub(crate) mod final_reply;
pub(crate) mod last_bytes;
pub(crate) mod pipe;
pub(crate) mod slots;
pub(crate) mod socket_pair;
pub(crate) mod splice;
pub(crate) mod stream_endpoint;
pub(crate) mod token_bucket;
pub(crate) mod turns;
pub(crate) mod unresponsive;
