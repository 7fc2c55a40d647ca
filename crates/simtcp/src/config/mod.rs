//! Configuration of a TCP.

mod axes;
mod presets;
mod settings;

pub use axes::{EarlyEnd, Opening, RecoveryKind, RepairTimer, WindowKind};
pub use settings::{AfterIdle, DelayedAck, InitialWindow};

use crate::probing::Probing;
use crate::round_trip::RtoConfig;
use core::fmt;
use units::Span;

/// Parameters of a TCP: a choice on each of the three axes, and options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpConfig {
    /// First axis: connection opening.
    pub opening: Opening,
    /// Second axis: loss recovery.
    pub recovery: RecoveryKind,
    /// Third axis: congestion window.
    pub window: WindowKind,
    /// Maximum segment size received, in octets after the headers without options: the MTU less 40
    /// (RFC 6691).
    pub max_segment: u16,
    /// Window before the first acknowledgement.
    pub initial_window: InitialWindow,
    /// Maximum window growth per acknowledgement in slow start, in segments; `None`: all
    /// acknowledged data (RFC 5681, section 3.1: 1; RFC 3465, section 2.2: 2; Linux: all).
    pub slow_start_limit: Option<u32>,
    /// Congestion avoidance counts acknowledged octets (RFC 3465, section 2.1). Otherwise each
    /// acknowledgement opens the window by SMSS²/cwnd (RFC 2581, equation 2), and delayed
    /// acknowledgements halve its growth.
    pub byte_counting: bool,
    /// Window after an idle time longer than the retransmission timeout.
    pub after_idle: AfterIdle,
    /// Limited transmit: the first two duplicates send new data (RFC 3042).
    pub limited_transmit: bool,
    /// When NewReno restarts the retransmission timer during recovery.
    pub repair_timer: RepairTimer,
    /// Proportional rate reduction during recovery (RFC 6937).
    pub proportional_reduction: bool,
    /// Pacing: in slow start the window is sent in half a round trip, later in 5/6 of one, as in
    /// Linux with fq. Windows with a rate of their own are always paced.
    pub pacing: bool,
    /// Path MTU discovery: by ICMP ([`Endpoint::handle_too_big`](crate::Endpoint::handle_too_big);
    /// RFC 1191), and black-hole detection after repeated timeouts of full segments (RFC 4821,
    /// section 7.7).
    pub path_mtu: bool,
    /// TCP-probing before a loss reduces the window (both ends must support it).
    pub probing: Option<Probing>,
    /// ECN (RFC 3168).
    pub ecn: bool,
    /// With `ecn`: AccECN, so that the sender knows the number of marks (RFC 9768, without its
    /// option); windows that respond to it send ECT(1).
    pub accurate_ecn: bool,
    /// Duplicates are reported in the first SACK block (RFC 2883).
    pub d_sack: bool,
    /// With timestamps: segments older than the newest in order are dropped (PAWS; RFC 7323,
    /// section 5).
    pub paws: bool,
    /// Nagle's algorithm: a short segment waits while data is unacknowledged (RFC 896; RFC 9293,
    /// section 3.7.4).
    pub nagle: bool,
    /// Windows beyond 65,535 bytes (RFC 7323, section 2).
    pub window_scale: bool,
    /// Timestamps (RFC 7323, section 3) with this granularity; `None`: one sample per round trip.
    pub timestamps: Option<Span>,
    /// SACK blocks (RFC 2018).
    pub sack: bool,
    /// The third segment of a handshake and the acknowledgement of a FIN are sent standalone, as by
    /// a kernel that responds before the application runs. Otherwise they are piggybacked on what
    /// the application writes at the same time.
    pub answers_first: bool,
    /// When data is acknowledged.
    pub delayed_ack: DelayedAck,
    /// The retransmission timer.
    pub rto: RtoConfig,
    /// Send buffer in octets.
    pub send_buffer: u64,
    /// Receive buffer in octets; limits the advertised window.
    pub receive_buffer: u64,
    /// Consecutive timeouts after which the connection is aborted (R2 of RFC 9293, section 3.8.3).
    pub retries: u32,
    /// 2 MSL, the length of TIME-WAIT (RFC 9293, section 3.6.1).
    pub time_wait: Span,
}

impl TcpConfig {
    /// Checks the configuration.
    ///
    /// # Errors
    /// The first invalid setting.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let checks = [
            (self.max_segment >= 64, "max_segment", "64 to 65535 bytes"),
            (self.initial_window.bytes(1) > 0, "initial_window", "at least one segment"),
            (self.slow_start_limit != Some(0), "slow_start_limit", "at least one segment"),
            (self.timestamps != Some(Span::ZERO), "timestamps", "a grain above zero"),
            (self.delayed_ack.every > 0, "delayed_ack.every", "at least 1"),
            (
                self.delayed_ack.after <= Span::from_millis(500),
                "delayed_ack.after",
                "500 ms at most",
            ),
            (
                !(self.delayed_ack.ticks && self.delayed_ack.after.is_zero()),
                "delayed_ack.after",
                "above zero with ticks",
            ),
            (!self.rto.initial.is_zero(), "rto.initial", "above zero"),
            (
                !(self.rto.ticks && self.rto.granularity.is_zero()),
                "rto.granularity",
                "above zero with ticks",
            ),
            (self.rto.min <= self.rto.max, "rto.min", "not above rto.max"),
            (self.send_buffer > 0, "send_buffer", "at least 1 byte"),
            (
                (1..1 << 30).contains(&self.receive_buffer),
                "receive_buffer",
                "1 byte to 1 GiB (RFC 7323, section 2.3)",
            ),
            (self.recovery != RecoveryKind::Sack || self.sack, "recovery", "Sack needs sack"),
            (self.recovery != RecoveryKind::Rack || self.sack, "recovery", "Rack needs sack"),
            (
                self.probing.is_none_or(|probing| probing.patience_percent > 0),
                "probing.patience_percent",
                "above zero",
            ),
        ];
        match checks.into_iter().find(|(holds, ..)| !holds) {
            Some((_, setting, allowed)) => Err(ConfigError { setting, allowed }),
            None => Ok(()),
        }
    }
}

/// An invalid setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// Its name.
    pub setting: &'static str,
    /// The allowed values.
    pub allowed: &'static str,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.setting, self.allowed)
    }
}

impl core::error::Error for ConfigError {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn the_initial_window_of_rfc_3390() {
        // Its section 1: four of 1095 bytes or less, three up to 1460, two above 2190.
        for (segment, segments) in [(536, 4.0), (1_095, 4.0), (1_460, 3.0), (2_190, 2.0)] {
            let bytes = InitialWindow::Rfc3390.bytes(segment);
            assert!((bytes as f64 / segment as f64 - segments).abs() < 0.001, "{segment}: {bytes}");
        }
        assert_eq!(InitialWindow::Segments(10).bytes(1_460), 14_600);
    }

    #[test]
    fn presets_are_valid_and_a_wrong_setting_is_named() {
        for config in [
            TcpConfig::reno(),
            TcpConfig::new_reno(),
            TcpConfig::sack_reno(),
            TcpConfig::sack_new_reno(),
            TcpConfig::sack(),
            TcpConfig::linux(),
            TcpConfig::sack_new_reno().of_1999(),
            TcpConfig::vegas(),
            TcpConfig::probing(),
            TcpConfig::bbr(),
            TcpConfig::bbr3(),
            TcpConfig::prague(),
            TcpConfig::linux_reno(),
        ] {
            assert_eq!(config.validate(), Ok(()));
        }
        let wrong = TcpConfig { sack: false, ..TcpConfig::cubic() };
        assert_eq!(wrong.validate().unwrap_err().to_string(), "recovery: Sack needs sack");
        let wrong = TcpConfig { receive_buffer: 1 << 30, ..TcpConfig::cubic() };
        assert_eq!(wrong.validate().unwrap_err().setting, "receive_buffer");
    }
}
