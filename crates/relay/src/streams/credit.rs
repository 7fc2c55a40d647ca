//! The announcing of credit: in notes, which cost nothing and may be lost, and in frames when
//! nothing else tells the peer.

use super::Streams;
use super::sending::Control;
use crate::config::{PATH_POOL_MIN, POOL_ROUND_TRIPS, WORD};
use crate::frame::{CREDIT_UNIT, Writer};
use crate::target::StreamId;
use units::{BitRate, Instant, Span};

/// How long an announcement waits for a POLL or STAT to ride in, at least.
const NOTE_WAIT: Span = Span::from_millis(250);
/// Bytes of a note while nothing is urgent: the return channel is not ours to fill.
const NOTE_ROOM: usize = 48;

/// How far the peer has been told of shared credit that it got back.
#[derive(Clone, Copy, Debug)]
pub(super) struct SharedAnnouncement {
    size: u64,
    /// Told last.
    announced: u64,
    /// What the peer surely knows.
    known: u64,
    /// The next note says it.
    unsaid: bool,
    by: Option<Instant>,
}

impl SharedAnnouncement {
    pub(super) fn new(size: u64) -> Self {
        Self { size, announced: 0, known: 0, unsaid: false, by: None }
    }
}

impl Streams {
    /// Bytes that are promised to the peer, shared credit included, and that are held to be sent.
    pub(crate) fn taken(&self) -> [u64; 2] {
        [self.pool.used() + self.pool.shared, self.send_pool.held.total()]
    }

    /// Bytes that may be promised, shared credit included, and held to be sent.
    pub(crate) fn pools(&self) -> [u64; 2] {
        [self.pool.size + self.pool.shared, self.send_pool.size]
    }

    /// From here on no more than `receive` bytes are promised, shared credit included, and no more
    /// than `send` held. What is promised and held already stays.
    pub(crate) fn set_pools(&mut self, receive: u64, send: u64) {
        self.pool_limits = [receive.saturating_sub(self.pool.shared), send];
        self.size_pools();
        self.make_room_known_to_some();
    }

    /// The time, and what the session knows by now of the round trip and of its rate.
    pub(crate) fn set_time(
        &mut self,
        now: Instant,
        round_trip: Option<Span>,
        rate: Option<BitRate>,
    ) {
        self.now = now;
        let before = (self.round_trip, self.rate);
        self.round_trip = round_trip.unwrap_or(self.round_trip);
        self.rate = rate.or(self.rate);
        if before != (self.round_trip, self.rate) {
            self.size_pools();
            if let Some(rate) = self.rate {
                self.scheduler.set_rate(rate);
            }
        }
    }

    /// Sizes the pools for the path, within their limits.
    fn size_pools(&mut self) {
        let time = self.round_trip * POOL_ROUND_TRIPS;
        let needed = |rate: Option<BitRate>| {
            rate.map_or(u64::MAX, |rate| rate.bytes_in(time).max(PATH_POOL_MIN))
        };
        let [receive, send] = self.pool_limits;
        self.pool.size = receive.min(needed(self.receive_rate));
        self.send_pool.size = send.min(needed(self.rate));
    }

    /// Looks at whether the stream deserves more credit, and has it announced.
    pub(super) fn review(&mut self, id: StreamId) {
        self.review_credit(id);
        self.shared_changed();
    }

    fn review_credit(&mut self, id: StreamId) {
        let until_used = self.until_used();
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let own = stream.announced > self.receive_minimum;
        let granted = stream.receive.review(self.now, until_used, own, &mut self.pool);
        // Until it is given credit of its own a stream draws on the shared, while there is some.
        if granted || self.pool.is_shared_short() {
            self.announce(id);
        }
    }

    /// Has the stream's limit announced when it is worth it.
    fn announce(&mut self, id: StreamId) {
        let (until_used, wait) = (self.until_used(), self.note_wait());
        let Some(stream) = self.streams.get_mut(&id) else { return };
        // As it is said: what is lost by that has not been told.
        let granted = stream.receive.granted() / CREDIT_UNIT * CREDIT_UNIT;
        let worth = granted >= stream.announced + stream.receive.worth_announcing(until_used);
        if worth && stream.receive.wants_credit() {
            stream.before = std::mem::replace(&mut stream.announced, granted);
            stream.unsaid = true;
            stream.announce_by = Some(self.now + wait);
            self.announcing.insert(id);
            self.announce_by(self.now + wait);
        }
    }

    /// Has the shared credit that was given back announced, when it is worth it.
    pub(super) fn shared_changed(&mut self) {
        let (returned, wait) = (self.pool.shared_returned, self.note_wait());
        let shared = &mut self.shared_announcement;
        // What came proves what the peer knew when it sent it.
        shared.known = shared.known.max(self.pool.shared_received.saturating_sub(shared.size));
        if returned >= shared.announced + (shared.size / 8).max(CREDIT_UNIT) {
            shared.announced = returned;
            shared.unsaid = true;
            shared.by = Some(self.now + wait);
            self.announce_by(self.now + wait);
        }
        let short = self.pool.is_shared_short();
        if short && !self.shared_was_short {
            self.shared_was_short = true;
            // Streams that hold some of it give it back, and those that waited for a share of it
            // go on with what is their own.
            let ids: Vec<StreamId> = self.streams.keys().copied().collect();
            for id in ids {
                self.review_credit(id);
            }
        } else if self.pool.is_shared_plenty() {
            self.shared_was_short = false;
        }
    }

    /// How long to wait for a sign that the peer has heard a note.
    pub(super) fn confirmation_time(&self) -> Span {
        self.round_trip.mul_ratio(3, 2).max(self.note_wait() * 2)
    }

    /// How long a word takes at our own rate: at 1 kbit/s there is a STAT every few seconds.
    fn word_time(&self) -> Span {
        self.rate.map_or(Span::ZERO, |rate| rate.time_for(WORD))
    }

    /// How long an announcement waits for a POLL or STAT to ride in. A frame instead would make a
    /// narrow way to the peer narrower.
    fn note_wait(&self) -> Span {
        NOTE_WAIT.max(self.word_time() * 2)
    }

    /// How long it takes from a grant to what is sent by it.
    fn until_used(&self) -> Span {
        self.round_trip + self.word_time()
    }

    /// Fills the note of a POLL or STAT that is about to go; what found no room is first next time.
    pub(crate) fn note(&mut self, room: &mut [u8]) -> usize {
        self.noted_at = Some(self.now);
        let crowded = self.announcing.len() > NOTE_ROOM / 6;
        let len = room.len().min(if crowded { NOTE_ROOM * 4 } else { NOTE_ROOM });
        let mut writer = Writer::new(&mut room[..len]);
        let confirmed_by = self.now + self.confirmation_time();
        let shared = &mut self.shared_announcement;
        if shared.unsaid && writer.note(None, shared.announced) {
            shared.unsaid = false;
            shared.by = Some(confirmed_by);
        }
        let from = self.note_from.take().unwrap_or(StreamId::new(0, false));
        let (before, after) = (self.announcing.range(..from), self.announcing.range(from..));
        for id in after.chain(before) {
            let Some(stream) = self.streams.get_mut(id) else { continue };
            if !stream.unsaid {
                continue;
            }
            if !writer.note(Some(*id), stream.announced) {
                self.note_from = Some(*id);
                break;
            }
            stream.unsaid = false;
            stream.said_at = self.now;
            stream.announce_by = Some(confirmed_by);
        }
        writer.written()
    }

    /// The peer goes on by what it knew before the last announcement, which a note may have lost:
    /// the next note says it again, in time for another one to be lost.
    pub(super) fn say_again(&mut self, id: StreamId) {
        let (patience, until_used) = (self.confirmation_time(), self.until_used());
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let (high, soon) = (stream.receive.high(), stream.receive.coming_in(until_used * 3));
        let said = stream.announce_by.is_some() && !stream.unsaid;
        if said && high <= stream.before && high + soon > stream.before {
            stream.unsaid = self.now.since(stream.said_at) >= patience;
        }
    }

    /// When an announcement will have waited long enough, or earlier.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.announce_at
    }

    /// Puts announcements that no note carried, or that show no effect, into frames.
    pub(crate) fn handle_timeout(&mut self) {
        let now = self.now;
        if self.announce_at.is_none_or(|at| at > now) {
            return;
        }
        let due = |by: Option<Instant>| by.is_some_and(|by| by <= now);
        // Notes are going, and there is more to say than one holds: the turn will come.
        let wait = self.note_wait();
        let flowing = self.noted_at.is_some_and(|at| now.since(at) < wait * 2);
        let ids: Vec<StreamId> = self.announcing.iter().copied().collect();
        for id in ids {
            let Some(stream) = self.streams.get_mut(&id) else { continue };
            if !due(stream.announce_by) {
                continue;
            }
            if flowing && stream.unsaid && stream.receive.high() < stream.known {
                stream.announce_by = Some(now + wait);
                continue;
            }
            self.announcing.remove(&id);
            stream.announce_by = None;
            stream.unsaid = false;
            if stream.known < stream.announced && stream.receive.wants_credit() {
                let limit = stream.announced;
                self.statistics.credit_frames += 1;
                self.controls.push_back(Control::Credit { id, limit });
            }
        }
        let shared = &mut self.shared_announcement;
        if due(shared.by) {
            shared.by = None;
            shared.unsaid = false;
            // With half of it certain, the peer has enough to go on and to show what it knows.
            if shared.known + shared.size / 2 < shared.announced {
                let returned = shared.announced;
                self.statistics.credit_frames += 1;
                self.controls.push_back(Control::Shared { returned });
            }
        }
        self.announce_at = self
            .announcing
            .iter()
            .filter_map(|id| self.streams.get(id)?.announce_by)
            .chain(self.shared_announcement.by)
            .min();
    }

    /// Comes back at `at`, or earlier.
    pub(super) fn announce_by(&mut self, at: Instant) {
        self.announce_at = Some(self.announce_at.map_or(at, |before| before.min(at)));
    }

    /// A CREDIT frame with this limit reached the peer.
    pub(super) fn credit_known(&mut self, id: StreamId, limit: u64) {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.known = stream.known.max(limit);
        }
    }

    /// A SHARED frame reached the peer.
    pub(super) fn shared_known(&mut self, returned: u64) {
        let shared = &mut self.shared_announcement;
        shared.known = shared.known.max(returned);
    }
}
