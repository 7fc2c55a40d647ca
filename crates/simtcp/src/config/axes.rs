//! The choices on the three axes of a TCP: opening, recovery and window.

/// How a connection opens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Opening {
    /// SYN, SYN and ACK, ACK; data from then on (RFC 9293, section 3.5).
    #[default]
    ThreeWay,
    /// T/TCP: data and FIN on the SYN, connection counts that identify old SYNs, and a short
    /// TIME-WAIT (RFC 1644). Data on a SYN is at most one segment. Requires a
    /// [`HostCache`](crate::HostCache) at both ends; without one every connection uses three
    /// segments, with data.
    Transaction,
    /// TCP Fast Open: data on the SYN of a client that has the server's cookie (RFC 7413). Requires
    /// a [`HostCache`](crate::HostCache) at both ends.
    FastOpen,
}

/// Loss detection and recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecoveryKind {
    /// Three duplicates; ends with the first new acknowledgement (RFC 2001, section 4; RFC 5681,
    /// section 3.2).
    Reno,
    /// Three duplicates, then a segment for each partial acknowledgement (RFC 6582).
    NewReno,
    /// Reno that retransmits what SACK blocks show to be lost (Henderson & Katz 1999, appendix,
    /// rules 5 to 7); Reno without SACK at the peer.
    SackReno,
    /// NewReno that retransmits what SACK blocks show to be lost (Henderson & Katz 1999, appendix,
    /// rules 1 to 7); rules 1 to 4 without SACK at the peer.
    SackNewReno,
    /// Reno with a fine-grained timer: a duplicate, or one of the first two acknowledgements after
    /// a retransmission, checks whether the oldest segment has timed out (Brakmo & Peterson 1995,
    /// section III.A).
    Vegas,
    /// SACK-based recovery (RFC 6675); NewReno without SACK at the peer.
    Sack,
    /// Time-based detection (RACK, RFC 8985), as Linux; NewReno without SACK at the peer.
    Rack,
}

/// When NewReno restarts the retransmission timer during recovery (RFC 6582, section 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RepairTimer {
    /// At the first partial acknowledgement only: a recovery of many segments ends in a timeout and
    /// slow start. RFC 6582, section 3.2, step 3.
    #[default]
    Impatient,
    /// At each partial acknowledgement, as at all that acknowledges new data (RFC 6298, rule 5.3):
    /// a recovery takes a round trip per segment.
    SlowButSteady,
}

/// Congestion control of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WindowKind {
    /// Slow start, congestion avoidance, halving at a loss (RFC 5681).
    Reno,
    /// CUBIC (RFC 9438).
    Cubic {
        /// How slow start ends on a growing round trip.
        early_end: EarlyEnd,
    },
    /// A target number of segments in the queue, estimated from the round trip (Brakmo & Peterson
    /// 1995).
    Vegas,
    /// A model of the path, with pacing (draft-cardwell-iccrg-bbr-congestion-control-00).
    Bbr,
    /// BBR version 3: the model is bounded by losses and marks as well (draft-ietf-ccwg-bbr).
    Bbr3,
    /// A reduction in proportion to the marked share (RFC 8257), with ECT(1) (RFC 9331).
    Prague,
}

/// How slow start ends before a loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EarlyEnd {
    /// Only at a loss.
    #[default]
    Never,
    /// HyStart++ (RFC 9406).
    HyStartPlusPlus,
    /// HyStart as implemented in Linux.
    LinuxHyStart,
}
