//! Hubs that are configured by name: which of their addresses a path uses.
//!
//! ```text
//!   due ──look-up──▶ pending ──addresses──▶ trying each in turn ──the hub answers──▶ settled
//!    ▲                  └──none: later again      │ no address left                    │
//!    └──────────────────────────────────────────┴────────── no answer ◀────────────────┘
//! ```
//!
//! Addresses are sorted by RFC 6724 and their families alternate (RFC 8305 §4). They are tried one
//! after another and not at once: a terminal has one association with its hub, and two addresses
//! of one hub would both answer to it.

use crate::engine::connect::address_order;
use crate::engine::host::Host;
use crate::engine::limits::rates::GLOBAL;
use crate::engine::peers::relay_set::RelaySet;
use crate::engine::resolver::{Answer, Outcome, Owner, Progress, QueryId, Resolution, Resolver};
use std::net::SocketAddr;
use std::sync::Arc;
use units::{Instant, Span};

/// Time without an answer after which the next address is tried, and a failed look-up is
/// repeated: the longest interval between two Hellos (5 s, `association::Config`) and a round trip.
const ATTEMPT: Span = Span::from_secs(6);
/// Maximum number of addresses of one name that are tried.
const MAX_ADDRESSES: usize = 16;

/// The look-ups of all paths.
#[derive(Debug, Default)]
pub(crate) struct HubLookups {
    /// Those of paths whose hubs have names; `None` before the first review.
    all: Option<Vec<HubLookup>>,
}

#[derive(Debug)]
struct HubLookup {
    /// The path's number.
    path: usize,
    name: Arc<str>,
    port: u16,
    state: State,
    /// Addresses that were not tried yet, the next one last.
    untried: Vec<SocketAddr>,
    /// Whether the lack of an address was logged.
    complained: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The name is to be looked up at this time.
    Due(Instant),
    /// It is being looked up.
    Pending(QueryId),
    /// An address is tried until this time.
    Trying(Instant),
    /// The hub has answered.
    Settled,
}

impl HubLookups {
    /// Looks up the names that are due, and tries the next address of a hub that does not answer.
    pub(crate) fn review(
        &mut self,
        relays: &mut RelaySet,
        resolver: &mut Resolver,
        host: &dyn Host,
        now: Instant,
    ) {
        let all = self.all.get_or_insert_with(|| {
            let named = relays.named_hubs().into_iter();
            named.map(|(path, name, port)| HubLookup::new(path, name, port)).collect()
        });
        for lookup in all {
            lookup.review(relays, host, now);
            if matches!(lookup.state, State::Due(due) if due <= now) {
                let owner = Owner { terminal: "".into(), client: GLOBAL };
                match resolver.resolve(now, &owner, &lookup.name, usize::MAX) {
                    Resolution::Answered(outcome) => lookup.found(relays, host, now, &outcome),
                    Resolution::Pending(id) => lookup.state = State::Pending(id),
                }
            }
        }
    }

    /// Handles an answer of the resolver; false if it is not for one of these look-ups.
    pub(crate) fn answered(
        &mut self,
        relays: &mut RelaySet,
        host: &dyn Host,
        now: Instant,
        answer: &Answer,
    ) -> bool {
        let mut all = self.all.iter_mut().flatten();
        let Some(lookup) = all.find(|lookup| lookup.state == State::Pending(answer.id)) else {
            return false;
        };
        // The other family follows soon, and both decide on the order.
        if let Progress::Complete(outcome) = &answer.result {
            lookup.found(relays, host, now, outcome);
        }
        true
    }

    /// Returns when to call [`HubLookups::review`].
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let each = self.all.iter().flatten().filter_map(|lookup| match lookup.state {
            State::Due(due) | State::Trying(due) => Some(due),
            State::Pending(_) | State::Settled => None,
        });
        each.min()
    }
}

impl HubLookup {
    fn new(path: usize, name: Arc<str>, port: u16) -> Self {
        let state = State::Due(Instant::ZERO);
        Self { path, name, port, state, untried: Vec::new(), complained: false }
    }

    fn review(&mut self, relays: &mut RelaySet, host: &dyn Host, now: Instant) {
        if relays.is_path_answered(self.path) {
            if matches!(self.state, State::Trying(_)) {
                self.state = State::Settled;
            }
            return;
        }
        match self.state {
            State::Settled => self.state = State::Trying(now + ATTEMPT),
            State::Trying(until) if until <= now => {
                // Streams that wait for the end of an outage would be lost with another address.
                let next = self.untried.pop().filter(|_| !relays.is_path_connected(self.path));
                match next {
                    Some(address) => self.attempt(relays, host, now, address),
                    None => self.state = State::Due(now),
                }
            }
            State::Trying(_) | State::Due(_) | State::Pending(_) => {}
        }
    }

    /// Handles the result of a look-up.
    fn found(&mut self, relays: &mut RelaySet, host: &dyn Host, now: Instant, outcome: &Outcome) {
        if relays.is_path_answered(self.path) {
            self.state = State::Settled;
            return;
        }
        let Ok(found) = outcome else {
            let name = &self.name;
            if !std::mem::replace(&mut self.complained, true) {
                tracing::warn!(%name, "the hub's name has no address: it is looked up again");
            }
            self.state = State::Due(now + ATTEMPT);
            return;
        };
        self.complained = false;
        let mut all: Vec<SocketAddr> =
            found.iter().map(|&ip| SocketAddr::new(ip, self.port)).collect();
        address_order::sort(&mut all, host);
        let mut all = alternate(&all);
        let present = relays.path_address(self.path);
        // A hub that is silent in an outage keeps its address while the name has it.
        if relays.is_path_connected(self.path) && present.is_some_and(|at| all.contains(&at)) {
            self.state = State::Trying(now + ATTEMPT);
            return;
        }
        all.truncate(MAX_ADDRESSES);
        all.reverse();
        self.untried = all;
        match self.untried.pop() {
            Some(address) => self.attempt(relays, host, now, address),
            None => self.state = State::Due(now + ATTEMPT),
        }
    }

    fn attempt(
        &mut self,
        relays: &mut RelaySet,
        host: &dyn Host,
        now: Instant,
        address: SocketAddr,
    ) {
        if relays.path_address(self.path) != Some(address) {
            tracing::info!(name = %self.name, %address, "the hub is tried at this address");
            relays.set_path_address(self.path, address, host);
        }
        self.state = State::Trying(now + ATTEMPT);
    }
}

/// The addresses in their order, but with families in turn as long as there are both.
fn alternate(sorted: &[SocketAddr]) -> Vec<SocketAddr> {
    let is_like_first = |address: &&SocketAddr| {
        sorted.first().is_some_and(|first| first.is_ipv4() == address.is_ipv4())
    };
    let (mut first, mut other): (Vec<&SocketAddr>, Vec<&SocketAddr>) =
        sorted.iter().partition(is_like_first);
    first.reverse();
    other.reverse();
    let mut all = Vec::with_capacity(sorted.len());
    while !first.is_empty() || !other.is_empty() {
        all.extend(first.pop());
        all.extend(other.pop());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_alternate_in_order() {
        let address =
            |text: &&str| SocketAddr::new(text.parse::<std::net::IpAddr>().unwrap(), 7000);
        let order = |list: &[&str]| {
            let sorted: Vec<SocketAddr> = list.iter().map(address).collect();
            let all: Vec<String> = alternate(&sorted).iter().map(|a| a.ip().to_string()).collect();
            all.join(" ")
        };
        assert_eq!(
            order(&["2001:db8::1", "2001:db8::2", "192.0.2.1"]),
            "2001:db8::1 192.0.2.1 2001:db8::2"
        );
        assert_eq!(
            order(&["192.0.2.2", "192.0.2.1", "2001:db8::1"]),
            "192.0.2.2 2001:db8::1 192.0.2.1"
        );
        assert_eq!(order(&["192.0.2.2", "192.0.2.1"]), "192.0.2.2 192.0.2.1");
        assert_eq!(order(&[]), "");
    }
}
