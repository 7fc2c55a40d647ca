//! Frames, directions, and results of transmission.

use core::fmt;
use units::Instant;

/// A frame on a link: anything with a length.
#[expect(clippy::len_without_is_empty, reason = "a packet is never empty")]
pub trait Frame: Clone {
    /// Layer-3 octets: the length of the IP packet. The link adds the framing.
    fn len(&self) -> usize;

    /// Its flow, for fair queueing.
    fn flow(&self) -> u64 {
        0
    }

    /// Sets "congestion experienced"; false if the packet does not support it.
    fn mark(&mut self) -> bool {
        false
    }

    /// Whether its ECN field is the identifier of L4S: ECT(1) or CE (RFC 9331, section 5.1).
    fn is_l4s(&self) -> bool {
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
    /// From the hub to the terminal: forward link.
    Forward,
    /// From the terminal to the hub: return link.
    Return,
}

impl Direction {
    /// Both, forward first.
    pub const BOTH: [Self; 2] = [Self::Forward, Self::Return];

    /// The opposite direction.
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

/// Result of an offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission<F> {
    /// The frame was accepted (it may still be lost on air).
    Queued,
    /// The frame was dropped for this cause and is returned.
    Dropped(DropCause, F),
}

/// A delivered frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery<F> {
    /// Time of delivery, which may be earlier than the call.
    pub at: Instant,
    /// Direction.
    pub direction: Direction,
    /// The frame.
    pub frame: F,
    /// When it was offered.
    pub offered_at: Instant,
    /// End of its transmission: queuing and serialization end here, propagation starts.
    pub sent_at: Instant,
}

/// Why a frame was dropped. Of several causes the first in this order is counted, queue first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropCause {
    /// The queue is full.
    QueueFull,
    /// Random early detection or controlled delay.
    Early,
    /// On air during an outage.
    Outage,
    /// The shared two-state process.
    Fade,
    /// The Gilbert-Elliott model.
    Burst,
    /// A bit error.
    BitError,
    /// Random packet loss.
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
