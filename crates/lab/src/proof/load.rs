//! Many connections of all kinds, every byte of which can be computed again.
//!
//! Workers are threads on the client's host; each opens one connection after the other, and what
//! it does with it is drawn from the connection's number. A connection ends as one of the
//! [`Tally`]'s kinds; those that matter are the ones that must not happen.

mod kinds;

use super::bed::Bed;
use kinds::{Ended, Task};
use serde::Serialize;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use testbed::traffic::Way;

/// What became of connections.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Begun.
    pub started: u64,
    /// Did all they were to do, every byte as it was sent.
    pub complete: u64,
    /// Reset in the middle, and the client heard it.
    pub reset: u64,
    /// Not opened: refused, or not answered in time.
    pub refused: u64,
    /// Reset by the client itself, on purpose.
    pub left: u64,
    /// Ended early as if that were the end of the data, at either side. Must not happen.
    pub truncated: u64,
    /// With a byte that was not sent there. Must not happen.
    pub wrong: u64,
    /// Nothing happened for a minute. Must not happen.
    pub hung: u64,
    /// Bytes that arrived and were compared.
    pub bytes: u64,
    /// The first things that went wrong, in words.
    pub troubles: Vec<String>,
}

/// Words about troubles that are kept.
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

/// How much of a load.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoadConfig {
    /// Connections at once.
    pub(super) workers: u64,
    /// Connections in all, when they are counted.
    pub(super) most: Option<u64>,
    /// How clients find their way.
    pub(super) way: Way,
    /// One in so many connections is a long transfer.
    pub(super) long: u64,
    /// The first connection's number; others' loads have other numbers.
    pub(super) first: u64,
    pub(super) seed: u64,
}

impl LoadConfig {
    pub(super) fn new(seed: u64) -> Self {
        Self { workers: 40, most: None, way: Way::Direct, long: 100, first: 1, seed }
    }
}

/// A load that runs.
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
    /// Uploads that did not end well: the server must not think that they did.
    uploads: Mutex<Vec<(u64, u64)>>,
}

impl Load {
    pub(super) fn start(bed: &Bed, config: LoadConfig) -> Self {
        let shared = Arc::new(Shared {
            config,
            server: bed.server(),
            stop: AtomicBool::new(false),
            next: AtomicU64::new(0),
            tally: Mutex::default(),
            uploads: Mutex::default(),
        });
        let work = |number| {
            let shared = Arc::clone(&shared);
            bed.net.client.spawn(&format!("load {number}"), move || shared.work())
        };
        let workers = (0..config.workers).map(work).collect();
        Self { shared, workers }
    }

    /// What became of connections so far.
    pub(super) fn so_far(&self) -> Tally {
        lock(&self.shared.tally).clone()
    }

    /// Whether all connections that were asked for have been opened and have ended.
    pub(super) fn is_done(&self) -> bool {
        self.workers.iter().all(JoinHandle::is_finished)
    }

    /// Lets what runs come to its end, and looks at what the server thinks of it.
    pub(super) fn finish(self, bed: &Bed) -> Tally {
        self.shared.stop.store(true, Ordering::Relaxed);
        for worker in self.workers {
            let _ = worker.join(); // A panic there has been printed, and its connection counts.
        }
        // The server hears of an end a little later than the client.
        super::pause_ms(500);
        let mut tally = lock(&self.shared.tally).clone();
        for &(seed, bytes) in lock(&self.shared.uploads).iter() {
            if let Some(served) = bed.files.served(seed)
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
                // Where nobody answers, asking without a pause is another test.
                super::pause_ms(20);
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
