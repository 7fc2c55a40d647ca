//! Configuration of a session: settings that every session has, and one policy for each
//! generation of the protocol.
//!
//! ```text
//!   SessionConfig    framing, rates, windows, timers
//!     ├─ stp         StpPolicy      POLL triggers and burst schedule of STP (1999)
//!     ├─ xstp        XstpPolicy     additions of XSTP (2003): probing, rules of retransmission
//!     └─ gateway     GatewayPolicy  additions of gateways: early release, duplication, low rates
//! ```
//!
//! A later generation extends an earlier one, so a session has all three policies; the presets
//! turn off what their generation does not have. Derive a configuration from a preset.

mod policy;
mod presets;

pub use policy::{
    GatewayPolicy, Halve, LossRoundTrip, LowRatePolicy, ProbingConfig, RetransmitRule, Spread,
    StpPolicy, XstpPolicy,
};

use crate::seq::Seq24;
use crate::wire::{Delivery, Profile};
use core::fmt;
use units::{BitRate, Span};

/// Congestion controller of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Controller {
    /// Sends at the configured rate without a congestion window.
    Fixed,
    /// Slow start, congestion avoidance by byte counting, and one halving per window: STP as
    /// published.
    NewReno,
    /// Estimates the bottleneck rate, follows it, and backs off for competing traffic. A
    /// configured rate is the rate cap.
    Steady,
}

impl Controller {
    /// Name of the controller in configuration files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::NewReno => "newreno",
            Self::Steady => "steady",
        }
    }
}

/// Settings of a session. Derive them from a preset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionConfig {
    /// Format of the segments.
    pub profile: Profile,
    /// Delivery to the upper layer: in order or immediate. Both peers use the same.
    pub delivery: Delivery,
    /// Congestion controller.
    pub controller: Controller,
    /// Minimum pacing rate, in bits of whole IP packets (with `packet_overhead`) per second.
    pub min_rate: Option<BitRate>,
    /// Maximum pacing rate, in the same unit. `fixed` sends at this rate less the headroom.
    pub max_rate: Option<BitRate>,
    /// Rate at which `steady` starts: the confirmed rate of an earlier session on this path.
    pub initial_rate: Option<BitRate>,
    /// Rate of the reverse path, if known: it bounds the rate of POLLs.
    pub reverse_rate: Option<BitRate>,
    /// Fraction of `max_rate` that is left unused to avoid a standing queue, in millionths.
    pub headroom_millionths: u32,
    /// Octets per packet below XSTP that rates include: IP, UDP, and header and tag of the
    /// association.
    pub packet_overhead: usize,
    /// Maximum segment size for sending and receiving, in octets with the header of XSTP.
    pub max_segment: usize,
    /// Sequence number of the first packet of each direction, the same at both peers. The
    /// specification says 0; tests use others to reach the wrap of the number space.
    pub first_number: Seq24,
    /// Send window in packets, from the oldest unacknowledged one on: the own number window
    /// (XSTP-7.1.2).
    pub number_window: u32,
    /// Receive window advertised to the peer, in packets, until the upper layer sets another one.
    pub receive_window: u32,
    /// Capacity of the send buffer of a [`Connection`](crate::Connection), in octets.
    pub send_buffer: usize,
    /// Receive window of the peer that is assumed until its first message, in packets.
    pub initial_peer_window: u32,
    /// Initial congestion window, in segments.
    pub initial_window: u32,
    /// Number of timer POLLs per `poll_round_trips` (XSTP-10.2.1).
    pub polls_per_round_trip: u32,
    /// Number of SRTTs over which these POLLs are spread: 1, or 2 for one POLL every two RTTs.
    pub poll_round_trips: u32,
    /// Maximum number of doublings of the POLL interval while POLLs are unanswered.
    pub poll_backoff_cap: u32,
    /// Minimum interval between two POLLs, and between two STATs.
    pub control_spacing: Span,
    /// Packets that are received after a gap before a USTAT reports it.
    pub ustat_threshold: u32,
    /// Delay of a USTAT, so that it also reports gaps that follow shortly after.
    pub ustat_hold: Span,
    /// Granularity of coarse timers; fallback POLLs wait at least two of these.
    pub tick: Span,
    /// Time that the pacer may catch up after a late timer.
    pub pacing_burst: Span,
    /// RTT that is assumed before the first sample.
    pub initial_rtt: Span,
    /// Minimum retransmission timeout of BGN and END.
    pub handshake_timeout: Span,
    /// Maximum number of transmissions of BGN and END.
    pub handshake_tries: u32,
    /// Time without a received segment after which an idle session sends a POLL.
    pub keep_alive: Span,
    /// Time without a response after which the session is closed.
    pub no_response: Option<Span>,
    /// Switches of STP (1999).
    pub stp: StpPolicy,
    /// Additions of XSTP (2003).
    pub xstp: XstpPolicy,
    /// Additions of gateways.
    pub gateway: GatewayPolicy,
}

impl SessionConfig {
    /// Sets the settings of probing; `None` turns it off.
    #[must_use]
    pub fn with_probing(mut self, probing: Option<ProbingConfig>) -> Self {
        self.xstp.probing = probing;
        self
    }

    /// Turns on the rules for low-rate paths, with at most 1/`control_divisor` of the send rate
    /// for control traffic.
    #[must_use]
    pub fn with_low_rate_rules(mut self, control_divisor: u32) -> Self {
        self.gateway.low_rate = Some(LowRatePolicy { control_divisor });
        self
    }

    /// Payload octets of a full segment with SD. A published one always has room for a POLL.
    pub fn payload_size(&self) -> usize {
        self.max_segment.saturating_sub(self.data_overhead())
    }

    /// Rate cap of the session: `max_rate` less the headroom.
    pub fn paced_rate(&self) -> Option<BitRate> {
        self.max_rate.map(|rate| self.less_headroom(rate))
    }

    /// Returns `rate` less the headroom.
    pub(crate) fn less_headroom(&self, rate: BitRate) -> BitRate {
        let kept = 1_000_000_u32.saturating_sub(self.headroom_millionths);
        rate.mul_ratio(u64::from(kept), 1_000_000)
    }

    /// Octets of a segment with SD that are not payload.
    pub(crate) fn data_overhead(&self) -> usize {
        match self.profile {
            Profile::Published(_) => 16 + 3,
            Profile::Sealed => 4,
        }
    }

    /// Checks that the settings are valid and consistent.
    ///
    /// # Errors
    /// The first setting that is not.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let least_segment = self.data_overhead() + 64;
        let checks = [
            ("max_segment", self.max_segment >= least_segment, "room for 64 payload bytes"),
            ("max_segment", self.max_segment <= 65_515, "at most 65515 bytes"),
            ("number_window", (1..=Seq24::HALF).contains(&self.number_window), "1 to 2^23"),
            ("receive_window", (1..=Seq24::HALF).contains(&self.receive_window), "1 to 2^23"),
            ("polls_per_round_trip", self.polls_per_round_trip > 0, "at least 1"),
            ("poll_round_trips", (1..=16).contains(&self.poll_round_trips), "1 to 16"),
            ("poll_backoff_cap", self.poll_backoff_cap <= 16, "at most 16"),
            ("ustat_threshold", self.ustat_threshold > 0, "at least 1"),
            (
                "controller",
                // A published STAT has no measurements of the receiver.
                self.controller != Controller::Steady || self.profile == Profile::Sealed,
                "the profile `sealed` for `steady`",
            ),
            (
                "xstp.probing",
                self.xstp.probing.is_none() || self.controller == Controller::NewReno,
                "the controller `newreno`",
            ),
            (
                "xstp.probing.required_probes",
                self.xstp.probing.is_none_or(|p| (1..=p.max_probes).contains(&p.required_probes)),
                "1 to max_probes",
            ),
            (
                "xstp.probing.max_probes",
                self.xstp.probing.is_none_or(|p| (1..=256).contains(&p.max_probes)),
                "1 to 256",
            ),
            ("tick", !self.tick.is_zero(), "above zero"),
            ("keep_alive", !self.keep_alive.is_zero(), "above zero"),
            ("handshake_timeout", !self.handshake_timeout.is_zero(), "above zero"),
            ("handshake_tries", self.handshake_tries > 0, "at least 1"),
            ("initial_rtt", !self.initial_rtt.is_zero(), "above zero"),
            ("headroom_millionths", self.headroom_millionths < 1_000_000, "below 1000000"),
            (
                "max_rate",
                self.controller != Controller::Fixed || self.max_rate.is_some(),
                "a rate for the controller `fixed`",
            ),
            (
                // Control traffic without data is not delayed by the pacer, but accounted to it.
                "gateway.low_rate",
                self.max_rate.is_none() || self.gateway.control_divisor().is_some_and(|n| n >= 2),
                "a control_divisor of at least 2 with a max_rate, or nothing may be left for data",
            ),
            (
                "gateway.low_rate.control_divisor",
                self.gateway.control_divisor().is_none_or(|divisor| divisor > 0),
                "at least 1",
            ),
            (
                "gateway.repair_percent",
                self.gateway.repair_percent.is_none_or(|percent| {
                    self.profile == Profile::Sealed && (1..=50).contains(&percent)
                }),
                "1 to 50, and the profile `sealed`",
            ),
            (
                "min_rate",
                self.min_rate.zip(self.max_rate).is_none_or(|(min, max)| min <= max),
                "at most max_rate",
            ),
        ];
        match checks.into_iter().find(|(_, holds, _)| !holds) {
            Some((setting, _, expected)) => Err(ConfigError { setting, expected }),
            None => Ok(()),
        }
    }
}

/// Invalid setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// Name of the field of [`SessionConfig`].
    pub setting: &'static str,
    /// Expected value.
    pub expected: &'static str,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: expected {}", self.setting, self.expected)
    }
}

impl core::error::Error for ConfigError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_valid() {
        assert_eq!(SessionConfig::stp_1999().validate(), Ok(()));
        assert_eq!(SessionConfig::xstp_2003().validate(), Ok(()));
        for bps in [1_000, 64_000, 10_000_000, 250_000_000, u64::MAX] {
            assert_eq!(SessionConfig::gateway(BitRate::from_bps(bps)).validate(), Ok(()));
        }
        assert_eq!(SessionConfig::gateway_auto().validate(), Ok(()));
    }

    #[test]
    fn steady_needs_the_sealed_profile() {
        let controller = Controller::Steady;
        let published = SessionConfig { controller, ..SessionConfig::stp_1999() };
        assert_eq!(published.validate().map_err(|error| error.setting), Err("controller"));
    }

    /// XSTP-8.1.7
    #[test]
    fn a_maximum_rate_needs_a_control_divisor() {
        let max_rate = Some(BitRate::from_kbps(200));
        let mut config = SessionConfig { max_rate, ..SessionConfig::stp_1999() };
        assert!(config.validate().is_err());
        for (divisor, valid) in [(0, false), (1, false), (2, true), (4, true)] {
            config.gateway.low_rate = Some(LowRatePolicy { control_divisor: divisor });
            assert_eq!(config.validate().is_ok(), valid, "{divisor}");
        }
    }

    #[test]
    fn an_invalid_setting_is_named() {
        let mut config = SessionConfig::gateway(BitRate::from_mbps(1));
        config.max_rate = None;
        let error = config.validate().unwrap_err();
        assert_eq!(error.setting, "max_rate");
        assert_eq!(std::format!("{error}"), "max_rate: expected a rate for the controller `fixed`");
    }
}
