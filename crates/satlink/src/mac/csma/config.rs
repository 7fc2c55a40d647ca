//! Configuration of a shared channel and of its terminal node controllers.

use crate::Framing;
use core::fmt;
use units::{BitRate, Span};

/// A channel and its stations, which are all configured alike.
#[derive(Clone, Debug, PartialEq)]
pub struct CsmaConfig {
    /// Rate of the channel in bit/s.
    pub rate: BitRate,
    /// The link layer's overhead.
    pub framing: Framing,
    /// Time from keying up to the first frame: "TXDELAY".
    pub key_up: Span,
    /// Time from the last frame to the end of the transmission: "TXtail".
    pub tail: Span,
    /// A station that senses an idle channel sends with probability (this + 1) / 256: "P".
    pub persistence: u8,
    /// Time until the next draw after one that did not send: "SLOTTIME".
    pub slot: Span,
    /// Maximum frames of one transmission; at least 1.
    pub most_frames: u32,
    /// Maximum frames queued in a station; at least 1.
    pub queue: usize,
    /// Propagation delay between any two stations.
    pub propagation: Span,
    /// Carrier detection time.
    pub detection: Span,
    /// Bit error ratio; a frame with an error is lost.
    pub bit_error_ratio: f64,
}

impl CsmaConfig {
    /// The defaults of a TNC under KISS (Chepponis and Karn, section 6 and its table of commands):
    /// 500 ms to key up, p = 64/256, slots of 100 ms; the tail of 30 ms is from later lists of KISS
    /// commands.
    pub fn kiss(rate: BitRate) -> Self {
        Self {
            rate,
            framing: Framing::Ax25,
            key_up: Span::from_millis(500),
            tail: Span::from_millis(30),
            persistence: 63,
            slot: Span::from_millis(100),
            most_frames: 255,
            queue: 64,
            propagation: Span::ZERO,
            detection: Span::ZERO,
            bit_error_ratio: 0.0,
        }
    }

    /// The defaults of the TNCs in Kenwood's TH-D72 and RC-D710 (their manuals' lists of TNC
    /// commands: TXDELAY 30, PERSIST 128, SLOTTIME 3, MAXFRAME 4). They have no TXtail.
    pub fn kenwood(rate: BitRate) -> Self {
        Self {
            key_up: Span::from_millis(300),
            tail: Span::ZERO,
            persistence: 128,
            slot: Span::from_millis(30),
            most_frames: 4,
            ..Self::kiss(rate)
        }
    }

    /// The probability with which a station that senses an idle channel sends.
    pub fn probability(&self) -> f64 {
        f64::from(u16::from(self.persistence) + 1) / 256.0
    }

    /// Mean wait of a station on an idle channel before it keys up: `slot · (1 − p) / p`.
    pub fn mean_wait(&self) -> Span {
        let yes = u64::from(self.persistence) + 1;
        self.slot.mul_ratio(256 - yes, yes)
    }

    /// Checks all values.
    ///
    /// # Errors
    /// The first invalid setting.
    pub fn validate(&self) -> Result<(), CsmaError> {
        let error = |setting, expected| Err(CsmaError { setting, expected });
        if self.most_frames == 0 {
            return error("most_frames", "at least 1");
        }
        if self.queue == 0 {
            return error("queue", "at least 1");
        }
        if self.slot.is_zero() && self.persistence < 255 {
            return error("slot", "above zero, or a persistence of 255");
        }
        if !(0.0..=1.0).contains(&self.bit_error_ratio) {
            return error("bit_error_ratio", "a share from 0 to 1");
        }
        Ok(())
    }
}

/// An invalid setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CsmaError {
    /// The field of [`CsmaConfig`].
    pub setting: &'static str,
    /// The allowed values.
    pub expected: &'static str,
}

impl fmt::Display for CsmaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: expected {}", self.setting, self.expected)
    }
}

impl core::error::Error for CsmaError {}
