//! The clients of TLS connections, by the address by which the hub's engine knows them.

use super::backlog::Backlog;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

static CLIENTS: Mutex<BTreeMap<SocketAddr, Entry>> = Mutex::new(BTreeMap::new());
/// The number of clients; read without the lock.
static COUNT: AtomicUsize = AtomicUsize::new(0);

#[derive(Debug)]
struct Entry {
    client: SocketAddr,
    backlog: Arc<Backlog>,
}

fn clients() -> MutexGuard<'static, BTreeMap<SocketAddr, Entry>> {
    CLIENTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the address of the TLS client whose datagrams come from `local` on this host.
pub(crate) fn client_of(local: SocketAddr) -> Option<SocketAddr> {
    clients().get(&local).map(|entry| entry.client)
}

/// Counts octets that are about to be sent to `local`, if that is a TLS client.
pub(crate) fn note_sent(local: SocketAddr, octets: usize) {
    if COUNT.load(Relaxed) > 0
        && let Some(entry) = clients().get(&local)
    {
        entry.backlog.sent(octets);
    }
}

/// Returns the addresses on this host of the TLS clients that have no room for datagrams.
pub(crate) fn without_room() -> BTreeSet<SocketAddr> {
    if COUNT.load(Relaxed) == 0 {
        return BTreeSet::new();
    }
    let clients = clients();
    let full = clients.iter().filter(|(_, entry)| !entry.backlog.has_room());
    full.map(|(local, _)| *local).collect()
}

/// An entry, which is removed when this is dropped.
#[derive(Debug)]
pub(super) struct Origin(SocketAddr);

impl Origin {
    pub(super) fn new(local: SocketAddr, client: SocketAddr, backlog: Arc<Backlog>) -> Self {
        let mut clients = clients();
        clients.insert(local, Entry { client, backlog });
        COUNT.store(clients.len(), Relaxed);
        Self(local)
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        let mut clients = clients();
        clients.remove(&self.0);
        COUNT.store(clients.len(), Relaxed);
    }
}
