//! Status of a single gateway.

use super::Single;
use super::pair::Pair;
use crate::Config;
use crate::engine::lifecycle::view::{Observed, Taps, page_of};
use crate::observe::{
    AssociationCounters, ConnectionStatus, Counted, Page, ResolverStatus, TerminalStatus,
};
use crate::report::{Traffic, UdpCounters};
use units::Instant;

impl Single {
    /// Watches the addresses that `config` names.
    pub(crate) fn watch_addresses(&mut self, config: &Config) {
        self.addresses.watch(config);
    }

    /// Returns the addresses that the host lacks.
    pub(crate) fn waiting(&self) -> Vec<String> {
        self.addresses.missing().collect()
    }
}

impl Observed for Single {
    fn counted(&mut self, now: Instant) -> Counted {
        Counted {
            open: self.pairs.len() as u64,
            limit: self.slots.total(now) as u64,
            connections: self.counters.clone(),
            udp: UdpCounters::default(),
            association: AssociationCounters::default(),
            traffic: Traffic::default(),
            resolver: ResolverStatus::default(),
            dns: None,
            commitments: Vec::new(),
            shards: Vec::new(),
            single: Some(self.report.clone()),
        }
    }

    fn terminals(
        &mut self,
        _: Instant,
        _: &str,
        _: &dyn Fn(Instant) -> f64,
    ) -> Vec<TerminalStatus> {
        Vec::new()
    }

    fn page(
        &mut self,
        (now, epoch_unix_ns): (Instant, u64),
        after: u64,
        most: usize,
        only: Option<&str>,
    ) -> Page {
        // None of them is a terminal's.
        let all = self.pairs.iter().map(|(_, pair)| pair).filter(|_| only.is_none());
        let (page, more) = page_of(all, |pair| pair.number, after, most);
        let describe = |pair: &&Pair| ConnectionStatus {
            number: pair.number,
            terminal: None,
            client: Some(pair.addresses.0.to_string()),
            server: Some(pair.addresses.1.to_string()),
            state: match (pair.is_connecting, pair.is_closing()) {
                (_, true) => "breaking",
                (true, false) => "connecting",
                (false, false) => "open",
            },
            class: None,
            since_unix_seconds: (epoch_unix_ns + pair.since.as_nanos()) / 1_000_000_000,
            age_seconds: now.since(pair.since).as_secs_f64(),
            bytes_from_socket: pair.moved.read,
            bytes_to_socket: pair.moved.written,
        };
        Page { connections: page.iter().map(describe).collect(), more }
    }

    fn taps(&mut self) -> Option<&mut dyn Taps> {
        None
    }

    fn is_hub(&self) -> bool {
        false
    }
}
