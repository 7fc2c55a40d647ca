//! What a session tells the layer above, and what it counts.

use super::ProbingStatistics;
use units::Span;

/// Something that the layer above should know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The session is established.
    Established,
    /// The peer has ended its direction, after everything that it sent.
    PeerEnded,
    /// Our direction is ended and the peer knows.
    SelfEnded,
    /// Both directions are over: the session is closed.
    Closed,
    /// The peer reset the session: it is closed.
    Reset,
    /// The peer refused the session: it is closed.
    Refused,
    /// The peer began a newer incarnation: this session is closed.
    Superseded,
    /// A handshake or the peer went without an answer for too long (errors O and P): the
    /// session is closed.
    NoResponse,
    /// The peer's window is shut while there is data to send (error W).
    CreditLost,
    /// The peer's window is open again (error X).
    CreditRegained,
    /// POLLs have not been answered for this long: the link is down, or the peer is.
    OutageBegan {
        /// How long nothing has come.
        silence: Span,
    },
    /// A POLL is answered again.
    OutageEnded {
        /// How long nothing had come.
        silence: Span,
    },
}

impl Event {
    /// Whether it tells of something that comes and goes, and not of the session's state.
    pub(super) fn is_report(self) -> bool {
        match self {
            Self::CreditLost | Self::CreditRegained => true,
            Self::OutageBegan { .. } | Self::OutageEnded { .. } => true,
            Self::Established | Self::PeerEnded | Self::SelfEnded | Self::Closed => false,
            Self::Reset | Self::Refused | Self::Superseded | Self::NoResponse => false,
        }
    }
}

/// What a session has counted since its beginning. The letters are SSCOP's error codes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Segments sent.
    pub segments_sent: u64,
    /// Octets of these segments, without what lies below XSTP.
    pub octets_sent: u64,
    /// Segments received that belong to this session and are well formed.
    pub segments_received: u64,
    /// Octets of these segments.
    pub octets_received: u64,
    /// SDs sent for the first time.
    pub data_sent: u64,
    /// Payload bytes of these SDs.
    pub data_bytes_sent: u64,
    /// SDs sent again.
    pub data_retransmitted: u64,
    /// Payload bytes of these SDs.
    pub data_bytes_retransmitted: u64,
    /// SDs received for the first time.
    pub data_received: u64,
    /// Payload bytes of these SDs.
    pub data_bytes_received: u64,
    /// SDs received again (a part of error Q).
    pub duplicates_received: u64,
    /// SDs received beyond the window (a part of error Q).
    pub beyond_window_received: u64,
    /// POLLs sent.
    pub polls_sent: u64,
    /// POLLs sent alone or with other control, without an SD.
    pub polls_sent_alone: u64,
    /// POLLs received.
    pub polls_received: u64,
    /// POLLs received that were older than one already received.
    pub polls_old: u64,
    /// STATs sent.
    pub stats_sent: u64,
    /// STATs received and used.
    pub stats_received: u64,
    /// USTATs sent.
    pub ustats_sent: u64,
    /// USTATs received and used.
    pub ustats_received: u64,
    /// Numbers that STATs and USTATs reported missing (V).
    pub reported_lost: u64,
    /// Handshakes given up (O).
    pub handshakes_failed: u64,
    /// Times that the peer was silent for too long (P).
    pub no_response: u64,
    /// STATs that answer no POLL that waits for one (R): old or reordered, mostly.
    pub stat_poll_errors: u64,
    /// STATs with an impossible N(R) or list (S).
    pub stat_list_errors: u64,
    /// USTATs with an impossible N(R) or list (T): old or reordered, mostly.
    pub ustat_errors: u64,
    /// Segments that could not be decoded (U).
    pub malformed: u64,
    /// Segments of another incarnation.
    pub other_incarnation: u64,
    /// Segments that have no business in the present state (A to M).
    pub unexpected: u64,
    /// Times that the peer's window shut (W).
    pub credit_lost: u64,
    /// Times that it opened again (X).
    pub credit_regained: u64,
    /// Outages noticed.
    pub outages: u64,
    /// What probing did.
    pub probing: ProbingStatistics,
    /// Events dropped because nobody took them.
    pub events_dropped: u64,
}
