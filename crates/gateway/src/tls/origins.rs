//! The clients of TLS connections, by the address by which the hub's engine knows them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

static CLIENTS: Mutex<BTreeMap<SocketAddr, SocketAddr>> = Mutex::new(BTreeMap::new());

fn clients() -> MutexGuard<'static, BTreeMap<SocketAddr, SocketAddr>> {
    CLIENTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the address of the TLS client whose datagrams come from `local` on this host.
pub(crate) fn client_of(local: SocketAddr) -> Option<SocketAddr> {
    clients().get(&local).copied()
}

/// An entry, which is removed when this is dropped.
#[derive(Debug)]
pub(super) struct Origin(SocketAddr);

impl Origin {
    pub(super) fn new(local: SocketAddr, client: SocketAddr) -> Self {
        clients().insert(local, client);
        Self(local)
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        clients().remove(&self.0);
    }
}
