//! A hub of several shards as an observer sees it: sums, and lists one after another.

use super::sums;
use super::threads::{Shard, Threads};
use crate::Commitment;
use crate::engine::{EngineView, Machine, Observed, Readiness, Source, Taps};
use crate::observe::{CommitmentStatus, Counted, LoopStatus, Page, ShardStatus, TerminalStatus};
use relay::{Direction, Tap, Tapped};
use rt::Clock;
use std::net::SocketAddr;
use units::{Instant, Span};

/// Interval of emptying taps, and of checking a drain.
const LOOK: Span = Span::from_millis(20);

/// All shards, as the engine of the loop that serves observers.
#[derive(Debug)]
pub(crate) struct Shards {
    pub(crate) threads: Threads,
    /// Address of the datagram sockets.
    pub(crate) link: Option<SocketAddr>,
    /// Whether the payloads of associations are copied.
    is_tapped: bool,
    pub(crate) is_draining: bool,
    /// Rates that the plans of the whole hub commit.
    pub(crate) commitments: Vec<Commitment>,
}

/// A copied payload, with the terminal's name.
struct Copied {
    name: Option<String>,
    at: Instant,
    direction: Direction,
    segment: Vec<u8>,
}

impl Shards {
    pub(crate) fn new(
        threads: Threads,
        link: Option<SocketAddr>,
        commitments: Vec<Commitment>,
    ) -> Self {
        Self { threads, link, is_tapped: false, is_draining: false, commitments }
    }

    /// Returns the addresses that the shards wait for; all wait for the same.
    pub(crate) fn waiting(&self) -> Vec<String> {
        let waiting = self
            .threads
            .ask(|number| move |shard: &mut Shard| (number == 0).then(|| shard.engine.waiting()));
        waiting.into_iter().flatten().flatten().collect()
    }
}

impl Machine for Shards {
    fn round(&mut self, _: Instant) -> bool {
        false
    }

    fn poll_timeout(&self, now: Instant) -> Instant {
        match self.is_tapped || self.is_draining {
            true => now + LOOK,
            false => Instant::FAR_FUTURE,
        }
    }

    fn handle_readiness(&mut self, _: Instant, _: Source, _: Readiness) {}

    fn view(&mut self, now: Instant, epoch_unix_ns: u64) -> EngineView<'_> {
        let waiting = self.waiting();
        EngineView::new(now, epoch_unix_ns, (self.link, waiting), self)
    }

    fn moved(&self) -> u64 {
        self.threads.moved()
    }
}

impl Observed for Shards {
    fn counted(&mut self, _: Instant) -> Counted {
        let all = self.threads.ask(|number| {
            move |shard: &mut Shard| {
                let (now, epoch) = shard.times();
                let mut view = shard.engine.view(now, epoch);
                let mut counted = view.counted();
                let terminals = view.terminals("").iter().filter(|one| one.connected).count();
                let handed = shard.place.handed_over();
                counted.shards.push(ShardStatus {
                    shard: number,
                    terminals: terminals as u64,
                    connections: counted.open,
                    cpu_seconds: Clock::thread_time().as_secs_f64(),
                    datagrams_received: counted.udp.received,
                    datagrams_handed_over: handed.received,
                    hand_over_drops: handed.dropped,
                });
                counted
            }
        });
        let mut all = all.into_iter();
        let mut sum = all.next().unwrap_or_default();
        all.for_each(|one| sums::add(&mut sum, one));
        sum.commitments = self.commitments.iter().map(CommitmentStatus::of).collect();
        sum
    }

    fn terminals(
        &mut self,
        _: Instant,
        _: &str,
        _: &dyn Fn(Instant) -> f64,
    ) -> Vec<TerminalStatus> {
        let all = self.threads.ask(|_| {
            |shard: &mut Shard| {
                let (now, epoch) = shard.times();
                shard.engine.view(now, epoch).terminals("")
            }
        });
        all.into_iter().flatten().collect()
    }

    /// The connection `n` of the shard `s`, of `count` shards, has the number `n * count + s`.
    fn page(&mut self, at: (Instant, u64), after: u64, most: usize, only: Option<&str>) -> Page {
        let count = self.threads.len() as u64;
        let pages = self.threads.ask(|number| {
            let (number, only) = (number as u64, only.map(str::to_owned));
            move |shard: &mut Shard| {
                // Of numbers below its own `number` a shard has all.
                let first = after.checked_sub(number).map_or(0, |after| after / count);
                let mut view = shard.engine.view(at.0, at.1);
                let mut page = view.connections(first, most, only.as_deref());
                page.connections
                    .iter_mut()
                    .for_each(|one| one.number = one.number * count + number);
                page
            }
        });
        let mut whole = Page { connections: Vec::new(), more: false };
        for Page { connections, more } in pages {
            whole.connections.extend(connections);
            whole.more |= more;
        }
        whole.connections.sort_unstable_by_key(|one| one.number);
        whole.more |= whole.connections.len() > most;
        whole.connections.truncate(most);
        whole
    }

    fn taps(&mut self) -> Option<&mut dyn Taps> {
        Some(self)
    }

    fn rounds(&mut self) -> Option<LoopStatus> {
        let mut sum = LoopStatus::default();
        let all = self.threads.ask(|_| |shard: &mut Shard| shard.driver.shard_rounds());
        all.iter().for_each(|one| sums::add_rounds(&mut sum, one));
        Some(sum)
    }

    fn is_hub(&self) -> bool {
        true
    }
}

impl Taps for Shards {
    fn set_tap(&mut self, tap: Option<Tap>) {
        self.is_tapped = tap.is_some();
        self.threads.ask(|_| {
            let tap = tap.clone();
            move |shard: &mut Shard| {
                let (now, epoch) = shard.times();
                if let Some(taps) = shard.engine.view(now, epoch).taps() {
                    taps.set_tap(tap);
                }
            }
        });
    }

    fn drain_tap(&mut self, take: &mut dyn FnMut(Option<&str>, Tapped<'_>)) -> u64 {
        let all = self.threads.ask(|_| {
            |shard: &mut Shard| {
                let mut copied = Vec::new();
                let (now, epoch) = shard.times();
                let dropped = shard.engine.view(now, epoch).taps().map_or(0, |taps| {
                    taps.drain_tap(&mut |name, Tapped { at, direction, segment, .. }| {
                        let (name, segment) = (name.map(str::to_owned), segment.to_vec());
                        copied.push(Copied { name, at, direction, segment });
                    })
                });
                (copied, dropped)
            }
        });
        let dropped = all.iter().map(|(_, dropped)| dropped).sum();
        let mut copied: Vec<Copied> = all.into_iter().flat_map(|(copied, _)| copied).collect();
        copied.sort_by_key(|one| one.at);
        for Copied { name, at, direction, segment } in &copied {
            let tapped = Tapped { at: *at, peer: None, path: 0, direction: *direction, segment };
            take(name.as_deref(), tapped);
        }
        dropped
    }
}
