//! State of a connection in a gateway that acknowledges early.

use super::SpoofConfig;
use crate::network::Packet;
use simtcp::{Flags, Options, Payload, SackBlocks, Segment};
use std::collections::BTreeMap;
use units::{Instant, Span};

/// Duplicates after which a segment counts as lost (RFC 5681, section 3.2).
const DUPLICATES: u32 = 3;
/// Consecutive timeouts without a segment of the receiver after which the connection is aborted
/// (RFC 9293, section 3.8.3; the value is Linux's tcp_retries2).
const TIMEOUTS: u32 = 15;
/// Minimum interval between retransmissions of a segment.
const MIN_INTERVAL: Span = Span::from_millis(1);
/// Maximum retransmission timeout.
const MAX_TIMEOUT: Span = Span::from_secs(60);

/// A segment that the receiver has not acknowledged.
#[derive(Debug)]
struct Kept {
    packet: Packet,
    end: u64,
    bytes: u64,
    sent: Option<Instant>,
    retransmitted: bool,
    /// The receiver has acknowledged it selectively (RFC 2018).
    sacked: bool,
}

#[derive(Debug)]
pub(super) struct Connection {
    memory: u64,
    window: u64,
    least_timeout: Span,
    /// Next sequence number expected from the sender.
    received: u64,
    /// Sequence number of its FIN.
    fin: Option<u64>,
    /// By sequence number. Segments below `sent` were sent at least once.
    kept: BTreeMap<u64, Kept>,
    bytes: u64,
    sent: u64,
    /// The receiver's acknowledgement number and window.
    acknowledged: u64,
    edge: u64,
    duplicates: u32,
    /// Losses below this number are being recovered.
    recover: Option<u64>,
    highest_sacked: u64,
    /// The window scales in the SYNs of sender and receiver.
    offers: [Option<Option<u8>>; 2],
    /// The sequence numbers of these SYNs.
    firsts: [u64; 2],
    /// The receiver's last segment; early acknowledgements are modelled on it.
    model: Option<Segment>,
    /// The sender's last acknowledgement and window of the other direction.
    latest: Option<(Option<u64>, u16)>,
    /// The timestamp to be echoed to the sender.
    echo: u32,
    /// Free octets when a window was last advertised to the sender.
    advertised: u64,
    round_trip: Option<Span>,
    timeout: Span,
    /// When the timer was started.
    since: Option<Instant>,
    /// Timeouts since the receiver's last segment.
    timeouts: u32,
    /// A zero-window probe is due.
    probe: bool,
    peer_fin: Option<u64>,
}

impl Connection {
    /// Creates a connection before its opening by either end.
    pub(super) fn new(config: &SpoofConfig) -> Self {
        Self {
            memory: config.memory,
            window: config.window,
            least_timeout: config.timeout,
            received: 0,
            fin: None,
            kept: BTreeMap::new(),
            bytes: 0,
            sent: 0,
            acknowledged: 0,
            edge: 0,
            duplicates: 0,
            recover: None,
            highest_sacked: 0,
            offers: [None, None],
            firsts: [0; 2],
            model: None,
            latest: None,
            echo: 0,
            advertised: config.memory,
            round_trip: None,
            timeout: config.timeout,
            since: None,
            timeouts: 0,
            probe: false,
            peer_fin: None,
        }
    }

    /// Handles the sender's SYN.
    pub(super) fn on_syn(&mut self, syn: &Segment) {
        let first = syn.sequence + 1;
        let window = self.edge - self.acknowledged;
        self.offers[0] = Some(syn.options.window_scale);
        self.firsts[0] = syn.sequence;
        (self.received, self.sent, self.acknowledged) = (first, first, first);
        self.edge = first + window;
    }

    /// Handles the receiver's SYN.
    pub(super) fn on_syn_ack(&mut self, syn: &Segment) {
        self.offers[1] = Some(syn.options.window_scale);
        self.firsts[1] = syn.sequence;
        self.edge = self.acknowledged + u64::from(syn.window);
        let mut model = *syn;
        model.sequence += 1;
        model.flags = Flags::default();
        model.options = Options { timestamps: syn.options.timestamps, ..Options::default() };
        self.model = Some(model);
    }

    /// Whether a SYN of the sender (0) or the receiver (1) repeats the one that opened the
    /// connection.
    pub(super) fn is_opening_syn(&self, who: usize, syn: &Segment) -> bool {
        self.is_open() && self.firsts[who] == syn.sequence
    }

    /// Whether both ends have opened.
    pub(super) fn is_open(&self) -> bool {
        self.offers.iter().all(Option::is_some)
    }

    /// The receiver's window scale, if both ends offer scaling (RFC 7323, section 2.2).
    fn shift(&self) -> u8 {
        match self.offers {
            [Some(Some(_)), Some(Some(shift))] => shift,
            [..] => 0,
        }
    }

    /// Whether both directions have ended and both ends are acknowledged.
    pub(super) fn is_over(&self) -> bool {
        let said = self.latest.and_then(|(number, _)| number);
        self.end_is_acknowledged() && self.peer_fin.is_some_and(|fin| said > Some(fin))
    }

    /// Octets buffered.
    pub(super) fn kept(&self) -> u64 {
        self.bytes
    }

    fn free(&self) -> u64 {
        self.memory.saturating_sub(self.bytes)
    }

    /// Buffers a segment with data or FIN; returns whether there was room.
    pub(super) fn keep(&mut self, packet: Packet, segment: &Segment) -> bool {
        self.latest = Some((segment.acknowledgement, segment.window));
        if let Some((value, _)) = segment.options.timestamps {
            self.echo = self.echo.max(value);
        }
        let Some((packet, segment)) = self.only_new(packet, segment) else { return true };
        let bytes = u64::from(segment.payload.len);
        if bytes > self.free() {
            return false;
        }
        if segment.flags.fin {
            self.fin = Some(segment.end() - 1);
        }
        self.bytes += bytes;
        let end = segment.end();
        let kept = Kept { packet, end, bytes, sent: None, retransmitted: false, sacked: false };
        self.kept.insert(segment.sequence, kept);
        while let Some(next) = self.kept.get(&self.received) {
            self.received = next.end;
        }
        true
    }

    /// The first contiguous part of a segment that is not buffered yet.
    fn only_new(&self, mut packet: Packet, segment: &Segment) -> Option<(Packet, Segment)> {
        let before = self.kept.range(..=segment.sequence).next_back();
        let from = before.map_or(self.received, |(_, kept)| kept.end.max(self.received));
        let behind = self.kept.range(segment.sequence.max(from)..).next();
        let to = behind.map_or(u64::MAX, |(&number, _)| number);
        let head = from.saturating_sub(segment.sequence);
        let tail = segment.end().saturating_sub(to);
        if head + tail >= segment.span() {
            return None;
        }
        packet.cut_segment(head, tail);
        packet.segment().copied().map(|segment| (packet, segment))
    }

    /// The early acknowledgement of `segment`; never one of its FIN.
    pub(super) fn early(&mut self, segment: &Segment) -> Option<Segment> {
        // A FIN without data is acknowledged by the receiver only.
        (segment.payload.len > 0).then(|| self.make())?
    }

    /// A window update for the sender, if the last advertised window was small.
    pub(super) fn update(&mut self) -> Option<Segment> {
        let free = self.free();
        (self.advertised < self.memory / 4 && free >= self.memory / 2).then(|| self.make())?
    }

    fn make(&mut self) -> Option<Segment> {
        let mut made = self.model?;
        made.acknowledgement = Some(self.without_fin(self.received));
        made.window = self.scaled();
        made.options.sack = SackBlocks::default();
        made.options.timestamps = made.options.timestamps.map(|(value, _)| (value, self.echo));
        self.advertised = self.free();
        Some(made)
    }

    fn without_fin(&self, number: u64) -> u64 {
        self.fin.map_or(number, |fin| number.min(fin))
    }

    fn scaled(&self) -> u16 {
        u16::try_from(self.free() >> self.shift()).unwrap_or(u16::MAX)
    }

    /// Limits the sender's acknowledgement of the other direction to numbers that the receiver has
    /// reached.
    pub(super) fn acknowledges(&mut self, segment: &mut Segment) {
        self.latest = Some((segment.acknowledgement, segment.window));
        segment.sequence = segment.sequence.min(self.sent);
    }

    /// Rewrites the acknowledgement in data of the receiver, or in its acknowledgement of the FIN,
    /// to the early one.
    pub(super) fn answers(&mut self, segment: &mut Segment) {
        if !self.end_is_acknowledged() {
            segment.acknowledgement = Some(self.without_fin(self.received));
        }
        segment.window = self.scaled();
        self.advertised = self.free();
    }

    /// Whether the receiver has acknowledged the sender's FIN.
    pub(super) fn end_is_acknowledged(&self) -> bool {
        self.fin.is_some_and(|fin| self.acknowledged > fin)
    }

    /// Handles an acknowledgement of the receiver.
    pub(super) fn acknowledged(&mut self, now: Instant, segment: &Segment) {
        let Some(number) = segment.acknowledgement else { return };
        self.timeouts = 0;
        if segment.flags.fin {
            self.peer_fin = Some(segment.end() - 1);
        }
        let mut model = *segment;
        model.sequence = self.model.map_or(0, |old| old.sequence).max(segment.end());
        model.flags = Flags::default();
        model.payload = Payload::default();
        self.model = Some(model);
        if number < self.acknowledged {
            return;
        }
        let edge = number + (u64::from(segment.window) << self.shift());
        let duplicate = number == self.acknowledged && segment.span() == 0 && edge == self.edge;
        self.edge = edge.max(self.edge);
        if number > self.acknowledged {
            self.release(now, number);
        } else if duplicate && self.sent > number {
            self.duplicates += 1;
            if self.duplicates >= DUPLICATES {
                self.recover.get_or_insert(self.sent);
            }
        }
        for &(from, to) in segment.options.sack.as_slice() {
            self.highest_sacked = self.highest_sacked.max(to);
            for kept in self.kept.range_mut(from..to).map(|(_, kept)| kept) {
                kept.sacked |= kept.end <= to;
            }
        }
    }

    /// Discards everything up to `number`, which the receiver has acknowledged.
    fn release(&mut self, now: Instant, number: u64) {
        self.acknowledged = number;
        self.sent = self.sent.max(number);
        self.duplicates = 0;
        self.since = Some(now);
        if self.recover.is_some_and(|recover| number >= recover) {
            self.recover = None;
        }
        while let Some(first) = self.kept.first_entry()
            && first.get().end <= number
        {
            let kept = first.remove();
            self.bytes -= kept.bytes;
            if let (Some(sent), false) = (kept.sent, kept.retransmitted) {
                self.sample(now.since(sent));
            }
        }
    }

    fn sample(&mut self, took: Span) {
        let smooth = self.round_trip.map_or(took, |old| (old * 7 + took) / 8);
        self.round_trip = Some(smooth);
        self.timeout = (smooth * 2).max(self.least_timeout);
    }

    /// When the oldest outstanding segment times out, or a zero-window probe is due.
    pub(super) fn timer(&self) -> Option<Instant> {
        let waits = self.kept.contains_key(&self.acknowledged);
        self.since.filter(|_| waits).map(|since| since + self.timeout)
    }

    /// Handles the timeout: the oldest segment is retransmitted.
    pub(super) fn time_out(&mut self, now: Instant) {
        self.timeouts += 1;
        self.timeout = (self.timeout * 2).min(MAX_TIMEOUT);
        self.since = Some(now);
        if self.sent == self.acknowledged {
            self.probe = true;
            return;
        }
        self.recover = Some(self.sent);
        if let Some(mut first) = self.kept.first_entry() {
            first.get_mut().sent = None;
        }
    }

    /// The resets for both ends after too many timeouts, to be sent like the returned packet. The
    /// sender's data was acknowledged and cannot be delivered, so the connection is aborted.
    pub(super) fn gives_up(&self) -> Option<(Packet, [Segment; 2])> {
        let first = self.kept.get(&self.acknowledged).filter(|_| self.timeouts > TIMEOUTS)?;
        let mut on_data = *first.packet.segment()?;
        let mut on_acknowledgement = self.model?;
        on_data.sequence = self.acknowledged;
        on_data.payload = Payload::default();
        on_data.flags = Flags { reset: true, ..Flags::default() };
        on_acknowledgement.flags = on_data.flags;
        on_acknowledgement.acknowledgement = Some(self.without_fin(self.received));
        on_acknowledgement.options.sack = SackBlocks::default();
        Some((first.packet.clone(), [on_data, on_acknowledgement]))
    }

    /// The next segment that may be sent to the receiver, and whether it is a retransmission.
    pub(super) fn next(&mut self, now: Instant) -> Option<(Packet, bool)> {
        if let Some(number) = self.lost(now) {
            return self.take(now, number).map(|packet| (packet, true));
        }
        let limit = self.edge.min(self.acknowledged + self.window);
        let next = self.kept.get(&self.sent)?;
        // A FIN needs no window.
        if self.without_fin(next.end) > limit && !core::mem::take(&mut self.probe) {
            return None;
        }
        if self.sent == self.acknowledged {
            self.since = Some(now);
        }
        let number = self.sent;
        self.sent = next.end;
        self.take(now, number).map(|packet| (packet, false))
    }

    /// A segment that counts as lost and was not retransmitted within a round trip.
    fn lost(&self, now: Instant) -> Option<u64> {
        let recover = self.recover?;
        let retransmitted = self.round_trip.unwrap_or(self.least_timeout).max(MIN_INTERVAL);
        let due = |kept: &Kept| {
            kept.sent.is_none_or(|at| !kept.retransmitted || now.since(at) >= retransmitted)
        };
        let head = self.kept.get(&self.acknowledged).filter(|kept| due(kept));
        if head.is_some() && self.acknowledged < self.sent {
            return Some(self.acknowledged);
        }
        let below = self.highest_sacked.min(recover).min(self.sent);
        let holes = self.kept.range(self.acknowledged..below.max(self.acknowledged));
        holes.filter(|(_, kept)| !kept.sacked && due(kept)).map(|(&number, _)| number).next()
    }

    /// A copy of a buffered segment, to be sent now.
    fn take(&mut self, now: Instant, number: u64) -> Option<Packet> {
        let (latest, kept) = (self.latest, self.kept.get_mut(&number)?);
        kept.retransmitted |=
            kept.sent.is_some() || self.recover.is_some_and(|recover| number < recover);
        kept.sent = Some(now);
        let mut packet = kept.packet.clone();
        packet.change_segment(|segment| {
            // The acknowledgement of the other direction is updated.
            if let Some((acknowledgement, window)) = latest {
                segment.acknowledgement = segment.acknowledgement.max(acknowledgement);
                segment.window = window;
            }
        });
        Some(packet)
    }
}
