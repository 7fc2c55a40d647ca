//! Configuration of the scheduler, and contracts.

use core::fmt;

/// Assignment of unrequested slots (FCA).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Free {
    /// They stay unused.
    None,
    /// All terminals get the same number.
    Equal,
    /// By the terminals' weights.
    ByWeight,
}

/// The contract of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contract {
    /// Slots assigned in every frame without a request (CRA).
    pub constant: u32,
    /// Maximum slots per frame of all categories together.
    pub most: u32,
    /// Its weight for free slots, under [`Free::ByWeight`]; with 0 it gets none.
    pub weight: u32,
}

impl Default for Contract {
    /// No constant slots, no limit, weight 1.
    fn default() -> Self {
        Self { constant: 0, most: u32::MAX, weight: 1 }
    }
}

/// Parameters of the scheduler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleConfig {
    /// Slots per frame on all carriers.
    pub slots: u32,
    /// Maximum slots per frame of one terminal, which has one transmitter: those of one carrier.
    pub most_each: u32,
    /// Assignment of unrequested slots.
    pub free: Free,
    /// Frames for which a rate request is valid. The standard's default is two superframes.
    pub rate_frames: u32,
    /// Frames after which an unserved volume expires.
    pub volume_frames: u32,
    /// Frames after which an expectation of the hub expires.
    pub expected_frames: u32,
    /// Maximum slots of a request, and of the sum of a terminal's requests.
    pub most_request: u32,
    /// A terminal that has sent nothing for so many frames loses its slots. `None`: never.
    pub silence: Option<u32>,
}

impl ScheduleConfig {
    /// `slots` on one carrier, free slots divided equally.
    pub fn new(slots: u32) -> Self {
        Self {
            slots,
            most_each: slots,
            free: Free::Equal,
            rate_frames: 2,
            volume_frames: 16,
            expected_frames: 4,
            most_request: 4_080,
            silence: None,
        }
    }

    /// Checks all values.
    ///
    /// # Errors
    /// The first invalid setting.
    pub fn validate(&self) -> Result<(), ScheduleError> {
        let error = |setting, expected| Err(ScheduleError { setting, expected });
        if self.slots == 0 || self.slots > 1_000_000 {
            return error("slots", "1 to 1,000,000");
        }
        if self.most_each == 0 || self.most_each > self.slots {
            return error("most_each", "1 to the number of slots");
        }
        if [self.rate_frames, self.volume_frames, self.expected_frames].contains(&0) {
            return error("rate_frames, volume_frames, expected_frames", "at least 1");
        }
        if self.most_request == 0 || self.most_request > 1_000_000 {
            return error("most_request", "1 to 1,000,000");
        }
        if self.silence == Some(0) {
            return error("silence", "at least 1 frame, or none");
        }
        Ok(())
    }
}

/// An invalid setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduleError {
    /// The field of [`ScheduleConfig`] or of the channel's configuration.
    pub setting: &'static str,
    /// The allowed values.
    pub expected: &'static str,
}

impl fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: expected {}", self.setting, self.expected)
    }
}

impl core::error::Error for ScheduleError {}
