//! Parallel connections of all kinds, with content that can be verified.
//!
//! Workers are threads on the client's host; each opens one connection after the other, whose kind
//! derives from the connection's number. A connection ends in one of the categories of [`Tally`],
//! some of which must not occur.

mod kinds;

use super::network::TestNetwork;
use kinds::{Ended, Task};
use serde::Serialize;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use testbed::traffic::Way;

/// Results of connections.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Started connections.
    pub started: u64,
    /// Connections that completed their task with correct content.
    pub complete: u64,
    /// Connections reset during their task, as the client observed.
    pub reset: u64,
    /// Connections that were refused or not accepted in time.
    pub refused: u64,
    /// Connections that the client reset intentionally.
    pub left: u64,
    /// Connections with a premature end of data at either side. Must not occur.
    pub truncated: u64,
    /// Connections with incorrect content. Must not occur.
    pub wrong: u64,
    /// Connections without progress for a minute. Must not occur.
    pub hung: u64,
    /// Octets that were received and compared.
    pub bytes: u64,
    /// Descriptions of the first errors.
    pub troubles: Vec<String>,
}

/// Maximum number of stored descriptions.
const TROUBLES: usize = 5;

impl Tally {
    fn trouble(&mut self, text: String) {
        if self.troubles.len() < TROUBLES {
            self.troubles.push(text);
        }
    }

    fn count(&mut self, task: &Task, ended: &Ended) {
        match ended {
            Ended::Complete { bytes } => {
                self.complete += 1;
                self.bytes += bytes;
            }
            Ended::Reset => self.reset += 1,
            Ended::Refused(_) => self.refused += 1,
            Ended::Left => self.left += 1,
            Ended::Truncated { at } => {
                self.truncated += 1;
                self.trouble(format!("{task:?} ended at byte {at}"));
            }
            Ended::Wrong { at } => {
                self.wrong += 1;
                self.trouble(format!("{task:?} is wrong behind byte {at}"));
            }
            Ended::Hung { at } => {
                self.hung += 1;
                self.trouble(format!("{task:?} hangs at byte {at}"));
            }
        }
    }
}

/// Parameters of a load.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoadConfig {
    /// Parallel connections.
    pub(super) workers: u64,
    /// Total connections, if limited.
    pub(super) most: Option<u64>,
    /// Routes to the server.
    pub(super) way: Way,
    /// One of so many connections is a long transfer.
    pub(super) long: u64,
    /// Number of the first connection, which is distinct for each load.
    pub(super) first: u64,
    pub(super) seed: u64,
}

impl LoadConfig {
    pub(super) fn new(seed: u64) -> Self {
        Self { workers: 40, most: None, way: Way::Direct, long: 100, first: 1, seed }
    }
}

/// A running load.
#[derive(Debug)]
pub(super) struct Load {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    config: LoadConfig,
    server: SocketAddr,
    stop: AtomicBool,
    next: AtomicU64,
    tally: Mutex<Tally>,
    /// Uploads that failed: the server must not count them as complete.
    uploads: Mutex<Vec<(u64, u64)>>,
}

impl Load {
    pub(super) fn start(network: &TestNetwork, config: LoadConfig) -> Self {
        let shared = Arc::new(Shared {
            config,
            server: network.server(),
            stop: AtomicBool::new(false),
            next: AtomicU64::new(0),
            tally: Mutex::default(),
            uploads: Mutex::default(),
        });
        let work = |number| {
            let shared = Arc::clone(&shared);
            network.net.client.spawn(&format!("load {number}"), move || shared.work())
        };
        let workers = (0..config.workers).map(work).collect();
        Self { shared, workers }
    }

    /// Returns the results so far.
    pub(super) fn so_far(&self) -> Tally {
        lock(&self.shared.tally).clone()
    }

    /// Returns true if all requested connections have ended.
    pub(super) fn is_done(&self) -> bool {
        self.workers.iter().all(JoinHandle::is_finished)
    }

    /// Waits for the open connections, and checks the server's view of them.
    pub(super) fn finish(self, network: &TestNetwork) -> Tally {
        self.shared.stop.store(true, Ordering::Relaxed);
        for worker in self.workers {
            let _ = worker.join(); // A panic there has been printed, and its connection counts.
        }
        // The server detects an end slightly later than the client.
        super::sleep_ms(500);
        let mut tally = lock(&self.shared.tally).clone();
        for &(seed, bytes) in lock(&self.shared.uploads).iter() {
            if let Some(served) = network.files.served(seed)
                && served.bytes < bytes
            {
                tally.truncated += 1;
                tally.trouble(format!("upload {seed}: the server took {} bytes", served.bytes));
            }
        }
        tally
    }
}

impl Shared {
    fn work(&self) {
        while !self.stop.load(Ordering::Relaxed) {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if self.config.most.is_some_and(|most| number >= most) {
                return;
            }
            let number = number + self.config.first;
            let task = Task::draw(self.config.seed, number, self.config.long);
            lock(&self.tally).started += 1;
            let ended = task.run(self.config.way, self.server);
            if let Some(upload) = task.upload().filter(|_| !matches!(ended, Ended::Complete { .. }))
            {
                lock(&self.uploads).push(upload);
            }
            let refused = matches!(ended, Ended::Refused(_));
            lock(&self.tally).count(&task, &ended);
            if refused {
                // Continuous attempts without a listener are tested elsewhere.
                super::sleep_ms(20);
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
