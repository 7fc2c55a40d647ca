//! The choices on the three axes of a TCP: opening, recovery and window.

/// How a connection opens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Opening {
    /// SYN, SYN and ACK, ACK; data from then on (RFC 9293, section 3.5).
    #[default]
    ThreeWay,
    /// T/TCP: data and FIN with SYN, connection counts to know old SYNs by, and a short TIME-WAIT
    /// (RFC 1644). Data that goes with SYN is one segment at most. Wants a [`HostCache`](crate::HostCache) at both
    /// ends; without one, every connection is the first and opens by three segments, with data.
    Transaction,
    /// TCP Fast Open: data with SYN for a client that has the server's cookie (RFC 7413). Wants
    /// a [`HostCache`](crate::HostCache) at both ends.
    FastOpen,
}

/// How losses are found and repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecoveryKind {
    /// Three duplicates, and over with the first new acknowledgement (RFC 2001, section 4;
    /// RFC 5681, section 3.2).
    Reno,
    /// Three duplicates, then a segment for each partial acknowledgement (RFC 6582).
    NewReno,
    /// Reno that sends again what SACK blocks show to be lost (Henderson & Katz 1999, appendix,
    /// rules 5 to 7); Reno where the peer has no SACK.
    SackReno,
    /// NewReno that sends again what SACK blocks show to be lost (Henderson & Katz 1999,
    /// appendix, rules 1 to 7); rules 1 to 4 where the peer has no SACK.
    SackNewReno,
    /// Reno with a finer clock: a duplicate, or one of the first two acknowledgements after a
    /// retransmission, is reason to look whether the oldest is out for longer than it should
    /// (Brakmo & Peterson 1995, section III.A).
    Vegas,
    /// By the blocks of SACK options (RFC 6675); NewReno where the peer has no SACK.
    Sack,
    /// By when segments were sent (RACK, RFC 8985), as Linux; NewReno where the peer has no SACK.
    Rack,
}

/// When NewReno's retransmission timer starts anew during a repair (RFC 6582, section 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RepairTimer {
    /// With the first partial acknowledgement only: a repair of many segments ends in a timeout,
    /// and slow start sends the rest. What RFC 6582 has in its section 3.2, step 3.
    #[default]
    Impatient,
    /// With each partial acknowledgement, as with all that acknowledges new data (RFC 6298,
    /// rule 5.3): a repair takes a round trip for each segment, however many they are.
    SlowButSteady,
}

/// Which law the congestion window follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WindowKind {
    /// Slow start, congestion avoidance, half at a loss (RFC 5681).
    Reno,
    /// CUBIC (RFC 9438).
    Cubic {
        /// How slow start ends when the round trip grows.
        early_end: EarlyEnd,
    },
    /// As many segments in the queue as it wants there, by the round trip (Brakmo & Peterson
    /// 1995).
    Vegas,
    /// A model of the path, and pacing (draft-cardwell-iccrg-bbr-congestion-control-00).
    Bbr,
}

/// How slow start ends before a loss ends it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EarlyEnd {
    /// It does not.
    #[default]
    Never,
    /// HyStart++ (RFC 9406).
    HyStartPlusPlus,
    /// HyStart as Linux has it.
    LinuxHyStart,
}
