//! Whose turn it is on the line, packet by packet.
//!
//! ```text
//!   ready? ─▶ urgent, and not far ahead of its share ─▶ else behind its commitment, who waits
//!             longest ─▶ else who has had least for its weight
//! ```
//!
//! What is left of commitments is shared by start-time fair queueing (Goyal, Vin, Cheng:
//! *Start-time Fair Queuing*, SIGCOMM 1996): each member has a tag that grows by what it sends
//! over its weight, the least tag goes next, and a member that comes back starts at the least tag
//! of those that want something. It needs to know neither lengths in advance nor a rate, so what is
//! served in between by commitment or urgency does no harm. Commitments are virtual clocks
//! (Zhang: *VirtualClock*, SIGCOMM 1990) that never fall behind for what is idle. Every operation
//! takes logarithmic time in terminals and linear time in plans.

use super::line::Line;
use super::{COMMITTED_MOST, Terms};
use core::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use units::{BitRate, Instant, Span};

/// What a member that was idle may catch up of its commitment and its peak.
const CATCH_UP: Span = Span::from_millis(20);
/// Tags are bytes over weights, in units of 2⁻²⁰.
const FRACTION: u32 = 20;
/// How far ahead of its share a terminal may come by urgent packets and by what goes beside its
/// turns, and how far behind by a bound: what the line carries in this time, within these bytes.
const AHEAD: Span = Span::from_millis(25);
const AHEAD_LEAST: u64 = 6_000;
const AHEAD_MOST: u64 = 64_000;

/// What a member has to send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ready {
    /// Nothing that may go now.
    #[default]
    No,
    /// Something.
    Yes,
    /// Something that others should make way for.
    Urgent,
}

/// Why a member has its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// It is urgent, and the member is not far ahead of its share.
    Urgency,
    /// It has had less than is committed to it.
    Commitment,
    /// It has had least for its weight.
    Weight,
}

/// A member's turn; [`Shaper::charge`] ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn<K> {
    /// Whose.
    pub member: K,
    /// Why.
    pub by: By,
}

#[derive(Clone, Debug)]
struct Member {
    plan: usize,
    ready: Ready,
    /// It has reached its peak and waits.
    capped: bool,
    /// The tag of what it sends next, on the clock of its plan, or on that of all.
    start: u128,
    /// When what it has had is what is committed.
    committed_at: Instant,
    /// When it may send again, by its peak.
    peak_at: Instant,
    octets: u64,
}

/// A plan, and those of its members that have something to send.
#[derive(Clone, Debug)]
struct Group<K> {
    terms: Terms,
    /// When it may send again, by its total.
    total_at: Instant,
    /// If its members share by themselves: their clock.
    clock: u128,
    /// If they do: the plan's tag on the clock of all. Otherwise what is added to their tags.
    start: u128,
    by_tag: BTreeSet<(u128, K)>,
    urgent: BTreeSet<(u128, K)>,
    by_commitment: BTreeSet<(Instant, K)>,
    /// What is committed to those of its members that have something to send, bits per second.
    committed: u64,
}

/// Shares one line among members with plans.
#[derive(Clone, Debug)]
pub struct Shaper<K> {
    line: Line,
    groups: Vec<Group<K>>,
    members: BTreeMap<K, Member>,
    /// Who has reached its peak, and until when.
    capped: BTreeSet<(Instant, K)>,
    /// The clock of all: the least tag of those that wanted something, at the last turn.
    clock: u128,
}

impl<K: Copy + Ord> Shaper<K> {
    /// A shaper for a line with `rate`, and for members that have one of `plans`. At least one
    /// plan is made if there is none.
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

    /// The line has another rate from now on.
    pub fn set_rate(&mut self, rate: BitRate) {
        self.line.set_rate(rate);
    }

    /// Takes a member in, with nothing to send, or gives it another plan. A plan that does not
    /// exist is the first.
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

    /// Forgets a member.
    pub fn leave(&mut self, member: K) {
        self.set_ready(Instant::ZERO, member, Ready::No);
        self.members.remove(&member);
    }

    /// The plan of a member.
    pub fn plan_of(&self, member: K) -> Option<usize> {
        self.members.get(&member).map(|member| member.plan)
    }

    /// What a member has sent in all, octets.
    pub fn octets(&self, member: K) -> u64 {
        self.members.get(&member).map_or(0, |member| member.octets)
    }

    /// Whether a member has something to send, as was last said.
    pub fn is_ready(&self, member: K) -> bool {
        self.members.get(&member).is_some_and(|member| member.ready != Ready::No)
    }

    /// Says what a member has to send.
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

    /// Whose turn it is at `now`; `None` when the line has no room, or nobody may send.
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
            // All that want to send have had their peak.
            self.line.idle();
        }
        turn
    }

    /// Bytes for one turn: what the line carries in a millisecond; at least a packet is sent.
    pub fn turn_octets(&self) -> usize {
        self.line.turn()
    }

    /// `octets` were sent in `turn`.
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
                // It comes back, if only for this.
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

    /// `octets` were sent without asking: control of a member's, or what is nobody's.
    pub fn charge_beside(&mut self, now: Instant, member: Option<K>, octets: u64) {
        match member.filter(|member| self.members.contains_key(member)) {
            Some(member) => self.charge(now, Turn { member, by: By::Weight }, octets),
            None => self.line.charge(now, octets),
        }
    }

    /// Sets the clocks to where those stand who have had least of those that want something: who
    /// comes back begins there. It holds whatever `member` is served for, or what it sent on a
    /// line that nobody else wanted would be held against it later.
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

    /// When the line has room again.
    pub fn room_at(&self) -> Instant {
        self.line.next()
    }

    /// When [`next`](Self::next) may have somebody.
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

    /// Whether a member has had more than its share by so much that it has to wait for its turn,
    /// whatever it has to send.
    pub fn is_ahead(&self, now: Instant, member: K) -> bool {
        let Some(state) = self.members.get(&member) else { return false };
        let group = &self.groups[state.plan];
        !self.may_go_first(group, state.start, self.floor(now))
    }

    /// [`AHEAD`], in units of the clocks for a weight of one.
    fn ahead(&self) -> u128 {
        let octets = self.line.rate().bytes_in(AHEAD).clamp(AHEAD_LEAST, AHEAD_MOST);
        u128::from(octets) << FRACTION
    }

    /// Whether somebody of `group` whose tag is `start` is not far ahead, where those stand at
    /// `all` who have had least.
    fn may_go_first(&self, group: &Group<K>, start: u128, all: u128) -> bool {
        let ahead = self.ahead();
        let weight = u128::from(group.terms.weight());
        if group.terms.shared_weight {
            let floor = group.by_tag.first().map_or(0, |(tag, _)| *tag).max(group.clock);
            // Several of its terminals may ask at once.
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

    /// Where those are who have had least, of those who have something to send.
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

    /// Puts a member where it waits: for its peak, unless that is known to `allow` it.
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

    /// The tag, on the clock of all, of whoever goes first here.
    fn tag(&self) -> Option<u128> {
        self.by_tag.first().map(|(first, _)| self.place(*first))
    }

    /// Where a member whose tag is `start` is on the clock of all.
    fn place(&self, start: u128) -> u128 {
        if self.terms.shared_weight { self.start } else { self.start + start }
    }

    /// What is committed here by now, bits per second, within the plan's total.
    fn bound(&self) -> u64 {
        self.committed.min(self.terms.total_bps())
    }

    /// What is committed to a member, brought down to what the plan's total allows, and to its
    /// part of the `most` that may be committed of `all`.
    fn pace(&self, all: u64, most: u64) -> BitRate {
        let own = BitRate::from_bps(self.terms.committed_bps().max(1));
        let own = own.mul_ratio(self.bound(), self.committed.max(1));
        if all > most { own.mul_ratio(most, all) } else { own }
    }

    /// A member that wanted nothing does: what it has not had meanwhile is not owed. `all` is the
    /// clock of all.
    fn come_back(&mut self, member: &mut Member, all: u128) {
        if self.terms.shared_weight && self.by_tag.is_empty() {
            self.start = self.start.max(all);
        }
        let own =
            if self.terms.shared_weight { self.clock } else { all.saturating_sub(self.start) };
        member.start = member.start.max(own);
    }

    /// What its total has kept a plan from having is not owed later, but for the little by which
    /// such a bound is uneven: before `member` is charged, it and all others here move on together,
    /// until it or the first of the others that wait is at `owed`.
    fn forgive(&mut self, member: &Member, owed: u128) {
        let first = self.by_tag.first().map_or(0, |(first, _)| *first);
        let furthest = self.place(member.start.max(first));
        self.start += owed.saturating_sub(furthest);
    }

    /// A member has sent `octets` of what is shared by weight.
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

    /// A member has sent `octets`, as far as its peak and its plan's total go.
    fn cap(&mut self, member: &mut Member, now: Instant, octets: u64) {
        if let Some(peak) = self.terms.rates.peak {
            member.peak_at = member.peak_at.max(now - CATCH_UP) + peak.time_for(octets);
        }
        if let Some(total) = self.terms.rates.total {
            self.total_at = self.total_at.max(now - CATCH_UP) + total.time_for(octets);
        }
    }
}
