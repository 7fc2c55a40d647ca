//! What a TCP is made of.

use crate::open::Opening;
use crate::recovery::RecoveryKind;
use crate::round_trip::RtoConfig;
use crate::window::WindowKind;
use core::fmt;
use units::Span;

/// How much may be sent before the first acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialWindow {
    /// So many full segments: 1 (RFC 2001), 10 (RFC 6928).
    Segments(u32),
    /// min(4 MSS, max(2 MSS, 4380 bytes)) (RFC 3390, section 1; RFC 2414 before it).
    Rfc3390,
}

impl InitialWindow {
    /// In bytes, with segments of `segment` bytes.
    pub fn bytes(self, segment: u64) -> u64 {
        match self {
            Self::Segments(count) => segment * u64::from(count),
            Self::Rfc3390 => (4 * segment).min((2 * segment).max(4_380)),
        }
    }
}

/// When arrived data is acknowledged (RFC 9293, section 3.8.6.3; RFC 5681, section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayedAck {
    /// With every so many full segments; 1 is every segment, and there is no delay.
    pub every: u32,
    /// After this time in any case; 500 ms at most.
    pub after: Span,
    /// But the first so many full segments of a connection at once, as Linux does.
    pub at_once: u32,
}

/// How a TCP behaves: a choice on each of the three axes, and options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpConfig {
    /// First axis: what goes before the data.
    pub opening: Opening,
    /// Second axis: what is lost, and sent again.
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
    /// Idle for longer than the retransmission timer, the window starts anew (RFC 5681,
    /// section 4.1).
    pub restart_after_idle: bool,
    /// The first two duplicates let new data out (RFC 3042).
    pub limited_transmit: bool,
    /// Windows beyond 65,535 bytes (RFC 7323, section 2).
    pub window_scale: bool,
    /// Timestamps (RFC 7323, section 3) of this grain; None: one sample in a round trip.
    pub timestamps: Option<Span>,
    /// SACK blocks for what arrives out of order (RFC 2018).
    pub sack: bool,
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
    /// NewReno as the RFCs have it, without options: RFC 5681, 6582, 6298, 3390.
    pub fn newreno() -> Self {
        Self {
            opening: Opening::ThreeWay,
            recovery: RecoveryKind::NewReno,
            window: WindowKind::Reno,
            max_segment: 1_460,
            initial_window: InitialWindow::Rfc3390,
            slow_start_limit: Some(2),
            restart_after_idle: true,
            limited_transmit: true,
            window_scale: true,
            timestamps: None,
            sack: false,
            delayed_ack: DelayedAck { every: 2, after: Span::from_millis(200), at_once: 0 },
            rto: RtoConfig {
                initial: Span::from_secs(1),
                min: Span::from_secs(1),
                max: Span::from_secs(60),
                granularity: Span::from_millis(1),
            },
            send_buffer: 16 << 20,
            receive_buffer: 16 << 20,
            retries: 15,
            time_wait: Span::from_secs(60),
        }
    }

    /// NewReno's window with SACK's recovery: RFC 5681, 2018, 6675.
    pub fn sack() -> Self {
        Self { recovery: RecoveryKind::Sack, sack: true, ..Self::newreno() }
    }

    /// CUBIC with what goes with it today: RFC 9438, SACK, timestamps, ten segments at the start
    /// (RFC 6928), and Linux's timers.
    pub fn cubic() -> Self {
        Self {
            recovery: RecoveryKind::Sack,
            window: WindowKind::Cubic { hystart: false },
            initial_window: InitialWindow::Segments(10),
            slow_start_limit: None,
            timestamps: Some(Span::from_millis(1)),
            sack: true,
            delayed_ack: DelayedAck { every: 2, after: Span::from_millis(40), at_once: 16 },
            rto: RtoConfig {
                initial: Span::from_secs(1),
                min: Span::from_millis(200),
                max: Span::from_secs(120),
                granularity: Span::from_millis(200),
            },
            ..Self::newreno()
        }
    }

    /// [`cubic`](Self::cubic) with an early end of slow start: the nearest to a Linux kernel as it
    /// comes. Over 10 Mbit/s, 600 ms and a queue of one product it reaches 0.94 of the bound in
    /// 60 s, where Linux reached 0.96, and 0.91 without the early end.
    pub fn linux() -> Self {
        Self { window: WindowKind::Cubic { hystart: true }, ..Self::cubic() }
    }

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
            (!self.rto.initial.is_zero(), "rto.initial", "above zero"),
            (self.rto.min <= self.rto.max, "rto.min", "not above rto.max"),
            (self.send_buffer > 0, "send_buffer", "at least 1 byte"),
            (
                (1..1 << 30).contains(&self.receive_buffer),
                "receive_buffer",
                "1 byte to 1 GiB (RFC 7323, section 2.3)",
            ),
            (self.recovery != RecoveryKind::Sack || self.sack, "recovery", "Sack needs sack"),
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
        for config in [TcpConfig::newreno(), TcpConfig::sack(), TcpConfig::linux()] {
            assert_eq!(config.validate(), Ok(()));
        }
        let wrong = TcpConfig { sack: false, ..TcpConfig::cubic() };
        assert_eq!(wrong.validate().unwrap_err().to_string(), "recovery: Sack needs sack");
        let wrong = TcpConfig { receive_buffer: 1 << 30, ..TcpConfig::cubic() };
        assert_eq!(wrong.validate().unwrap_err().setting, "receive_buffer");
    }
}
