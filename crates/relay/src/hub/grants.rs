//! The return link: what each terminal is told that it may send (RLY-7).
//!
//! ```text
//!   octets that come, words of need ─▶ what each wants ─▶ allocate ─▶ GRANT where it has changed
//! ```
//!
//! The hub cannot hold a terminal's packets back, it can only tell. So what keeps the return link
//! free of a queue is that each terminal obeys with its own pacer; whoever does not is counted.

use super::Hub;
use crate::PeerId;
use crate::plan::{Claim, Plan, Terms, allocate};
use std::collections::BTreeMap;
use units::{BitRate, Instant, Span};

/// How often it is looked at who needs what.
const PERIOD: Span = Span::from_millis(250);
/// Grants add up to so much of the link, in percent: those that are silent may begin meanwhile.
const GRANTED: u64 = 98;
/// A silent terminal may begin with this part of the link, or its part of it if that is more.
const FLOOR: u64 = 16;
const FLOOR_LEAST: u64 = 32_000;
/// A new grant is told when it differs by this part, one in so many.
const CHANGE: u64 = 16;
/// Periods without a word after which a terminal is silent.
const SILENT: u32 = 8;
/// Bytes that wait, from which on a terminal wants all that it gets.
const MUCH: u64 = 3_000;
/// Who sends a quarter more than was granted for so many periods on end sends beyond his grant:
/// what was under way when a lower one was told has come by then.
const BEYOND: u32 = 12;

/// What is known of one terminal's sending.
#[derive(Clone, Copy, Debug, Default)]
struct Sender {
    /// Octets of this period.
    octets: u64,
    /// Bits per second of late.
    rate: u64,
    /// What it has said that waits, less what has come since.
    waiting: u64,
    /// Periods without any octets.
    silent: u32,
    /// What it was told.
    granted: Option<u64>,
    /// Periods on end in which it sent more, and how often that became too many.
    over: u32,
    beyond: u64,
}

/// Who sends what on the return link.
#[derive(Debug, Default)]
pub(super) struct Grants {
    senders: BTreeMap<PeerId, Sender>,
    /// When to look again, while anybody sends.
    at: Option<Instant>,
    looked: Instant,
}

impl Grants {
    /// `octets` came from a terminal, which says that `need` bytes wait there.
    pub(super) fn came(&mut self, now: Instant, id: PeerId, octets: u64, need: Option<u64>) {
        let sender = self.senders.entry(id).or_default();
        sender.octets += octets;
        sender.waiting = need.unwrap_or(sender.waiting.saturating_sub(octets));
        if self.at.is_none() {
            self.at = Some(now + PERIOD);
            self.looked = now;
        }
    }

    pub(super) fn forget(&mut self, id: PeerId) {
        self.senders.remove(&id);
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.at
    }

    /// What a terminal was told, and how often it has sent more for long.
    pub(super) fn of(&self, id: PeerId) -> (Option<BitRate>, u64) {
        let sender = self.senders.get(&id).copied().unwrap_or_default();
        (sender.granted.and_then(BitRate::new), sender.beyond)
    }

    /// Looks at the period that has passed; true while anybody sends.
    fn look(&mut self, now: Instant) -> bool {
        let passed = now.since(self.looked).as_nanos().max(1);
        self.looked = now;
        let mut busy = false;
        for sender in self.senders.values_mut() {
            let seen = u128::from(sender.octets) * 8_000_000_000 / u128::from(passed);
            let seen = u64::try_from(seen).unwrap_or(u64::MAX);
            sender.rate = (sender.rate / 2).saturating_add(seen / 2);
            sender.silent = if sender.octets > 0 { 0 } else { sender.silent.saturating_add(1) };
            sender.octets = 0;
            busy |= sender.silent < SILENT;
            let more = sender.granted.is_some_and(|granted| seen > granted / 4 * 5);
            sender.over = if more { sender.over + 1 } else { 0 };
            if sender.over == BEYOND {
                sender.beyond += 1;
                sender.over = 0;
            }
        }
        self.at = busy.then_some(now + PERIOD);
        busy
    }
}

impl Sender {
    /// Whether it would send more if it might.
    fn wants_more(&self) -> bool {
        let full = self.granted.is_some_and(|granted| self.rate >= granted / 8 * 7);
        self.waiting >= MUCH || full
    }
}

impl Hub {
    /// Looks who needs what of the return link, and tells those whose part has changed.
    pub(super) fn review_grants(&mut self, now: Instant) {
        if self.grants.at.is_none_or(|at| at > now) {
            return;
        }
        self.grants.look(now);
        let Some(link) = self.config.receive_rate else { return };
        let terms: Vec<Terms> = self.plans.plans.iter().map(Plan::terms_up).collect();
        for (id, rate) in self.parts(link, &terms) {
            let Some(sender) = self.grants.senders.get_mut(&id) else { continue };
            // Who was told nothing may send at the whole rate.
            let before = sender.granted.unwrap_or(link.as_bps());
            if before.abs_diff(rate) <= before / CHANGE && (before == rate || rate < link.as_bps())
            {
                continue;
            }
            sender.granted = Some(rate);
            if let (Some(peer), Some(rate)) = (self.peers.get_mut(&id), BitRate::new(rate)) {
                peer.relay.grant(rate);
                self.due.touch(id);
            }
        }
    }

    /// What each terminal with a session may send, bits per second.
    fn parts(&self, link: BitRate, terms: &[Terms]) -> Vec<(PeerId, u64)> {
        let here = self.peers.iter().filter(|(_, peer)| peer.relay.is_connected());
        let here: Vec<(PeerId, usize)> = here.map(|(&id, _)| (id, self.plan_of(id))).collect();
        let floor =
            (link.as_bps() / FLOOR).max(FLOOR_LEAST).max(link.as_bps() / here.len().max(1) as u64);
        let floor_of = |plan: usize| {
            let rates = terms.get(plan).map(|terms| terms.rates).unwrap_or_default();
            let least = rates.committed.map_or(floor, |committed| floor.max(committed.as_bps()));
            least.min(rates.peak.map_or(u64::MAX, BitRate::as_bps)).min(link.as_bps())
        };
        let sender = |id| self.grants.senders.get(&id).copied().unwrap_or_default();
        let busy: Vec<(PeerId, usize, Sender)> = here
            .iter()
            .map(|&(id, plan)| (id, plan, sender(id)))
            .filter(|(_, _, sender)| sender.silent < SILENT && sender.rate > 0)
            .collect();
        let claims: Vec<Claim> = busy
            .iter()
            .map(|&(_, plan, sender)| {
                // Room to become more.
                let some = sender.rate / 2 * 3;
                Claim { plan, need: if sender.wants_more() { u64::MAX } else { some } }
            })
            .collect();
        let most = link.mul_ratio(GRANTED, 100);
        let mut parts = allocate(most, terms, &claims);
        // What nobody wants now is theirs who may want it next.
        let left = most.as_bps().saturating_sub(parts.iter().sum());
        let again: Vec<Claim> =
            claims.iter().map(|claim| Claim { need: u64::MAX, ..*claim }).collect();
        let plain: Vec<Terms> = terms.iter().map(Terms::without_commitment).collect();
        if let Some(left) = BitRate::new(left) {
            for (part, more) in parts.iter_mut().zip(allocate(left, &plain, &again)) {
                *part += more;
            }
        }
        let mut all: BTreeMap<PeerId, u64> =
            here.iter().map(|&(id, plan)| (id, floor_of(plan))).collect();
        for (&(id, plan, sender), part) in busy.iter().zip(parts) {
            let peak = terms.get(plan).and_then(|terms| terms.rates.peak);
            // Who sends little may begin with what the silent may begin with.
            let least = if sender.wants_more() { 1 } else { floor_of(plan) };
            all.insert(id, part.min(peak.map_or(u64::MAX, BitRate::as_bps)).max(least));
        }
        // Alone on the link, nobody needs to be told.
        if let [(only, plan)] = here[..] {
            let peak = terms.get(plan).and_then(|terms| terms.rates.peak);
            all.insert(only, peak.map_or(link.as_bps(), |peak| peak.as_bps().min(link.as_bps())));
        }
        all.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Hub, RelayConfig};
    use units::RngStream;

    /// RLY-7.5
    #[test]
    fn who_sends_beyond_his_grant_for_long_is_counted() {
        let config = RelayConfig::new("boat");
        let mut hub = Hub::new(&RelayConfig::new("hub"), RngStream::new(1, 0, "hub"));
        let start = Instant::ZERO + Span::from_secs(1);
        let mut boat = crate::Relay::terminal(&config, start, RngStream::new(1, 0, "boat"));
        let from = "192.0.2.1:4500".parse().expect("an address");
        let mut buffer = [0; 1500];
        // Hello, Welcome, and a first word.
        for _ in 0..2 {
            let mut batch = crate::TransmitBatch::new(&mut buffer, 1);
            if boat.poll_transmit(start, &mut batch).is_some() {
                let mut datagram = batch.datagrams().next().expect("one").to_vec();
                hub.handle_datagram(start, from, &mut datagram).expect("taken");
            }
            let mut batch = crate::TransmitBatch::new(&mut buffer, 1);
            if hub.poll_transmit(start, &mut batch).is_some() {
                let mut datagram = batch.datagrams().next().expect("one").to_vec();
                boat.handle_datagram(start, &mut datagram).expect("taken");
            }
        }
        let id = hub.peers().next().expect("it is there");
        let mut grants = Grants::default();
        let count = |grants: &mut Grants, octets: u64, periods: u32| {
            for _ in 0..periods {
                grants.came(grants.looked, id, octets, None);
                let now = grants.looked + PERIOD;
                grants.look(now);
            }
            grants.of(id).1
        };
        grants.looked = start;
        grants.came(start, id, 0, None);
        grants.senders.get_mut(&id).expect("noted").granted = Some(1_000_000);
        // A quarter of a second at 1 Mbit/s are 31,250 octets.
        assert_eq!(count(&mut grants, 39_000, 40), 0, "less than a quarter too much");
        assert_eq!(count(&mut grants, 50_000, BEYOND - 1), 0, "not for long enough");
        assert_eq!(count(&mut grants, 50_000, 1), 1);
        assert_eq!(count(&mut grants, 50_000, 2 * BEYOND), 3);
    }
}
