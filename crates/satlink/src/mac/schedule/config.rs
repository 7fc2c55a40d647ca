//! What there is to share, and under which contracts.

use core::fmt;

/// What is done with slots that nobody asked for: FCA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Free {
    /// They stay empty.
    None,
    /// Every terminal gets as many.
    Equal,
    /// By the terminals' weights.
    ByWeight,
}

/// What a terminal may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contract {
    /// Slots that it has in every frame, asked for or not: CRA.
    pub constant: u32,
    /// The most slots of a frame that it may have, of all categories together.
    pub most: u32,
    /// Its share of what is free, under [`Free::ByWeight`]; with 0 it gets none of that.
    pub weight: u32,
}

impl Default for Contract {
    /// Nothing for certain, no limit, weight 1.
    fn default() -> Self {
        Self { constant: 0, most: u32::MAX, weight: 1 }
    }
}

/// What there is to share and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleConfig {
    /// Slots of a frame, on all carriers together.
    pub slots: u32,
    /// The most slots of a frame that one terminal can use, which has one transmitter: those of
    /// one carrier.
    pub most_each: u32,
    /// What is done with slots that nobody asked for.
    pub free: Free,
    /// Frames for which a rate holds that was asked for. The standard's default is two
    /// superframes.
    pub rate_frames: u32,
    /// Frames after which a volume that was not served is forgotten.
    pub volume_frames: u32,
    /// Frames after which what the hub expected is forgotten.
    pub expected_frames: u32,
    /// The most that one request may say, and that requests may add up to.
    pub most_request: u32,
    /// A terminal of which nothing was heard for so many frames loses its slots. `None`: never.
    pub silence: Option<u32>,
}

impl ScheduleConfig {
    /// `slots` on one carrier, those that are free shared equally.
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

    /// Checks every number.
    ///
    /// # Errors
    /// The first setting that makes no sense.
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

/// A setting that makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduleError {
    /// The field of [`ScheduleConfig`] or of the channel's configuration.
    pub setting: &'static str,
    /// What it should be.
    pub expected: &'static str,
}

impl fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: expected {}", self.setting, self.expected)
    }
}

impl core::error::Error for ScheduleError {}
