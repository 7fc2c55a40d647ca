//! Whose turn it is.

use crate::fair::{FairQueue, Owner, QUANTUM};
use crate::target::{Priority, StreamId};
use std::collections::BTreeMap;
use units::{BitRate, Instant, Span};

/// Turns that higher classes may have while a lower one waits: nothing starves.
const TURNS: u64 = 7;
/// Bytes that a stream may have sent lately and still go before bulk.
const LITTLE: u64 = 64 << 10;
/// Bytes a second that are forgotten.
const FORGOTTEN: u64 = 32 << 10;
/// Time of the link that an owner's streams may have sent lately and still go before others' bulk,
/// within bounds, and the part of the rate that is forgotten. It is small beside the share of the
/// link that each owner has.
const OWNER_TIME: Span = Span::from_millis(250);
const OWNER_BOUNDS: [u64; 2] = [16 << 10, 1 << 20];
const OWNER_PART: u64 = 32;
/// Owners beyond those that wait for a turn of which it is known how much they have sent.
const OWNERS_KEPT: usize = 256;

/// How much a stream has sent lately.
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

    /// Forgets `forgotten` bytes of each second, at least one.
    fn forget(&mut self, now: Instant, forgotten: u64) {
        let second = u128::from(Span::from_secs(1).as_nanos());
        let span = u128::from(now.since(self.at).as_nanos());
        let gone = u64::try_from(u128::from(forgotten) * span / second).unwrap_or(u64::MAX);
        if gone >= self.level {
            self.level = 0;
            self.at = self.at.max(now);
        } else {
            self.level -= gone;
            // What a rounding left over is forgotten next time.
            let accounted = u128::from(gone) * second / u128::from(forgotten);
            self.at += Span::from_nanos(accounted as u64);
        }
    }

    pub(crate) fn is_little(&mut self, now: Instant) -> bool {
        self.forget(now, FORGOTTEN);
        self.level < LITTLE
    }
}

/// How much each owner's streams have sent lately.
#[derive(Debug, Default)]
pub(crate) struct Senders {
    owners: BTreeMap<Owner, Lately>,
    /// From how many on those are left out that have sent nothing lately.
    review_at: usize,
}

impl Senders {
    /// What is forgotten in a second at `rate`.
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

    pub(crate) fn is_little(&mut self, now: Instant, rate: Option<BitRate>, owner: Owner) -> bool {
        let [least, most] = OWNER_BOUNDS;
        let little = rate.map_or(most / 4, |rate| rate.bytes_in(OWNER_TIME).clamp(least, most));
        self.owners.get_mut(&owner).is_none_or(|lately| {
            lately.forget(now, Self::forgotten(rate));
            lately.level < little
        })
    }
}

/// How this side serves a stream, or a flow of packets, when that is decided here and not by who
/// opened it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// Before whom it goes.
    pub level: Level,
    /// Which of the classes of that level: each has its part of what the level has, however many
    /// streams it has. 0 is that of all for which nothing was decided.
    pub class: u8,
    /// The class's part against others of its level; 0 counts as 1.
    pub weight: u32,
}

/// Before whom a stream or a flow goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Before all others; on a line that several terminals share also before theirs, as far as
    /// its own terminal's share goes.
    Urgent,
    /// Before what is normal.
    Interactive,
    /// As interactive while it sends little, then in turn with its like.
    Normal,
    /// When nothing else is to be sent, and an eighth of the time when there is.
    Background,
}

/// Where a stream of `priority` waits now, that has sent `little` lately.
pub(crate) fn class(priority: Priority, service: Option<Service>, little: bool) -> Place {
    let level = match priority {
        Priority::Interactive => Level::Interactive,
        Priority::Normal => Level::Normal,
        Priority::Background => Level::Background,
    };
    let usual = Service { level, class: 0, weight: 1 };
    place(service.unwrap_or(usual), little)
}

/// Where what is served so waits, when it has sent `little` lately.
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

/// Which queue a stream or a flow waits in; those that go first are less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    /// Flows that ask for it and send little, and what was told to be.
    Urgent,
    Interactive,
    Bulk,
    Background,
}

/// Which of the queues of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) class: Class,
    pub(crate) band: u8,
    pub(crate) weight: u32,
    /// It goes before others because it has sent little, or because its packets ask for it, and not
    /// because that was decided here.
    pub(crate) promoted: bool,
}

impl From<Class> for Place {
    fn from(class: Class) -> Self {
        Self { class, band: 0, weight: 1, promoted: false }
    }
}

/// Who waits for a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    Stream(StreamId),
    /// Packets that are carried as they are, of one flow.
    Flow(usize),
}

/// One of the queues of a class.
#[derive(Debug)]
struct Band {
    number: u8,
    weight: u32,
    queue: FairQueue<Entry>,
}

/// The queues of a class, which have turns in a row by their weights.
#[derive(Debug, Default)]
struct Bands {
    bands: Vec<Band>,
    /// Whose turns they are, and how many it has had.
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

    fn charge(&mut self, bytes: u64) {
        if let Some(at) = self.first() {
            self.bands[at].queue.charge(bytes);
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

/// Streams and flows that have something to send, each in one queue, once.
///
/// Within a class owners take turns, and each owner's streams and flows take its turns in turn
/// (deficit round robin: a turn is a quantum of bytes, and what was taken too much the owner waits
/// for). A normal stream that has sent little goes before bulk; while other owners wait only as
/// far as its owner's streams have sent little too, and else before its owner's bulk alone. Where
/// an operator has made several classes of it, those have turns by their weights. A
/// higher class goes first, but for one turn in eight, by bytes: entries of a few bytes, however
/// many they are, are no turn.
#[derive(Debug, Default)]
pub(crate) struct Scheduler {
    queues: [Bands; 4],
    /// Entries of each owner that has some.
    waiting: BTreeMap<Owner, usize>,
    /// Bytes that higher classes have sent since each class, which waited, had a turn.
    waited: [u64; 4],
}

impl Scheduler {
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

    /// Whether streams or flows of others than `owner` wait.
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

    /// Whose turn it is; it stays at the front until [`finish_turn`](Self::finish_turn).
    pub(crate) fn front(&self) -> Option<(Class, Entry)> {
        let mut chosen = None;
        for class in [Class::Urgent, Class::Interactive, Class::Bulk, Class::Background] {
            let Some(entry) = self.queues[class as usize].front() else { continue };
            if chosen.is_none() || self.waited[class as usize] >= TURNS * QUANTUM {
                chosen = Some((class, entry));
            }
        }
        chosen
    }

    /// The first of a class has taken `bytes` of its owner's turn.
    pub(crate) fn charge(&mut self, class: Class, bytes: u64) {
        self.queues[class as usize].charge(bytes);
        for lower in class as usize + 1..self.queues.len() {
            if !self.queues[lower].is_empty() {
                self.waited[lower] += bytes;
            }
        }
    }

    /// Whether the turn in which the first of a class is goes on.
    pub(crate) fn goes_on(&self, class: Class) -> bool {
        self.queues[class as usize].goes_on()
    }

    /// Takes the first off the front of its class; its turn is over.
    pub(crate) fn finish_turn(&mut self, class: Class) -> Option<Entry> {
        self.waited[class as usize] = 0;
        let (owner, entry) = self.queues[class as usize].finish_turn()?;
        self.left(owner);
        Some(entry)
    }

    /// Takes a stream of `owner` out, wherever it is.
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
    fn interactive_goes_first_but_for_one_turn_in_eight() {
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
    fn sending_little_is_forgotten_at_32_kilobytes_a_second() {
        let mut lately = Lately::default();
        let at = |secs| Instant::ZERO + Span::from_secs(secs);
        lately.add(at(1), LITTLE + FORGOTTEN);
        assert!(!lately.is_little(at(1)));
        assert!(!lately.is_little(at(2)));
        assert!(lately.is_little(at(3)));
        // Looking often forgets no more than looking once.
        lately.add(at(10), LITTLE + FORGOTTEN);
        for step in 0..20_000 {
            assert!(!lately.is_little(at(10) + Span::from_micros(step * 50)));
        }
        assert!(lately.is_little(at(12)));
    }

    #[test]
    fn classes_follow_priority_and_what_was_sent() {
        let usual = |priority, little| class(priority, None, little).class;
        assert_eq!(usual(Priority::Interactive, false), Class::Interactive);
        assert_eq!(usual(Priority::Normal, true), Class::Interactive);
        assert_eq!(usual(Priority::Normal, false), Class::Bulk);
        assert_eq!(usual(Priority::Background, true), Class::Background);
        let service = Service { level: Level::Urgent, class: 3, weight: 0 };
        let told = class(Priority::Background, Some(service), false);
        assert_eq!(told, Place { class: Class::Urgent, band: 3, weight: 1, promoted: false });
    }

    /// RLY-3.3
    #[test]
    fn classes_of_one_level_have_turns_by_weight_however_many_streams_they_have() {
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
