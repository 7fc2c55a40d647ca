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
    /// Transmission of data in the outage.
    resumption: Resumption,
    /// POLLs sent before the end of the last outage give no RTT samples: they measure the outage.
    rtt_valid_from: Instant,
}

/// Whether data is sent in an outage because a segment of the peer was received. Any segment shows
/// that the reverse path is up, and only a STAT or USTAT that the forward path is, too. So another
/// segment permits data once in an outage, and for a limited time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resumption {
    /// No segment was received in the outage.
    Possible,
    /// The first one was received at this time.
    Since(Instant),
    /// No STAT or USTAT has followed.
    Failed,
    /// A STAT or USTAT was received.
    Confirmed,
}

impl Liveness {
    pub(in crate::session) fn new(now: Instant) -> Self {
        Self {
            last_received: now,
            unanswered_since: None,
            outage_since: None,
            resumption: Resumption::Possible,
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
        self.resumption = Resumption::Possible;
    }

    /// Whether a segment of the peer, received at `now` in an outage, permits data. A `report` has a
    /// STAT or USTAT.
    pub(in crate::session) fn resumes(&mut self, now: Instant, is_report: bool) -> bool {
        match self.resumption {
            _ if is_report => self.resumption = Resumption::Confirmed,
            Resumption::Possible => self.resumption = Resumption::Since(now),
            Resumption::Since(_) | Resumption::Failed => return false,
            Resumption::Confirmed => {}
        }
        true
    }

    /// Time since which data is sent in an outage although no STAT or USTAT was received.
    pub(in crate::session) fn resumed_at(&self) -> Option<Instant> {
        match self.resumption {
            Resumption::Since(at) if self.outage_since.is_some() => Some(at),
            _ => None,
        }
    }

    /// No STAT or USTAT has followed the segment after which data was sent.
    pub(in crate::session) fn fail_resumption(&mut self) {
        self.resumption = Resumption::Failed;
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

    /// XSTP-10.5.2
    #[test]
    fn the_first_segment_in_an_outage_resumes_data_for_a_limited_time() {
        let mut liveness = Liveness::new(at(0));
        liveness.begin_outage(at(10));
        assert_eq!(liveness.resumed_at(), None);
        assert!(liveness.resumes(at(20), false));
        assert!(!liveness.resumes(at(30), false));
        assert_eq!(liveness.resumed_at(), Some(at(20)), "not extended by further segments");
        liveness.fail_resumption();
        assert!(!liveness.resumes(at(40), false));
        assert_eq!(liveness.resumed_at(), None);
        assert!(liveness.resumes(at(41), true) && liveness.resumes(at(42), false));
        assert_eq!(liveness.resumed_at(), None, "a report permits data without a limit");
        assert!(liveness.end_outage(at(50)).is_some());
        liveness.begin_outage(at(60));
        assert!(liveness.resumes(at(70), false), "once in each outage");
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
