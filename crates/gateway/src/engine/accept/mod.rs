//! Clients, from `accept(2)` or their SYN to an open stream: which of them are admitted, what
//! they request of a proxy, and when they are answered.

pub(crate) mod client_accept;
pub(crate) mod client_admission;
pub(crate) mod confirm_queue;
pub(crate) mod direct;
pub(crate) mod dns_service;
pub(crate) mod fallback;
pub(crate) mod listener;
pub(crate) mod pause;
pub(crate) mod proxy_client;
pub(crate) mod reachability;
pub(crate) mod stage;
pub(crate) mod stream_open;
