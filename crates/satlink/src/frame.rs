//! Frames, where they go, and what becomes of them.

use core::fmt;
use units::Instant;

/// What travels: anything with a length.
#[expect(clippy::len_without_is_empty, reason = "a packet is never empty")]
pub trait Frame: Clone {
    /// Layer-3 bytes: the IP packet's length. Framing is the link's to add.
    fn len(&self) -> usize;

    /// Which flow it belongs to, for fair queueing.
    fn flow(&self) -> u64 {
        0
    }

    /// Sets "congestion experienced"; false when the packet cannot carry it.
    fn mark(&mut self) -> bool {
        false
    }
}

impl Frame for alloc::vec::Vec<u8> {
    fn len(&self) -> usize {
        self.len()
    }
}

/// One of a link's two directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From the hub to the terminal: down.
    Forward,
    /// From the terminal to the hub: up.
    Return,
}

impl Direction {
    /// Both, forward first.
    pub const BOTH: [Self; 2] = [Self::Forward, Self::Return];

    /// The other one.
    #[must_use]
    pub fn opposite(self) -> Self {
        match self {
            Self::Forward => Self::Return,
            Self::Return => Self::Forward,
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Forward => "forward",
            Self::Return => "return",
        })
    }
}

/// What became of an offered frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission<F> {
    /// It is in the link (it may yet be lost on air).
    Queued,
    /// It is not, for this reason; here it is back.
    Dropped(DropCause, F),
}

/// A frame that came through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery<F> {
    /// When it arrived, which may be earlier than it was asked for.
    pub at: Instant,
    /// The direction that it took.
    pub direction: Direction,
    /// The frame.
    pub frame: F,
    /// When it was offered.
    pub offered_at: Instant,
    /// When its last bit left: waiting and sending end here, propagation begins.
    pub sent_at: Instant,
}

/// Why a frame was dropped. Of several reasons the first in this order counts, queue first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropCause {
    /// No room in the queue.
    QueueFull,
    /// Random early detection.
    Early,
    /// On air during an outage.
    Outage,
    /// The shared two-state process.
    Fade,
    /// The Gilbert-Elliott model.
    Burst,
    /// A bit in error.
    BitError,
    /// Random loss of packets.
    Loss,
}

impl DropCause {
    /// All causes.
    pub const ALL: [Self; 7] = [
        Self::QueueFull,
        Self::Early,
        Self::Outage,
        Self::Fade,
        Self::Burst,
        Self::BitError,
        Self::Loss,
    ];
}

impl fmt::Display for DropCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::QueueFull => "queue_full",
            Self::Early => "early",
            Self::Outage => "outage",
            Self::Fade => "fade",
            Self::Burst => "burst",
            Self::BitError => "bit_error",
            Self::Loss => "loss",
        })
    }
}
