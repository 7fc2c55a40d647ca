//! The sending half: what goes next, and what an acknowledgement means.

use crate::config::{AfterIdle, TcpConfig};
use crate::endpoint::Counters;
use crate::recovery::{Outstanding, Recovery, Report, Verdict};
use crate::round_trip::RoundTrip;
use crate::segment::{Block, Segment};
use crate::window::{Acked, Levels, Window};
use units::{Instant, Span};

/// What is to be put in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outgoing {
    pub(crate) sequence: u64,
    pub(crate) len: u64,
    pub(crate) fin: bool,
}

/// What became of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AckResult {
    /// It was taken in.
    Taken,
    /// It is for what was never sent: to be answered, and dropped (RFC 9293, section 3.10.7.4).
    Unsent,
}

/// The window that the peer gave.
#[derive(Clone, Copy, Debug)]
struct PeerWindow {
    /// The number after the last that may be sent.
    edge: u64,
    /// SND.WL1 and SND.WL2: the segment that said so.
    from: (u64, u64),
    /// The largest window so far.
    largest: u64,
    shift: u8,
}

/// The sending half of an endpoint. Number 0 is SYN's, the stream begins at 1.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    flow: Outstanding,
    /// The number after the last byte that was written; FIN's, when `closing`.
    written: u64,
    closing: bool,
    buffer: u64,
    peer: PeerWindow,
    round_trip: RoundTrip,
    timer: Option<Instant>,
    /// Without timestamps: a segment that is timed, by its end, and when it went.
    timed: Option<(u64, Instant)>,
    window: Window,
    recovery: Recovery,
    /// The congestion window kept new data back when it was last asked.
    held: bool,
    /// One byte is to go although the peer's window is closed.
    probe: bool,
    /// Timeouts since the peer acknowledged something.
    retries: u32,
    /// What was the oldest at the last timeout.
    timed_out_at: Option<u64>,
    last_sent: Instant,
    after_idle: AfterIdle,
    nagle: bool,
    pub(crate) counters: Counters,
}

impl Sender {
    pub(crate) fn new(config: &TcpConfig) -> Self {
        let segment = u64::from(config.max_segment);
        Self {
            flow: Outstanding { oldest: 0, next: 0, end: 0, segment },
            written: 1,
            closing: false,
            buffer: config.send_buffer,
            peer: PeerWindow { edge: 1, from: (0, 0), largest: 0, shift: 0 },
            round_trip: RoundTrip::new(config.rto),
            timer: None,
            timed: None,
            window: Window::new(config.window, Levels::new(segment, segment, None)),
            recovery: Recovery::new(config.recovery, config.sack, config.limited_transmit),
            held: false,
            probe: false,
            retries: 0,
            timed_out_at: None,
            last_sent: Instant::ZERO,
            after_idle: config.after_idle,
            nagle: config.nagle,
            counters: Counters::default(),
        }
    }

    /// SYN goes out.
    pub(crate) fn syn_sent(&mut self, now: Instant) {
        if self.flow.end == 0 {
            (self.flow.next, self.flow.end) = (1, 1);
            self.timed = Some((1, now));
        } else {
            self.timed = None;
            self.counters.retransmitted_segments += 1;
        }
        self.timer = Some(self.round_trip.deadline(now));
    }

    /// Up to `most` bytes from the beginning, and FIN where they are all, go with SYN.
    pub(crate) fn data_with_syn(&mut self, most: u64) -> Outgoing {
        let len = (self.written - 1).min(most);
        let fin = self.closing && 1 + len == self.written;
        let end = 1 + len + u64::from(fin);
        if end > 1 {
            self.counters.data_segments += 1;
        }
        if end > self.flow.end {
            self.counters.data_bytes += len;
            (self.flow.next, self.flow.end) = (end, end);
        } else {
            self.counters.retransmitted_bytes += len;
        }
        Outgoing { sequence: 1, len, fin }
    }

    /// What went with SYN was not taken: it goes again, now that there is a connection (RFC 7413,
    /// section 4.2.2).
    pub(crate) fn early_data_was_lost(&mut self) {
        self.flow.next = self.flow.oldest;
    }

    /// The peer's SYN said what it can take; the window begins.
    pub(crate) fn peer_opened(&mut self, config: &TcpConfig, segment: u64, sack: bool, shift: u8) {
        self.flow.segment = segment;
        self.peer.shift = shift;
        let initial = config.initial_window.bytes(segment);
        let levels = Levels::new(segment, initial, config.slow_start_limit);
        let levels = if config.byte_counting { levels } else { levels.counting_acknowledgements() };
        self.window = Window::new(config.window, levels);
        self.recovery = Recovery::new(config.recovery, sack, config.limited_transmit);
    }

    /// The handshake is done. Where SYN had to go twice, one segment is the first window
    /// (RFC 5681, section 3.1) and the timer is careful (RFC 6298, rule 5.7).
    pub(crate) fn established(&mut self) {
        if self.counters.retransmitted_segments > 0 {
            self.window.syn_was_lost();
            self.round_trip.syn_was_lost();
        }
    }

    /// The window of a SYN, which is not shifted (RFC 7323, section 2.2).
    pub(crate) fn peer_window_of_syn(&mut self, syn: &Segment) {
        let window = u64::from(syn.window);
        let acknowledged = syn.acknowledgement.unwrap_or(1);
        self.peer.edge = acknowledged + window;
        self.peer.largest = window;
        self.peer.from = (syn.sequence, acknowledged);
    }

    /// Takes up to `bytes` more; returns how many there was room for.
    pub(crate) fn write(&mut self, bytes: u64) -> u64 {
        let taken = if self.closing { 0 } else { bytes.min(self.room()) };
        self.written += taken;
        taken
    }

    /// Bytes for which the buffer has room.
    pub(crate) fn room(&self) -> u64 {
        self.buffer.saturating_sub(self.written - self.flow.oldest.clamp(1, self.written))
    }

    /// Bytes of the stream that are acknowledged.
    pub(crate) fn acknowledged(&self) -> u64 {
        self.flow.oldest.clamp(1, self.written) - 1
    }

    /// Nothing more will be written; FIN goes after the last byte.
    pub(crate) fn close(&mut self) {
        self.closing = true;
    }

    /// Whether nothing more will be written.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing
    }

    /// Whether FIN has been acknowledged.
    pub(crate) fn fin_is_acked(&self) -> bool {
        self.closing && self.flow.oldest > self.written
    }

    pub(crate) fn flow(&self) -> &Outstanding {
        &self.flow
    }

    /// Bytes that were written and never sent.
    pub(crate) fn unsent(&self) -> u64 {
        self.written.saturating_sub(self.flow.end.max(1))
    }

    pub(crate) fn window(&self) -> &Window {
        &self.window
    }

    pub(crate) fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    pub(crate) fn round_trip(&self) -> &RoundTrip {
        &self.round_trip
    }

    pub(crate) fn timer(&self) -> Option<Instant> {
        self.timer
    }

    pub(crate) fn retries(&self) -> u32 {
        self.retries
    }

    pub(crate) fn stop(&mut self) {
        self.timer = None;
    }

    /// What goes next at `now`, if anything may.
    pub(crate) fn next(&mut self, now: Instant) -> Option<Outgoing> {
        let window = self.window.levels().window() + self.recovery.inflation();
        let room = window.saturating_sub(self.recovery.in_flight(&self.flow));
        if let Some(block) = self.recovery.lost(&self.flow, room) {
            return Some(self.send_again(now, block));
        }
        if core::mem::take(&mut self.probe) {
            return self.send_probe(now);
        }
        if self.flow.next < self.flow.end {
            match self.recovery.again(&self.flow) {
                None => self.flow.next = self.flow.end,
                Some((start, end)) => {
                    let end = end.min(start + self.flow.segment);
                    self.held = room < end - start;
                    if self.held {
                        return None;
                    }
                    self.flow.next = end;
                    return Some(self.send_again(now, (start, end)));
                }
            }
        }
        self.send_new(now, room)
    }

    fn send_new(&mut self, now: Instant, room: u64) -> Option<Outgoing> {
        let start = self.flow.next;
        let allowed = self.written.min(self.peer.edge).saturating_sub(start);
        let len = allowed.min(self.flow.segment);
        let last = start + len == self.written;
        let fin = last && self.closing && start + len < self.peer.edge.max(start + 1);
        // A short segment only for the end of what there is, or for a peer whose window was
        // never larger (RFC 9293, section 3.8.6.2.1).
        let waits = self.nagle && self.flow.oldest < self.flow.end;
        let short = last && len > 0 && !waits;
        let whole = len == self.flow.segment || short || 2 * len > self.peer.largest;
        if !(fin || (len > 0 && whole)) {
            self.held = false;
            self.watch_closed_window(now);
            if self.recovery.is_repairing() && room >= self.flow.segment {
                let block = self.recovery.perhaps_lost(&self.flow)?;
                return Some(self.send_again(now, block));
            }
            return None;
        }
        self.held = room < len;
        if self.held {
            return None;
        }
        if self.flow.oldest == self.flow.end {
            let idle = now.since(self.last_sent);
            let timeouts = idle.as_nanos() / self.round_trip.timeout().as_nanos().max(1);
            if !self.counters_are_fresh() {
                self.window.on_idle(idle, timeouts, self.after_idle);
            }
        }
        self.flow.next = start + len + u64::from(fin);
        self.flow.end = self.flow.next;
        if self.timed.is_none() {
            self.timed = Some((self.flow.end, now));
        }
        self.counters.data_bytes += len;
        Some(self.sent(now, Outgoing { sequence: start, len, fin }))
    }

    /// Nothing but SYN has been sent: the time since is no idleness.
    fn counters_are_fresh(&self) -> bool {
        self.counters.data_segments == 0
    }

    /// With data that the closed window keeps back and nothing on the way, the timer asks
    /// (RFC 9293, section 3.8.6.1).
    fn watch_closed_window(&mut self, now: Instant) {
        let waits = self.written > self.flow.next && self.flow.oldest == self.flow.end;
        if waits && self.timer.is_none() && self.flow.end > 0 {
            self.timer = Some(self.round_trip.deadline(now));
        }
    }

    fn send_probe(&mut self, now: Instant) -> Option<Outgoing> {
        let start = self.flow.oldest;
        if start >= self.written {
            return None;
        }
        self.flow.end = self.flow.end.max(start + 1);
        self.flow.next = self.flow.next.max(start + 1);
        self.timed = None;
        Some(self.sent(now, Outgoing { sequence: start, len: 1, fin: false }))
    }

    fn send_again(&mut self, now: Instant, (start, end): Block) -> Outgoing {
        // Karn: what was sent twice is not timed (RFC 6298, section 3).
        self.timed = None;
        let fin = self.closing && end > self.written;
        let len = end - start - u64::from(fin);
        self.counters.retransmitted_segments += 1;
        self.counters.retransmitted_bytes += len;
        self.sent(now, Outgoing { sequence: start, len, fin })
    }

    fn sent(&mut self, now: Instant, outgoing: Outgoing) -> Outgoing {
        self.counters.data_segments += 1;
        self.last_sent = now;
        if self.timer.is_none() {
            self.timer = Some(self.round_trip.deadline(now));
        }
        outgoing
    }

    /// Takes in the acknowledgement of `segment`; `echo` is the round trip that its timestamp
    /// shows.
    pub(crate) fn on_ack(
        &mut self,
        now: Instant,
        segment: &Segment,
        echo: Option<Span>,
    ) -> AckResult {
        let Some(acknowledged) = segment.acknowledgement else { return AckResult::Taken };
        if acknowledged > self.flow.end {
            return AckResult::Unsent;
        }
        if acknowledged < self.flow.oldest {
            return AckResult::Taken;
        }
        let same_window = !self.update_window(segment, acknowledged);
        let before = self.flow;
        let duplicate = acknowledged == before.oldest
            && segment.span() == 0
            && same_window
            && before.oldest < before.end;
        self.flow.oldest = acknowledged;
        self.flow.next = self.flow.next.max(acknowledged);
        let acked = acknowledged - before.oldest;
        let flight = before.end - before.oldest;
        let sample = if acked > 0 { self.measure(now, acknowledged, flight, echo) } else { None };
        let report = Report {
            before: before.oldest,
            window: self.window.levels().window(),
            duplicate,
            sack: segment.options.sack.as_slice(),
        };
        match self.recovery.on_ack(&self.flow, &report) {
            Verdict::Open => {
                if acked > 0 {
                    self.grow(now, acked, sample);
                    self.restart_timer(now);
                }
            }
            Verdict::Loss => {
                self.counters.recoveries += 1;
                self.window.on_loss(flight);
                self.restart_timer(now);
            }
            Verdict::Repairing { restart_timer } => {
                if restart_timer {
                    self.restart_timer(now);
                }
            }
            Verdict::Repaired { deflate } => {
                if deflate {
                    self.window.deflate(self.flow.end - self.flow.oldest);
                }
                self.restart_timer(now);
            }
        }
        AckResult::Taken
    }

    /// Says whether the window changed (RFC 9293, section 3.10.7.4).
    fn update_window(&mut self, segment: &Segment, acknowledged: u64) -> bool {
        let from = (segment.sequence, acknowledged);
        if from < self.peer.from {
            return false;
        }
        let window = u64::from(segment.window) << self.peer.shift;
        let changed = acknowledged + window != self.peer.edge;
        self.peer.from = from;
        self.peer.edge = acknowledged + window;
        self.peer.largest = self.peer.largest.max(window);
        changed
    }

    fn measure(
        &mut self,
        now: Instant,
        acknowledged: u64,
        flight: u64,
        echo: Option<Span>,
    ) -> Option<Span> {
        self.retries = 0;
        self.timed_out_at = None;
        let timed = self.timed.filter(|&(end, _)| acknowledged >= end);
        if timed.is_some() {
            self.timed = None;
        }
        let sample = echo.or(timed.map(|(_, at)| self.round_trip.between(at, now)))?;
        // RFC 7323, appendix G: an acknowledgement for every second segment is expected.
        let expected = match echo {
            Some(_) => flight.div_ceil(2 * self.flow.segment),
            None => 1,
        };
        self.round_trip.sample(sample, expected);
        Some(sample)
    }

    fn grow(&mut self, now: Instant, bytes: u64, sample: Option<Span>) {
        self.window.on_ack(&Acked {
            now,
            bytes,
            up_to: self.flow.oldest,
            next: self.flow.end,
            limited: self.held,
            sample,
            round_trip: self.round_trip.smoothed(),
        });
    }

    /// RFC 6298, rules 5.2 and 5.3.
    fn restart_timer(&mut self, now: Instant) {
        let runs = self.flow.oldest < self.flow.end;
        self.timer = runs.then(|| self.round_trip.deadline(now));
    }

    /// The timer ran out (RFC 6298, rules 5.4 to 5.6): the oldest goes again, alone.
    pub(crate) fn on_timeout(&mut self) {
        self.timer = None;
        self.round_trip.back_off();
        self.retries += 1;
        let flight = self.flow.end - self.flow.oldest;
        if flight == 0 || (self.peer.edge <= self.flow.oldest && self.flow.oldest > 0) {
            self.probe = true;
            return;
        }
        self.counters.timeouts += 1;
        if self.flow.oldest == 0 {
            return;
        }
        let first = self.timed_out_at != Some(self.flow.oldest);
        self.timed_out_at = Some(self.flow.oldest);
        self.window.on_timeout(flight, first);
        self.recovery.on_timeout(&self.flow);
        self.flow.next = self.flow.oldest;
        self.timed = None;
    }
}
