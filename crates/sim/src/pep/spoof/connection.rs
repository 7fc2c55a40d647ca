//! One connection, as a gateway sees it that acknowledges early.

use super::SpoofConfig;
use crate::network::Packet;
use simtcp::{Flags, Options, Payload, SackBlocks, Segment};
use std::collections::BTreeMap;
use units::{Instant, Span};

/// Duplicates after which a segment counts as lost (RFC 5681, section 3.2).
const DUPLICATES: u32 = 3;
/// Timeouts in a row without a word of the receiver's, after which the connection is given up
/// (RFC 9293, section 3.8.3; as many as Linux has, tcp_retries2).
const TIMEOUTS: u32 = 15;
/// Minimum interval between retransmissions of a segment, however short the round trip.
const SOONEST: Span = Span::from_millis(1);
/// The longest timeout.
const LONGEST: Span = Span::from_secs(60);

/// A segment that the receiver may not have.
#[derive(Debug)]
struct Kept {
    packet: Packet,
    end: u64,
    bytes: u64,
    sent: Option<Instant>,
    again: bool,
    /// The receiver says that it has it (RFC 2018).
    sacked: bool,
}

#[derive(Debug)]
pub(super) struct Connection {
    memory: u64,
    window: u64,
    least_timeout: Span,
    /// What the sender has sent without a gap, up to this number.
    received: u64,
    /// The number of its FIN.
    fin: Option<u64>,
    /// By number. What lies below `sent` went out at least once.
    kept: BTreeMap<u64, Kept>,
    bytes: u64,
    sent: u64,
    /// Of the receiver: what it acknowledged, and the edge of its window.
    acknowledged: u64,
    edge: u64,
    duplicates: u32,
    /// Losses below this number are being repaired.
    recover: Option<u64>,
    highest_sacked: u64,
    /// The shifts of windows that the sender and the receiver offered with their SYNs.
    offers: [Option<Option<u8>>; 2],
    /// The numbers of these SYNs.
    firsts: [u64; 2],
    /// What the receiver said last; early acknowledgements are made after it.
    model: Option<Segment>,
    /// What the sender said last of the other direction.
    latest: Option<(Option<u64>, u16)>,
    /// The timestamp to be echoed to the sender.
    echo: u32,
    /// Free bytes when the sender was told last.
    told: u64,
    round_trip: Option<Span>,
    timeout: Span,
    /// When the timer began.
    since: Option<Instant>,
    /// How often it ran out since the receiver said something.
    timeouts: u32,
    /// A segment is to go although the receiver's window has no room: it asks for an answer.
    probe: bool,
    peer_fin: Option<u64>,
}

impl Connection {
    /// Before its opening: either end may begin.
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
            told: config.memory,
            round_trip: None,
            timeout: config.timeout,
            since: None,
            timeouts: 0,
            probe: false,
            peer_fin: None,
        }
    }

    /// The sender's SYN.
    pub(super) fn begins(&mut self, syn: &Segment) {
        let first = syn.sequence + 1;
        let window = self.edge - self.acknowledged;
        self.offers[0] = Some(syn.options.window_scale);
        self.firsts[0] = syn.sequence;
        (self.received, self.sent, self.acknowledged) = (first, first, first);
        self.edge = first + window;
    }

    /// The receiver's SYN.
    pub(super) fn opened(&mut self, syn: &Segment) {
        self.offers[1] = Some(syn.options.window_scale);
        self.firsts[1] = syn.sequence;
        self.edge = self.acknowledged + u64::from(syn.window);
        let mut model = *syn;
        model.sequence += 1;
        model.flags = Flags::default();
        model.options = Options { timestamps: syn.options.timestamps, ..Options::default() };
        self.model = Some(model);
    }

    /// Whether a SYN of the sender (0) or the receiver (1) is one that opened it, come again.
    pub(super) fn knows(&self, who: usize, syn: &Segment) -> bool {
        self.is_open() && self.firsts[who] == syn.sequence
    }

    /// Whether both ends have opened.
    pub(super) fn is_open(&self) -> bool {
        self.offers.iter().all(Option::is_some)
    }

    /// Windows are shifted where both ends offer it (RFC 7323, section 2.2); by what the receiver
    /// says.
    fn shift(&self) -> u8 {
        match self.offers {
            [Some(Some(_)), Some(Some(shift))] => shift,
            [..] => 0,
        }
    }

    /// Both directions have ended, and both know.
    pub(super) fn is_over(&self) -> bool {
        let said = self.latest.and_then(|(number, _)| number);
        self.end_is_acknowledged() && self.peer_fin.is_some_and(|fin| said > Some(fin))
    }

    /// Bytes kept.
    pub(super) fn kept(&self) -> u64 {
        self.bytes
    }

    fn free(&self) -> u64 {
        self.memory.saturating_sub(self.bytes)
    }

    /// Takes a segment with data or FIN; says whether there was room.
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
        let kept = Kept { packet, end, bytes, sent: None, again: false, sacked: false };
        self.kept.insert(segment.sequence, kept);
        while let Some(next) = self.kept.get(&self.received) {
            self.received = next.end;
        }
        true
    }

    /// The part of a segment that nothing is kept of, as far as it is in one piece.
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

    /// The acknowledgement that the sender gets for `segment`; never one of its FIN.
    pub(super) fn early(&mut self, segment: &Segment) -> Option<Segment> {
        // A FIN alone waits for the true one.
        (segment.payload.len > 0).then(|| self.make())?
    }

    /// The sender is told of more room, when it knew of little.
    pub(super) fn update(&mut self) -> Option<Segment> {
        let free = self.free();
        (self.told < self.memory / 4 && free >= self.memory / 2).then(|| self.make())?
    }

    fn make(&mut self) -> Option<Segment> {
        let mut made = self.model?;
        made.acknowledgement = Some(self.without_fin(self.received));
        made.window = self.scaled();
        made.options.sack = SackBlocks::default();
        made.options.timestamps = made.options.timestamps.map(|(value, _)| (value, self.echo));
        self.told = self.free();
        Some(made)
    }

    fn without_fin(&self, number: u64) -> u64 {
        self.fin.map_or(number, |fin| number.min(fin))
    }

    fn scaled(&self) -> u16 {
        u16::try_from(self.free() >> self.shift()).unwrap_or(u16::MAX)
    }

    /// The sender acknowledges the other direction: its number is to be one that the receiver
    /// has reached.
    pub(super) fn acknowledges(&mut self, segment: &mut Segment) {
        self.latest = Some((segment.acknowledgement, segment.window));
        segment.sequence = segment.sequence.min(self.sent);
    }

    /// The receiver sends data, or the true acknowledgement of the end: what it says of what it
    /// got is said early.
    pub(super) fn answers(&mut self, segment: &mut Segment) {
        if !self.end_is_acknowledged() {
            segment.acknowledgement = Some(self.without_fin(self.received));
        }
        segment.window = self.scaled();
        self.told = self.free();
    }

    /// The receiver has the sender's FIN.
    pub(super) fn end_is_acknowledged(&self) -> bool {
        self.fin.is_some_and(|fin| self.acknowledged > fin)
    }

    /// What the receiver says.
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

    /// The receiver has everything up to `number`.
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
            if let (Some(sent), false) = (kept.sent, kept.again) {
                self.sample(now.since(sent));
            }
        }
    }

    fn sample(&mut self, took: Span) {
        let smooth = self.round_trip.map_or(took, |old| (old * 7 + took) / 8);
        self.round_trip = Some(smooth);
        self.timeout = (smooth * 2).max(self.least_timeout);
    }

    /// When the oldest that is under way counts as lost, or a shut window is asked for.
    pub(super) fn timer(&self) -> Option<Instant> {
        let waits = self.kept.contains_key(&self.acknowledged);
        self.since.filter(|_| waits).map(|since| since + self.timeout)
    }

    /// The timer has run out: the oldest is retransmitted.
    pub(super) fn time_out(&mut self, now: Instant) {
        self.timeouts += 1;
        self.timeout = (self.timeout * 2).min(LONGEST);
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

    /// Nobody answers. The sender has been told that its data arrived: it, and the receiver, are
    /// told by a reset that it does not, to be sent as the returned packet is.
    pub(super) fn gives_up(&self) -> Option<(Packet, [Segment; 2])> {
        let first = self.kept.get(&self.acknowledged).filter(|_| self.timeouts > TIMEOUTS)?;
        let mut forth = *first.packet.segment()?;
        let mut back = self.model?;
        forth.sequence = self.acknowledged;
        forth.payload = Payload::default();
        forth.flags = Flags { reset: true, ..Flags::default() };
        back.flags = forth.flags;
        back.acknowledgement = Some(self.without_fin(self.received));
        back.options.sack = SackBlocks::default();
        Some((first.packet.clone(), [forth, back]))
    }

    /// The next segment that may go to the receiver, and whether it went before.
    pub(super) fn next(&mut self, now: Instant) -> Option<(Packet, bool)> {
        if let Some(number) = self.lost(now) {
            return self.take(now, number).map(|packet| (packet, true));
        }
        let limit = self.edge.min(self.acknowledged + self.window);
        let next = self.kept.get(&self.sent)?;
        // FIN needs no window.
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
        let again = self.round_trip.unwrap_or(self.least_timeout).max(SOONEST);
        let due = |kept: &Kept| kept.sent.is_none_or(|at| !kept.again || now.since(at) >= again);
        let head = self.kept.get(&self.acknowledged).filter(|kept| due(kept));
        if head.is_some() && self.acknowledged < self.sent {
            return Some(self.acknowledged);
        }
        let below = self.highest_sacked.min(recover).min(self.sent);
        let holes = self.kept.range(self.acknowledged..below.max(self.acknowledged));
        holes.filter(|(_, kept)| !kept.sacked && due(kept)).map(|(&number, _)| number).next()
    }

    /// A copy of what is kept, to be sent now.
    fn take(&mut self, now: Instant, number: u64) -> Option<Packet> {
        let (latest, kept) = (self.latest, self.kept.get_mut(&number)?);
        kept.again |= kept.sent.is_some() || self.recover.is_some_and(|recover| number < recover);
        kept.sent = Some(now);
        let mut packet = kept.packet.clone();
        packet.change_segment(|segment| {
            // Of the other direction it says what is known by now.
            if let Some((acknowledgement, window)) = latest {
                segment.acknowledgement = segment.acknowledgement.max(acknowledgement);
                segment.window = window;
            }
        });
        Some(packet)
    }
}
