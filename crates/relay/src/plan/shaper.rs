//! Packet scheduler of the shared link.
//!
//! ```text
//!   ready? ─▶ urgent, not far above its share ─▶ else the member furthest below its commitment
//!             ─▶ else the member with the least service per weight
//! ```
//!
//! The rate that commitments leave is shared by start-time fair queueing (Goyal, Vin, Cheng:
//! *Start-time Fair Queuing*, SIGCOMM 1996): each member has a start tag that grows by the octets
//! sent divided by its weight, the member with the lowest tag is served next, and a member that
//! becomes active starts at the lowest tag of the active ones. It needs neither packet lengths in
//! advance nor a rate, so service for commitments or urgency in between does not disturb it.
//! Commitments are virtual clocks (Zhang: *VirtualClock*, SIGCOMM 1990) that do not accumulate
//! credit while idle. Every operation takes logarithmic time in terminals and linear time in plans.

use super::line::Line;
use super::{COMMITTED_MOST, Terms};
use core::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use units::{BitRate, Instant, Span};

/// Maximum credit of a member's committed and peak rate after an idle period.
const CATCH_UP: Span = Span::from_millis(20);
/// Tags are bytes divided by weights, in units of 2⁻²⁰.
const FRACTION: u32 = 20;
/// Maximum excess of a terminal over its share by urgent and out-of-turn packets, and maximum
/// credit after a limit: the octets of the link in this time, within these bytes.
const AHEAD: Span = Span::from_millis(25);
const AHEAD_LEAST: u64 = 6_000;
const AHEAD_MOST: u64 = 64_000;

/// Queued data of a member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ready {
    /// No data that may be sent now.
    #[default]
    No,
    /// Data.
    Yes,
    /// Urgent data, which precedes others.
    Urgent,
}

/// Reason for a member's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// It has urgent data and is not far above its share.
    Urgency,
    /// It is below its committed rate.
    Commitment,
    /// It has the lowest tag.
    Weight,
}

/// A member's turn, which [`Shaper::charge`] ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn<K> {
    /// The member.
    pub member: K,
    /// The reason.
    pub by: By,
}

#[derive(Clone, Debug)]
struct Member {
    plan: usize,
    ready: Ready,
    /// It has reached its peak rate and waits.
    capped: bool,
    /// Start tag of its next packet, on the clock of its plan or on the global clock.
    start: u128,
    /// Virtual clock of its committed rate.
    committed_at: Instant,
    /// Time at which it may send again within its peak rate.
    peak_at: Instant,
    octets: u64,
}

/// A plan, and those of its members that have queued data.
#[derive(Clone, Debug)]
struct Group<K> {
    terms: Terms,
    /// Time at which the plan may send again within its aggregate rate.
    total_at: Instant,
    /// If its members share a weight: the plan's own clock.
    clock: u128,
    /// If its members share a weight: the plan's tag on the global clock. Otherwise an offset of
    /// their tags.
    start: u128,
    by_tag: BTreeSet<(u128, K)>,
    urgent: BTreeSet<(u128, K)>,
    by_commitment: BTreeSet<(Instant, K)>,
    /// Sum of the committed rates of its active members, bits per second.
    committed: u64,
}

/// Shares one link among members with plans.
#[derive(Clone, Debug)]
pub struct Shaper<K> {
    line: Line,
    groups: Vec<Group<K>>,
    members: BTreeMap<K, Member>,
    /// Members that have reached their peak rate, and until when.
    capped: BTreeSet<(Instant, K)>,
    /// The global clock: the lowest tag of active members at the last turn.
    clock: u128,
}

impl<K: Copy + Ord> Shaper<K> {
    /// Creates a shaper for a link with `rate`, and for members with one of `plans`. Without plans
    /// it creates one.
    pub fn new(rate: BitRate, plans: &[Terms]) -> Self {
        let mut groups: Vec<Group<K>> = plans.iter().copied().map(Group::new).collect();
        if groups.is_empty() {
            groups.push(Group::new(Terms::default()));
        }
        Self {
            line: Line::new(rate),
            groups,
            members: BTreeMap::new(),
            capped: BTreeSet::new(),
            clock: 0,
        }
    }

    /// Changes the rate of the link.
    pub fn set_rate(&mut self, rate: BitRate) {
        self.line.set_rate(rate);
    }

    /// Adds a member without queued data, or changes its plan. An invalid index stands for the
    /// first plan.
    pub fn join(&mut self, member: K, plan: usize) {
        let plan = if plan < self.groups.len() { plan } else { 0 };
        if self.members.get(&member).is_some_and(|known| known.plan == plan) {
            return;
        }
        self.leave(member);
        let new = Member {
            plan,
            ready: Ready::No,
            capped: false,
            start: 0,
            committed_at: Instant::ZERO,
            peak_at: Instant::ZERO,
            octets: 0,
        };
        self.members.insert(member, new);
    }

    /// Removes a member.
    pub fn leave(&mut self, member: K) {
        self.set_ready(Instant::ZERO, member, Ready::No);
        self.members.remove(&member);
    }

    /// Returns the plan of a member.
    pub fn plan_of(&self, member: K) -> Option<usize> {
        self.members.get(&member).map(|member| member.plan)
    }

    /// Returns the octets that a member has sent in total.
    pub fn octets(&self, member: K) -> u64 {
        self.members.get(&member).map_or(0, |member| member.octets)
    }

    /// Returns whether a member has queued data, as last set.
    pub fn is_ready(&self, member: K) -> bool {
        self.members.get(&member).is_some_and(|member| member.ready != Ready::No)
    }

    /// Sets the state of a member's queued data.
    pub fn set_ready(&mut self, now: Instant, member: K, ready: Ready) {
        let Some(state) = self.members.get(&member).filter(|state| state.ready != ready) else {
            return;
        };
        let (before, plan) = (state.ready, state.plan);
        self.unlink(member);
        let group = &mut self.groups[plan];
        let committed = group.terms.committed_bps();
        if let Some(state) = self.members.get_mut(&member) {
            state.ready = ready;
            match (before, ready) {
                (Ready::No, Ready::Yes | Ready::Urgent) => {
                    group.come_back(state, self.clock);
                    state.committed_at = state.committed_at.max(now - CATCH_UP);
                    group.committed = group.committed.saturating_add(committed);
                }
                (Ready::Yes | Ready::Urgent, Ready::No) => {
                    group.committed = group.committed.saturating_sub(committed);
                }
                (Ready::No, Ready::No) | (Ready::Yes | Ready::Urgent, _) => {}
            }
        }
        self.link(member);
    }

    /// Returns the turn at `now`; `None` if the link has no room, or no member may send.
    pub fn next(&mut self, now: Instant) -> Option<Turn<K>> {
        while let Some(&(until, member)) = self.capped.first() {
            if until > now {
                break;
            }
            self.unlink(member);
            self.link_at(member, true);
        }
        if self.capped.is_empty() && self.groups.iter().all(|group| group.by_tag.is_empty()) {
            self.line.idle();
            return None;
        }
        if !self.line.has_room(now) {
            return None;
        }
        let turn = self.urgent(now).or_else(|| self.behind(now)).or_else(|| self.least(now));
        if turn.is_none() {
            // All members with queued data have reached their peak rate.
            self.line.idle();
        }
        turn
    }

    /// Returns the bytes of one turn: those of a millisecond; at least one packet is sent.
    pub fn turn_octets(&self) -> usize {
        self.line.turn()
    }

    /// Accounts `octets` sent in `turn`.
    pub fn charge(&mut self, now: Instant, turn: Turn<K>, octets: u64) {
        self.line.charge(now, octets);
        self.settle(now, turn.member);
        self.unlink(turn.member);
        let most = self.line.rate().mul_ratio(COMMITTED_MOST, 100).as_bps();
        let all = self.groups.iter().fold(0, |sum: u64, group| sum.saturating_add(group.bound()));
        let owed = self.clock.saturating_sub(self.ahead());
        if let Some(member) = self.members.get_mut(&turn.member) {
            member.octets += octets;
            let group = &mut self.groups[member.plan];
            if member.ready == Ready::No {
                // The member becomes active, if only for this turn.
                group.come_back(member, self.clock);
            }
            group.forgive(member, owed);
            let committed = group.terms.committed_bps();
            let committed_to = match turn.by {
                By::Commitment => true,
                By::Urgency => committed > 0 && member.committed_at <= now,
                By::Weight => false,
            };
            if committed_to {
                member.committed_at += group.pace(all, most).time_for(octets);
            } else {
                group.advance(member, octets);
            }
            group.cap(member, now, octets);
        }
        self.link(turn.member);
    }

    /// Accounts `octets` sent out of turn: control traffic of a member, or packets without a
    /// member.
    pub fn charge_beside(&mut self, now: Instant, member: Option<K>, octets: u64) {
        match member.filter(|member| self.members.contains_key(member)) {
            Some(member) => self.charge(now, Turn { member, by: By::Weight }, octets),
            None => self.line.charge(now, octets),
        }
    }

    /// Sets the clocks to the lowest tags of the active members, where members that become active
    /// start. This applies to any reason of `member`'s turn; otherwise packets on an uncontended
    /// link would count against it later.
    fn settle(&mut self, now: Instant, member: K) {
        let nobody = self.open_groups(now).all(|group| group.by_tag.is_empty());
        self.clock = self.floor(now);
        let Some(member) = self.members.get(&member) else { return };
        let group = &mut self.groups[member.plan];
        let first = group.by_tag.first().map_or(member.start, |&(first, _)| first);
        if group.terms.shared_weight {
            group.clock = group.clock.max(first);
        }
        if nobody {
            self.clock = self.clock.max(group.place(member.start));
        }
    }

    /// Returns when the link has room again.
    pub fn room_at(&self) -> Instant {
        self.line.next()
    }

    /// Returns when [`next`](Self::next) may return a turn.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let waits = |group: &Group<K>| (!group.by_tag.is_empty()).then_some(group.total_at);
        let groups = self.groups.iter().filter_map(waits).min();
        let capped = self.capped.first().map(|(until, _)| *until);
        let first = groups.into_iter().chain(capped).min()?;
        Some(first.max(self.line.next()))
    }

    fn open_groups(&self, now: Instant) -> impl Iterator<Item = &Group<K>> {
        self.groups.iter().filter(move |group| group.total_at <= now)
    }

    /// Returns whether a member is so far above its share that all its packets wait for its turn.
    pub fn is_ahead(&self, now: Instant, member: K) -> bool {
        let Some(state) = self.members.get(&member) else { return false };
        let group = &self.groups[state.plan];
        !self.may_go_first(group, state.start, self.floor(now))
    }

    /// Returns [`AHEAD`] in units of the clocks for a weight of one.
    fn ahead(&self) -> u128 {
        let octets = self.line.rate().bytes_in(AHEAD).clamp(AHEAD_LEAST, AHEAD_MOST);
        u128::from(octets) << FRACTION
    }

    /// Returns whether a member of `group` with the tag `start` is not far above its share; `all`
    /// is the lowest tag of the global clock.
    fn may_go_first(&self, group: &Group<K>, start: u128, all: u128) -> bool {
        let ahead = self.ahead();
        let weight = u128::from(group.terms.weight());
        if group.terms.shared_weight {
            let floor = group.by_tag.first().map_or(0, |(tag, _)| *tag).max(group.clock);
            // Several of the plan's terminals may have urgent data at the same time.
            start <= floor + ahead && group.start <= all + 4 * ahead / weight
        } else {
            group.place(start) <= all + ahead / weight
        }
    }

    fn urgent(&self, now: Instant) -> Option<Turn<K>> {
        let all = self.floor(now);
        let may = |group: &&Group<K>| {
            let first = group.urgent.first();
            first.is_some_and(|&(start, _)| self.may_go_first(group, start, all))
        };
        let best = self.open_groups(now).filter(may).min_by_key(|group| {
            group.urgent.first().map_or(u128::MAX, |(tag, _)| group.place(*tag))
        });
        best.and_then(|group| group.urgent.first())
            .map(|&(_, member)| Turn { member, by: By::Urgency })
    }

    /// Returns the lowest tag of the active members.
    fn floor(&self, now: Instant) -> u128 {
        let least = self.open_groups(now).filter_map(Group::tag).min();
        least.map_or(self.clock, |least| least.max(self.clock))
    }

    fn behind(&self, now: Instant) -> Option<Turn<K>> {
        let first = self.open_groups(now).filter_map(|group| group.by_commitment.first()).min()?;
        (first.0 <= now).then_some(Turn { member: first.1, by: By::Commitment })
    }

    fn least(&self, now: Instant) -> Option<Turn<K>> {
        let waiting = self.open_groups(now).filter(|group| !group.by_tag.is_empty());
        let group = waiting.min_by(|a, b| match (a.tag(), b.tag()) {
            (Some(a), Some(b)) => a.cmp(&b),
            (_, _) => Ordering::Equal,
        })?;
        group.by_tag.first().map(|&(_, member)| Turn { member, by: By::Weight })
    }

    fn link(&mut self, member: K) {
        self.link_at(member, false);
    }

    /// Queues a member by its state: waiting for its peak rate, unless `allow` is set.
    fn link_at(&mut self, member: K, allow: bool) {
        let Some(state) = self.members.get_mut(&member) else { return };
        if state.ready == Ready::No {
            return;
        }
        let group = &mut self.groups[state.plan];
        state.capped = !allow && group.terms.rates.peak.is_some();
        if state.capped {
            self.capped.insert((state.peak_at, member));
            return;
        }
        group.by_tag.insert((state.start, member));
        if state.ready == Ready::Urgent {
            group.urgent.insert((state.start, member));
        }
        if group.terms.committed_bps() > 0 {
            group.by_commitment.insert((state.committed_at, member));
        }
    }

    fn unlink(&mut self, member: K) {
        let Some(state) = self.members.get_mut(&member) else { return };
        let group = &mut self.groups[state.plan];
        group.by_tag.remove(&(state.start, member));
        group.urgent.remove(&(state.start, member));
        group.by_commitment.remove(&(state.committed_at, member));
        if std::mem::take(&mut state.capped) {
            self.capped.remove(&(state.peak_at, member));
        }
    }
}

impl<K: Copy + Ord> Group<K> {
    fn new(terms: Terms) -> Self {
        Self {
            terms,
            total_at: Instant::ZERO,
            clock: 0,
            start: 0,
            by_tag: BTreeSet::new(),
            urgent: BTreeSet::new(),
            by_commitment: BTreeSet::new(),
            committed: 0,
        }
    }

    /// Returns the lowest tag here, on the global clock.
    fn tag(&self) -> Option<u128> {
        self.by_tag.first().map(|(first, _)| self.place(*first))
    }

    /// Returns the tag `start` of a member on the global clock.
    fn place(&self, start: u128) -> u128 {
        if self.terms.shared_weight { self.start } else { self.start + start }
    }

    /// Returns the sum of the active commitments, bits per second, within the plan's aggregate
    /// rate.
    fn bound(&self) -> u64 {
        self.committed.min(self.terms.total_bps())
    }

    /// Returns a member's committed rate, reduced to the plan's aggregate rate, and to its part of
    /// the `most` that may be committed of `all`.
    fn pace(&self, all: u64, most: u64) -> BitRate {
        let own = BitRate::from_bps(self.terms.committed_bps().max(1));
        let own = own.mul_ratio(self.bound(), self.committed.max(1));
        if all > most { own.mul_ratio(most, all) } else { own }
    }

    /// Makes a member active, without credit for its idle time. `all` is the global clock.
    fn come_back(&mut self, member: &mut Member, all: u128) {
        if self.terms.shared_weight && self.by_tag.is_empty() {
            self.start = self.start.max(all);
        }
        let own =
            if self.terms.shared_weight { self.clock } else { all.saturating_sub(self.start) };
        member.start = member.start.max(own);
    }

    /// Discards the credit of a plan that its aggregate rate has limited, except for the unevenness
    /// of such a limit: before `member` is charged, the tags of all members move up together, until
    /// it or the first of the other active members is at `owed`.
    fn forgive(&mut self, member: &Member, owed: u128) {
        let first = self.by_tag.first().map_or(0, |(first, _)| *first);
        let furthest = self.place(member.start.max(first));
        self.start += owed.saturating_sub(furthest);
    }

    /// Accounts `octets` of a member in the sharing by weight.
    fn advance(&mut self, member: &mut Member, octets: u64) {
        let work = u128::from(octets) << FRACTION;
        let weight = u128::from(self.terms.weight());
        if self.terms.shared_weight {
            member.start += work;
            self.start += work / weight;
        } else {
            member.start += work / weight;
        }
    }

    /// Accounts `octets` of a member in its peak rate and the plan's aggregate rate.
    fn cap(&mut self, member: &mut Member, now: Instant, octets: u64) {
        if let Some(peak) = self.terms.rates.peak {
            member.peak_at = member.peak_at.max(now - CATCH_UP) + peak.time_for(octets);
        }
        if let Some(total) = self.terms.rates.total {
            self.total_at = self.total_at.max(now - CATCH_UP) + total.time_for(octets);
        }
    }
}
