//! All that an engine needs of its host.

use crate::engine::host::{Descriptors, Host};
use crate::engine::resolver::Lookups;

/// Sockets, names and descriptors.
#[derive(Debug)]
pub(crate) struct Platform {
    /// Sockets and routes.
    pub(crate) host: Box<dyn Host>,
    /// Names.
    pub(crate) lookups: Box<dyn Lookups>,
    /// Descriptors.
    pub(crate) descriptors: Descriptors,
}
