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
    /// An address that the configuration names cannot be listened on.
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
        /// What to do about it.
        advice: &'static str,
    },
    /// The control socket that the configuration names.
    #[error("control.socket: cannot listen at {}: {source}", path.display())]
    Control {
        /// Its place.
        path: PathBuf,
        /// Error of the kernel.
        source: io::Error,
    },
    /// A terminal without its hub's address; [`Config::parse`](crate::Config::parse) lets none pass.
    #[error("link.peer: a terminal needs its hub's address")]
    NoPeer,
    /// The kernel did not list the hub's own addresses.
    #[error("hub.own_addresses: {0}; \"allow\" would do without")]
    Addresses(rt::netlink::NetlinkError),
    /// Forwarding of other packets.
    #[error(transparent)]
    Forward(#[from] crate::ForwardError),
    /// The keys that the configuration names.
    #[error("keys: {0}")]
    Keys(#[from] KeyError),
    /// [`Gateway`](crate::Gateway) is one of a pair; for the other kind there is [`SingleGateway`](crate::SingleGateway).
    #[error("role = \"single\" has no partner")]
    NoPartner,
    /// What two-segment splitting needs of the kernel.
    #[error("{0}")]
    Single(String),
    /// The readiness loop itself.
    #[error("the readiness loop: {0}")]
    Loop(#[from] io::Error),
}
