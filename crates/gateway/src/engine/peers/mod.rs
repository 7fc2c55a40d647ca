//! The gateways at the other end of the satellite link: relays, the paths to them, and their UDP
//! sockets.

mod carrier;
pub(crate) mod classes;
pub(crate) mod closing_streams;
pub(crate) mod family_watch;
pub(crate) mod handshake_log;
mod hub_ports;
pub(crate) mod link_socket;
pub(crate) mod naming;
pub(crate) mod outgoing;
pub(crate) mod paths;
pub(crate) mod peer;
pub(crate) mod relay_set;
pub(crate) mod scheduler_notifier;
pub(crate) mod tls_link;
