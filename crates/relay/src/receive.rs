//! The half of a stream that the peer writes, and the credit it is given.

use crate::buffer::{CHUNK, ChunkBuffer};
use crate::fair::Owner;
use crate::pool::Pool;
use crate::ranges::RangeSet;
use units::{Instant, Span};

/// Least time over which a stream's rate is measured.
const SAMPLE: Span = Span::from_millis(100);
/// Round trips at its rate that a stream's window covers.
const WINDOW_ROUND_TRIPS: u64 = 8;
/// A stream's window is at least as much as it has drained, up to this part of what its owner may
/// still be granted.
const FLOOR_PART: u64 = 32;
/// Bytes after which a stream may get credit of its own.
const GRANT_AFTER: u64 = 64 << 10;
/// Time after which a reader that has read nothing of what waits for it is taken to have stopped.
const STALLED: Span = Span::from_millis(500);
/// A stream whose window would be this part of the shared credit gets its own.
const SHARED_PART: u64 = 8;

/// Ranges ahead of gaps, in all streams together. Each takes some memory whatever is in it, and
/// packets on their way leave far fewer.
const MAX_RANGES: usize = 1 << 18;

/// What the peer did that no peer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Violation {
    /// Bytes beyond what it was given credit for.
    Credit,
    /// Bytes beyond the stream's end, or two different ends.
    FinalOffset,
    /// More gaps than its packets can have left.
    Scattered,
    /// Shared credit where the stream's own was to be used first.
    Charge,
}

/// Bytes from when they arrive until they are consumed.
#[derive(Debug)]
pub(crate) struct ReceiveHalf {
    /// Its base is what has been consumed.
    buffer: ChunkBuffer,
    /// The first byte that is missing.
    in_order: u64,
    /// What came above it.
    ahead: RangeSet,
    /// One past the highest byte that came.
    high: u64,
    /// Bytes that came, each counted once.
    received: u64,
    final_offset: Option<u64>,
    minimum: u64,
    /// What the peer may send up to, shared credit aside.
    granted: u64,
    /// What `granted` holds of the pool, and on whose account.
    reserved: u64,
    owner: Owner,
    /// Bytes from `minimum` to here came, or may come, on shared credit.
    charged_end: u64,
    /// Bytes that came on shared credit, ever.
    charged_received: u64,
    /// Of those, what neither was consumed nor is covered by `granted`.
    charged_held: u64,
    /// What the pool counts as this stream's span and ranges.
    span: u64,
    ranges: usize,
    /// Nothing is kept any more; only what the peer has used is counted.
    discarding: bool,
    sample_at: Option<Instant>,
    sample_drained: u64,
    /// Bytes a second, the best of late.
    rate: u64,
    /// While bytes are unread: since when none was read, and how many had been.
    unread: Option<(Instant, u64)>,
}

impl ReceiveHalf {
    pub(crate) fn new(minimum: u64) -> Self {
        Self {
            buffer: ChunkBuffer::default(),
            in_order: 0,
            ahead: RangeSet::default(),
            high: 0,
            received: 0,
            final_offset: None,
            minimum,
            granted: minimum,
            reserved: 0,
            owner: Owner::default(),
            charged_end: minimum,
            charged_received: 0,
            charged_held: 0,
            span: 0,
            ranges: 0,
            discarding: false,
            sample_at: None,
            sample_drained: 0,
            rate: 0,
            unread: None,
        }
    }

    /// Bytes of the pool that the stream holds.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn reserved(&self) -> u64 {
        self.reserved
    }

    /// Puts what the stream holds of the pool on another owner's account.
    pub(crate) fn set_owner(&mut self, owner: Owner, pool: &mut Pool) {
        pool.granted.sub(self.owner, self.reserved);
        pool.granted.add(owner, self.reserved);
        self.owner = owner;
    }

    fn consumed(&self) -> u64 {
        self.buffer.base()
    }

    /// Where the next byte is expected.
    pub(crate) fn expected(&self) -> u64 {
        self.in_order
    }

    /// One past the highest byte that came: what the peer had credit for.
    pub(crate) fn high(&self) -> u64 {
        self.high
    }

    pub(crate) fn granted(&self) -> u64 {
        self.granted
    }

    /// Bytes of memory that are taken.
    pub(crate) fn allocated(&self) -> usize {
        self.buffer.allocated()
    }

    /// Bytes in order that have not been consumed.
    pub(crate) fn readable(&self) -> u64 {
        self.in_order - self.consumed()
    }

    /// Whether every byte up to the end has come.
    pub(crate) fn is_complete(&self) -> bool {
        self.final_offset == Some(self.in_order)
    }

    /// Whether every byte up to the end has been consumed.
    pub(crate) fn is_done(&self) -> bool {
        self.final_offset == Some(self.consumed())
    }

    /// Whether a grant would be of use: more may come.
    pub(crate) fn wants_credit(&self) -> bool {
        self.final_offset.is_none() && !self.discarding
    }

    /// Takes what a STREAM frame brought; returns whether there is more to read than before.
    pub(crate) fn receive(
        &mut self,
        offset: u64,
        data: &[u8],
        end: bool,
        charged: bool,
        pool: &mut Pool,
    ) -> Result<bool, Violation> {
        let stop = offset + data.len() as u64;
        self.check_end(stop, end)?;
        let new = self.new_bytes(offset, stop);
        if charged {
            self.check_charge(offset, stop, new, pool)?;
        } else if !data.is_empty() && stop > self.granted && !self.discarding {
            // (An end without data costs nothing, wherever shared credit has brought the stream.)
            return Err(Violation::Credit);
        }
        let scattered = self.ahead.count() as u64 > 64 + (self.high - self.in_order) / 128;
        if scattered || offset > self.in_order && pool.ranges >= MAX_RANGES {
            return Err(Violation::Scattered);
        }
        if end {
            self.final_offset = Some(stop);
        }
        let before = self.in_order;
        if new > 0 {
            self.store(offset, stop, data, new);
        }
        if charged {
            self.charged_end = self.charged_end.max(stop);
            self.charged_received += new;
            self.charged_held += new;
            pool.shared_received += new;
        }
        self.settle(pool);
        Ok(self.in_order > before)
    }

    fn check_end(&self, stop: u64, end: bool) -> Result<(), Violation> {
        let fits = match self.final_offset {
            Some(known) => stop <= known && (!end || stop == known),
            None => !end || stop >= self.high,
        };
        if fits { Ok(()) } else { Err(Violation::FinalOffset) }
    }

    fn check_charge(&self, offset: u64, stop: u64, new: u64, pool: &Pool) -> Result<(), Violation> {
        if offset < self.minimum {
            return Err(Violation::Charge);
        }
        if self.discarding {
            return Ok(());
        }
        let uncovered = new.min(stop.saturating_sub(self.granted));
        // Whoever is honest has charged all the bytes below `stop`, and had none of them back that
        // no limit covers. So gaps cost as much as bytes: both take memory.
        let span = stop.max(self.charged_end).saturating_sub(self.granted);
        if uncovered > pool.shared_left() || pool.shared_span - self.span + span > pool.shared {
            return Err(Violation::Credit);
        }
        Ok(())
    }

    fn new_bytes(&self, offset: u64, stop: u64) -> u64 {
        let from = offset.max(self.in_order);
        stop.saturating_sub(from).saturating_sub(self.ahead.covered(from, stop))
    }

    fn store(&mut self, offset: u64, stop: u64, data: &[u8], new: u64) {
        self.high = self.high.max(stop);
        self.received += new;
        if !self.discarding {
            // What came twice is written twice, with the same bytes.
            let skip = self.in_order.saturating_sub(offset).min(data.len() as u64);
            self.buffer.write(offset + skip, &data[skip as usize..]);
        }
        if offset > self.in_order {
            self.ahead.insert(offset, stop);
            return;
        }
        self.in_order = stop;
        while let Some((_, end)) = self.ahead.first().filter(|range| range.0 <= self.in_order) {
            self.in_order = self.in_order.max(end);
            self.ahead.remove_below(self.in_order);
        }
        if self.discarding {
            self.buffer.advance(self.in_order, true);
        }
    }

    /// Bytes in order, in as many pieces as `pieces` has room for; the others are empty.
    pub(crate) fn peek_pieces<'a>(&'a self, pieces: &mut [&'a [u8]]) {
        let most = self.readable().min((pieces.len() * CHUNK) as u64);
        if most > 0 {
            self.buffer.pieces(self.consumed(), most as usize, pieces);
        }
    }

    /// Bytes in order, as far as they lie in one piece.
    pub(crate) fn peek(&self) -> &[u8] {
        match self.readable() {
            0 => &[],
            readable => self.buffer.piece(self.consumed(), readable.min(CHUNK as u64) as usize),
        }
    }

    /// Frees the first `len` bytes in order.
    ///
    /// # Panics
    /// When there are fewer.
    pub(crate) fn consume(&mut self, len: u64, pool: &mut Pool) {
        assert!(len <= self.readable(), "{len} bytes consumed of {}", self.readable());
        let base = self.consumed() + len;
        self.buffer.advance(base, base == self.in_order && self.ahead.is_empty());
        self.settle(pool);
    }

    /// Brings the pool's account in line with this stream's state.
    fn settle(&mut self, pool: &mut Pool) {
        self.granted = self.granted.max(self.consumed() + self.minimum);
        let (charged_held, span) = if self.discarding || self.granted >= self.charged_end {
            (0, 0)
        } else {
            // What came without charge is covered, so all that is not is charged.
            let covered = self.in_order.min(self.granted)
                + self.ahead.covered(self.in_order, self.granted.max(self.in_order));
            (self.received - covered, self.charged_end - self.granted)
        };
        pool.shared_span = pool.shared_span + span - self.span;
        self.span = span;
        pool.ranges = pool.ranges + self.ahead.count() - self.ranges;
        self.ranges = self.ahead.count();
        pool.shared_returned += self.charged_held - charged_held.min(self.charged_held);
        self.charged_held = charged_held.min(self.charged_held);
        // No more than its end will ever be needed.
        let bound = self.final_offset.map_or(self.granted, |end| end.min(self.granted));
        let reserved =
            if self.discarding { 0 } else { bound.saturating_sub(self.consumed() + self.minimum) };
        pool.granted.replace(self.owner, self.reserved, reserved);
        self.reserved = reserved;
    }

    /// Looks at the stream's rate and grants what it deserves; true when it was granted
    /// something that the peer should hear of. `own`: it has a limit of its own already.
    ///
    /// The window is eight round trips at the stream's rate, so that neither a packet that needs
    /// several sendings nor a late announcement stops it. The rate is that at which bytes
    /// *leave*: what waits unread does not count, so a slow reader's window shrinks to what it
    /// reads.
    pub(crate) fn review(
        &mut self,
        now: Instant,
        round_trip: Span,
        own: bool,
        pool: &mut Pool,
    ) -> bool {
        if !self.wants_credit() {
            return false;
        }
        // Bytes above a gap count as gone: it is the link that holds them up, not the reader.
        let drained = self.received - self.readable();
        self.sample(now, drained);
        let window = bytes_in(self.rate, round_trip) * WINDOW_ROUND_TRIPS;
        let stalled = self.is_stalled(now);
        if !own && !stalled && !self.deserves_own(drained, window, pool) {
            return false;
        }
        self.grant(window, drained, pool);
        true
    }

    /// Whether the stream is to have a limit of its own. As long as it is not, it costs no word:
    /// one number gives the shared credit of all back.
    fn deserves_own(&self, drained: u64, window: u64, pool: &Pool) -> bool {
        // A limit that leaves a stream less than the shared credit would is no gain.
        let gains = pool.room(self.owner, self.reserved) >= window.min(pool.shared_left());
        let lively = drained >= self.received / 2 && gains;
        if pool.is_shared_short() && (self.charged_held > 0 || lively) {
            // Who holds some of it gives it back, and who might need it needs it no more.
            return true;
        }
        if self.received < GRANT_AFTER {
            return false;
        }
        // A stream whose server is still being connected to is not slow yet, only young.
        let fast = window >= pool.shared / SHARED_PART;
        let hogs = self.charged_held >= pool.shared / 4;
        hogs || lively && self.rate > 0 && fast
    }

    /// Whether it holds shared credit, and nothing has been read of it for some time.
    fn is_stalled(&mut self, now: Instant) -> bool {
        let consumed = self.consumed();
        self.unread = match self.unread {
            _ if self.readable() == 0 => None,
            Some((since, before)) if before == consumed => Some((since, before)),
            Some(_) | None => Some((now, consumed)),
        };
        self.charged_held > 0 && self.unread.is_some_and(|(since, _)| now.since(since) >= STALLED)
    }

    fn sample(&mut self, now: Instant, drained: u64) {
        let Some(sampled) = self.sample_at else {
            self.sample_at = Some(now);
            return;
        };
        let span = now.since(sampled);
        if span >= SAMPLE {
            let rate = bytes_per_second(drained.saturating_sub(self.sample_drained), span);
            self.rate = rate.max(self.rate - self.rate / 8).max(1);
            self.sample_at = Some(now);
            self.sample_drained = drained;
        }
    }

    fn grant(&mut self, window: u64, drained: u64, pool: &mut Pool) {
        let room = pool.room(self.owner, self.reserved);
        let floor = drained.min(pool.left(self.owner) / FLOOR_PART);
        let mut wanted = self.consumed() + window.max(floor).max(self.minimum);
        if self.charged_held > 0 {
            // What it holds of the shared credit becomes its own, so that others can use that.
            wanted = wanted.max(self.high);
        }
        self.granted = wanted.min(self.granted + room).max(self.granted);
        self.settle(pool);
    }

    /// Bytes that come in `span` at the stream's rate.
    pub(crate) fn coming_in(&self, span: Span) -> u64 {
        bytes_in(self.rate, span)
    }

    /// How much more than announced is worth a word: a third of the window less two round trips,
    /// so that two words may be lost before the peer runs dry.
    pub(crate) fn worth_announcing(&self, round_trip: Span) -> u64 {
        let window = self.granted - self.consumed();
        let kept = (2 * bytes_in(self.rate, round_trip)).min(window / 2);
        ((window - kept) / 3).max(self.minimum / 2)
    }

    /// Keeps nothing from now on, and gives back what it held.
    pub(crate) fn discard(&mut self, pool: &mut Pool) {
        self.discarding = true;
        self.buffer.advance(self.in_order, true);
        self.settle(pool);
    }

    /// Nothing will come any more, and the pool forgets all of it.
    pub(crate) fn forget(&mut self, pool: &mut Pool) {
        self.ahead = RangeSet::default();
        self.discard(pool);
    }

    /// The peer cut its half off at `final_offset`, having used `charged` bytes of shared credit.
    ///
    /// # Errors
    /// When that contradicts what came; the account is closed all the same.
    pub(crate) fn close(
        &mut self,
        final_offset: u64,
        charged: u64,
        pool: &mut Pool,
    ) -> Result<(), Violation> {
        self.discard(pool);
        self.settle_end(final_offset, charged, pool)
    }

    /// As [`close`](Self::close), but what came in order before can still be read; it is the
    /// half's end. What came behind a gap is thrown away.
    ///
    /// # Errors
    /// As [`close`](Self::close).
    pub(crate) fn close_behind(
        &mut self,
        final_offset: u64,
        charged: u64,
        pool: &mut Pool,
    ) -> Result<(), Violation> {
        let fits = self.settle_end(final_offset, charged, pool);
        self.ahead = RangeSet::default();
        self.buffer.truncate(self.in_order);
        self.received = self.in_order;
        self.charged_end = self.charged_end.min(self.in_order);
        self.final_offset = Some(self.in_order);
        self.settle(pool);
        fits
    }

    /// Counts the shared credit of bytes that will not come.
    fn settle_end(
        &mut self,
        final_offset: u64,
        charged: u64,
        pool: &mut Pool,
    ) -> Result<(), Violation> {
        let lost = charged.saturating_sub(self.charged_received);
        // Never more than it can have out: a claim beyond that is worth nothing.
        let lost = lost.min(pool.shared_left());
        pool.shared_received += lost;
        pool.shared_returned += lost;
        let ends = self.final_offset.is_none_or(|known| known == final_offset);
        if !ends || final_offset < self.high {
            return Err(Violation::FinalOffset);
        }
        if charged < self.charged_received || charged > final_offset.saturating_sub(self.minimum) {
            return Err(Violation::Charge);
        }
        Ok(())
    }
}

/// Bytes in a round trip at `rate` bytes a second.
fn bytes_in(rate: u64, round_trip: Span) -> u64 {
    let millis = round_trip.as_millis().max(50);
    (u128::from(rate) * u128::from(millis) / 1000) as u64
}

fn bytes_per_second(bytes: u64, span: Span) -> u64 {
    (u128::from(bytes) * 1_000_000_000 / u128::from(span.as_nanos().max(1))) as u64
}
