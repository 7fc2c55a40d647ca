//! Why a gateway does not run.

use crate::KeyError;
use crate::intercept::InterceptError;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why a gateway does not start, or stops before it was asked to.
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
        /// What the kernel said.
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
        /// What the kernel said.
        source: io::Error,
        /// What to do about it.
        advice: &'static str,
    },
    /// The control socket that the configuration names.
    #[error("control.socket: cannot listen at {}: {source}", path.display())]
    Control {
        /// Its place.
        path: PathBuf,
        /// What stood in the way.
        source: io::Error,
    },
    /// A terminal without its hub's address; [`Config::parse`](crate::Config::parse) lets none pass.
    #[error("link.peer: a terminal needs its hub's address")]
    NoPeer,
    /// The kernel does not tell which addresses are the hub's own.
    #[error("hub.own_addresses: {0}; \"allow\" would do without")]
    Addresses(rt::netlink::NetlinkError),
    /// What carries packets as they are.
    #[error(transparent)]
    Forward(#[from] crate::ForwardError),
    /// The keys that the configuration names.
    #[error("keys: {0}")]
    Keys(#[from] KeyError),
    /// [`Gateway`](crate::Gateway) is one of a pair; for the other kind there is [`SingleGateway`](crate::SingleGateway).
    #[error("role = \"single\" has no partner")]
    NoPartner,
    /// What two-segment splitting asks of the kernel.
    #[error("{0}")]
    Single(String),
    /// The readiness loop itself.
    #[error("the readiness loop: {0}")]
    Loop(#[from] io::Error),
}
