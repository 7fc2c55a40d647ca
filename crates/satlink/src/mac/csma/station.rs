//! A station: its queue and its state of channel access.

use alloc::collections::VecDeque;
use units::{Instant, RngStream, Serializer};

/// A frame that is queued or on air.
#[derive(Debug)]
pub(super) struct Waiting<F> {
    pub(super) to: usize,
    pub(super) frame: F,
    pub(super) offered_at: Instant,
}

#[derive(Debug)]
pub(super) struct Station<F> {
    pub(super) phase: Phase,
    pub(super) queue: VecDeque<Waiting<F>>,
    pub(super) line: Serializer,
    /// Draws for access: one for each time the channel is sensed idle.
    pub(super) access: RngStream,
    /// Draws for bit errors: one for each frame.
    pub(super) noise: RngStream,
}

/// State of channel access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The queue is empty.
    Idle,
    /// Senses the channel at this time.
    Look { at: Instant },
    /// Waits for the end of another station's carrier.
    Deferring,
    /// Keyed up; at `next` the next frame or the tail starts.
    Sending { next: Instant, frames: u32 },
    /// After the last frame.
    Tail { until: Instant },
}

impl Phase {
    /// When the next action is due.
    pub(super) fn due(self) -> Option<Instant> {
        match self {
            Self::Idle | Self::Deferring => None,
            Self::Look { at } => Some(at),
            Self::Sending { next, .. } => Some(next),
            Self::Tail { until } => Some(until),
        }
    }
}
