//! The threads of a hub's shards, and what another thread has them do.
//!
//! ```text
//!   command ──queue, wake──▶ between two rounds of each shard ──result──▶ the caller waits
//! ```

use crate::driver::{Driver, ShardPlace, Wake};
use crate::engine::{Engine, Machine};
use relay::Registration;
use rt::Clock;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::thread::JoinHandle;
use std::time::Duration;
use units::Instant;

/// Maximum time to wait for the result of a command: a round takes some milliseconds, and the end of
/// a shard at most as long as a disk that does not respond.
const PATIENCE: Duration = Duration::from_secs(10);

/// A shard, in its thread.
#[derive(Debug)]
pub(crate) struct Shard {
    pub(crate) engine: Engine,
    pub(crate) driver: Driver,
    pub(crate) place: ShardPlace,
}

/// What a shard does between two rounds.
type Command = Box<dyn FnOnce(&mut Shard) + Send>;

/// The threads of all shards.
#[derive(Debug)]
pub(crate) struct Threads {
    all: Vec<Thread>,
    registrations: Receiver<Registration>,
    /// Wakes the caller's loop when a registration has been received or a thread has ended.
    up: Arc<Wake>,
}

struct Thread {
    commands: Sender<Command>,
    wake: Arc<Wake>,
    /// Number that changes when the shard moves octets.
    moved: Arc<AtomicU64>,
    handle: JoinHandle<()>,
}

/// What a thread has of its caller.
struct Caller {
    commands: Receiver<Command>,
    wake: Arc<Wake>,
    moved: Arc<AtomicU64>,
    registrations: Sender<Registration>,
    up: Arc<Wake>,
}

/// Reports the end of a thread, also by a panic.
impl Drop for Caller {
    fn drop(&mut self) {
        self.up.wake();
    }
}

impl Threads {
    /// Starts a thread for each of `shards`.
    ///
    /// # Errors
    /// The kernel's, if no descriptor or thread is available.
    pub(crate) fn start(shards: Vec<Shard>) -> io::Result<Self> {
        let (to_caller, registrations) = mpsc::channel();
        let mut this = Self { all: Vec::new(), registrations, up: Arc::new(Wake::new()?) };
        for (number, mut shard) in shards.into_iter().enumerate() {
            let wake = Arc::new(Wake::new()?);
            shard.driver.watch_requests(&*wake)?;
            let (commands, from_caller) = mpsc::channel();
            let moved = Arc::new(AtomicU64::new(0));
            let caller = Caller {
                commands: from_caller,
                wake: Arc::clone(&wake),
                moved: Arc::clone(&moved),
                registrations: to_caller.clone(),
                up: Arc::clone(&this.up),
            };
            let thread = std::thread::Builder::new().name(format!("shard-{number}"));
            let handle = thread.spawn(move || run(shard, &caller))?;
            this.all.push(Thread { commands, wake, moved, handle });
        }
        Ok(this)
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns what wakes the caller's loop.
    pub(crate) fn up(&self) -> &Wake {
        &self.up
    }

    /// Returns whether a thread has ended.
    pub(crate) fn have_failed(&self) -> bool {
        self.all.iter().any(|thread| thread.handle.is_finished())
    }

    /// Returns a number that changes when any shard moves octets.
    pub(crate) fn moved(&self) -> u64 {
        self.all.iter().map(|thread| thread.moved.load(Relaxed)).fold(0, u64::wrapping_add)
    }

    /// Returns the next key that a terminal has registered.
    pub(crate) fn poll_registration(&self) -> Option<Registration> {
        self.registrations.try_recv().ok()
    }

    /// Has each shard do what `make` returns for its number, and waits for all. A shard that does not
    /// respond has no result, which is logged.
    pub(crate) fn ask<T, F>(&self, mut make: impl FnMut(usize) -> F) -> Vec<T>
    where
        T: Send + 'static,
        F: FnOnce(&mut Shard) -> T + Send + 'static,
    {
        let send = |(number, thread): (usize, &Thread)| {
            let (answer, result) = mpsc::channel();
            let run = make(number);
            let command: Command = Box::new(move |shard| {
                // The caller may have given up.
                let _ = answer.send(run(shard));
            });
            // A thread that has ended is reported by `have_failed`.
            let _ = thread.commands.send(command);
            thread.wake.wake();
            result
        };
        let results: Vec<Receiver<T>> = self.all.iter().enumerate().map(send).collect();
        let wait = |(number, result): (usize, Receiver<T>)| {
            let result = result.recv_timeout(PATIENCE);
            result
                .inspect_err(|error| tracing::error!(number, %error, "shard does not respond"))
                .ok()
        };
        results.into_iter().enumerate().filter_map(wait).collect()
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        for Thread { commands, wake, handle, .. } in self.all.drain(..) {
            drop(commands);
            wake.wake();
            // A panic has been reported by its hook.
            let _ = handle.join();
        }
    }
}

/// Runs a shard until its caller has no more commands for it.
fn run(mut shard: Shard, caller: &Caller) {
    loop {
        if shard.driver.take_requested() {
            caller.wake.clear();
            loop {
                match caller.commands.try_recv() {
                    Ok(command) => command(&mut shard),
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return,
                }
            }
        }
        if let Err(error) = shard.driver.step(&mut shard.engine, Instant::FAR_FUTURE) {
            tracing::error!(%error, "the readiness loop of a shard");
            return;
        }
        caller.moved.store(shard.engine.moved(), Relaxed);
        while let Some(registration) = shard.engine.poll_registration() {
            // The caller may be ending.
            let _ = caller.registrations.send(registration);
            caller.up.wake();
        }
    }
}

impl Shard {
    /// Returns the nanoseconds since 1970 at the clock's zero, with the current time.
    pub(crate) fn times(&self) -> (Instant, u64) {
        (self.driver.now(), Clock::new().epoch_unix_ns())
    }
}

impl fmt::Debug for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Thread").field("handle", &self.handle).finish_non_exhaustive()
    }
}
