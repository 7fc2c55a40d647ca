//! A proxy for TCP connections that are forwarded unsplit: spoofing with local retransmission, and
//! regeneration and spacing of acknowledgements (RFC 3135, 2.4.2, 3.1; ITU-R S.1711 Annex 2, 4.1
//! and 4.2). `docs/spec/pep.md` specifies it.
//!
//! ```text
//!   near side (site or servers)      this gateway                    far side (association)
//!   data      ───────────────▶  copy, paced by the caller ─────────▶  data
//!   early ACK ◀───────────────  built here
//!                               copy released ◀────────────────────   true ACK, suppressed
//! ```
//!
//! The connection stays between its two ends: addresses, ports, sequence numbers, window scale and
//! timestamps are theirs, and the near end is never offered more window than the far end. Data is
//! acknowledged early only if a copy of it is stored; FIN is never acknowledged early.

pub(crate) mod filter;
mod flow;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod opening;
mod round_trip;
pub(crate) mod segment;
mod serial;
mod shared;
mod spacing;
mod store;
#[cfg(test)]
mod tests;

pub use shared::{PepConfig, PepStatistics, Toward};

use flow::{Flow, Step};
use opening::Openings;
use segment::{ACK, SYN, Segment};
use shared::{Key, Shared};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use units::{Instant, Span};

/// Time without a packet after which the state of a connection is removed.
const IDLE: Span = Span::from_secs(900);
/// Interval of the search for idle connections.
const SWEEP: Span = Span::from_secs(30);
/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// The caller forwards it; it may have been edited.
    Pass,
    /// It was stored or suppressed, or will come out of [`PacketPep::poll_output`].
    Taken,
}

/// The proxy, without I/O and without a clock.
#[derive(Debug)]
pub struct PacketPep {
    shared: Shared,
    flows: BTreeMap<Key, Flow>,
    openings: Openings,
    /// Connections with a packet to the far side, in turn.
    turns: VecDeque<Key>,
    timers: BTreeSet<(Instant, Key)>,
    sweep: Option<Instant>,
}

impl PacketPep {
    /// A proxy without connections.
    pub fn new(config: PepConfig) -> Self {
        let statistics = PepStatistics::default();
        let shared = Shared { config, committed: 0, output: VecDeque::new(), statistics };
        let (flows, openings) = (BTreeMap::new(), Openings::default());
        Self {
            shared,
            flows,
            openings,
            turns: VecDeque::new(),
            timers: BTreeSet::new(),
            sweep: None,
        }
    }

    /// Returns the counters.
    pub fn statistics(&self) -> PepStatistics {
        PepStatistics { flows: self.flows.len(), ..self.shared.statistics }
    }

    /// Handles a packet on its way `toward` a side. Everything but segments of connections whose
    /// handshake was seen passes unchanged.
    pub fn handle(&mut self, now: Instant, toward: Toward, packet: &mut [u8]) -> Verdict {
        let Some(segment) = Segment::parse(packet) else { return Verdict::Pass };
        let key = match toward {
            Toward::Far => (segment.source, segment.destination),
            Toward::Near => (segment.destination, segment.source),
        };
        self.sweep.get_or_insert(now + SWEEP);
        let is_new = segment.has(SYN) && !segment.has(ACK);
        if is_new && self.flows.get(&key).is_some_and(Flow::is_removable) {
            self.forget(key);
        }
        if !self.flows.contains_key(&key) && !self.open(now, toward, key, &segment, packet) {
            return Verdict::Pass;
        }
        let Some(flow) = self.flows.get_mut(&key) else { return Verdict::Pass };
        if !segment.is_intact(packet) {
            self.shared.statistics.implausible += 1;
            return Verdict::Pass;
        }
        let step = match toward {
            Toward::Far => flow.handle_near(now, &segment, packet, &mut self.shared),
            Toward::Near => flow.handle_far(now, &segment, packet, &mut self.shared),
        };
        match step {
            Step::Pass | Step::Taken => self.settle(now, key),
            Step::Forget => self.forget(key),
        }
        if step == Step::Taken { Verdict::Taken } else { Verdict::Pass }
    }

    /// Returns whether the segment ends a handshake, after which the connection has state.
    fn open(
        &mut self,
        now: Instant,
        toward: Toward,
        key: Key,
        segment: &Segment,
        packet: &[u8],
    ) -> bool {
        if segment.has(SYN) && !segment.is_intact(packet) {
            return false;
        }
        let Some(agreed) = self.openings.handle(now, toward, key, segment) else { return false };
        if !segment.is_intact(packet) || !self.has_room() {
            return false;
        }
        self.shared.statistics.opened += 1;
        self.flows.insert(key, Flow::new(now, key, agreed));
        true
    }

    /// Makes room for one more connection: the one without stored data that has been idle for
    /// longest is removed. Its segments then pass unchanged.
    fn has_room(&mut self) -> bool {
        if self.flows.len() < self.shared.config.flows {
            return true;
        }
        let idle = self.flows.iter().filter(|(_, flow)| flow.is_removable());
        let Some(key) = idle.min_by_key(|(_, flow)| flow.last()).map(|(key, _)| *key) else {
            return false;
        };
        self.forget(key);
        true
    }

    fn forget(&mut self, key: Key) {
        let Some(mut flow) = self.flows.remove(&key) else { return };
        flow.release(&mut self.shared);
        if flow.has_turn {
            self.turns.retain(|other| *other != key);
        }
        if let Some(at) = flow.scheduled {
            self.timers.remove(&(at, key));
        }
    }

    /// Schedules the connection after a change.
    fn settle(&mut self, now: Instant, key: Key) {
        let Some(flow) = self.flows.get_mut(&key) else { return };
        if flow.is_finished() {
            self.forget(key);
            return;
        }
        flow.acknowledge_early(&mut self.shared);
        let due = flow.poll_timeout(now);
        if due != flow.scheduled {
            if let Some(at) = core::mem::replace(&mut flow.scheduled, due) {
                self.timers.remove(&(at, key));
            }
            self.timers.extend(due.map(|at| (at, key)));
        }
        if flow.has_to_send() && !core::mem::replace(&mut flow.has_turn, true) {
            self.turns.push_back(key);
        }
    }

    /// Returns the next packet: those to the near side first, then those to the far side, one
    /// connection after the other. `has_room` says whether the path to the far end of a connection
    /// takes another packet now.
    pub fn poll_output(
        &mut self,
        now: Instant,
        mut has_room: impl FnMut(SocketAddr, SocketAddr) -> bool,
    ) -> Option<(Toward, Vec<u8>)> {
        if let Some(packet) = self.shared.output.pop_front() {
            return Some((Toward::Near, packet));
        }
        for _ in 0..self.turns.len() {
            let key = self.turns.pop_front()?;
            let Some(flow) = self.flows.get_mut(&key) else { continue };
            flow.has_turn = false;
            if !flow.has_to_send() {
                continue;
            }
            if !has_room(key.0, key.1) {
                flow.has_turn = true;
                self.turns.push_back(key);
                continue;
            }
            let packet = flow.poll_far(now, &mut self.shared);
            self.settle(now, key);
            if let Some(packet) = packet {
                return Some((Toward::Far, packet));
            }
        }
        None
    }

    /// Resets the near ends whose data was acknowledged early and is still stored, before the
    /// process ends; the resets come out of [`poll_output`](Self::poll_output).
    pub fn close(&mut self) {
        let left = self.flows.iter().filter(|(_, flow)| !flow.is_removable());
        for key in left.map(|(key, _)| *key).collect::<Vec<Key>>() {
            if let Some(flow) = self.flows.get_mut(&key) {
                flow.abort(&mut self.shared);
            }
            self.forget(key);
        }
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout).
    pub fn poll_timeout(&self) -> Option<Instant> {
        let first = self.timers.first().map(|(at, _)| *at);
        [first, self.sweep].into_iter().flatten().min()
    }

    /// Handles what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(&(at, key)) = self.timers.first().filter(|(at, _)| *at <= now) {
            self.timers.remove(&(at, key));
            let Some(flow) = self.flows.get_mut(&key) else { continue };
            flow.scheduled = None;
            if flow.handle_timeout(now, &mut self.shared) == Step::Forget {
                self.forget(key);
            } else {
                self.settle(now, key);
            }
        }
        if self.sweep.is_some_and(|at| at <= now) {
            let is_idle = |flow: &Flow| flow.is_removable() && now.since(flow.last()) > IDLE;
            let idle: Vec<Key> =
                self.flows.iter().filter(|(_, flow)| is_idle(flow)).map(|(key, _)| *key).collect();
            idle.into_iter().for_each(|key| self.forget(key));
            self.sweep = (!self.flows.is_empty()).then_some(now + SWEEP);
        }
    }

    /// Checks bounds and sums.
    ///
    /// # Panics
    /// If one of them does not hold.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn check(&self) {
        let Shared { config, committed, statistics, .. } = &self.shared;
        assert!(self.flows.len() <= config.flows && self.turns.len() <= self.flows.len());
        let (memory, windows) = self.flows.values().map(Flow::check).fold((0, 0), |sum, flow| {
            assert!(flow.0 <= config.flow_memory);
            (sum.0 + flow.0, sum.1 + flow.1)
        });
        assert_eq!((memory, windows), (statistics.stored, *committed));
        assert!(memory <= config.memory && windows <= config.memory as u64);
        for (key, flow) in &self.flows {
            assert!(flow.scheduled.is_none_or(|at| self.timers.contains(&(at, *key))));
        }
        assert!(self.timers.len() <= self.flows.len());
    }
}
