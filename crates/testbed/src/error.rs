//! Errors of building a network.

use rt::netlink::NetlinkError;
use std::io;

/// Why a host or a network could not be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TestbedError {
    /// A system call was refused.
    #[error("{call} was refused: {source}")]
    Refused {
        /// The call and its arguments.
        call: String,
        /// The errno.
        source: io::Error,
    },
    /// A piece of network configuration was refused.
    #[error("on host {host}: {source}")]
    Configuration {
        /// The host's name.
        host: String,
        /// What was refused.
        source: NetlinkError,
    },
    /// Neither root rights nor a user namespace are available.
    #[error(
        "no network namespaces here: as this user, {plain}; in a user namespace of our own, {user}"
    )]
    Denied {
        /// The error without a user namespace.
        plain: String,
        /// The error in a user namespace.
        user: String,
    },
}

impl TestbedError {
    pub(crate) fn refused(call: impl Into<String>, source: io::Error) -> Self {
        Self::Refused { call: call.into(), source }
    }

    pub(crate) fn last(call: impl Into<String>) -> Self {
        Self::refused(call, io::Error::last_os_error())
    }
}
