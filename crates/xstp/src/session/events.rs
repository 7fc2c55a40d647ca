//! Events for the upper layer, and counters.

use super::loss::ProbingStatistics;
use alloc::collections::VecDeque;
use units::Span;

/// Maximum number of queued events that do not concern the state of the session.
const MAX_REPORTS: usize = 64;

/// Event for the upper layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The session is established.
    Established,
    /// The peer has closed its direction; all its data was delivered.
    PeerEnded,
    /// The own direction is closed, and the peer has acknowledged it.
    SelfEnded,
    /// Both directions are closed: the session is closed.
    Closed,
    /// The peer has reset the session: it is closed.
    Reset,
    /// The peer has refused the session: it is closed.
    Refused,
    /// The peer has started a newer incarnation: this session is closed.
    Superseded,
    /// A handshake failed or the peer does not respond (errors O and P): the session is closed.
    NoResponse,
    /// The window of the peer is closed while data waits (error W).
    WindowClosed,
    /// The window of the peer has reopened (error X).
    WindowReopened,
    /// POLLs are unanswered for longer than the outage timeout: the link or the peer is down.
    OutageBegan {
        /// Time without a STAT.
        duration: Span,
    },
    /// A POLL is answered: the outage is over.
    OutageEnded {
        /// Duration of the outage.
        duration: Span,
    },
}

impl Event {
    /// Whether it concerns a transient condition, and not the state of the session.
    fn is_report(self) -> bool {
        match self {
            Self::WindowClosed | Self::WindowReopened => true,
            Self::OutageBegan { .. } | Self::OutageEnded { .. } => true,
            Self::Established | Self::PeerEnded | Self::SelfEnded | Self::Closed => false,
            Self::Reset | Self::Refused | Self::Superseded | Self::NoResponse => false,
        }
    }
}

/// Counters of a session since its start. Letters are error codes of SSCOP (Q.2110).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Segments sent.
    pub segments_sent: u64,
    /// Octets of these segments, without the headers below XSTP.
    pub octets_sent: u64,
    /// Valid segments of this session that were received.
    pub segments_received: u64,
    /// Octets of these segments.
    pub octets_received: u64,
    /// New SDs sent.
    pub data_sent: u64,
    /// Payload octets of these SDs.
    pub data_bytes_sent: u64,
    /// SDs retransmitted.
    pub data_retransmitted: u64,
    /// Payload octets of these SDs.
    pub data_bytes_retransmitted: u64,
    /// New SDs received.
    pub data_received: u64,
    /// Payload octets of these SDs.
    pub data_bytes_received: u64,
    /// Duplicate SDs received (a part of error Q).
    pub duplicates_received: u64,
    /// SDs received beyond the window (a part of error Q).
    pub beyond_window_received: u64,
    /// POLLs sent.
    pub polls_sent: u64,
    /// POLLs sent without an SD.
    pub polls_sent_standalone: u64,
    /// POLLs received.
    pub polls_received: u64,
    /// POLLs received that were not newer than the last one.
    pub stale_polls_received: u64,
    /// STATs sent.
    pub stats_sent: u64,
    /// Valid STATs received.
    pub stats_received: u64,
    /// USTATs sent.
    pub ustats_sent: u64,
    /// Valid USTATs received.
    pub ustats_received: u64,
    /// Packets that STATs and USTATs reported missing (V).
    pub reported_missing: u64,
    /// Repair symbols sent (XSTP-15).
    pub repairs_sent: u64,
    /// Repair symbols that were due, but exceeded the configured share of the rate.
    pub repairs_withheld: u64,
    /// Repair symbols received.
    pub repairs_received: u64,
    /// Packets that repair symbols recovered; they are counted as SDs received too.
    pub packets_recovered: u64,
    /// Repair symbols that contradict the packets received.
    pub repair_errors: u64,
    /// Failed handshakes (O).
    pub handshakes_failed: u64,
    /// Expirations of the no-response timer (P).
    pub no_response: u64,
    /// STATs for a POLL that is not outstanding (R): mostly old or reordered ones.
    pub stat_poll_errors: u64,
    /// STATs with an invalid N(R) or list (S).
    pub stat_list_errors: u64,
    /// USTATs with an invalid N(R) or list (T): mostly old or reordered ones.
    pub ustat_errors: u64,
    /// Malformed segments (U).
    pub malformed: u64,
    /// Segments of another incarnation.
    pub other_incarnation: u64,
    /// Segments not allowed in the state (A to M).
    pub unexpected: u64,
    /// Closures of the window of the peer (W).
    pub windows_closed: u64,
    /// Reopenings of it (X).
    pub windows_reopened: u64,
    /// Outages.
    pub outages: u64,
    /// Counters of probing.
    pub probing: ProbingStatistics,
    /// Events dropped because the queue was full.
    pub events_dropped: u64,
}

/// Events that the upper layer has not taken yet.
#[derive(Clone, Debug, Default)]
pub(super) struct EventQueue(VecDeque<Event>);

impl EventQueue {
    /// Queues an event; returns false if it is dropped. Events of the state of the session are
    /// bounded in number, and are never dropped.
    pub(super) fn push(&mut self, event: Event) -> bool {
        let fits = !event.is_report() || self.0.len() < MAX_REPORTS;
        if fits {
            self.0.push_back(event);
        }
        fits
    }

    pub(super) fn pop(&mut self) -> Option<Event> {
        self.0.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_reports_are_dropped_when_the_queue_is_full() {
        let mut queue = EventQueue::default();
        for _ in 0..MAX_REPORTS {
            assert!(queue.push(Event::WindowClosed));
        }
        assert!(!queue.push(Event::WindowReopened));
        assert!(queue.push(Event::Closed));
        assert_eq!(core::iter::from_fn(|| queue.pop()).count(), MAX_REPORTS + 1);
    }
}
