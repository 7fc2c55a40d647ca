//! Whether the peer responds: outages, and the end of the session without a response.

use units::{Instant, Span};

/// Times of the last reception, of unanswered requests, and of an outage.
#[derive(Clone, Debug)]
pub(in crate::session) struct Liveness {
    /// Time of the last received segment, or of the start of the session.
    last_received: Instant,
    /// Time of the first POLL, BGN or END since then.
    unanswered_since: Option<Instant>,
    /// Start of the outage: POLLs have been unanswered for longer than the outage timeout.
    outage_since: Option<Instant>,
    /// POLLs sent before the end of the last outage give no RTT samples: they measure the outage.
    rtt_valid_from: Instant,
}

impl Liveness {
    pub(in crate::session) fn new(now: Instant) -> Self {
        Self {
            last_received: now,
            unanswered_since: None,
            outage_since: None,
            rtt_valid_from: Instant::ZERO,
        }
    }

    pub(in crate::session) fn last_received(&self) -> Instant {
        self.last_received
    }

    /// A listener has accepted a session.
    pub(in crate::session) fn restart(&mut self, now: Instant) {
        self.last_received = now;
    }

    /// A segment of this session was received.
    pub(in crate::session) fn on_received(&mut self, now: Instant) {
        self.last_received = now;
        self.unanswered_since = None;
    }

    /// A POLL, BGN or END was sent.
    pub(in crate::session) fn on_request_sent(&mut self, now: Instant) {
        self.unanswered_since.get_or_insert(now);
    }

    /// The session is closed.
    pub(in crate::session) fn stop(&mut self) {
        self.unanswered_since = None;
    }

    /// Time at which requests have been unanswered for `limit`.
    pub(in crate::session) fn no_response_at(&self, limit: Span) -> Option<Instant> {
        Some(self.unanswered_since? + limit)
    }

    pub(in crate::session) fn outage_since(&self) -> Option<Instant> {
        self.outage_since
    }

    /// POLLs have been unanswered since `since` for longer than the outage timeout.
    pub(in crate::session) fn begin_outage(&mut self, since: Instant) {
        self.outage_since = Some(since);
    }

    /// A POLL is answered, or the session is closed: returns the duration of the outage that this
    /// ends.
    pub(in crate::session) fn end_outage(&mut self, now: Instant) -> Option<Span> {
        let since = self.outage_since.take()?;
        self.rtt_valid_from = now;
        Some(now.since(since))
    }

    /// Whether a POLL that was sent at `sent` and is answered at `now` is an RTT sample. A clock
    /// that was set back gives none.
    pub(in crate::session) fn is_rtt_sample(&self, now: Instant, sent: Instant) -> bool {
        sent >= self.rtt_valid_from && now > sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Span::from_millis(millis)
    }

    /// XSTP-10.4.2
    #[test]
    fn the_response_timeout_runs_from_the_first_unanswered_request() {
        let mut liveness = Liveness::new(at(0));
        let limit = Span::from_secs(1);
        assert_eq!(liveness.no_response_at(limit), None);
        liveness.on_request_sent(at(100));
        liveness.on_request_sent(at(300));
        assert_eq!(liveness.no_response_at(limit), Some(at(1_100)));
        liveness.on_received(at(900));
        assert_eq!(liveness.no_response_at(limit), None);
    }

    #[test]
    fn polls_of_an_outage_are_no_rtt_samples() {
        let mut liveness = Liveness::new(at(0));
        assert_eq!(liveness.end_outage(at(5)), None);
        liveness.begin_outage(at(10));
        assert!(liveness.is_rtt_sample(at(20), at(15)), "the outage may be a longer RTT");
        assert_eq!(liveness.end_outage(at(30)), Some(Span::from_millis(20)));
        assert!(!liveness.is_rtt_sample(at(40), at(29)));
        assert!(liveness.is_rtt_sample(at(40), at(30)));
        assert!(!liveness.is_rtt_sample(at(40), at(40)), "the clock was set back");
    }
}
