//! A gateway without a partner as an observer sees it, between two rounds.

use super::Single;
use super::pair::{Pair, Phase};
use crate::Config;
use crate::observe::{AssociationCounters, ConnectionStatus, Counted, Page, ResolverStatus};
use crate::report::{Traffic, UdpCounters};
use units::Instant;

impl Single {
    /// Watches the addresses that `config` names.
    pub(crate) fn watch_addresses(&mut self, config: &Config) {
        self.addresses.watch(config);
    }

    /// The addresses that it waits for.
    pub(crate) fn waiting(&self) -> Vec<String> {
        self.addresses.missing().collect()
    }

    /// Everything that is counted.
    pub(crate) fn counted(&self, now: Instant) -> Counted {
        Counted {
            open: self.pairs.len() as u64,
            limit: self.slots.total(now) as u64,
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
    pub(crate) fn page(&self, now: Instant, epoch_unix_ns: u64, after: u64, most: usize) -> Page {
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
            since_unix_seconds: (epoch_unix_ns + pair.since.as_nanos()) / 1_000_000_000,
            age_seconds: now.since(pair.since).as_secs_f64(),
            bytes_from_socket: pair.moved.read,
            bytes_to_socket: pair.moved.written,
        };
        Page { connections: page.iter().map(describe).collect(), more }
    }
}
