//! The thread that looks names up, in files and by DNS, in its own runtime.
//!
//! Both channels are bounded. The loop sends only if there is room; the thread waits for room, so
//! the loop never blocks.

use super::system::System;
use crate::ResolverSection;
use crate::engine::Lookups;
use crate::engine::resolver::{Action, Failure, Found, Outcome, Update, seconds};
use hickory_resolver::TokioResolver;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::{Name, RecordType};
use mio::Waker;
use rt::Clock;
use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::runtime::Builder;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};
use units::{Instant, Span};

/// Capacity of the channel of commands to the thread.
const COMMANDS: usize = 512;
/// Capacity of the channel of results to the loop.
const UPDATES: usize = 512;
/// Minimum interval between checks of the system's files for changes.
const REFRESH: Span = Span::from_secs(1);
/// Maximum number of addresses of one family that are stored for a name.
const MAX_ADDRESSES: usize = 16;
/// TTL of a result that lacks one family because no server responded for it.
const INCOMPLETE_TTL: Span = Span::from_secs(5);

#[derive(Debug)]
enum Command {
    Do(Action),
    Configure(ResolverSection),
}

/// The loop's side of the channels. The thread starts with the first lookup, and ends when this is
/// dropped.
#[derive(Debug)]
pub(crate) struct Worker {
    section: ResolverSection,
    waker: Arc<Waker>,
    thread: Option<(Sender<Command>, Receiver<Update>)>,
    /// Lookups whose thread could not be started.
    failed: Vec<u64>,
}

impl Worker {
    /// Creates a worker that signals results by `waker`.
    pub(crate) fn new(waker: Waker) -> Self {
        let section = ResolverSection::default();
        Self { section, waker: Arc::new(waker), thread: None, failed: Vec::new() }
    }

    fn start(&self) -> io::Result<(Sender<Command>, Receiver<Update>)> {
        let (commands, from_loop) = channel(COMMANDS);
        let (to_loop, updates) = channel(UPDATES);
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let (section, waker) = (self.section.clone(), Arc::clone(&self.waker));
        std::thread::Builder::new().name("resolver".into()).spawn(move || {
            let thread = Thread::new(section, waker, to_loop);
            runtime.block_on(thread.run(from_loop));
        })?;
        Ok((commands, updates))
    }
}

impl Lookups for Worker {
    fn configure(&mut self, section: &ResolverSection) -> bool {
        if self.section == *section {
            return false;
        }
        self.section = section.clone();
        if let Some((commands, _)) = &self.thread
            && commands.try_send(Command::Configure(section.clone())).is_err()
        {
            // A new thread reads the configuration.
            self.thread = None;
        }
        true
    }

    fn has_room(&self) -> bool {
        self.thread.as_ref().is_none_or(|(commands, _)| commands.capacity() > 0)
    }

    fn send(&mut self, action: &Action) {
        if self.thread.as_ref().is_none_or(|(commands, _)| commands.is_closed()) {
            self.thread = self
                .start()
                .inspect_err(|error| tracing::error!(%error, "resolver unavailable"))
                .ok();
        }
        let sent = match &self.thread {
            Some((commands, _)) => commands.try_send(Command::Do(action.clone())).is_ok(),
            None => false,
        };
        if let Action::Start { lookup, .. } = action
            && !sent
        {
            self.failed.push(*lookup);
            self.wake();
        }
    }

    fn poll_update(&mut self) -> Option<Update> {
        if let Some(lookup) = self.failed.pop() {
            let found = Found::Complete(Err(Failure::NoAnswer), Span::ZERO);
            return Some(Update::Lookup { lookup, found });
        }
        let (_, updates) = self.thread.as_mut()?;
        updates.try_recv().ok()
    }

    fn wake(&self) {
        wake(&self.waker);
    }
}

fn wake(waker: &Waker) {
    if let Err(error) = waker.wake() {
        tracing::warn!(%error, "waking the loop for a resolved name failed");
    }
}

struct Thread {
    clock: Clock,
    refresh_at: Instant,
    system: System,
    tasks: JoinSet<()>,
    /// Running lookups and their tasks.
    running: BTreeMap<u64, AbortHandle>,
    lookups: BTreeMap<Id, u64>,
    report: Report,
}

/// Channel from tasks to the loop.
#[derive(Clone)]
struct Report {
    updates: Sender<Update>,
    waker: Arc<Waker>,
}

impl Report {
    async fn tell(&self, update: Update) {
        // Without a receiver the loop has ended.
        if self.updates.send(update).await.is_ok() {
            wake(&self.waker);
        }
    }
}

impl Thread {
    fn new(section: ResolverSection, waker: Arc<Waker>, updates: Sender<Update>) -> Self {
        let clock = Clock::new();
        Self {
            refresh_at: clock.now() + REFRESH,
            clock,
            system: System::new(section),
            tasks: JoinSet::new(),
            running: BTreeMap::new(),
            lookups: BTreeMap::new(),
            report: Report { updates, waker },
        }
    }

    /// Processes commands until the loop ends.
    async fn run(mut self, mut commands: Receiver<Command>) {
        let mut batch = Vec::new();
        loop {
            tokio::select! {
                count = commands.recv_many(&mut batch, COMMANDS) => {
                    if count == 0 {
                        return;
                    }
                    // The loop may be waiting for room.
                    if count > COMMANDS / 2 {
                        wake(&self.report.waker);
                    }
                    for command in batch.drain(..) {
                        self.execute(command).await;
                    }
                }
                Some(ended) = self.tasks.join_next_with_id() => self.ended(ended).await,
            }
        }
    }

    async fn execute(&mut self, command: Command) {
        match command {
            Command::Configure(section) => self.system = System::new(section),
            Command::Do(Action::Start { lookup, name }) => self.begin(lookup, &name).await,
            Command::Do(Action::Stop { lookup }) => {
                if let Some(task) = self.running.remove(&lookup) {
                    // Aborting the task closes its sockets.
                    task.abort();
                }
            }
        }
    }

    async fn begin(&mut self, lookup: u64, name: &str) {
        let now = self.clock.now();
        if now >= self.refresh_at {
            self.refresh_at = now + REFRESH;
            if self.system.refresh() {
                self.report.tell(Update::Reconfigured).await;
            }
        }
        let found = match (self.system.of_hosts(name), self.system.resolver()) {
            // The file is read again later.
            (Some(addresses), _) => Found::Complete(Ok(addresses), Span::ZERO),
            (None, None) => Found::Complete(Err(Failure::NoAnswer), Span::ZERO),
            (None, Some(resolver)) => {
                let names = self.system.candidates(name);
                let task = look_up(resolver.clone(), names, lookup, self.report.clone());
                let task = self.tasks.spawn(task);
                self.lookups.insert(task.id(), lookup);
                self.running.insert(lookup, task);
                return;
            }
        };
        self.report.tell(Update::Lookup { lookup, found }).await;
    }

    /// Handles the end of a task. A task that panicked has sent no result.
    async fn ended(&mut self, ended: Result<(Id, ()), JoinError>) {
        let id = ended.as_ref().map_or_else(JoinError::id, |(id, ())| *id);
        let Some(lookup) = self.lookups.remove(&id) else { return };
        self.running.remove(&lookup);
        if ended.is_err_and(|error| error.is_panic()) {
            let found = Found::Complete(Err(Failure::NoAnswer), Span::ZERO);
            self.report.tell(Update::Lookup { lookup, found }).await;
        }
    }
}

/// Result of the query for one address family.
enum Family {
    Found(Vec<IpAddr>, Span),
    /// No addresses, for this TTL.
    Negative(Span),
    Failed,
}

/// Looks `names` up in order, until one of them has addresses.
async fn look_up(resolver: TokioResolver, names: Vec<Name>, lookup: u64, report: Report) {
    let mut ttl = Span::from_secs(u64::from(u32::MAX));
    let mut outcome = Err(Failure::NotFound);
    for name in names {
        let (found, its_ttl) = look_up_one(&resolver, &name, lookup, &report).await;
        ttl = ttl.min(its_ttl);
        outcome = found;
        if outcome != Err(Failure::NotFound) {
            break;
        }
    }
    report.tell(Update::Lookup { lookup, found: Found::Complete(outcome, ttl) }).await;
}

/// Queries both families concurrently; reports the first one that has addresses.
async fn look_up_one(
    resolver: &TokioResolver,
    name: &Name,
    lookup: u64,
    report: &Report,
) -> (Outcome, Span) {
    let mut families = JoinSet::new();
    for kind in [RecordType::AAAA, RecordType::A] {
        let (resolver, name) = (resolver.clone(), name.clone());
        families.spawn(async move { family(resolver.lookup(name, kind).await) });
    }
    let mut addresses = Vec::new();
    let mut failed = false;
    let mut ttl = Span::from_secs(u64::from(u32::MAX));
    while let Some(found) = families.join_next().await {
        match found {
            Ok(Family::Found(found, valid)) => {
                addresses.extend(found);
                ttl = ttl.min(valid);
                if !families.is_empty() {
                    let found = Found::Partial(addresses.as_slice().into());
                    report.tell(Update::Lookup { lookup, found }).await;
                }
            }
            Ok(Family::Negative(valid)) => ttl = ttl.min(valid),
            Ok(Family::Failed) | Err(_) => failed = true,
        }
    }
    match (addresses.is_empty(), failed) {
        (false, false) => (Ok(addresses.into()), ttl),
        (false, true) => (Ok(addresses.into()), ttl.min(INCOMPLETE_TTL)),
        (true, true) => (Err(Failure::NoAnswer), Span::ZERO),
        (true, false) => (Err(Failure::NotFound), ttl),
    }
}

fn family(answer: Result<hickory_resolver::lookup::Lookup, NetError>) -> Family {
    match answer {
        Ok(lookup) => {
            let ttl = lookup.answers().iter().map(|record| record.ttl).min().unwrap_or(0);
            let addresses = lookup.answers().iter().filter_map(|record| record.data.ip_addr());
            let addresses: Vec<IpAddr> = addresses.take(MAX_ADDRESSES).collect();
            if addresses.is_empty() {
                Family::Negative(Span::ZERO)
            } else {
                Family::Found(addresses, seconds(ttl))
            }
        }
        // Without an SOA record a negative response is not cached (RFC 2308, section 5).
        Err(NetError::Dns(DnsError::NoRecordsFound(none)))
            if matches!(none.response_code, ResponseCode::NXDomain | ResponseCode::NoError) =>
        {
            Family::Negative(none.negative_ttl.map_or(Span::ZERO, seconds))
        }
        Err(error) => {
            tracing::debug!(%error, "name lookup failed");
            Family::Failed
        }
    }
}
