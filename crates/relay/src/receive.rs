//! The receive side of a stream, and the credit that it grants.

use crate::buffer::{CHUNK, ChunkBuffer};
use crate::fair::Owner;
use crate::pool::Pool;
use crate::ranges::RangeSet;
use units::{Instant, Span};

/// Minimum interval over which a stream's rate is measured.
const SAMPLE: Span = Span::from_millis(100);
/// RTTs at its rate that a stream's window covers.
const WINDOW_ROUND_TRIPS: u64 = 8;
/// A stream's window is at least the bytes that it has drained, up to the owner's free bytes
/// divided by this.
const FLOOR_PART: u64 = 32;
/// Received bytes after which a stream may get a per-stream limit.
const GRANT_AFTER: u64 = 64 << 10;
/// Time after which a reader that has read nothing of its queued bytes counts as stalled.
const STALLED: Span = Span::from_millis(500);
/// A stream whose window would be the shared credit divided by this gets a per-stream limit.
const SHARED_PART: u64 = 8;

/// Maximum number of ranges ahead of gaps, in all streams together. Each takes some memory, and
/// reordered and lost packets cause far fewer.
const MAX_RANGES: usize = 1 << 18;

/// Violation of the protocol by the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Violation {
    /// Bytes beyond the advertised credit.
    Credit,
    /// Bytes beyond the final offset, or two different final offsets.
    FinalOffset,
    /// More gaps than lost packets can cause.
    Scattered,
    /// Shared credit used although per-stream credit was left.
    Charge,
    /// A compressed half that cannot be decompressed.
    Coding,
}

/// Received bytes of a stream, until they are consumed.
#[derive(Debug)]
pub(crate) struct ReceiveHalf {
    /// Its base is the number of consumed bytes.
    buffer: ChunkBuffer,
    /// The first missing byte.
    in_order: u64,
    /// Bytes received above `in_order`.
    ahead: RangeSet,
    /// One past the highest received byte.
    high: u64,
    /// Number of different bytes received.
    received: u64,
    final_offset: Option<u64>,
    minimum: u64,
    /// The stream's limit, without shared credit.
    granted: u64,
    /// Bytes of the pool that `granted` reserves, and their owner.
    reserved: u64,
    owner: Owner,
    /// Bytes from `minimum` to here were received, or may be, on shared credit.
    charged_end: u64,
    /// Bytes received on shared credit, in total.
    charged_received: u64,
    /// Bytes of these that were not consumed and are not covered by `granted`.
    charged_held: u64,
    /// This stream's span and ranges in the pool's account.
    span: u64,
    ranges: usize,
    /// Nothing is stored any more; only the credit that the peer uses is accounted.
    discarding: bool,
    sample_at: Option<Instant>,
    sample_drained: u64,
    /// Bytes per second, the maximum of recent intervals.
    rate: u64,
    /// While bytes are unread: since when none was read, and the total that was read before.
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

    /// Returns the bytes of the pool that the stream reserves.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn reserved(&self) -> u64 {
        self.reserved
    }

    /// Accounts the stream's bytes of the pool to another owner.
    pub(crate) fn set_owner(&mut self, owner: Owner, pool: &mut Pool) {
        pool.granted.sub(self.owner, self.reserved);
        pool.granted.add(owner, self.reserved);
        self.owner = owner;
    }

    fn consumed(&self) -> u64 {
        self.buffer.base()
    }

    /// Returns the offset of the next byte in order.
    pub(crate) fn expected(&self) -> u64 {
        self.in_order
    }

    /// Returns one past the highest received byte.
    pub(crate) fn high(&self) -> u64 {
        self.high
    }

    pub(crate) fn granted(&self) -> u64 {
        self.granted
    }

    /// Returns the number of allocated bytes.
    pub(crate) fn allocated(&self) -> usize {
        self.buffer.allocated()
    }

    /// Returns the number of unread bytes in order.
    pub(crate) fn readable(&self) -> u64 {
        self.in_order - self.consumed()
    }

    /// Returns whether every byte up to the final offset was received.
    pub(crate) fn is_complete(&self) -> bool {
        self.final_offset == Some(self.in_order)
    }

    /// Returns whether every byte up to the final offset was consumed.
    pub(crate) fn is_done(&self) -> bool {
        self.final_offset == Some(self.consumed())
    }

    /// Returns whether a grant has an effect because more bytes may arrive.
    pub(crate) fn wants_credit(&self) -> bool {
        self.final_offset.is_none() && !self.discarding
    }

    /// Stores the data of a STREAM frame; returns whether more bytes are readable than before.
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
            // (A FIN without data uses no credit, also beyond the limit.)
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
        // A conforming peer has charged all bytes below `stop`, and received none of them back that
        // no limit covers. So gaps are accounted like bytes: both take memory.
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
            // Duplicate bytes are skipped or overwritten by the same bytes.
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

    /// Returns the bytes in order that are contiguous in memory.
    pub(crate) fn peek(&self) -> &[u8] {
        match self.readable() {
            0 => &[],
            readable => self.buffer.piece(self.consumed(), readable.min(CHUNK as u64) as usize),
        }
    }

    /// Frees the first `len` bytes in order.
    ///
    /// # Panics
    /// Panics if there are fewer.
    pub(crate) fn consume(&mut self, len: u64, pool: &mut Pool) {
        assert!(len <= self.readable(), "{len} bytes consumed of {}", self.readable());
        let base = self.consumed() + len;
        self.buffer.advance(base, base == self.in_order && self.ahead.is_empty());
        self.settle(pool);
    }

    /// Updates the pool's account to this stream's state.
    fn settle(&mut self, pool: &mut Pool) {
        self.granted = self.granted.max(self.consumed() + self.minimum);
        let (charged_held, span) = if self.discarding || self.granted >= self.charged_end {
            (0, 0)
        } else {
            // Bytes received without charge are covered by the limit; all others are charged.
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
        // No byte beyond the final offset needs credit.
        let bound = self.final_offset.map_or(self.granted, |end| end.min(self.granted));
        let reserved =
            if self.discarding { 0 } else { bound.saturating_sub(self.consumed() + self.minimum) };
        pool.granted.replace(self.owner, self.reserved, reserved);
        self.reserved = reserved;
    }

    /// Measures the stream's rate and raises its limit; returns true if the raise is worth
    /// announcing. `own`: the stream has a per-stream limit already.
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
        // Bytes above a gap count as consumed: the link delays them, not the reader.
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

    /// Returns whether the stream should have a per-stream limit. Without one it needs no
    /// announcement of its own: one number returns the shared credit of all streams.
    fn deserves_own(&self, drained: u64, window: u64, pool: &Pool) -> bool {
        // A limit below the available shared credit would be a disadvantage.
        let gains = pool.room(self.owner, self.reserved) >= window.min(pool.shared_left());
        let lively = drained >= self.received / 2 && gains;
        if pool.is_shared_short() && (self.charged_held > 0 || lively) {
            // A stream with shared credit returns it, and one that may use some no longer does.
            return true;
        }
        if self.received < GRANT_AFTER {
            return false;
        }
        // A stream whose server is still being connected to is new, not slow.
        let fast = window >= pool.shared / SHARED_PART;
        let hogs = self.charged_held >= pool.shared / 4;
        hogs || lively && self.rate > 0 && fast
    }

    /// Returns whether it holds shared credit, and nothing has been read for [`STALLED`].
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
            // Its part of the shared credit becomes a per-stream grant, so that others can use the
            // shared credit.
            wanted = wanted.max(self.high);
        }
        self.granted = wanted.min(self.granted + room).max(self.granted);
        self.settle(pool);
    }

    /// Returns the bytes that arrive in `span` at the stream's rate.
    pub(crate) fn coming_in(&self, span: Span) -> u64 {
        bytes_in(self.rate, span)
    }

    /// Returns the increase of the limit that is worth an announcement: a third of the window less
    /// two RTTs, so that two announcements may be lost before the peer is blocked.
    pub(crate) fn worth_announcing(&self, round_trip: Span) -> u64 {
        let window = self.granted - self.consumed();
        let kept = (2 * bytes_in(self.rate, round_trip)).min(window / 2);
        ((window - kept) / 3).max(self.minimum / 2)
    }

    /// Stores nothing from now on, and releases the stored bytes.
    pub(crate) fn discard(&mut self, pool: &mut Pool) {
        self.discarding = true;
        self.buffer.advance(self.in_order, true);
        self.settle(pool);
    }

    /// Ends the stream's account in the pool; no more bytes arrive.
    pub(crate) fn forget(&mut self, pool: &mut Pool) {
        self.ahead = RangeSet::default();
        self.discard(pool);
    }

    /// Handles the peer's reset at `final_offset`, with `charged` bytes of shared credit used.
    ///
    /// # Errors
    /// Returns an error if it contradicts the received data; the account is closed nevertheless.
    pub(crate) fn close(
        &mut self,
        final_offset: u64,
        charged: u64,
        pool: &mut Pool,
    ) -> Result<(), Violation> {
        self.discard(pool);
        self.settle_end(final_offset, charged, pool)
    }

    /// Handles a reset as [`close`](Self::close) does, but bytes received in order can still be
    /// read; they end the stream. Bytes above a gap are discarded.
    ///
    /// Returns the errors of [`close`](Self::close).
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

    /// Accounts for the shared credit of bytes that will not arrive.
    fn settle_end(
        &mut self,
        final_offset: u64,
        charged: u64,
        pool: &mut Pool,
    ) -> Result<(), Violation> {
        let lost = charged.saturating_sub(self.charged_received);
        // Limited to the outstanding credit, which an invalid claim may exceed.
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

/// Returns the bytes of one RTT at `rate` bytes per second.
fn bytes_in(rate: u64, round_trip: Span) -> u64 {
    let millis = round_trip.as_millis().max(50);
    (u128::from(rate) * u128::from(millis) / 1000) as u64
}

fn bytes_per_second(bytes: u64, span: Span) -> u64 {
    (u128::from(bytes) * 1_000_000_000 / u128::from(span.as_nanos().max(1))) as u64
}
