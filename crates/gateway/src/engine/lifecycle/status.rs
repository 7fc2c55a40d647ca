//! The status of one gateway of a pair.

use crate::engine::lifecycle::view::{Observed, Taps, page_of};
use crate::engine::pair::{Pair, Role};
use crate::engine::transfer::connection::{Connection, Stage};
use crate::observe::{CommitmentStatus, ConnectionStatus, Counted, Page, TerminalStatus};
use units::Instant;

impl<R: Role> Observed for Pair<R> {
    fn counted(&mut self, now: Instant) -> Counted {
        let (udp, traffic) = (self.udp_counters(), self.traffic());
        let core = &self.core;
        Counted {
            open: core.slots.table.len() as u64,
            limit: core.slots.total(now) as u64,
            connections: core.counters.clone(),
            udp,
            association: core.relays.association(),
            traffic,
            resolver: core.resolver.status(),
            dns: self.role.dns(core),
            commitments: self.role.commitments().iter().map(CommitmentStatus::of).collect(),
            shards: Vec::new(),
            single: None,
        }
    }

    fn terminals(
        &mut self,
        now: Instant,
        own: &str,
        unix: &dyn Fn(Instant) -> f64,
    ) -> Vec<TerminalStatus> {
        self.core.relays.terminals(now, own, unix)
    }

    fn page(
        &mut self,
        (now, epoch_unix_ns): (Instant, u64),
        after: u64,
        most: usize,
        only: Option<&str>,
    ) -> Page {
        let relays = &self.core.relays;
        let owner = |one: &Connection<R::Stage>| relays.name_of(one.key?.peer);
        let all = (self.core.connections.iter())
            .map(|(_, connection)| connection)
            .filter(|connection| only.is_none_or(|only| owner(connection) == Some(only)));
        let (page, more) = page_of(all, |connection| connection.id, after, most);
        let names: Vec<_> = page.iter().map(|one| owner(one).map(str::to_owned)).collect();
        let relays = &mut self.core.relays;
        let mut describe = |(connection, terminal): (&Connection<R::Stage>, Option<String>)| {
            let info = &connection.info;
            ConnectionStatus {
                number: connection.id,
                terminal,
                client: info.client.map(|client| client.to_string()),
                server: info.server.as_ref().map(ToString::to_string),
                state: connection.stage.name(),
                class: connection.key.and_then(|key| relays.class_of(now, key)).map(class_name),
                since_unix_seconds: (epoch_unix_ns + info.since.as_nanos()) / 1_000_000_000,
                age_seconds: now.since(info.since).as_secs_f64(),
                bytes_from_socket: info.from_socket,
                bytes_to_socket: info.to_socket,
            }
        };
        Page { connections: page.into_iter().zip(names).map(&mut describe).collect(), more }
    }

    fn taps(&mut self) -> Option<&mut dyn Taps> {
        Some(&mut self.core.relays)
    }

    fn is_hub(&self) -> bool {
        R::IS_HUB
    }
}

fn class_name(class: relay::Class) -> &'static str {
    match class {
        relay::Class::Urgent => "urgent",
        relay::Class::Interactive => "interactive",
        relay::Class::Bulk => "bulk",
        relay::Class::Background => "background",
    }
}
