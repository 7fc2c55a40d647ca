//! TLS as a carrier: datagrams of associations on TCP connections, where a network blocks UDP.
//!
//! ```text
//!   terminal                                          hub
//!   link socket ◀─UDP on loopback─▶ tunnel ◀══TLS══▶ server ◀─UDP on loopback─▶ link socket
//! ```
//!
//! The engines send and receive UDP in any case: to the other gateway, or to a [`bridge`] in the same
//! process, which is another address of it. So an association moves between both as it moves between
//! addresses (ASC-3.3). Bridges run in threads of their own: one at a hub, one for each connection at
//! a terminal. The engine of a terminal decides when to use one (`engine/peers/carrier.rs`).

mod backlog;
mod bridge;
mod certificate;
pub(crate) mod frame;
mod origins;
pub(crate) mod places;
mod server;
mod settings;
mod tunnel;

pub(crate) use backlog::RETRY;
pub(crate) use origins::{client_of, note_sent, without_room};
pub(crate) use server::TlsServer;
pub(crate) use settings::of_hub as hub_settings;
pub(crate) use tunnel::KernelTunnel;
