//! Counters of an endpoint.

/// Counters since the creation of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Segments with data or FIN, retransmissions included.
    pub data_segments: u64,
    /// Octets of data, counted at their first transmission.
    pub data_bytes: u64,
    /// Segments that were retransmitted.
    pub retransmitted_segments: u64,
    /// Bytes of data that were retransmitted.
    pub retransmitted_bytes: u64,
    /// Segments without data.
    pub acknowledgements: u64,
    /// Losses detected by duplicates or SACK, once per window.
    pub recoveries: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Window reductions caused by ECN marks.
    pub marks: u64,
    /// Duplicates reported by the peer (D-SACK).
    pub reported_duplicates: u64,
}
