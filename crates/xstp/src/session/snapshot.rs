//! Variables of a session for time series, displays and later sessions.

use units::{BitRate, Instant, Span};

/// Variables of a session at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot {
    /// Mode of the controller: of `fixed` "configured" (the configured rate), "capped", "draining"
    /// or "settling"; of `newreno` "slow start" or "avoidance", or "probing" in a cycle of
    /// XSTP-13; of `steady` "train", "ramp", "cruise", "probing" (for bandwidth), "draining",
    /// "settling", "sharing" or "competing".
    pub mode: &'static str,
    /// Pacing rate of all segments, in bits of whole IP packets per second; `None` with a window
    /// controller.
    pub rate: Option<BitRate>,
    /// Congestion window in octets, if the controller has one.
    pub congestion_window: Option<u64>,
    /// Slow-start threshold in octets.
    pub ssthresh: Option<u64>,
    /// Payload octets sent and not released.
    pub outstanding_bytes: u64,
    /// Packets in the retransmission queue.
    pub retransmit_queue: u64,
    /// Smoothed RTT (RFC 9002 section 5.3), if it was measured.
    pub srtt: Option<Span>,
    /// Minimum RTT so far.
    pub min_rtt: Option<Span>,
    /// Queuing delay of the forward path, if the controller measures it.
    pub queuing_delay: Option<Span>,
    /// Jitter of the forward path's delay (RFC 3393), if the controller measures it.
    pub jitter: Option<Span>,
    /// Loss ratio of the forward path without congestion, in millionths, if the controller
    /// measures it.
    pub error_ppm: Option<u64>,
    /// Whether a probing cycle is running.
    pub is_probing: bool,
    /// Start of the outage, during one.
    pub outage_since: Option<Instant>,
}

/// Metrics of a path that a session has measured (RFC 9040).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathMetrics {
    /// Confirmed rate, in bits of whole IP packets per second.
    pub rate: BitRate,
    /// Minimum RTT (RFC 9002 section 5.2).
    pub min_rtt: Span,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{Session, SessionConfig};

    #[test]
    fn a_snapshot_has_the_rate_and_window_of_the_session() {
        let session = Session::listen(&SessionConfig::gateway(BitRate::from_mbps(10)));
        let seen = session.snapshot(Instant::ZERO);
        assert_eq!(seen.mode, "configured");
        assert_eq!(seen.rate, Some(BitRate::from_bps(9_980_000)), "less the headroom");
        assert_eq!((seen.congestion_window, seen.srtt), (None, None));
        assert_eq!(session.rate(Instant::ZERO), seen.rate);
        let session = Session::listen(&SessionConfig::stp_1999());
        let seen = session.snapshot(Instant::ZERO);
        assert_eq!(seen.mode, "slow start");
        assert_eq!((seen.rate, seen.ssthresh), (None, None));
        assert_eq!(seen.congestion_window, Some(1461));
    }
}
