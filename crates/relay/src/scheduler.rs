//! Scheduling of streams and flows.

use crate::fair::{FairQueue, Owner, QUANTUM};
use crate::target::{Priority, StreamId};
use std::collections::BTreeMap;
use units::{BitRate, Instant, Span};

/// Turns of higher classes for each turn of a lower one with queued data, which thus never starves.
const TURNS: u64 = 7;
/// Time on the link of a turn above 120 Mbit/s, and the maximum bytes of a turn. Consecutive packets of a
/// stream cost less processor time than packets of many streams, whose bytes are in no cache and
/// are written by one call each.
const TURN_TIME: Span = Span::from_micros(100);
const MAX_QUANTUM: u64 = 64 << 10;
/// Maximum recent bytes of a stream that precedes bulk (a sparse stream).
const LITTLE: u64 = 64 << 10;
/// Decay of a stream's recent bytes, bytes per second.
const FORGOTTEN: u64 = 32 << 10;
/// Maximum recent bytes of an owner whose streams precede others' bulk, as time on the link with
/// bounds; also the decay per second. It is small compared with each owner's share of the link.
const OWNER_TIME: Span = Span::from_millis(250);
const OWNER_BOUNDS: [u64; 2] = [16 << 10, 1 << 20];
const OWNER_PART: u64 = 32;
/// Number of owners without queued data whose recent bytes are stored.
const OWNERS_KEPT: usize = 256;

/// Recent bytes of a stream, with exponential decay.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lately {
    level: u64,
    at: Instant,
}

impl Lately {
    pub(crate) fn add(&mut self, now: Instant, bytes: u64) {
        self.forget(now, FORGOTTEN);
        self.level += bytes;
    }

    /// Decays the bytes by `forgotten` per second, at least one.
    fn forget(&mut self, now: Instant, forgotten: u64) {
        let second = u128::from(Span::from_secs(1).as_nanos());
        let span = u128::from(now.since(self.at).as_nanos());
        let gone = u64::try_from(u128::from(forgotten) * span / second).unwrap_or(u64::MAX);
        if gone >= self.level {
            self.level = 0;
            self.at = self.at.max(now);
        } else {
            self.level -= gone;
            // The remainder of the rounding decays the next time.
            let accounted = u128::from(gone) * second / u128::from(forgotten);
            self.at += Span::from_nanos(accounted as u64);
        }
    }

    pub(crate) fn is_little(mut self, now: Instant) -> bool {
        self.forget(now, FORGOTTEN);
        self.level < LITTLE
    }
}

/// Recent bytes of each owner's streams.
#[derive(Debug, Default)]
pub(crate) struct Senders {
    owners: BTreeMap<Owner, Lately>,
    /// Number of owners at which those without recent bytes are removed.
    review_at: usize,
}

impl Senders {
    /// Returns the decay per second at `rate`.
    fn forgotten(rate: Option<BitRate>) -> u64 {
        rate.map_or(FORGOTTEN, |rate| (rate.as_bps() / 8 / OWNER_PART).max(1))
    }

    pub(crate) fn add(&mut self, now: Instant, rate: Option<BitRate>, owner: Owner, bytes: u64) {
        let forgotten = Self::forgotten(rate);
        let lately = self.owners.entry(owner).or_default();
        lately.forget(now, forgotten);
        lately.level += bytes;
        if self.owners.len() > self.review_at.max(OWNERS_KEPT) {
            self.owners.retain(|_, lately| {
                lately.forget(now, forgotten);
                lately.level > 0
            });
            self.review_at = self.owners.len() * 2;
        }
    }

    pub(crate) fn is_little(&self, now: Instant, rate: Option<BitRate>, owner: Owner) -> bool {
        let [least, most] = OWNER_BOUNDS;
        let little = rate.map_or(most / 4, |rate| rate.bytes_in(OWNER_TIME).clamp(least, most));
        self.owners.get(&owner).is_none_or(|&(mut lately)| {
            lately.forget(now, Self::forgotten(rate));
            lately.level < little
        })
    }
}

/// Class that this side assigns to a stream or flow by its configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// Priority of the class.
    pub level: Level,
    /// Number of the class: each has its share of the level, independent of the number of streams.
    /// 0 is the class of everything without an assignment.
    pub class: u8,
    /// Relative share among the classes of the level; 0 counts as 1.
    pub weight: u32,
}

/// Priority of a stream or flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Before all others; on a shared link also before those of other terminals, within its own
    /// terminal's share.
    Urgent,
    /// Before `Normal`.
    Interactive,
    /// As `Interactive` while it is sparse, otherwise in turn with other bulk.
    Normal,
    /// When no other data is queued, and one turn in eight when there is.
    Background,
}

/// Returns the queue of a stream of `priority`; `little` if it is sparse.
pub(crate) fn class(priority: Priority, service: Option<Service>, little: bool) -> Place {
    let level = match priority {
        Priority::Interactive => Level::Interactive,
        Priority::Normal => Level::Normal,
        Priority::Background => Level::Background,
    };
    let usual = Service { level, class: 0, weight: 1 };
    place(service.unwrap_or(usual), little)
}

/// Returns the queue for `service`; `little` if the stream is sparse.
pub(crate) fn place(service: Service, little: bool) -> Place {
    let class = match (service.level, little) {
        (Level::Urgent, _) => Class::Urgent,
        (Level::Interactive, _) | (Level::Normal, true) => Class::Interactive,
        (Level::Normal, false) => Class::Bulk,
        (Level::Background, _) => Class::Background,
    };
    let promoted = service.level == Level::Normal && little;
    Place { class, band: service.class, weight: service.weight.max(1), promoted }
}

/// Classes in the order of service; a lower value is served first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Sparse flows that request it by their DSCP, and those assigned by configuration.
    Urgent,
    /// Streams and flows that have sent little lately, and those assigned by configuration.
    Interactive,
    /// Streams and flows that have sent more.
    Bulk,
    /// Those that wait for all others.
    Background,
}

/// A queue of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) class: Class,
    pub(crate) band: u8,
    pub(crate) weight: u32,
    /// Whether the queue follows from sparseness or DSCP, and not from an assignment by
    /// configuration.
    pub(crate) promoted: bool,
}

impl From<Class> for Place {
    fn from(class: Class) -> Self {
        Self { class, band: 0, weight: 1, promoted: false }
    }
}

/// A stream or flow with queued data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    Stream(StreamId),
    /// One flow of packets that are forwarded unsplit.
    Flow(usize),
}

/// One queue of a class.
#[derive(Debug)]
struct Band {
    number: u8,
    weight: u32,
    queue: FairQueue<Entry>,
}

/// The queues of a class, served in turn by their weights.
#[derive(Debug, Default)]
struct Bands {
    bands: Vec<Band>,
    /// The queue whose turn it is, and the number of its turns.
    at: usize,
    had: u32,
}

impl Bands {
    fn push(&mut self, place: Place, owner: Owner, entry: Entry) {
        let at = match self.bands.iter().position(|band| band.number == place.band) {
            Some(at) => at,
            None => {
                let (number, weight) = (place.band, place.weight);
                self.bands.push(Band { number, weight, queue: FairQueue::default() });
                self.bands.len() - 1
            }
        };
        let band = &mut self.bands[at];
        band.weight = place.weight;
        if place.promoted && place.class == Class::Bulk {
            band.queue.push_first(owner, entry);
        } else {
            band.queue.push(owner, entry);
        }
    }

    fn first(&self) -> Option<usize> {
        let count = self.bands.len();
        (0..count).map(|step| (self.at + step) % count).find(|&at| !self.bands[at].queue.is_empty())
    }

    fn front(&self) -> Option<Entry> {
        self.bands[self.first()?].queue.front()
    }

    fn charge(&mut self, bytes: u64, quantum: u64) {
        if let Some(at) = self.first() {
            self.bands[at].queue.charge(bytes, quantum);
        }
    }

    fn goes_on(&self) -> bool {
        self.first().is_some_and(|at| self.bands[at].queue.goes_on())
    }

    fn finish_turn(&mut self) -> Option<(Owner, Entry)> {
        let at = self.first()?;
        if at != self.at {
            (self.at, self.had) = (at, 0);
        }
        self.had += 1;
        if self.had >= self.bands[at].weight {
            (self.at, self.had) = ((at + 1) % self.bands.len(), 0);
        }
        self.bands[at].queue.pop()
    }

    fn is_empty(&self) -> bool {
        self.bands.iter().all(|band| band.queue.is_empty())
    }

    fn len(&self) -> usize {
        self.bands.iter().map(|band| band.queue.len()).sum()
    }
}

/// Streams and flows with queued data, each in one queue, once.
///
/// Within a class owners take turns, and each owner's streams and flows share its turns by deficit
/// round robin: a turn is a quantum of bytes, and an owner that exceeds it skips turns. A sparse
/// normal stream precedes bulk; while other owners have queued data only if its owner's streams are
/// sparse together, and otherwise it precedes its owner's bulk only. Configured classes of a level
/// have turns by their weights. A higher class is served first except in one turn of eight, counted
/// in bytes, so that many small entries do not count as turns.
#[derive(Debug)]
pub(crate) struct Scheduler {
    queues: [Bands; 4],
    /// Number of entries by owner.
    waiting: BTreeMap<Owner, usize>,
    /// Bytes that higher classes have sent since the last turn of each class with queued data.
    waited: [u64; 4],
    /// Bytes of a turn at the rate of the link.
    quantum: u64,
}

impl Default for Scheduler {
    fn default() -> Self {
        let (queues, waiting, waited) = Default::default();
        Self { queues, waiting, waited, quantum: QUANTUM }
    }
}

impl Scheduler {
    /// Sets the bytes of a turn for a link of `rate`.
    pub(crate) fn set_rate(&mut self, rate: BitRate) {
        self.quantum = rate.bytes_in(TURN_TIME).clamp(QUANTUM, MAX_QUANTUM);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queues.iter().all(Bands::is_empty)
    }

    pub(crate) fn len(&self) -> usize {
        self.queues.iter().map(Bands::len).sum()
    }

    pub(crate) fn push(&mut self, place: impl Into<Place>, owner: Owner, entry: Entry) {
        let place = place.into();
        *self.waiting.entry(owner).or_default() += 1;
        self.queues[place.class as usize].push(place, owner, entry);
    }

    /// Returns whether streams or flows of owners other than `owner` are queued.
    pub(crate) fn has_others(&self, owner: Owner) -> bool {
        self.waiting.keys().any(|&other| other != owner)
    }

    fn left(&mut self, owner: Owner) {
        if let Some(count) = self.waiting.get_mut(&owner) {
            *count -= 1;
            if *count == 0 {
                self.waiting.remove(&owner);
            }
        }
    }

    /// Returns the next entry, which stays at the front until [`finish_turn`](Self::finish_turn).
    pub(crate) fn front(&self) -> Option<(Class, Entry)> {
        let mut chosen = None;
        for class in [Class::Urgent, Class::Interactive, Class::Bulk, Class::Background] {
            let Some(entry) = self.queues[class as usize].front() else { continue };
            if chosen.is_none() || self.waited[class as usize] >= TURNS * self.quantum {
                chosen = Some((class, entry));
            }
        }
        chosen
    }

    /// Charges `bytes` to the turn of the first entry's owner.
    pub(crate) fn charge(&mut self, class: Class, bytes: u64) {
        self.queues[class as usize].charge(bytes, self.quantum);
        for lower in class as usize + 1..self.queues.len() {
            if !self.queues[lower].is_empty() {
                self.waited[lower] += bytes;
            }
        }
    }

    /// Returns whether the turn of the first entry of a class continues.
    pub(crate) fn goes_on(&self, class: Class) -> bool {
        self.queues[class as usize].goes_on()
    }

    /// Removes the first entry of its class at the end of its turn.
    pub(crate) fn finish_turn(&mut self, class: Class) -> Option<Entry> {
        self.waited[class as usize] = 0;
        let (owner, entry) = self.queues[class as usize].finish_turn()?;
        self.left(owner);
        Some(entry)
    }

    /// Removes a stream of `owner` from any position.
    pub(crate) fn remove(&mut self, owner: Owner, id: StreamId) {
        let mut bands = self.queues.iter_mut().flat_map(|bands| &mut bands.bands);
        if bands.any(|band| band.queue.remove(owner, Entry::Stream(id))) {
            self.left(owner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Owner = Owner(0);

    fn id(number: u32) -> StreamId {
        StreamId::new(number, false)
    }

    fn stream(number: u32) -> Entry {
        Entry::Stream(id(number))
    }

    /// RLY-3.2
    #[test]
    fn interactive_has_seven_turns_of_eight() {
        let mut scheduler = Scheduler::default();
        scheduler.push(Class::Bulk, NONE, stream(1));
        scheduler.push(Class::Interactive, NONE, stream(2));
        let mut turns = Vec::new();
        for _ in 0..16 {
            let (class, who) = scheduler.front().expect("both wait");
            scheduler.charge(class, QUANTUM);
            assert_eq!(scheduler.finish_turn(class), Some(who));
            scheduler.push(class, NONE, who);
            turns.push(if who == stream(1) { 1 } else { 2 });
        }
        assert_eq!(turns, [2, 2, 2, 2, 2, 2, 2, 1, 2, 2, 2, 2, 2, 2, 2, 1]);
        scheduler.remove(NONE, id(2));
        assert_eq!(scheduler.front(), Some((Class::Bulk, stream(1))));
        scheduler.remove(NONE, id(1));
        assert!(scheduler.is_empty());
    }

    /// RLY-3.2
    #[test]
    fn recent_bytes_decay_by_32_kib_per_second() {
        let mut lately = Lately::default();
        let at = |secs| Instant::ZERO + Span::from_secs(secs);
        lately.add(at(1), LITTLE + FORGOTTEN);
        assert!(!lately.is_little(at(1)));
        assert!(!lately.is_little(at(2)));
        assert!(lately.is_little(at(3)));
        // Frequent updates decay no faster than one.
        lately.add(at(10), LITTLE + FORGOTTEN);
        for step in 0..20_000 {
            assert!(!lately.is_little(at(10) + Span::from_micros(step * 50)));
        }
        assert!(lately.is_little(at(12)));
    }

    #[test]
    fn classes_follow_from_priority_and_recent_bytes() {
        let usual = |priority, little| class(priority, None, little).class;
        assert_eq!(usual(Priority::Interactive, false), Class::Interactive);
        assert_eq!(usual(Priority::Normal, true), Class::Interactive);
        assert_eq!(usual(Priority::Normal, false), Class::Bulk);
        assert_eq!(usual(Priority::Background, true), Class::Background);
        let service = Service { level: Level::Urgent, class: 3, weight: 0 };
        let place = class(Priority::Background, Some(service), false);
        assert_eq!(place, Place { class: Class::Urgent, band: 3, weight: 1, promoted: false });
    }

    /// RLY-3.2
    #[test]
    fn turns_are_longer_at_high_rates() {
        for (mbps, packets, before_lower) in
            [(1, 1, 7), (120, 1, 7), (1_000, 9, 59), (10_000, 44, 306)]
        {
            let mut scheduler = Scheduler::default();
            scheduler.set_rate(BitRate::from_mbps(mbps));
            scheduler.push(Class::Bulk, NONE, stream(1));
            scheduler.push(Class::Background, NONE, stream(2));
            let mut turn = 0;
            while turn == 0 || scheduler.goes_on(Class::Bulk) {
                scheduler.charge(Class::Bulk, 1_500);
                turn += 1;
            }
            assert_eq!(turn, packets, "{mbps} Mbit/s");
            let mut sent = turn;
            while scheduler.front().is_some_and(|(class, _)| class == Class::Bulk) {
                scheduler.charge(Class::Bulk, 1_500);
                sent += 1;
            }
            assert_eq!(sent, before_lower, "{mbps} Mbit/s");
        }
    }

    /// RLY-3.3
    #[test]
    fn classes_of_one_level_have_turns_by_weight() {
        let mut scheduler = Scheduler::default();
        let place = |band, weight| Place { class: Class::Bulk, band, weight, promoted: false };
        scheduler.push(place(1, 3), NONE, stream(1));
        for number in 10..20 {
            scheduler.push(place(2, 1), NONE, stream(number));
        }
        let mut had = [0; 2];
        for _ in 0..40 {
            let (class, who) = scheduler.front().expect("both wait");
            assert_eq!(scheduler.finish_turn(class), Some(who));
            let one = who == stream(1);
            scheduler.push(if one { place(1, 3) } else { place(2, 1) }, NONE, who);
            had[usize::from(!one)] += 1;
        }
        assert_eq!(had, [30, 10]);
    }
}
