//! What of BGN, BGNAK, END, ENDAK and RST waits to be sent, and the timer of what was.

use crate::Seq24;
use units::{Instant, Span};

/// Doublings of the handshake timer, at most.
const DOUBLINGS: u32 = 3;

/// Handshakes under way.
#[derive(Clone, Debug, Default)]
pub(super) struct Handshake {
    begin_due: bool,
    end_due: bool,
    /// BGNAK is due, echoing this stamp.
    begin_ack_due: Option<u32>,
    /// ENDAK is due for this END: its number and incarnation.
    end_ack_due: Option<(Seq24, u32)>,
    /// RST is due, naming this incarnation.
    reset_due: Option<u32>,
    /// The last BGN sent: its stamp, and when.
    begun: Option<(u32, Instant)>,
    tries: u32,
    /// When BGN or END is sent again: "T_CC".
    retry_at: Option<Instant>,
}

impl Handshake {
    /// BGN is to be sent.
    pub(super) fn begin(&mut self) {
        self.begin_due = true;
        self.retry_at = None;
    }

    /// END is to be sent.
    pub(super) fn end(&mut self) {
        self.end_due = true;
        self.retry_at = None;
    }

    /// BGNAK is to be sent.
    pub(super) fn begin_ack(&mut self, echo: u32) {
        self.begin_ack_due = Some(echo);
    }

    /// ENDAK is to be sent.
    pub(super) fn end_ack(&mut self, number: Seq24, incarnation: u32) {
        self.end_ack_due = Some((number, incarnation));
    }

    /// RST is to be sent, if there is an incarnation to name.
    pub(super) fn reset(&mut self, incarnation: Option<u32>) {
        self.reset_due = incarnation.or(self.reset_due);
    }

    /// What was sent is answered, or no answer is wanted any more.
    pub(super) fn settle(&mut self) {
        self.begin_due = false;
        self.end_due = false;
        self.begin_ack_due = None;
        self.tries = 0;
        self.retry_at = None;
    }

    pub(super) fn is_begin_due(&self) -> bool {
        self.begin_due
    }

    pub(super) fn begin_ack_due(&self) -> Option<u32> {
        self.begin_ack_due
    }

    /// Whether a segment that carries nothing else is due.
    pub(super) fn is_lone_due(&self) -> bool {
        self.reset_due.is_some() || self.end_ack_due.is_some() || self.end_due
    }

    /// Whether any segment is due.
    pub(super) fn is_due(&self) -> bool {
        self.is_lone_due() || self.begin_due || self.begin_ack_due.is_some()
    }

    pub(super) fn is_reset_due(&self) -> bool {
        self.reset_due.is_some()
    }

    pub(super) fn take_reset(&mut self) -> Option<u32> {
        self.reset_due.take()
    }

    pub(super) fn take_end_ack(&mut self) -> Option<(Seq24, u32)> {
        self.end_ack_due.take()
    }

    /// END goes out now if it is due; the timer waits `timeout` for an answer.
    pub(super) fn take_end(&mut self, now: Instant, timeout: Span) -> bool {
        let due = core::mem::take(&mut self.end_due);
        if due {
            self.retry_at = Some(now + timeout * (1 << self.tries.min(DOUBLINGS)));
        }
        due
    }

    /// BGN went out; the timer waits `timeout` for an answer if it does not run already.
    pub(super) fn on_begin_sent(&mut self, now: Instant, stamp: u32, timeout: Span) {
        self.begin_due = false;
        // With a clock that was set back a stamp is used for long. Which of these is answered
        // cannot be known; from the first one no round trip seems too short.
        let same = |(last, at): (u32, Instant)| {
            last == stamp && (now < at || now.since(at) > Span::from_millis(1))
        };
        if !self.begun.is_some_and(same) {
            self.begun = Some((stamp, now));
        }
        let wait = timeout * (1 << self.tries.min(DOUBLINGS));
        self.retry_at.get_or_insert(now + wait);
    }

    /// What was sent has not left before `left`: the timer runs from then.
    pub(super) fn left_at(&mut self, left: Instant, timeout: Span) {
        self.retry_at = self.retry_at.map(|at| at.max(left + timeout));
    }

    pub(super) fn on_begin_ack_sent(&mut self) {
        self.begin_ack_due = None;
    }

    /// When the BGN with `echo` as its stamp was sent, if it was the last one.
    pub(super) fn begun_at(&self, echo: u32) -> Option<Instant> {
        self.begun.filter(|&(stamp, _)| stamp == echo).map(|(_, at)| at)
    }

    pub(super) fn retry_at(&self) -> Option<Instant> {
        self.retry_at
    }

    /// The timer ran out. Counts the try; true when there are no more.
    pub(super) fn on_expired(&mut self, limit: u32) -> bool {
        self.retry_at = None;
        self.tries += 1;
        self.tries >= limit
    }
}
