//! Send buffer: how much of it a stream may take now, and which writers are told that there is more.
//!
//! A stream holds little beyond what its credit lets it send, so one whose reader has stopped
//! holds next to none of the pool. The first bytes of each stream are beside the pool, so that
//! streams which hold no more than these, however many they are, leave the pool to others. What is
//! unsent is divided among owners by dynamic thresholds
//! ([`fair`](crate::fair)), and what an owner may hold among its streams in the same way. What is
//! in flight is bounded by the session, and by a threshold that binds only where the pool is
//! smaller than that.

use super::{Streams, coding};
use crate::fair::{FairQueue, Owner, Shares, headroom};
use crate::stream::{Encoding, Stream};
use crate::{Event, StreamError, StreamId};
use units::{Instant, Span};

/// Unsent bytes of a stream at the rate that was found: this time of it, or this many bytes where
/// they take no longer than another time; and in any case as many as a short request has.
const UNSENT_TIME: Span = Span::from_millis(250);
const UNSENT_USUAL: u64 = 64 << 10;
const UNSENT_LONGEST: Span = Span::from_secs(4);
const UNSENT_LEAST: u64 = 4 << 10;
/// As long as there is no rate.
const UNSENT_UNKNOWN: u64 = 256 << 10;
/// Streams that may hold as much unsent as one alone; of more each has an equal part of that, but
/// no less than this many bytes.
const UNSENT_STREAMS: u64 = 3;
const UNSENT_SHARED: u64 = 128 << 10;
/// Unsent bytes of all streams from which on each may hold [`UNSENT_USUAL`] only: this multiple of
/// what one alone may hold, or this many bytes if those are more.
const UNSENT_TOTAL_PARTS: u64 = 4;
const UNSENT_TOTAL_LEAST: u64 = 16 << 20;
/// Unsent bytes beyond what credit allows to be sent: ready when more credit comes.
const BEYOND_CREDIT: u64 = 16 << 10;
/// Send buffer that each stream may use beside the pool: while it has credit, and while it has none.
/// So all streams hold at most the pool and this for each; how many there are is bounded by the
/// layer above and by what the peer announced.
const MINIMUM: u64 = 16 << 10;
const MINIMUM_WITHOUT_CREDIT: u64 = 4 << 10;
/// An owner may hold this many times what is free, sent and unsent.
const HELD_ALPHA: u64 = 8;
/// Room below which a writer is told to wait for more.
const LITTLE_ROOM: u64 = 4 << 10;
/// Unsent bytes that a stream may hold beyond which more room is waited for, and the part of those
/// that are beyond.
const ROOM_BASE: u64 = 4 << 20;
const ROOM_PART: u64 = 128;
/// Writers that are looked at when something has been released.
const WOKEN: usize = 8;

/// The send buffer of all streams.
#[derive(Debug, Default)]
pub(super) struct SendPool {
    /// Bytes that may be held, beside each stream's minimum.
    pub(super) size: u64,
    /// Bytes that the peer is not known to have, beyond [`MINIMUM`] of each stream.
    pub(super) held: Shares,
    /// Those bytes with each stream's first ones.
    pub(super) buffered: u64,
    /// Of those, bytes that were never in a packet.
    pub(super) unsent: Shares,
    /// Writers that wait for others to give room back.
    waiting: FairQueue<StreamId>,
}

impl SendPool {
    pub(super) fn new(size: u64) -> Self {
        Self { size, ..Self::default() }
    }

    fn free(&self) -> u64 {
        self.size.saturating_sub(self.held.total())
    }

    /// Bytes that the pool has for a stream of `owner` with `unsent` bytes.
    fn room(&self, owner: Owner, unsent: u64) -> u64 {
        let free = self.free();
        // What the owner may hold beyond what it holds, of which the stream may hold as much as is
        // left: both shrink by each byte that is taken.
        let left = free.saturating_sub(self.unsent.of(owner));
        let held = headroom(self.held.of(owner), free, HELD_ALPHA);
        (left.saturating_sub(unsent) / 3).min(held)
    }

    /// A stream of `owner` that held `before` bytes holds `after`.
    pub(super) fn replace(&mut self, owner: Owner, before: u64, after: u64) {
        self.held.replace(owner, beyond_minimum(before), beyond_minimum(after));
        self.buffered = self.buffered + after - before;
    }

    /// Forgets what a stream of `owner` holds.
    pub(super) fn discard(&mut self, owner: Owner, send: &mut crate::send::SendHalf) {
        self.unsent.sub(owner, send.unsent());
        self.replace(owner, send.held(), 0);
        send.discard();
    }

    /// Takes the writer from those that wait.
    pub(super) fn stop_waiting(&mut self, id: StreamId, stream: &mut Stream) {
        if std::mem::take(&mut stream.waits_for_pool) {
            self.waiting.remove(stream.owner, id);
        }
    }
}

/// Bytes of a stream that holds `held` which count against the pool.
pub(super) fn beyond_minimum(held: u64) -> u64 {
    held.saturating_sub(MINIMUM)
}

/// What bounds the bytes that a stream may take.
struct Room {
    /// The rate, and the stream's credit.
    own: u64,
    /// The pool.
    pool: u64,
}

impl Room {
    fn bytes(&self) -> u64 {
        self.own.min(self.pool)
    }
}

impl Streams {
    /// Whether bytes are in packets that are not acknowledged, or may be sent.
    pub(crate) fn waits_for_link(&self, id: StreamId) -> bool {
        let Some(stream) = self.streams.get(&id).filter(|stream| !stream.cut) else { return false };
        let (held, unsent) = (stream.send.held(), stream.send.unsent());
        held > unsent || unsent > 0 && stream.send.credit(self.shared.left()) > 0
    }

    /// Bytes that one stream may hold unsent: on a slow link more would only be late. Streams that
    /// are ready to send divide what a few may hold, so that the memory that they need depends on
    /// the link and not on their number. Streams without credit do not count: they may never send.
    fn unsent_limit(&self) -> u64 {
        let Some(rate) = self.rate else { return UNSENT_UNKNOWN.min(self.unsent_most) };
        let usual = rate.bytes_in(UNSENT_LONGEST).min(UNSENT_USUAL);
        // Slower paths take data only if more waits than the fastest carries meanwhile.
        let time = UNSENT_TIME + self.paths.spread();
        let alone = rate.bytes_in(time).max(usual).max(UNSENT_LEAST).min(self.unsent_most);
        let ready = self.scheduler.len() as u64;
        let part = (alone * UNSENT_STREAMS / ready.max(UNSENT_STREAMS)).max(UNSENT_SHARED);
        // Streams that fill up one after another would hold more than the sum of those parts.
        let total = (alone * UNSENT_TOTAL_PARTS).max(UNSENT_TOTAL_LEAST);
        let left = total.saturating_sub(self.send_pool.unsent.total());
        part.min(left.max(UNSENT_USUAL)).min(alone)
    }

    fn room_of(&self, stream: &Stream) -> Room {
        let (unsent, held) = (stream.send.unsent(), stream.send.held());
        let sendable = stream.send.credit(self.shared.left());
        let own = self.unsent_limit().min(sendable.saturating_add(BEYOND_CREDIT));
        let minimum = if sendable > unsent { MINIMUM } else { MINIMUM_WITHOUT_CREDIT };
        let pool = self.send_pool.room(stream.owner, unsent);
        Room { own: own.saturating_sub(unsent), pool: pool.max(minimum.saturating_sub(held)) }
    }

    /// Bytes that [`write`](Self::write) would take.
    pub(crate) fn room(&mut self, id: StreamId) -> usize {
        let Some(stream) = self.streams.get(&id).filter(|stream| !stream.cut) else { return 0 };
        if !stream.send.is_open() {
            return 0;
        }
        let room = self.room_of(stream).bytes();
        let is_coded = self.is_coded(stream);
        if room < LITTLE_ROOM {
            self.wait_for_room(id);
        }
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        if is_coded { coding::room_before(room) } else { room }
    }

    /// As [`room`](Self::room), or none as long as that is not worth it, when `Writable` follows.
    pub(crate) fn ample_room(&mut self, id: StreamId) -> usize {
        let room = self.room(id);
        let ample = LITTLE_ROOM.max(self.fast_room());
        if room as u64 >= self.enough_room().min(ample) {
            return room;
        }
        if self.live(id).is_ok_and(|stream| stream.send.is_open()) {
            self.wait_for_room(id);
        }
        0
    }

    pub(crate) fn write(
        &mut self,
        now: Instant,
        id: StreamId,
        data: &[u8],
    ) -> Result<usize, StreamError> {
        self.now = now;
        if !self.live(id)?.send.is_open() {
            return Err(StreamError::Ended(id));
        }
        let len = match self.live(id)?.encoding {
            Encoding::Plain => self.write_plain(id, data),
            Encoding::Undecided | Encoding::Coded(_) => self.write_coded(id, data),
        };
        if len < data.len() {
            self.wait_for_room(id);
        }
        self.schedule(id);
        Ok(len)
    }

    /// Takes as many bytes as there is room for; returns their number.
    pub(super) fn write_plain(&mut self, id: StreamId, data: &[u8]) -> usize {
        let len = self.room(id).min(data.len());
        self.append(id, &data[..len]);
        len
    }

    /// Puts bytes, for which there is room, into the stream's buffer.
    pub(super) fn append(&mut self, id: StreamId, data: &[u8]) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let before = stream.send.held();
        stream.send.write(data);
        let (owner, after) = (stream.owner, stream.send.held());
        self.send_pool.replace(owner, before, after);
        self.send_pool.unsent.add(owner, data.len() as u64);
    }

    /// The stream's writer is to be told when there is room.
    fn wait_for_room(&mut self, id: StreamId) {
        let enough = self.enough_room();
        let Some(stream) = self.streams.get(&id) else { return };
        // Where it is not the pool, what the stream sends and what credit it gets makes room.
        let pool = self.room_of(stream).pool < enough;
        let Some(stream) = self.streams.get_mut(&id) else { return };
        stream.wants_room = true;
        if pool && !stream.waits_for_pool {
            stream.waits_for_pool = true;
            self.send_pool.waiting.push(stream.owner, id);
        }
    }

    /// Room that is worth telling a writer of: at high rates more, so that fewer words are needed.
    fn enough_room(&self) -> u64 {
        (self.unsent_limit() / 4).clamp(1, self.fast_room().max(MINIMUM / 2))
    }

    /// Room that is waited for at high rates: up to 32 kB, where a stream may hold 8 MB.
    fn fast_room(&self) -> u64 {
        self.unsent_limit().saturating_sub(ROOM_BASE) / ROOM_PART
    }

    /// Tells a writer that waits that there is room, if there is.
    pub(super) fn make_room_known(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get(&id) else { return };
        if !stream.wants_room || !stream.send.is_open() {
            return;
        }
        if self.room_of(stream).bytes() < self.enough_room() {
            self.wait_for_room(id);
        } else if let Some(stream) = self.streams.get_mut(&id) {
            stream.wants_room = false;
            self.send_pool.stop_waiting(id, stream);
            self.events.push_back(Event::Writable { stream: id });
        }
    }

    /// Tells some of the writers that wait for the pool, where there is room for them: owners take
    /// turns.
    pub(super) fn make_room_known_to_some(&mut self) {
        for _ in 0..WOKEN.min(self.send_pool.waiting.len()) {
            if self.send_pool.free() == 0 {
                return;
            }
            let Some((_, id)) = self.send_pool.waiting.pop() else { return };
            if let Some(stream) = self.streams.get_mut(&id) {
                stream.waits_for_pool = false;
            }
            self.make_room_known(id);
        }
    }

    /// Puts the stream on another owner's account.
    pub(crate) fn set_owner(&mut self, id: StreamId, owner: Owner) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let before = std::mem::replace(&mut stream.owner, owner);
        if before == owner {
            return;
        }
        let (held, unsent) = (stream.send.held(), stream.send.unsent());
        stream.receive.set_owner(owner, &mut self.pool);
        if std::mem::take(&mut stream.waits_for_pool) {
            self.send_pool.waiting.remove(before, id);
            stream.waits_for_pool = true;
            self.send_pool.waiting.push(owner, id);
        }
        let rescheduled = std::mem::take(&mut stream.scheduled);
        self.send_pool.replace(before, held, 0);
        self.send_pool.replace(owner, 0, held);
        self.send_pool.unsent.sub(before, unsent);
        self.send_pool.unsent.add(owner, unsent);
        if rescheduled {
            self.scheduler.remove(before, id);
            self.schedule(id);
        }
    }
}
