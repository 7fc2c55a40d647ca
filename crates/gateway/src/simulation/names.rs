//! Name servers in memory: responses to the queries of a gateway's resolver, and their delays.

use super::net::Shared;
use crate::ResolverSection;
use crate::engine::Lookups;
use crate::engine::resolver::{Action, Failure, Found, Update};
use std::net::IpAddr;
use std::sync::Arc;
use units::Span;

/// Name servers in memory.
#[derive(Debug)]
pub(super) struct MemoryLookups {
    pub(super) net: Shared,
    pub(super) node: usize,
}

impl Lookups for MemoryLookups {
    fn configure(&mut self, _: &ResolverSection) -> bool {
        false
    }

    fn has_room(&self) -> bool {
        true
    }

    fn send(&mut self, action: &Action) {
        let mut net = self.net.net();
        match action {
            Action::Start { lookup, name } => {
                net.nodes[self.node].lookups.insert(*lookup);
                let record = net.names.get(&**name).cloned();
                let (after, outcome) = match record {
                    Some(record) if record.addresses.is_empty() => {
                        (record.after, Err(Failure::NoAnswer))
                    }
                    Some(record) => {
                        let addresses: Arc<[IpAddr]> = record.addresses.into();
                        // The addresses of one family come first.
                        let is_first = |it: &&IpAddr| it.is_ipv4() == addresses[0].is_ipv4();
                        let first = addresses.iter().filter(is_first).copied().collect();
                        let found = Found::Partial(first);
                        let update = Update::Lookup { lookup: *lookup, found };
                        net.answer_lookup(self.node, record.after / 2, *lookup, update);
                        (record.after, Ok(addresses))
                    }
                    None => (Span::from_millis(30), Err(Failure::NotFound)),
                };
                let found = Found::Complete(outcome, Span::from_secs(2));
                net.answer_lookup(
                    self.node,
                    after,
                    *lookup,
                    Update::Lookup { lookup: *lookup, found },
                );
            }
            Action::Stop { lookup } => drop(net.nodes[self.node].lookups.remove(lookup)),
        }
    }

    fn poll_update(&mut self) -> Option<Update> {
        self.net.net().nodes[self.node].updates.pop_front()
    }

    fn wake(&self) {
        self.net.net().nodes[self.node].names_ready = true;
    }
}
