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
use crate::plan::{Claim, Plan, Rates, Terms, allocate};
use crate::streams::LEAST_GRANT;
use std::collections::BTreeMap;
use units::{BitRate, Instant, Span};

/// How often it is looked at who needs what.
const PERIOD: Span = Span::from_millis(250);
/// What came in less time than this is no measure of a rate.
const MEASURE: Span = Span::from_millis(25);
/// Grants add up to so much of the link, in percent: those that are silent may begin meanwhile.
const GRANTED: u64 = 98;
/// A silent terminal may begin with this part of the link, or its part of it if that is more.
const FLOOR: u64 = 16;
const FLOOR_LEAST: u64 = 32_000;
/// A new grant is told when it differs by this part, one in so many.
const CHANGE: u64 = 16;
/// Changes that are too small to be told may add up to so much of the link, one part in so many:
/// half of what is not granted.
const UNTOLD: u64 = 100;
/// Periods without a word after which a terminal is silent.
const SILENT: u32 = 8;
/// Bytes that wait, from which on a terminal wants all that it gets.
const MUCH: u64 = 3_000;
/// Periods for which a word of what waits is true: who goes on sending says it again in each.
const SAID: u32 = 3;
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
    /// What it has said that waits, less what it might have sent since.
    waiting: u64,
    /// Periods since it has said so.
    unsaid: u32,
    /// Periods without any octets.
    silent: u32,
    /// Periods on end in which much waited, as it said, and less than half of its grant came.
    unused: u32,
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
        if let Some(need) = need {
            (sender.waiting, sender.unsaid) = (need, 0);
        }
        if self.at.is_none() {
            self.at = Some(now + PERIOD);
            self.looked = now;
        }
    }

    /// A terminal has come, who sends at the whole rate until he is told otherwise.
    pub(super) fn look_at_once(&mut self, now: Instant) {
        self.at = Some(now);
    }

    pub(super) fn forget(&mut self, id: PeerId) {
        self.senders.remove(&id);
    }

    /// Nothing is shared any more: forgets everybody, and says who was told something.
    fn end(&mut self) -> Vec<PeerId> {
        self.at = None;
        let senders = std::mem::take(&mut self.senders);
        senders
            .into_iter()
            .filter(|(_, sender)| sender.granted.is_some())
            .map(|(id, _)| id)
            .collect()
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
        let passed = now.since(self.looked);
        if passed < MEASURE {
            self.at = Some(self.looked + PERIOD);
            return true;
        }
        let passed = passed.as_nanos();
        self.looked = now;
        let mut busy = false;
        for sender in self.senders.values_mut() {
            let seen = u128::from(sender.octets) * 8_000_000_000 / u128::from(passed);
            let seen = u64::try_from(seen).unwrap_or(u64::MAX);
            sender.rate = (sender.rate / 2).saturating_add(seen / 2);
            sender.silent = if sender.octets > 0 { 0 } else { sender.silent.saturating_add(1) };
            sender.unsaid = sender.unsaid.saturating_add(1);
            if sender.unsaid > SAID {
                let might = sender.granted.map_or(u64::MAX, |granted| {
                    BitRate::from_bps(granted).bytes_in(Span::from_nanos(passed))
                });
                sender.waiting = sender.waiting.saturating_sub(might);
            }
            sender.octets = 0;
            busy |= sender.silent < SILENT;
            sender.note_use(seen);
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
    /// Whether it would send more if it might. Whoever says that much waits and does not send it
    /// is not believed until he does.
    fn wants_more(&self) -> bool {
        self.is_full() || self.waiting >= MUCH && self.unused < SILENT
    }

    /// Whether it sends all that it may.
    fn is_full(&self) -> bool {
        self.granted.is_some_and(|granted| self.rate >= granted / 8 * 7)
    }

    /// `seen` bits per second came in a period.
    fn note_use(&mut self, seen: u64) {
        let half = self.granted.is_none_or(|granted| seen >= granted / 2);
        let doubted = self.unused >= SILENT && !self.is_full();
        if self.waiting >= MUCH && !half {
            self.unused = (self.unused + 1).min(SILENT);
        } else if !doubted || self.waiting < MUCH {
            self.unused = 0;
        }
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
        let mut parts = self.parts(link, &terms);
        parts.iter_mut().for_each(|part| part.rate = part.rate.max(LEAST_GRANT));
        // Who was told nothing may send at the whole rate.
        let before = |part: &Part| {
            let sender = self.grants.senders.get(&part.id);
            sender.and_then(|sender| sender.granted).unwrap_or(link.as_bps())
        };
        let is_small = |before: u64, rate: u64| {
            before.abs_diff(rate) <= before / CHANGE && (before == rate || rate < link.as_bps())
        };
        // A little too much for each of many is a lot.
        let untold = parts.iter().filter(|part| part.busy && is_small(before(part), part.rate));
        let untold: u64 = untold.map(|part| before(part).saturating_sub(part.rate)).sum();
        let lower_all = untold > link.as_bps() / UNTOLD;
        for part in parts {
            let Some(sender) = self.grants.senders.get_mut(&part.id) else { continue };
            let before = sender.granted.unwrap_or(link.as_bps());
            let lower = lower_all && part.busy && part.rate < before;
            if is_small(before, part.rate) && !lower {
                continue;
            }
            sender.granted = Some(part.rate);
            if let (Some(peer), Some(rate)) =
                (self.peers.get_mut(&part.id), BitRate::new(part.rate))
            {
                peer.relay.grant(rate);
                self.due.touch(part.id);
            }
        }
    }

    /// The return link's rate is known no longer: what was granted binds nobody.
    pub(super) fn end_grants(&mut self) {
        for id in self.grants.end() {
            if let Some(peer) = self.peers.get_mut(&id) {
                peer.relay.release_grant();
                self.due.touch(id);
            }
        }
    }

    /// What each terminal with a session may send.
    fn parts(&self, link: BitRate, terms: &[Terms]) -> Vec<Part> {
        let here = self.peers.iter().filter(|(_, peer)| peer.relay.is_connected());
        let here: Vec<(PeerId, usize)> = here.map(|(&id, _)| (id, self.plan_of(id))).collect();
        let bounds = Bounds::new(link, terms, &here);
        if let [(id, plan)] = here[..] {
            // Alone on the link, nobody needs to be told but his own plan's bounds.
            return vec![Part { id, rate: bounds.most(plan), busy: true }];
        }
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
        let mut rates = allocate(link.mul_ratio(GRANTED, 100), terms, &claims);
        spread(link.mul_ratio(GRANTED, 100), terms, &claims, &mut rates);
        let mut all: BTreeMap<PeerId, Part> = here
            .iter()
            .map(|&(id, plan)| (id, Part { id, rate: bounds.least(plan), busy: false }))
            .collect();
        for (&(id, plan, sender), rate) in busy.iter().zip(rates) {
            // Who sends little may begin with what the silent may begin with.
            let least = if sender.wants_more() { 1 } else { bounds.least(plan) };
            all.insert(id, Part { id, rate: rate.max(least), busy: true });
        }
        all.into_values().collect()
    }
}

/// What one terminal may send.
#[derive(Clone, Copy, Debug)]
struct Part {
    id: PeerId,
    /// Bits per second.
    rate: u64,
    /// It sends.
    busy: bool,
}

/// Gives what `rates` leave of `link` to the same terminals by weight: what nobody wants now is
/// theirs who may want it next, within peaks and totals.
fn spread(link: BitRate, terms: &[Terms], claims: &[Claim], rates: &mut [u64]) {
    let Some(left) = BitRate::new(link.as_bps().saturating_sub(rates.iter().sum())) else { return };
    let mut used = vec![0u64; terms.len()];
    for (claim, rate) in claims.iter().zip(&*rates) {
        if let Some(used) = used.get_mut(claim.plan) {
            *used = used.saturating_add(*rate);
        }
    }
    let left_of = |plan: usize, terms: &Terms| {
        terms.rates.total.map_or(u64::MAX, |total| total.as_bps().saturating_sub(used[plan]))
    };
    let again: Vec<Claim> = claims
        .iter()
        .zip(&*rates)
        .map(|(claim, rate)| {
            let need = terms.get(claim.plan).map_or(0, |terms| {
                let peak = terms.rates.peak.map_or(u64::MAX, BitRate::as_bps);
                peak.saturating_sub(*rate).min(left_of(claim.plan, terms))
            });
            Claim { need, ..*claim }
        })
        .collect();
    let plain: Vec<Terms> = terms
        .iter()
        .enumerate()
        .map(|(plan, terms)| {
            let total = terms.rates.total.and_then(|_| BitRate::new(left_of(plan, terms)));
            Terms { rates: Rates { total, ..Rates::default() }, ..*terms }
        })
        .collect();
    for (rate, more) in rates.iter_mut().zip(allocate(left, &plain, &again)) {
        *rate += more;
    }
}

/// What a terminal of each plan may have at least and at most.
struct Bounds<'a> {
    link: u64,
    terms: &'a [Terms],
    /// Terminals here, and those of each plan.
    here: u64,
    of_plan: Vec<u64>,
}

impl<'a> Bounds<'a> {
    fn new(link: BitRate, terms: &'a [Terms], here: &[(PeerId, usize)]) -> Self {
        let mut of_plan = vec![0; terms.len()];
        for &(_, plan) in here {
            of_plan.get_mut(plan).into_iter().for_each(|count| *count += 1);
        }
        Self { link: link.as_bps(), terms, here: here.len() as u64, of_plan }
    }

    fn rates(&self, plan: usize) -> Rates {
        self.terms.get(plan).map(|terms| terms.rates).unwrap_or_default()
    }

    /// What one terminal may have, all others being silent.
    fn most(&self, plan: usize) -> u64 {
        let rates = self.rates(plan);
        let of = |rate: Option<BitRate>| rate.map_or(u64::MAX, BitRate::as_bps);
        self.link.min(of(rates.peak)).min(of(rates.total))
    }

    /// What a silent one may begin with.
    fn least(&self, plan: usize) -> u64 {
        let begin = |rate: u64, count: u64| (rate / FLOOR).max(rate / count.max(1));
        let rates = self.rates(plan);
        let mut floor = begin(self.link, self.here).max(FLOOR_LEAST);
        if let Some(total) = rates.total {
            let count = self.of_plan.get(plan).copied().unwrap_or(1);
            floor = floor.min(begin(total.as_bps(), count));
        }
        let committed = rates.committed.map_or(0, BitRate::as_bps);
        floor.max(committed).min(self.most(plan)).max(1)
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

    /// RLY-7.4
    #[test]
    fn who_says_that_much_waits_and_sends_little_is_believed_for_two_seconds() {
        let mut liar = Sender { granted: Some(1_000_000), waiting: 1 << 40, ..Sender::default() };
        for _ in 1..SILENT {
            liar.note_use(100_000);
            assert!(liar.wants_more());
        }
        liar.note_use(100_000);
        assert!(!liar.wants_more());
        // Who can send no more than that stays where he is with the little that he is told then.
        liar.granted = Some(150_000);
        for _ in 0..100 {
            liar.note_use(100_000);
            assert!(!liar.wants_more());
        }
        // Who sends all that he may is believed again.
        liar.rate = 149_000;
        liar.note_use(149_000);
        assert!(liar.wants_more());
        liar.granted = Some(1_000_000);
        liar.rate = 500_000;
        liar.note_use(500_000);
        assert!(liar.wants_more(), "half of it is on its way to all of it");
    }

    fn up(committed: u64, peak: u64, total: u64) -> Terms {
        let [committed, peak, total] = [committed, peak, total].map(BitRate::new);
        Terms { rates: Rates { committed, peak, total }, ..Terms::default() }
    }

    #[test]
    fn what_nobody_wants_goes_no_further_than_peaks_and_totals() {
        let terms = [up(0, 0, 0), up(0, 300, 500)];
        let claims = [(1, u64::MAX), (1, 50), (0, 100)].map(|(plan, need)| Claim { plan, need });
        let link = BitRate::from_bps(1_000);
        let mut rates = allocate(link, &terms, &claims);
        assert_eq!(rates, [300, 50, 100]);
        spread(link, &terms, &claims, &mut rates);
        assert_eq!(rates, [300, 200, 500]);
    }

    #[test]
    fn a_silent_terminal_begins_with_no_more_than_its_plan_may_have() {
        let terms = [up(0, 0, 0), up(0, 0, 160_000), up(500_000, 600_000, 0), up(0, 40_000, 0)];
        let link = BitRate::from_mbps(4);
        let here: Vec<(PeerId, usize)> = Vec::new();
        let mut bounds = Bounds::new(link, &terms, &here);
        (bounds.here, bounds.of_plan) = (40, vec![17, 3, 10, 10]);
        assert_eq!([0, 1, 2, 3].map(|plan| bounds.least(plan)), [250_000, 53_333, 500_000, 40_000]);
        let most = [0, 1, 2, 3].map(|plan| bounds.most(plan));
        assert_eq!(most, [4_000_000, 160_000, 600_000, 40_000]);
    }
}
