//! Rate grants of terminals on the return link (RLY-7).
//!
//! ```text
//!   received octets, buffer status (NEED) ─▶ demand ─▶ allocate ─▶ GRANT of each changed rate
//! ```
//!
//! The hub cannot delay a terminal's packets; the return link has no queue because each terminal's
//! pacer applies its grant. Terminals that exceed their grants are counted.

use super::Hub;
use crate::PeerId;
use crate::plan::{Claim, Plan, Rates, Terms, allocate};
use crate::streams::LEAST_GRANT;
use std::collections::BTreeMap;
use units::{BitRate, Instant, Span};

/// Interval of the allocation.
const PERIOD: Span = Span::from_millis(250);
/// Minimum interval for a rate measurement.
const MEASURE: Span = Span::from_millis(25);
/// Maximum sum of grants as a percentage of the link; the rest is for the start of silent
/// terminals.
const MAX_GRANTED_PERCENT: u64 = 98;
/// Divisor of the link's rate that gives the rate at which a silent terminal may start, unless its
/// share is higher.
const START_DIVISOR: u64 = 16;
const FLOOR_LEAST: u64 = 32_000;
/// A grant is announced if it changes by 1/16 or more.
const MIN_CHANGE_DIVISOR: u64 = 16;
/// Divisor of the link's rate that gives the maximum sum of unannounced changes: half of the part
/// that is not granted.
const UNANNOUNCED_DIVISOR: u64 = 100;
/// Number of periods without a segment after which a terminal counts as silent.
const SILENT_PERIODS: u32 = 8;
/// Queued bytes above which a terminal's demand is unlimited.
const BACKLOGGED_BYTES: u64 = 3_000;
/// Number of periods for which a buffer status is valid; an active terminal repeats it in each.
const NEED_VALID_PERIODS: u32 = 3;
/// Number of consecutive periods above 1.25 × grant after which a terminal is counted as exceeding
/// its grant. By then all packets sent under an earlier, higher grant have arrived.
const OVERUSE_PERIODS: u32 = 12;

/// Usage of one terminal.
#[derive(Clone, Copy, Debug, Default)]
struct TerminalUsage {
    /// Octets received in this period.
    octets: u64,
    /// Recent rate, bits per second.
    rate: u64,
    /// Queued bytes of its last buffer status, less those that it may have sent since.
    waiting: u64,
    /// Number of periods since that buffer status.
    periods_since_need: u32,
    /// Number of consecutive periods without received octets.
    silent: u32,
    /// Number of consecutive periods with much queued data and less than half of the grant
    /// received.
    unused: u32,
    /// The announced grant, bits per second.
    granted: Option<u64>,
    /// Number of consecutive periods above the grant, and how often it reached [`OVERUSE_PERIODS`].
    over: u32,
    beyond: u64,
}

/// Grants on the return link.
#[derive(Debug, Default)]
pub(super) struct Grants {
    senders: BTreeMap<PeerId, TerminalUsage>,
    /// Time of the next allocation, while any terminal sends.
    at: Option<Instant>,
    period_start: Instant,
}

impl Grants {
    /// Records `octets` received from a terminal, and its buffer status of `need` bytes.
    pub(super) fn on_received(&mut self, now: Instant, id: PeerId, octets: u64, need: Option<u64>) {
        let sender = self.senders.entry(id).or_default();
        sender.octets += octets;
        if let Some(need) = need {
            (sender.waiting, sender.periods_since_need) = (need, 0);
        }
        if self.at.is_none() {
            self.at = Some(now + PERIOD);
            self.period_start = now;
        }
    }

    /// Allocates immediately for a new terminal, which sends at the full rate until it receives a
    /// grant.
    pub(super) fn review_now(&mut self, now: Instant) {
        self.at = Some(now);
    }

    pub(super) fn forget(&mut self, id: PeerId) {
        self.senders.remove(&id);
    }

    /// Ends the allocation; returns the terminals that had received a grant.
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

    /// Returns a terminal's grant, and how often it has exceeded it.
    pub(super) fn of(&self, id: PeerId) -> (Option<BitRate>, u64) {
        let sender = self.senders.get(&id).copied().unwrap_or_default();
        (sender.granted.and_then(BitRate::new), sender.beyond)
    }

    /// Evaluates the last period; returns true while any terminal sends.
    fn close_period(&mut self, now: Instant) -> bool {
        let passed = now.since(self.period_start);
        if passed < MEASURE {
            self.at = Some(self.period_start + PERIOD);
            return true;
        }
        let passed = passed.as_nanos();
        self.period_start = now;
        let mut busy = false;
        for sender in self.senders.values_mut() {
            let seen = u128::from(sender.octets) * 8_000_000_000 / u128::from(passed);
            let seen = u64::try_from(seen).unwrap_or(u64::MAX);
            sender.rate = (sender.rate / 2).saturating_add(seen / 2);
            sender.silent = if sender.octets > 0 { 0 } else { sender.silent.saturating_add(1) };
            sender.periods_since_need = sender.periods_since_need.saturating_add(1);
            if sender.periods_since_need > NEED_VALID_PERIODS {
                let might = sender.granted.map_or(u64::MAX, |granted| {
                    BitRate::from_bps(granted).bytes_in(Span::from_nanos(passed))
                });
                sender.waiting = sender.waiting.saturating_sub(might);
            }
            sender.octets = 0;
            busy |= sender.silent < SILENT_PERIODS;
            sender.note_use(seen);
            let more = sender.granted.is_some_and(|granted| seen > granted / 4 * 5);
            sender.over = if more { sender.over + 1 } else { 0 };
            if sender.over == OVERUSE_PERIODS {
                sender.beyond += 1;
                sender.over = 0;
            }
        }
        self.at = busy.then_some(now + PERIOD);
        busy
    }
}

impl TerminalUsage {
    /// Returns whether it has more to send than its grant. A buffer status is ignored while the
    /// terminal does not use its grant.
    fn wants_more(&self) -> bool {
        self.is_full() || self.waiting >= BACKLOGGED_BYTES && self.unused < SILENT_PERIODS
    }

    /// Returns whether it uses its whole grant.
    fn is_full(&self) -> bool {
        self.granted.is_some_and(|granted| self.rate >= granted / 8 * 7)
    }

    /// Records the rate `seen` of a period, bits per second.
    fn note_use(&mut self, seen: u64) {
        let half = self.granted.is_none_or(|granted| seen >= granted / 2);
        let doubted = self.unused >= SILENT_PERIODS && !self.is_full();
        if self.waiting >= BACKLOGGED_BYTES && !half {
            self.unused = (self.unused + 1).min(SILENT_PERIODS);
        } else if !doubted || self.waiting < BACKLOGGED_BYTES {
            self.unused = 0;
        }
    }
}

impl Hub {
    /// Allocates the return link, and announces changed grants.
    pub(super) fn review_grants(&mut self, now: Instant) {
        if self.grants.at.is_none_or(|at| at > now) {
            return;
        }
        self.grants.close_period(now);
        let Some(link) = self.config.receive_rate else { return };
        let terms: Vec<Terms> = self.plans.plans.iter().map(Plan::terms_up).collect();
        let mut parts = self.parts(link, &terms);
        parts.iter_mut().for_each(|part| part.rate = part.rate.max(LEAST_GRANT));
        // A terminal without a grant may send at the full rate.
        let before = |part: &Allocation| {
            let sender = self.grants.senders.get(&part.id);
            sender.and_then(|sender| sender.granted).unwrap_or(link.as_bps())
        };
        let is_small = |before: u64, rate: u64| {
            before.abs_diff(rate) <= before / MIN_CHANGE_DIVISOR
                && (before == rate || rate < link.as_bps())
        };
        // Small excesses of many terminals may add up.
        let unannounced =
            parts.iter().filter(|part| part.busy && is_small(before(part), part.rate));
        let unannounced: u64 = unannounced.map(|part| before(part).saturating_sub(part.rate)).sum();
        let lower_all = unannounced > link.as_bps() / UNANNOUNCED_DIVISOR;
        for part in parts {
            let Some(sender) = self.grants.senders.get_mut(&part.id) else { continue };
            let before = sender.granted.unwrap_or(link.as_bps());
            let lower = lower_all && part.busy && part.rate < before;
            if is_small(before, part.rate) && !lower {
                continue;
            }
            sender.granted = Some(part.rate);
            if let (Some((relay, number)), Some(rate)) =
                (self.relay_of(part.id), BitRate::new(part.rate))
            {
                relay.grant(number, rate);
                self.due.touch(part.id);
            }
        }
    }

    /// Revokes all grants, because the return link's rate is no longer known.
    pub(super) fn end_grants(&mut self) {
        for id in self.grants.end() {
            if let Some((relay, number)) = self.relay_of(id) {
                relay.release_grant(number);
                self.due.touch(id);
            }
        }
    }

    /// Returns the allocation of each terminal with a session.
    fn parts(&self, link: BitRate, terms: &[Terms]) -> Vec<Allocation> {
        let is_connected = |&id: &PeerId| self.is_connected(id);
        let here = self.paths().into_iter().filter(is_connected);
        let here: Vec<(PeerId, usize)> = here.map(|id| (id, self.plan_of(id))).collect();
        let bounds = Bounds::new(link, terms, &here);
        if let [(id, plan)] = here[..] {
            // A terminal alone on the link is limited only by its plan.
            return vec![Allocation { id, rate: bounds.most(plan), busy: true }];
        }
        let sender = |id| self.grants.senders.get(&id).copied().unwrap_or_default();
        let busy: Vec<(PeerId, usize, TerminalUsage)> = here
            .iter()
            .map(|&(id, plan)| (id, plan, sender(id)))
            .filter(|(_, _, sender)| sender.silent < SILENT_PERIODS && sender.rate > 0)
            .collect();
        let claims: Vec<Claim> = busy
            .iter()
            .map(|&(_, plan, sender)| {
                // Leaves room for an increase.
                let some = sender.rate / 2 * 3;
                Claim { plan, need: if sender.wants_more() { u64::MAX } else { some } }
            })
            .collect();
        let mut rates = allocate(link.mul_ratio(MAX_GRANTED_PERCENT, 100), terms, &claims);
        spread(link.mul_ratio(MAX_GRANTED_PERCENT, 100), terms, &claims, &mut rates);
        let mut all: BTreeMap<PeerId, Allocation> = here
            .iter()
            .map(|&(id, plan)| (id, Allocation { id, rate: bounds.least(plan), busy: false }))
            .collect();
        for (&(id, plan, sender), rate) in busy.iter().zip(rates) {
            // A terminal that sends little gets at least the starting rate of silent ones.
            let least = if sender.wants_more() { 1 } else { bounds.least(plan) };
            all.insert(id, Allocation { id, rate: rate.max(least), busy: true });
        }
        all.into_values().collect()
    }
}

/// The allocation of one terminal.
#[derive(Clone, Copy, Debug)]
struct Allocation {
    id: PeerId,
    /// Bits per second.
    rate: u64,
    /// Whether it sends.
    busy: bool,
}

/// Distributes the rest of `link` after `rates` among the same terminals by weight, within their
/// peak and aggregate rates, so that their demand can grow.
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

/// Minimum and maximum allocation of a terminal of each plan.
struct Bounds<'a> {
    link: u64,
    terms: &'a [Terms],
    /// Number of terminals, and of those of each plan.
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

    /// Returns the maximum rate of one terminal while all others are silent.
    fn most(&self, plan: usize) -> u64 {
        let rates = self.rates(plan);
        let of = |rate: Option<BitRate>| rate.map_or(u64::MAX, BitRate::as_bps);
        self.link.min(of(rates.peak)).min(of(rates.total))
    }

    /// Returns the rate at which a silent terminal may start.
    fn least(&self, plan: usize) -> u64 {
        let begin = |rate: u64, count: u64| (rate / START_DIVISOR).max(rate / count.max(1));
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
    fn grant_overuse_is_counted_after_three_seconds() {
        let config = RelayConfig::new("boat");
        let mut hub = Hub::new(&RelayConfig::new("hub"), RngStream::new(1, 0, "hub"));
        let start = Instant::ZERO + Span::from_secs(1);
        let mut boat = crate::Relay::terminal(&config, start, RngStream::new(1, 0, "boat"));
        let from = "192.0.2.1:4500".parse().expect("an address");
        let mut buffer = [0; 1500];
        // Hello, Welcome, and the first segment.
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
                grants.on_received(grants.period_start, id, octets, None);
                let now = grants.period_start + PERIOD;
                grants.close_period(now);
            }
            grants.of(id).1
        };
        grants.period_start = start;
        grants.on_received(start, id, 0, None);
        grants.senders.get_mut(&id).expect("noted").granted = Some(1_000_000);
        // A quarter of a second at 1 Mbit/s is 31,250 octets.
        assert_eq!(count(&mut grants, 39_000, 40), 0, "less than a quarter too much");
        assert_eq!(count(&mut grants, 50_000, OVERUSE_PERIODS - 1), 0, "not for long enough");
        assert_eq!(count(&mut grants, 50_000, 1), 1);
        assert_eq!(count(&mut grants, 50_000, 2 * OVERUSE_PERIODS), 3);
    }

    /// RLY-7.4
    #[test]
    fn unused_grants_expire_after_two_seconds() {
        let mut idle = TerminalUsage {
            granted: Some(1_000_000),
            waiting: 1 << 40,
            ..TerminalUsage::default()
        };
        for _ in 1..SILENT_PERIODS {
            idle.note_use(100_000);
            assert!(idle.wants_more());
        }
        idle.note_use(100_000);
        assert!(!idle.wants_more());
        // A terminal that cannot send more stays at the small grant that it then receives.
        idle.granted = Some(150_000);
        for _ in 0..100 {
            idle.note_use(100_000);
            assert!(!idle.wants_more());
        }
        // A terminal that uses its whole grant is believed again.
        idle.rate = 149_000;
        idle.note_use(149_000);
        assert!(idle.wants_more());
        idle.granted = Some(1_000_000);
        idle.rate = 500_000;
        idle.note_use(500_000);
        assert!(idle.wants_more(), "half of it is on its way to all of it");
    }

    fn up(committed: u64, peak: u64, total: u64) -> Terms {
        let [committed, peak, total] = [committed, peak, total].map(BitRate::new);
        Terms { rates: Rates { committed, peak, total }, ..Terms::default() }
    }

    #[test]
    fn unused_rate_is_spread_within_peaks_and_aggregates() {
        let terms = [up(0, 0, 0), up(0, 300, 500)];
        let claims = [(1, u64::MAX), (1, 50), (0, 100)].map(|(plan, need)| Claim { plan, need });
        let link = BitRate::from_bps(1_000);
        let mut rates = allocate(link, &terms, &claims);
        assert_eq!(rates, [300, 50, 100]);
        spread(link, &terms, &claims, &mut rates);
        assert_eq!(rates, [300, 200, 500]);
    }

    #[test]
    fn starting_rates_are_limited_by_the_plan() {
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
