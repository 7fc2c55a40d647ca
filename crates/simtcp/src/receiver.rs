//! The receiving half: reassembly, window, and acknowledgements.

use crate::config::{DelayedAck, TcpConfig};
use crate::ranges::Ranges;
use crate::segment::{Block, Payload, SackBlocks, Segment};
use alloc::vec::Vec;
use units::Instant;

/// A run of octets in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The content that they belong to: the number given to the peer's endpoint.
    pub content: u64,
    /// Their offset in the peer's stream.
    pub offset: u64,
    /// Their number.
    pub len: u64,
}

/// When an acknowledgement is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    Never,
    At(Instant),
    Now,
}

/// The receiving half of an endpoint.
#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    /// RCV.NXT.
    next: u64,
    /// The number of the first octet not read.
    unread: u64,
    /// Data received out of order.
    ahead: Ranges,
    /// Runs of it, the most recently reported first (RFC 2018, section 4).
    recent: Vec<Block>,
    /// The sequence number of the FIN.
    fin: Option<u64>,
    content: u64,
    buffer: u64,
    shift: u8,
    /// The right edge of the last advertised window.
    advertised: u64,
    delayed: DelayedAck,
    due: Due,
    /// Octets not yet acknowledged.
    pending: u64,
    /// The largest segment so far.
    segment: u64,
    at_once: u32,
    /// When data last arrived, and whether acknowledgements wait for response data.
    came: Option<Instant>,
    answers: bool,
    /// TS.Recent and Last.ACK.sent (RFC 7323, section 4.3).
    echo: u32,
    acked: u64,
    d_sack: bool,
    /// A duplicate to be reported once (RFC 2883, section 4).
    twice: Option<Block>,
}

impl Receiver {
    pub(crate) fn new(config: &TcpConfig) -> Self {
        Self {
            next: 0,
            unread: 1,
            ahead: Ranges::default(),
            recent: Vec::new(),
            fin: None,
            content: 0,
            buffer: config.receive_buffer,
            shift: 0,
            advertised: 0,
            delayed: config.delayed_ack,
            due: Due::Never,
            pending: 0,
            segment: 1,
            at_once: config.delayed_ack.at_once,
            came: None,
            answers: false,
            echo: 0,
            acked: 0,
            d_sack: false,
            twice: None,
        }
    }

    /// Handles the peer's SYN; windows are scaled by `shift` from now on, and duplicates are
    /// reported if `d_sack`.
    pub(crate) fn opened(&mut self, syn: &Segment, shift: u8, d_sack: bool) {
        self.d_sack = d_sack;
        self.next = 1;
        self.acked = 1;
        self.shift = shift;
        self.advertised = 1 + self.free();
        self.echo = syn.options.timestamps.map_or(0, |(value, _)| value);
    }

    /// RCV.NXT.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// TSecr.
    pub(crate) fn echo(&self) -> u32 {
        self.echo
    }

    /// Whether everything up to the FIN has arrived.
    pub(crate) fn is_finished(&self) -> bool {
        self.fin.is_some_and(|fin| self.next > fin)
    }

    /// The window field of a header; `plain` in SYNs, which are not scaled.
    pub(crate) fn window(&self, plain: bool) -> u16 {
        let shift = if plain { 0 } else { self.shift };
        u16::try_from(self.free() >> shift).unwrap_or(u16::MAX)
    }

    /// The window scale that this buffer needs (RFC 7323, section 2.3: 14 at most).
    pub(crate) fn wanted_shift(&self) -> u8 {
        (0..14).find(|&shift| self.buffer >> shift <= 65_535).unwrap_or(14)
    }

    fn free(&self) -> u64 {
        (self.unread + self.buffer).saturating_sub(self.next.max(1))
    }

    /// Octets that can be read.
    pub(crate) fn readable(&self) -> u64 {
        let end = if self.is_finished() { self.next - 1 } else { self.next };
        end.saturating_sub(self.unread)
    }

    /// Reads up to `most` octets.
    pub(crate) fn read(&mut self, most: u64) -> Option<Piece> {
        let len = self.readable().min(most);
        if len == 0 {
            return None;
        }
        let piece = Piece { content: self.content, offset: self.unread - 1, len };
        self.unread += len;
        // A small window that opened is advertised immediately (RFC 9293, section 3.8.6.2.2); a
        // large one with the next acknowledgement.
        let known = self.advertised.saturating_sub(self.next);
        let free = self.free();
        if free >= 2 * known && free >= self.segment.min(self.buffer / 2) {
            self.due = Due::Now;
        }
        Some(piece)
    }

    /// Whether a segment overlaps the window (RFC 9293, section 3.4).
    pub(crate) fn accepts(&self, segment: &Segment) -> bool {
        let edge = self.next + self.free();
        match segment.span() {
            0 => (self.next..=edge.max(self.next)).contains(&segment.sequence),
            _ => segment.sequence < edge && segment.end() > self.next,
        }
    }

    /// Whether its timestamp is older than that of the data in order (RFC 7323, section 5.3).
    pub(crate) fn is_stale(&self, segment: &Segment) -> bool {
        let Some((value, _)) = segment.options.timestamps else { return false };
        let behind = self.echo.wrapping_sub(value);
        behind != 0 && behind < 1 << 31 && !segment.flags.reset
    }

    /// Handles a segment without new data.
    pub(crate) fn came_twice(&mut self, segment: &Segment) {
        let start = segment.sequence + u64::from(segment.flags.syn);
        if self.d_sack && segment.payload.len > 0 && start < self.next {
            self.twice = Some((start, segment.end().min(self.next)));
        }
    }

    fn note_twice(&mut self, segment: &Segment) {
        if !self.d_sack {
            return;
        }
        let (start, end) = (segment.sequence, segment.sequence + u64::from(segment.payload.len));
        if start < self.next {
            self.twice = Some((start, end.min(self.next)));
        } else if self.ahead.gap_from(start, end).is_none() {
            self.twice = Some((start, end));
        }
    }

    /// Handles the content of an acceptable segment.
    ///
    /// # Panics
    /// If its octets do not belong at its sequence number.
    pub(crate) fn take(&mut self, now: Instant, segment: &Segment) {
        if let Some((value, _)) = segment.options.timestamps
            && segment.sequence <= self.acked
        {
            self.echo = value;
        }
        if segment.span() == 0 {
            return;
        }
        self.check(&segment.payload, segment.sequence);
        self.note_twice(segment);
        if segment.flags.fin {
            self.fin = Some(segment.end() - 1);
        }
        let start = segment.sequence.max(self.next);
        let end = segment.end().min(self.next + self.free() + u64::from(segment.flags.fin));
        let before = self.next;
        if start == self.next {
            self.next = end.max(self.next);
            while let Some(run) = self.ahead.first().filter(|run| run.0 <= self.next) {
                self.next = self.next.max(run.1);
                self.ahead.remove_below(run.1);
            }
            let next = self.next;
            self.recent.retain(|run| run.0 >= next);
        } else if start < end {
            let (_, merged) = self.ahead.insert((start, end));
            self.recent.retain(|run| run.0 < merged.0 || run.1 > merged.1);
            self.recent.insert(0, merged);
            self.recent.truncate(4);
        }
        self.schedule(now, segment, self.next - before);
    }

    fn check(&mut self, payload: &Payload, sequence: u64) {
        if payload.len == 0 {
            return;
        }
        if self.next == 1 && self.ahead.total() == 0 {
            self.content = payload.content;
        }
        let (expected, found) = ((self.content, sequence - 1), (payload.content, payload.offset));
        assert_eq!(found, expected, "bytes that belong elsewhere (content, offset)");
    }

    /// RFC 5681, section 4.2: immediate acknowledgements for data that is out of order or fills a
    /// gap and for every second full segment, delayed ones otherwise.
    fn schedule(&mut self, now: Instant, segment: &Segment, advanced: u64) {
        let len = u64::from(segment.payload.len);
        self.segment = self.segment.max(len);
        let in_order = advanced == segment.span() && self.ahead.total() == 0;
        self.pending += advanced;
        let many = self.pending >= u64::from(self.delayed.every) * self.segment;
        self.came = Some(now);
        if self.at_once > 0 && !self.answers {
            self.at_once -= 1;
            self.due = Due::Now;
        } else if !in_order || many || segment.flags.fin {
            self.due = Due::Now;
        } else if self.due == Due::Never {
            self.due = Due::At(self.delay_ends(now));
        }
    }

    fn delay_ends(&self, now: Instant) -> Instant {
        let after = self.delayed.after;
        if !self.delayed.ticks {
            return now + after;
        }
        Instant::from_nanos((now.as_nanos() / after.as_nanos() + 1) * after.as_nanos())
    }

    /// Requests an immediate acknowledgement.
    pub(crate) fn acknowledge_now(&mut self) {
        self.due = Due::Now;
    }

    /// Whether an acknowledgement is due.
    pub(crate) fn is_due(&self) -> bool {
        self.due == Due::Now
    }

    /// Whether data is out of order, which is acknowledged in a segment of its own.
    pub(crate) fn has_gaps(&self) -> bool {
        self.ahead.total() > 0 || self.twice.is_some()
    }

    /// When the delay ends.
    pub(crate) fn timer(&self) -> Option<Instant> {
        match self.due {
            Due::At(at) => Some(at),
            Due::Never | Due::Now => None,
        }
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.timer().is_some_and(|at| at <= now) {
            self.due = Due::Now;
            self.answers = false;
        }
    }

    pub(crate) fn stop(&mut self) {
        self.due = Due::Never;
    }

    /// Notes that data is sent, possibly as a response.
    pub(crate) fn answered(&mut self, now: Instant) {
        let after = self.delayed.after;
        let soon = self.came.is_some_and(|came| now.since(came) < after);
        self.answers |= self.delayed.with_answers && soon;
    }

    /// Notes that an acknowledgement is sent.
    pub(crate) fn acknowledged(&mut self) {
        self.due = Due::Never;
        self.pending = 0;
        self.acked = self.next;
        self.advertised = self.next + ((self.free() >> self.shift).min(65_535) << self.shift);
    }

    /// The SACK blocks, at most `most`.
    pub(crate) fn blocks(&mut self, most: usize) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        let most = most.saturating_sub(usize::from(self.twice.is_some()));
        if let Some(twice) = self.twice.take() {
            blocks.push(twice);
        }
        for &run in self.recent.iter().take(most) {
            blocks.push(run);
        }
        blocks
    }
}
