//! A gateway without a partner as an observer sees it, between two rounds.

use super::Single;
use super::pair::{Pair, Phase};
use crate::Config;
use crate::engine::Sight;
use crate::gateway::unix_seconds;
use crate::observe::{
    AssociationCounters, ConnectionStatus, Counted, Observer, Page, ResolverStatus,
};
use crate::report::{Traffic, UdpCounters};
use rt::Clock;
use std::io;
use units::Instant;

impl Single {
    /// From now on `observer` looks on.
    pub(crate) fn set_observer(&mut self, mut observer: Observer) -> io::Result<()> {
        observer.register(self.poll.registry())?;
        self.observer = Some(observer);
        Ok(())
    }

    /// Lets the observer see to its clients; true when it has more to do.
    pub(super) fn observe(&mut self, now: Instant) -> bool {
        let Some(mut observer) = self.observer.take_if(|observer| observer.has_work(now)) else {
            return false;
        };
        let more = observer.turn(Sight::of_single(now, self));
        self.observer = Some(observer);
        more
    }

    /// Its clients are told, as far as that can be done at once.
    pub(super) fn close_observer(&mut self) {
        if let Some(mut observer) = self.observer.take() {
            observer.close(Sight::of_single(self.clock.now(), self));
        }
    }

    /// Watches the addresses that `config` names.
    pub(crate) fn watch_addresses(&mut self, config: &Config) {
        self.host.watch(config);
    }

    /// The addresses that it waits for.
    pub(crate) fn waiting(&self) -> Vec<String> {
        self.host.missing().collect()
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Everything that is counted.
    pub(crate) fn counted(&self) -> Counted {
        Counted {
            open: self.pairs.len() as u64,
            limit: self.slots.total(self.clock.now()) as u64,
            connections: self.counters.clone(),
            udp: UdpCounters::default(),
            association: AssociationCounters::default(),
            traffic: Traffic::default(),
            resolver: ResolverStatus::default(),
            promised: Vec::new(),
            single: Some(self.report.clone()),
        }
    }

    /// At most `most` connections with a number above `after`, in the order of their numbers.
    pub(crate) fn page(&self, now: Instant, after: u64, most: usize) -> Page {
        let mut page: Vec<&Pair> =
            self.pairs.iter().map(|(_, pair)| pair).filter(|pair| pair.number > after).collect();
        page.sort_unstable_by_key(|pair| pair.number);
        let more = page.len() > most;
        page.truncate(most);
        let describe = |pair: &&Pair| ConnectionStatus {
            number: pair.number,
            terminal: None,
            client: Some(pair.addresses.0.to_string()),
            server: Some(pair.addresses.1.to_string()),
            state: match pair.phase {
                Phase::Connecting => "connecting",
                Phase::Open => "open",
                Phase::Breaking { .. } => "breaking",
            },
            since_unix_seconds: unix_seconds(&self.clock, pair.since),
            age_seconds: now.since(pair.since).as_secs_f64(),
            bytes_from_socket: pair.moved.read,
            bytes_to_socket: pair.moved.written,
        };
        Page { connections: page.iter().map(describe).collect(), more }
    }
}
