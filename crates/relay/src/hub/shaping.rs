//! Scheduling of the forward link among terminals.
//!
//! Without a configured rate there is no scheduling, and each session sends at the rate of its
//! controller.

use super::Hub;
use crate::plan::{Claim, Plan, Ready, Shaper, Terms, Turn, allocate};
use crate::{PeerId, Transmit, TransmitBatch};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use units::{BitRate, Instant, Span};

/// Unused part of the link's rate in thousandths, so that no queue builds in front of it
/// (XSTP-8.1.6).
const HEADROOM: u64 = 2;

/// Interval of checks of data that waits for its terminal's turn: shares may grow, and timers run.
const AGAIN: Span = Span::from_millis(10);

/// Plans, and their assignment to terminals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plans {
    /// All plans; the first is for terminals without another.
    pub plans: Vec<Plan>,
    /// Indices of plans by the names of terminals.
    pub terminals: BTreeMap<String, usize>,
}

impl Default for Plans {
    /// Returns one plan for all: no commitments, equal shares.
    fn default() -> Self {
        let usual = Plan { name: "default".into(), weight: 1, ..Plan::default() };
        Self { plans: vec![usual], terminals: BTreeMap::new() }
    }
}

impl Plans {
    /// Returns the index of the plan of the terminal `name`.
    pub fn of(&self, name: &str) -> usize {
        self.terminals.get(name).copied().filter(|&plan| plan < self.plans.len()).unwrap_or(0)
    }

    pub(super) fn down(&self) -> Vec<Terms> {
        self.plans.iter().map(Plan::terms_down).collect()
    }
}

/// Returns a shaper, if the link's rate is known.
pub(super) fn shaper(rate: Option<BitRate>, plans: &Plans) -> Option<Shaper<PeerId>> {
    rate.map(|rate| Shaper::new(paced(rate), &plans.down()))
}

fn paced(rate: BitRate) -> BitRate {
    rate.mul_ratio(1_000 - HEADROOM, 1_000)
}

/// A terminal's plan, commitment and grant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// The name of its plan.
    pub plan: Option<String>,
    /// Its committed rate in the direction from the hub.
    pub committed: Option<BitRate>,
    /// Its rate grant.
    pub granted: Option<BitRate>,
    /// Number of times that it exceeded its grant for seconds.
    pub grant_overuse: u64,
}

impl Hub {
    /// Returns the allocation of each terminal with queued data, bits per second; empty without a
    /// configured rate.
    pub fn shares(&self) -> BTreeMap<PeerId, u64> {
        let (Some(shaper), Some(rate)) = (&self.shaper, self.config.send_rate) else {
            return BTreeMap::new();
        };
        let busy: Vec<PeerId> =
            self.paths().into_iter().filter(|&id| shaper.is_ready(id)).collect();
        let claim = |&id: &PeerId| Claim { plan: shaper.plan_of(id).unwrap_or(0), need: u64::MAX };
        let claims: Vec<Claim> = busy.iter().map(claim).collect();
        busy.into_iter().zip(allocate(paced(rate), &self.plans.down(), &claims)).collect()
    }

    /// Returns a terminal's plan, commitment and grant.
    pub fn standing(&self, id: PeerId) -> Standing {
        let plan = self.plans.plans.get(self.plan_of(id));
        let (granted, grant_overuse) = self.grants.of(id);
        Standing {
            plan: plan.map(|plan| plan.name.clone()),
            committed: plan.and_then(|plan| plan.down.committed),
            granted,
            grant_overuse,
        }
    }

    /// Returns the index of a terminal's plan.
    pub(super) fn plan_of(&self, id: PeerId) -> usize {
        self.association.name(id).map_or(0, |name| self.plans.of(name))
    }

    /// Replaces the plans, also for connected terminals.
    pub fn set_plans(&mut self, plans: Plans) {
        let plans = if plans.plans.is_empty() { Plans::default() } else { plans };
        if plans != self.plans {
            self.plans = plans;
            self.reshape();
        }
    }

    /// Returns the plans.
    pub fn plans(&self) -> &Plans {
        &self.plans
    }

    /// Applies a change of the link, its rate or the plans.
    pub(super) fn reshape(&mut self) {
        self.shaper = shaper(self.config.send_rate, &self.plans);
        for id in self.paths() {
            self.join(id);
        }
    }

    /// Adds a terminal to the scheduling.
    pub(super) fn join(&mut self, id: PeerId) {
        let plan = self.plan_of(id);
        if let Some(shaper) = &mut self.shaper {
            shaper.join(id, plan);
        }
        let peak = self.plans.plans.get(plan).and_then(|plan| plan.down.peak);
        let send = match (self.config.send_rate, peak) {
            (Some(rate), Some(peak)) => Some(rate.min(peak)),
            (rate, peak) => rate.or(peak),
        };
        let receive = self.config.receive_rate;
        let held = self.shaper.is_some();
        if let Some((relay, number)) = self.relay_of(id) {
            // A controller discards its estimates when its rate is set.
            if relay.rates(number) != (send, receive) {
                relay.set_rates_on(number, send, receive);
            }
            relay.hold_data(number, held);
        }
        self.due.touch(id);
    }

    /// Updates the terminal's timer and its queued data.
    pub(super) fn note(&mut self, now: Instant, id: PeerId) {
        let at = self.attention(id);
        let seat = self.seat(id).and_then(|(of, number)| Some((self.peers.get(&of)?, number)));
        let Some((peer, number)) = seat else {
            self.due.forget(id);
            return;
        };
        let mut at = at;
        if let Some(shaper) = &mut self.shaper {
            let wanted = peer.relay.data_due(number);
            let waits = at.is_some_and(|at| at <= now) && shaper.is_ahead(now, id);
            // A session that may send before the link has room counts as ready; otherwise terminals
            // above their share would precede it.
            let room = now.max(shaper.room_at());
            let ready = match wanted {
                Some(from) if from <= room => peer.relay.readiness(),
                Some(_) | None if waits => Ready::Yes,
                Some(_) | None => Ready::No,
            };
            shaper.set_ready(now, id, ready);
            if waits {
                at = Some(now + AGAIN);
            }
            let later = wanted.filter(|&from| from > now);
            at = at.into_iter().chain(later).min();
        }
        self.due.note(id, at.map(|at| at.max(now)));
    }

    /// Returns whether all packets for a terminal wait for its turn, because its packets without
    /// data have exceeded its share.
    pub(super) fn is_ahead(&self, now: Instant, id: PeerId) -> bool {
        self.shaper.as_ref().is_some_and(|shaper| shaper.is_ahead(now, id))
    }

    /// Returns the time of a terminal's next timer, except for its turns on the link.
    pub(super) fn attention(&self, id: PeerId) -> Option<Instant> {
        let (of, number) = self.seat(id)?;
        let timeout = self.peers.get(&of)?.relay.poll_timeout_on(number);
        timeout.into_iter().chain(self.session_by(id)).min()
    }

    /// Sets the addresses whose queues on this host are full: the terminals there have no turn, and are
    /// due again after `retry`.
    pub fn set_full(&mut self, addresses: BTreeSet<SocketAddr>, retry: Span) {
        self.full = (addresses, retry);
    }

    /// Whether the queue to a terminal is full; then it is due later.
    pub(super) fn defer_full(&mut self, now: Instant, id: PeerId) -> bool {
        let (full, retry) = &self.full;
        let address = self.association.address(id).filter(|_| !full.is_empty());
        let is_full = address.is_some_and(|address| full.contains(&address));
        if is_full {
            self.due.note(id, Some(now + *retry));
        }
        is_full
    }

    /// Fills `batch` with the data of the terminal whose turn it is.
    pub(super) fn transmit_turn(
        &mut self,
        now: Instant,
        batch: &mut TransmitBatch<'_>,
    ) -> Option<(SocketAddr, Transmit)> {
        // A terminal without data is removed, which bounds the number of turns.
        for _ in 0..=self.peers.len() + self.joined.len() {
            let turn = self.shaper.as_mut()?.next(now)?;
            let id = turn.member;
            if self.defer_full(now, id) {
                if let Some(shaper) = &mut self.shaper {
                    shaper.set_ready(now, id, Ready::No);
                }
                continue;
            }
            if let Some((relay, number)) = self.relay_of(id) {
                relay.hold_data(number, false);
            }
            let sent = self.transmit_to(now, id, batch, Some(turn));
            if let Some((relay, number)) = self.relay_of(id) {
                relay.hold_data(number, true);
            }
            self.note(now, id);
            if sent.is_some() {
                // Packets without data may be due next.
                self.due.touch(id);
                return sent;
            }
            if let Some(shaper) = &mut self.shaper {
                shaper.set_ready(now, id, Ready::No);
            }
        }
        None
    }

    /// Accounts the datagrams in `batch`, which were sent in a turn or out of turn.
    pub(super) fn charge(
        &mut self,
        now: Instant,
        (id, turn): (Option<PeerId>, Option<Turn<PeerId>>),
        batch: &TransmitBatch<'_>,
    ) {
        let Some(shaper) = &mut self.shaper else { return };
        let beside = self.config.ip_overhead + self.config.link_overhead;
        let octets: usize = batch.datagrams().map(|datagram| datagram.len() + beside).sum();
        match turn {
            Some(turn) => shaper.charge(now, turn, octets as u64),
            None => shaper.charge_beside(now, id, octets as u64),
        }
    }
}
