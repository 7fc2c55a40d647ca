//! One station: what waits in it, and where it is in gaining access.

use alloc::collections::VecDeque;
use units::{Instant, RngStream, Serializer};

/// A frame that waits, or is on air.
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
    /// Draws for access: one for each look at a free channel.
    pub(super) access: RngStream,
    /// Draws for bit errors: one for each frame.
    pub(super) noise: RngStream,
}

/// Where a station is in gaining access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing waits.
    Idle,
    /// Looks whether the channel is free.
    Look { at: Instant },
    /// Waits for the carrier of somebody to go.
    Deferring,
    /// Keyed up; the next frame starts, or the tail does.
    Sending { next: Instant, frames: u32 },
    /// After the last frame.
    Tail { until: Instant },
}

impl Phase {
    /// When something is to be done.
    pub(super) fn due(self) -> Option<Instant> {
        match self {
            Self::Idle | Self::Deferring => None,
            Self::Look { at } => Some(at),
            Self::Sending { next, .. } => Some(next),
            Self::Tail { until } => Some(until),
        }
    }
}
