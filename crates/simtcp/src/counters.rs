//! What an endpoint counts.

/// What an endpoint did, since its beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Segments with data or FIN, those retransmitted included.
    pub data_segments: u64,
    /// Bytes of data, each counted when it is first sent.
    pub data_bytes: u64,
    /// Segments that were retransmitted.
    pub retransmitted_segments: u64,
    /// Bytes of data that were retransmitted.
    pub retransmitted_bytes: u64,
    /// Segments without data.
    pub acknowledgements: u64,
    /// Losses found by duplicates or SACK, a window counting once.
    pub recoveries: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Windows that were reduced because a queue had marked a segment.
    pub marks: u64,
    /// Segments that the peer reported to have got twice (D-SACK).
    pub reported_duplicates: u64,
}
