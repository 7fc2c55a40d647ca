//! Errors that end a gateway.

use crate::KeyError;
use crate::intercept::InterceptError;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why a gateway does not start, or stops without a request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Listening on a configured address failed.
    #[error("{key}: cannot listen on {address}: {source}")]
    Listen {
        /// The key in the configuration.
        key: &'static str,
        /// The address.
        address: SocketAddr,
        /// Error of the kernel.
        source: io::Error,
    },
    /// The transparent listeners, or the kernel's tables.
    #[error("intercept: {0}")]
    Intercept(#[from] InterceptError),
    /// The transparent listeners.
    #[error("{key}: cannot listen on port {port} transparently: {source}{advice}")]
    Transparent {
        /// The key in the configuration.
        key: &'static str,
        /// The port.
        port: u16,
        /// Error of the kernel.
        source: io::Error,
        /// Advice.
        advice: &'static str,
    },
    /// Listening on the control socket failed.
    #[error("control.socket: cannot listen at {}: {source}", path.display())]
    Control {
        /// Its path.
        path: PathBuf,
        /// Error of the kernel.
        source: io::Error,
    },
    /// A terminal without its hub's address; [`Config::parse`](crate::Config::parse) rejects it.
    #[error("link.peer: a terminal needs its hub's address")]
    NoPeer,
    /// The kernel did not list the hub's own addresses.
    #[error("hub.own_addresses: {0}; \"allow\" does not need the list")]
    Addresses(rt::netlink::NetlinkError),
    /// Forwarding of other packets.
    #[error(transparent)]
    Forward(#[from] crate::ForwardError),
    /// The keys that the configuration names.
    #[error("keys: {0}")]
    Keys(#[from] KeyError),
    /// The certificate of a hub's TLS server.
    #[error("tls.certificate_file, tls.private_key_file: {0}")]
    Certificate(io::Error),
    /// [`Gateway`](crate::Gateway) is one of a pair; for the other kind there is [`SingleGateway`](crate::SingleGateway).
    #[error("role = \"single\" has no peer gateway")]
    NoPartner,
    /// [`Gateway`](crate::Gateway) is a hub of one thread, and [`ShardedHub`](crate::ShardedHub) one of several.
    #[error("hub.shards: a hub of one thread and one of several are not the same")]
    Shards,
    /// Kernel features for two-segment splitting are missing.
    #[error("{0}")]
    Single(String),
    /// The readiness loop itself.
    #[error("the readiness loop: {0}")]
    Loop(#[from] io::Error),
}
