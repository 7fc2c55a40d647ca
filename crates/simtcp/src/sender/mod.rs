//! The sending half.

mod input;
mod output;
mod prr;

use crate::config::{AfterIdle, TcpConfig};
use crate::counters::Counters;
use crate::log::SentLog;
use crate::probing::Prober;
use crate::recovery::{Outstanding, Recovery};
use crate::round_trip::RoundTrip;
use crate::segment::{Probe, Segment};
use crate::window::{Levels, Window};
use prr::Prr;
use units::Instant;

/// Octets of a segment that every path supports: an MTU of 68 (RFC 791) less the headers.
const LEAST_SEGMENT: u64 = 28;

/// The content of a segment to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outgoing {
    pub(crate) sequence: u64,
    pub(crate) len: u64,
    pub(crate) fin: bool,
    /// It is a retransmission.
    pub(crate) again: bool,
}

/// The result of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AckResult {
    /// It was processed.
    Taken,
    /// It acknowledges data that was never sent: to be answered and dropped (RFC 9293, section
    /// 3.10.7.4).
    Unsent,
}

/// The peer's advertised window.
#[derive(Clone, Copy, Debug)]
struct PeerWindow {
    /// The number after the last that may be sent.
    edge: u64,
    /// SND.WL1 and SND.WL2: the segment that advertised it.
    from: (u64, u64),
    /// The largest window so far.
    largest: u64,
    shift: u8,
}

/// The sending half of an endpoint. Number 0 is the SYN's, the stream starts at 1.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    flow: Outstanding,
    /// The number after the last octet written; the FIN's if `closing`.
    written: u64,
    closing: bool,
    buffer: u64,
    peer: PeerWindow,
    round_trip: RoundTrip,
    timer: Option<Instant>,
    /// Without timestamps: the segment being timed, by its end, and when it was sent.
    timed: Option<(u64, Instant)>,
    window: Window,
    recovery: Recovery,
    /// New data was limited by the congestion window at the last call.
    held: bool,
    /// The end of the data sent when that last was so.
    held_until: Option<u64>,
    /// A zero-window probe is to be sent.
    probe: bool,
    /// Timeouts since the peer's last new acknowledgement.
    retries: u32,
    /// The oldest unacknowledged number at the last timeout.
    timed_out_at: Option<u64>,
    last_sent: Instant,
    after_idle: AfterIdle,
    nagle: bool,
    pacing: bool,
    /// When pacing allows the next segment.
    pace_next: Instant,
    /// The same, if pacing is what delays it.
    paced: Option<Instant>,
    /// Since an idle time, data from here on is not acknowledged: the window is paced over a round
    /// trip.
    paced_restart: Option<u64>,
    /// Maintained if the window or the recovery needs it.
    log: Option<SentLog>,
    /// After a timeout: the end of the data outstanding at it.
    timeout_point: Option<u64>,
    probing: Option<Prober>,
    proportional: bool,
    /// A recovery with proportional rate reduction.
    prr: Option<Prr>,
    /// The window was reduced for an ECN mark, and is not reduced again until this is acknowledged.
    marked_point: u64,
    /// The next new segment carries CWR (RFC 3168, section 6.1.2).
    reduced: bool,
    /// With AccECN: s.cep, the number of marks that the peer has reported.
    marks: Option<u64>,
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
            recovery: Recovery::new(config, config.sack),
            held: false,
            held_until: None,
            probe: false,
            retries: 0,
            timed_out_at: None,
            last_sent: Instant::ZERO,
            after_idle: config.after_idle,
            nagle: config.nagle,
            pacing: config.pacing,
            pace_next: Instant::ZERO,
            paced: None,
            paced_restart: None,
            log: None,
            timeout_point: None,
            probing: None,
            proportional: config.proportional_reduction,
            prr: None,
            marked_point: 0,
            reduced: false,
            marks: None,
            counters: Counters::default(),
        }
    }

    /// Handles the transmission of the SYN.
    pub(crate) fn syn_sent(&mut self, now: Instant) {
        if self.flow.end == 0 {
            (self.flow.next, self.flow.end) = (1, 1);
            self.timed = Some((1, now));
        } else {
            self.timed = None;
            self.counters.retransmitted_segments += 1;
        }
        self.last_sent = now;
        self.timer = Some(self.round_trip.deadline(now));
    }

    /// The content of a SYN: up to `most` octets from the beginning, and the FIN if these are all.
    pub(crate) fn data_with_syn(&mut self, most: u64) -> Outgoing {
        let len = (self.written - 1).min(most);
        let fin = self.closing && 1 + len == self.written;
        let end = 1 + len + u64::from(fin);
        if end > 1 {
            self.counters.data_segments += 1;
        }
        // Data of an earlier SYN is retransmitted, and has records of its own.
        let before = self.flow.end.clamp(1, end);
        if let Some(log) = &mut self.log {
            let parts = [(1, before), (before, end)];
            parts.into_iter().filter(|part| part.0 < part.1).for_each(|part| {
                log.on_sent(self.last_sent, part);
            });
        }
        if end > self.flow.end {
            self.counters.data_bytes += len;
            (self.flow.next, self.flow.end) = (end, end);
        } else {
            self.counters.retransmitted_bytes += len;
        }
        Outgoing { sequence: 1, len, fin, again: false }
    }

    /// Handles data on the SYN that was not accepted: it is retransmitted on the open connection
    /// (RFC 7413, section 4.2.2).
    pub(crate) fn early_data_was_lost(&mut self) {
        self.flow.next = self.flow.oldest;
        if let Some(log) = &mut self.log {
            log.lose(|_| true);
        }
    }

    /// Handles the options of the peer's SYN; initializes the window.
    pub(crate) fn peer_opened(&mut self, config: &TcpConfig, segment: u64, sack: bool, shift: u8) {
        self.flow.segment = segment;
        self.peer.shift = shift;
        let initial = config.initial_window.bytes(segment);
        let levels = Levels::new(segment, initial, config.slow_start_limit);
        let levels = if config.byte_counting { levels } else { levels.counting_acknowledgements() };
        self.window = Window::new(config.window, levels);
        self.recovery = Recovery::new(config, sack);
        let logs = self.window.needs_log() || self.recovery.needs_log() || self.proportional;
        self.log = logs.then(|| self.log_with_syn());
    }

    /// A log that contains the data of the SYN.
    fn log_with_syn(&self) -> SentLog {
        let mut log = SentLog::default();
        if self.flow.end > 1 {
            log.on_sent(self.last_sent, (1, self.flow.end));
            if self.counters.retransmitted_segments > 0 {
                // It is unknown which SYN is acknowledged (Karn; RFC 6298, section 3).
                log.on_sent(self.last_sent, (1, self.flow.end));
            }
        }
        log
    }

    /// Handles the end of the handshake. After a retransmitted SYN the initial window is one
    /// segment (RFC 5681, section 3.1) and the RTO is 3 s (RFC 6298, rule 5.7).
    pub(crate) fn established(&mut self) {
        if self.counters.retransmitted_segments > 0 {
            self.window.syn_was_lost();
            self.round_trip.syn_was_lost();
        }
    }

    /// The window of a SYN, which is not scaled (RFC 7323, section 2.2).
    pub(crate) fn peer_window_of_syn(&mut self, syn: &Segment) {
        let window = u64::from(syn.window);
        let acknowledged = syn.acknowledgement.unwrap_or(1);
        self.peer.edge = acknowledged + window;
        self.peer.largest = window;
        self.peer.from = (syn.sequence, acknowledged);
    }

    /// Accepts up to `bytes` more; returns how many there was room for.
    pub(crate) fn write(&mut self, bytes: u64) -> u64 {
        let taken = if self.closing { 0 } else { bytes.min(self.room()) };
        self.written += taken;
        taken
    }

    /// Free octets of the buffer.
    pub(crate) fn room(&self) -> u64 {
        self.buffer.saturating_sub(self.written - self.flow.oldest.clamp(1, self.written))
    }

    /// Octets of the stream that are acknowledged.
    pub(crate) fn acknowledged(&self) -> u64 {
        self.flow.oldest.clamp(1, self.written) - 1
    }

    /// Ends the stream; a FIN follows the last octet.
    pub(crate) fn close(&mut self) {
        self.closing = true;
    }

    /// Whether the stream has ended.
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

    /// Octets written and never sent.
    pub(crate) fn unsent(&self) -> u64 {
        self.written.saturating_sub(self.flow.end.max(1))
    }

    pub(crate) fn window(&self) -> &Window {
        &self.window
    }

    /// Limits segments to `segment` octets, because larger ones do not arrive: outstanding data is
    /// retransmitted in smaller segments, which is no sign of congestion (RFC 1191, section 6.4).
    /// Returns whether they were larger.
    pub(crate) fn shrink(&mut self, segment: u64) -> bool {
        let segment = segment.max(LEAST_SEGMENT);
        if segment >= self.flow.segment {
            return false;
        }
        self.flow.segment = segment;
        self.window.levels_mut().set_segment(segment);
        if self.flow.oldest > 0 && self.flow.oldest < self.flow.end {
            self.begin_again();
        }
        true
    }

    /// The peer counts marks, from `first` on (AccECN).
    pub(crate) fn count_marks(&mut self, first: u64) {
        self.marks = Some(first);
    }

    /// Both ends probe (see [`Probing`](crate::Probing)).
    pub(crate) fn probe_with(&mut self, prober: Prober) {
        self.probing = Some(prober);
    }

    /// Whether both ends probe.
    pub(crate) fn probes(&self) -> bool {
        self.probing.is_some()
    }

    /// The probe to be sent now.
    pub(crate) fn take_probe(&mut self, now: Instant) -> Option<Probe> {
        let estimate = self.round_trip.smoothed();
        self.probing.as_mut()?.take(now, estimate)
    }

    /// Whether the next new segment carries CWR; true once.
    pub(crate) fn take_reduced(&mut self) -> bool {
        core::mem::take(&mut self.reduced)
    }

    pub(crate) fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    pub(crate) fn round_trip(&self) -> &RoundTrip {
        &self.round_trip
    }

    pub(crate) fn timer(&self) -> Option<Instant> {
        match &self.probing {
            Some(probing) if probing.is_running() => probing.deadline(),
            Some(_) | None => self.timer,
        }
    }

    pub(crate) fn retries(&self) -> u32 {
        self.retries
    }

    pub(crate) fn stop(&mut self) {
        self.timer = None;
        self.paced = None;
        self.probing = None;
    }
}
