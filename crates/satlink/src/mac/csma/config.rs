//! What a shared channel is, and the terminal node controllers on it.

use crate::Framing;
use core::fmt;
use units::{BitRate, Span};

/// A channel and its stations, which are all set alike.
#[derive(Clone, Debug, PartialEq)]
pub struct CsmaConfig {
    /// Bits per second on the channel.
    pub rate: BitRate,
    /// What the link layer adds to each frame.
    pub framing: Framing,
    /// From keying up to the first frame: "TXDELAY".
    pub key_up: Span,
    /// From the last frame to letting the channel go: "TXtail".
    pub tail: Span,
    /// A station that finds the channel free sends with probability (this + 1) / 256: "P".
    pub persistence: u8,
    /// How long a station waits that could have sent and did not: "SLOTTIME".
    pub slot: Span,
    /// The most frames of one transmission; at least 1.
    pub most_frames: u32,
    /// Frames that wait in a station, at most; at least 1.
    pub queue: usize,
    /// From one station's antenna to any other's.
    pub propagation: Span,
    /// From the carrier's coming or going at a station to the station's knowing it.
    pub detection: Span,
    /// Share of the bits in error; a frame with one is lost.
    pub bit_error_ratio: f64,
}

impl CsmaConfig {
    /// The values that a TNC has before KISS sets others (Chepponis and Karn, section 6 and its
    /// table of commands): 500 ms to key up, p = 64/256, slots of 100 ms; the tail of 30 ms is
    /// that of later lists of KISS commands.
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

    /// The values that the TNCs in Kenwood's TH-D72 and RC-D710 start with (their manuals' lists
    /// of TNC commands: TXDELAY 30, PERSIST 128, SLOTTIME 3, MAXFRAME 4). They have no TXtail.
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

    /// The probability with which a station that finds the channel free sends.
    pub fn probability(&self) -> f64 {
        f64::from(u16::from(self.persistence) + 1) / 256.0
    }

    /// How long a station waits on a free channel before it keys up, on average: a slot for each
    /// draw that says no, `slot · (1 − p) / p`.
    pub fn mean_wait(&self) -> Span {
        let yes = u64::from(self.persistence) + 1;
        self.slot.mul_ratio(256 - yes, yes)
    }

    /// Checks every number.
    ///
    /// # Errors
    /// The first setting that makes no sense.
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

/// A setting that makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CsmaError {
    /// The field of [`CsmaConfig`].
    pub setting: &'static str,
    /// What it should be.
    pub expected: &'static str,
}

impl fmt::Display for CsmaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: expected {}", self.setting, self.expected)
    }
}

impl core::error::Error for CsmaError {}
