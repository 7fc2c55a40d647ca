//! What a TCP is made of.

mod axes;
mod presets;
mod settings;

pub use axes::{EarlyEnd, Opening, RecoveryKind, RepairTimer, WindowKind};
pub use settings::{AfterIdle, DelayedAck, InitialWindow};

use crate::probing::Probing;
use crate::round_trip::RtoConfig;
use core::fmt;
use units::Span;

/// How a TCP behaves: a choice on each of the three axes, and options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpConfig {
    /// First axis: what goes before the data.
    pub opening: Opening,
    /// Second axis: what is lost, and retransmitted.
    pub recovery: RecoveryKind,
    /// Third axis: how much may be on the way.
    pub window: WindowKind,
    /// Largest segment that is taken, in bytes after the headers without options: the MTU less
    /// 40 (RFC 6691).
    pub max_segment: u16,
    /// Before the first acknowledgement.
    pub initial_window: InitialWindow,
    /// In slow start an acknowledgement opens the window by as many segments at most; None: by
    /// all that it acknowledges (RFC 5681, section 3.1: 1; RFC 3465, section 2.2: 2; Linux: all).
    pub slow_start_limit: Option<u32>,
    /// Congestion avoidance counts acknowledged bytes (RFC 3465, section 2.1); if not, each
    /// acknowledgement opens the window by SMSS²/cwnd, whatever it acknowledges (RFC 2581,
    /// equation 2), and delayed acknowledgements halve its growth.
    pub byte_counting: bool,
    /// Idle for longer than the retransmission timer.
    pub after_idle: AfterIdle,
    /// The first two duplicates let new data out (RFC 3042).
    pub limited_transmit: bool,
    /// When NewReno's retransmission timer starts anew during a repair.
    pub repair_timer: RepairTimer,
    /// During a repair sending follows what arrives, down to the threshold (RFC 6937).
    pub proportional_reduction: bool,
    /// Segments keep distance: the window in half a round trip in slow start, later in five
    /// sixths of one, as Linux does with fq; a window with a rate of its own is paced in any case.
    pub pacing: bool,
    /// Segments shrink to what the path takes: when a router says so
    /// ([`Endpoint::handle_too_big`](crate::Endpoint::handle_too_big); RFC 1191), and when full
    /// ones time out again and again where none does (RFC 4821, section 7.7).
    pub path_mtu: bool,
    /// Before a loss reduces the window, the path is asked (both ends must).
    pub probing: Option<Probing>,
    /// Marks of queues are understood, and told (RFC 3168).
    pub ecn: bool,
    /// What arrived twice is reported in the first block (RFC 2883).
    pub d_sack: bool,
    /// With timestamps: what is older than the newest in order is dropped (PAWS; RFC 7323,
    /// section 5).
    pub paws: bool,
    /// A short segment waits while anything is not acknowledged (RFC 896; RFC 9293,
    /// section 3.7.4).
    pub nagle: bool,
    /// Windows beyond 65,535 bytes (RFC 7323, section 2).
    pub window_scale: bool,
    /// Timestamps (RFC 7323, section 3) of this grain; None: one sample in a round trip.
    pub timestamps: Option<Span>,
    /// SACK blocks for what arrives out of order (RFC 2018).
    pub sack: bool,
    /// The third segment of a handshake and what acknowledges a FIN go alone, as where a kernel
    /// answers before its application has run; if not, they ride on what the application has
    /// written or closed at the same moment.
    pub answers_first: bool,
    /// When data is acknowledged.
    pub delayed_ack: DelayedAck,
    /// The retransmission timer.
    pub rto: RtoConfig,
    /// Bytes that are kept until the peer has them.
    pub send_buffer: u64,
    /// Bytes that are kept until they are read; the window that the peer is told.
    pub receive_buffer: u64,
    /// Timeouts in a row after which the connection is given up (R2 of RFC 9293, section 3.8.3).
    pub retries: u32,
    /// 2 MSL, the length of TIME-WAIT (RFC 9293, section 3.6.1).
    pub time_wait: Span,
}

impl TcpConfig {
    /// Whether an endpoint can be made of it.
    ///
    /// # Errors
    /// The first setting that makes no sense.
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

/// A setting that makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// Which.
    pub setting: &'static str,
    /// What it may be.
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
