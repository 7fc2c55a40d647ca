//! The preset of the XSTP paper.

use super::{ProbingConfig, RetransmitRule, SessionConfig};
use units::Span;

impl SessionConfig {
    /// XSTP with probing as Elaasar et al. 2003 measured it (sections 3 to 5), between two
    /// unspecified addresses: set `profile` to the real ones. Without `probing` it is what the
    /// paper calls XSTP-OFF.
    ///
    /// It differs from STP where the paper says so: segments of 1,000 bytes and windows of 64,
    /// POLLs by the timer alone, a reordering threshold, slow start after a pause, and the time
    /// that must pass before a STAT has anything sent again. What the paper leaves open is
    /// listed with its reasons in `docs/decisions/xstp-2003.md`.
    pub fn xstp_2003() -> Self {
        let stp = Self::stp_1999();
        Self {
            probing: Some(ProbingConfig::default()),
            max_segment: 1_000 + stp.data_overhead(),
            number_window: 64,
            receive_window: 64,
            assumed_window: 64,
            send_buffer: 64_000,
            poll_after_bytes: Some(32_000),
            retransmit_rule: RetransmitRule::RoundTrip,
            slow_start_after_idle: Some(Span::from_secs(3)),
            outage_is_idle: true,
            again_burst: 8,
            burst_threshold: 8,
            small_window: 0,
            // A POLL before its time would come before the STAT that it is to follow.
            poll_ride_early: Span::ZERO,
            poll_ends_burst: true,
            poll_first_burst: true,
            poll_when_shut: false,
            ustat_threshold: 3,
            // Blackouts last for minutes there, and nothing is said of giving up.
            handshake_tries: 10_000,
            no_response: None,
            ..stp
        }
    }
}
