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
            retransmit_rule: RetransmitRule::BackedOff,
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::{String, ToString};

    /// XSTP-12.1.2
    #[test]
    fn the_specification_has_the_preset() {
        let text = include_str!("../../../../docs/spec/xstp.md");
        let config = SessionConfig::xstp_2003();
        let probing = config.probing.expect("probing");
        let yes = |value: bool| String::from(if value { "yes" } else { "no" });
        let ms = |span: Span| span.as_millis().to_string();
        let pause = config.slow_start_after_idle.expect("a pause");
        let backed_off = config.retransmit_rule == RetransmitRule::BackedOff;
        let rows = [
            ("payload of a full packet, octets", config.payload_size().to_string()),
            ("own number window", config.number_window.to_string()),
            ("window told", config.receive_window.to_string()),
            ("assumed window", config.assumed_window.to_string()),
            ("send buffer, octets", config.send_buffer.to_string()),
            ("share of it that forces a POLL, octets", "32000".to_string()),
            ("rule of round trips, backed off", yes(backed_off)),
            ("back to back when sent again, packets", config.again_burst.to_string()),
            ("back to back when new, packets below", config.burst_threshold.to_string()),
            ("slow start after, ms", ms(pause)),
            ("an outage counts as a pause", yes(config.outage_is_idle)),
            ("small-window mode below, packets", config.small_window.to_string()),
            ("riding before it is due, ms", ms(config.poll_ride_early)),
            ("reordering threshold", config.ustat_threshold.to_string()),
            ("tries of BGN and END", config.handshake_tries.to_string()),
            ("MAX_PROBES", probing.max_probes.to_string()),
            ("REQ_PROBES", probing.required_probes.to_string()),
            ("RTT_TOLERANCE, millionths", probing.tolerance_millionths.to_string()),
            ("idle threshold, ms", ms(probing.idle_threshold)),
        ];
        let (_, table) = text.split_once("**XSTP-12.1.2**").expect("the clause");
        for (name, value) in rows {
            let start = std::format!("| {name} | ");
            let row = table.lines().find(|line| line.starts_with(&start));
            let end = std::format!(" | {value} |");
            assert!(row.is_some_and(|row| row.ends_with(&end)), "{name}: {value} is not {row:?}");
        }
        assert_eq!(config.poll_after_bytes, Some(32_000));
        assert_eq!(config.no_response, None);
    }
}
