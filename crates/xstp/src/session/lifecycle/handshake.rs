//! Handshake segments that are due (BGN, BGNAK, END, ENDAK, RST), and their retransmission timer.

use crate::seq::Seq24;
use units::{Instant, Span};

/// Maximum number of doublings of the retransmission timeout.
const DOUBLINGS: u32 = 3;

/// Handshakes in progress.
#[derive(Clone, Debug, Default)]
pub(in crate::session) struct Handshake {
    begin_due: bool,
    end_due: bool,
    /// BGNAK is due and echoes this timestamp.
    begin_ack_due: Option<u32>,
    /// ENDAK is due for the END with this sequence number and incarnation.
    end_ack_due: Option<(Seq24, u32)>,
    /// RST is due for this incarnation.
    reset_due: Option<u32>,
    /// Timestamp of the last BGN, and the time of its transmission.
    last_begin: Option<(u32, Instant)>,
    tries: u32,
    /// Time of the next retransmission of BGN or END: "T_CC".
    retry_at: Option<Instant>,
}

impl Handshake {
    /// Schedules BGN.
    pub(in crate::session) fn begin(&mut self) {
        self.begin_due = true;
        self.retry_at = None;
    }

    /// Schedules END.
    pub(in crate::session) fn end(&mut self) {
        self.end_due = true;
        self.retry_at = None;
    }

    /// Schedules BGNAK.
    pub(in crate::session) fn begin_ack(&mut self, echo: u32) {
        self.begin_ack_due = Some(echo);
    }

    /// Schedules ENDAK.
    pub(in crate::session) fn end_ack(&mut self, number: Seq24, incarnation: u32) {
        self.end_ack_due = Some((number, incarnation));
    }

    /// Schedules RST, if there is an incarnation that it can name.
    pub(in crate::session) fn reset(&mut self, incarnation: Option<u32>) {
        self.reset_due = incarnation.or(self.reset_due);
    }

    /// Stops the timer and clears BGN, END and BGNAK: they were answered, or the session is over.
    pub(in crate::session) fn clear(&mut self) {
        self.begin_due = false;
        self.end_due = false;
        self.begin_ack_due = None;
        self.tries = 0;
        self.retry_at = None;
    }

    pub(in crate::session) fn is_begin_due(&self) -> bool {
        self.begin_due
    }

    pub(in crate::session) fn begin_ack_due(&self) -> Option<u32> {
        self.begin_ack_due
    }

    /// Whether a segment is due that carries nothing else.
    pub(in crate::session) fn is_standalone_due(&self) -> bool {
        self.reset_due.is_some() || self.end_ack_due.is_some() || self.end_due
    }

    /// Whether any segment is due.
    pub(in crate::session) fn is_due(&self) -> bool {
        self.is_standalone_due() || self.begin_due || self.begin_ack_due.is_some()
    }

    pub(in crate::session) fn is_reset_due(&self) -> bool {
        self.reset_due.is_some()
    }

    pub(in crate::session) fn take_reset(&mut self) -> Option<u32> {
        self.reset_due.take()
    }

    pub(in crate::session) fn take_end_ack(&mut self) -> Option<(Seq24, u32)> {
        self.end_ack_due.take()
    }

    /// Takes END if it is due; the timer waits `timeout` for the ENDAK.
    pub(in crate::session) fn take_end(&mut self, now: Instant, timeout: Span) -> bool {
        let due = core::mem::take(&mut self.end_due);
        if due {
            self.retry_at = Some(now + timeout * (1 << self.tries.min(DOUBLINGS)));
        }
        due
    }

    /// BGN with `timestamp` was sent. Starts the timer with `timeout` unless it is running.
    pub(in crate::session) fn on_begin_sent(
        &mut self,
        now: Instant,
        timestamp: u32,
        timeout: Span,
    ) {
        self.begin_due = false;
        // After the clock was set back, several BGNs have the same timestamp. Measured from the
        // first of them, no round-trip time is too short.
        let same = |(last, at): (u32, Instant)| {
            last == timestamp && (now < at || now.since(at) > Span::from_millis(1))
        };
        if !self.last_begin.is_some_and(same) {
            self.last_begin = Some((timestamp, now));
        }
        let wait = timeout * (1 << self.tries.min(DOUBLINGS));
        self.retry_at.get_or_insert(now + wait);
    }

    /// The BGN is transmitted no earlier than `departure`: the timer runs from that time.
    pub(in crate::session) fn on_departure(&mut self, departure: Instant, timeout: Span) {
        self.retry_at = self.retry_at.map(|at| at.max(departure + timeout));
    }

    pub(in crate::session) fn on_begin_ack_sent(&mut self) {
        self.begin_ack_due = None;
    }

    /// Time at which the BGN with the timestamp `echo` was sent, if it was the last one.
    pub(in crate::session) fn begin_sent_at(&self, echo: u32) -> Option<Instant> {
        self.last_begin.filter(|&(timestamp, _)| timestamp == echo).map(|(_, at)| at)
    }

    pub(in crate::session) fn retry_at(&self) -> Option<Instant> {
        self.retry_at
    }

    /// The timer has expired. Returns true after `limit` tries.
    pub(in crate::session) fn on_expired(&mut self, limit: u32) -> bool {
        self.retry_at = None;
        self.tries += 1;
        self.tries >= limit
    }
}
