//! Model of a satellite channel: what the link does to a packet, without I/O and without a clock.
//!
//! ```text
//!            ┌───────┐   ┌──────────────┐   ┌─────────────┐   ┌──────────────┐
//!  offer ──▶ │ queue │──▶│ transmitter: │──▶│ errors,     │──▶│ propagation: │──▶ poll_delivery
//!            │ limit │   │ rate, framing│   │ outages,    │   │ delay,       │
//!            └───────┘   └──────────────┘   │ fading ◀────┼─┐ │ jitter,      │
//!                                           └─────────────┘ │ │ reordering   │
//!  the opposite direction likewise                          │ └──────────────┘
//!                                                           └── shared by both directions
//! ```
//!
//! The simulator drives a [`Link`] in virtual time, the emulator in real time. Effects are
//! computed from scheduled times, so a late call changes nothing. Each component draws from a
//! random stream derived from `(seed, run)`. Packets are conserved at all times:
//! `offered + duplicated = delivered + dropped + held` ([`Counters`]).
//!
//! ```
//! use satlink::{profiles, Admission, Direction, Link};
//! use units::{Instant, Span};
//!
//! let config = profiles::by_name("geo").expect("the geostationary profile");
//! let mut link: Link<Vec<u8>> = Link::new(&config, 1, 0)?;
//! let admission = link.offer(Instant::ZERO, Direction::Forward, vec![0; 1500]);
//! assert!(matches!(admission, Admission::Queued));
//! let due = link.poll_timeout().expect("a packet in flight");
//! let delivery = link.poll_delivery(due).expect("its delivery");
//! // 1500 octets at 10 Mbit/s, then 300 ms.
//! assert_eq!(delivery.at, Instant::ZERO + Span::from_micros(301_200));
//! # Ok::<(), satlink::ConfigError>(())
//! ```
//!
//! A [`LinkConfig`] is built from its fields, from a profile ([`profiles`]), or from a description
//! in the syntax of tc-netem(8) ([`words`]).
#![forbid(unsafe_code)]
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod compression;
mod config;
mod counters;
mod errors;
mod framing;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod link;
pub mod mac;
mod pipeline;
pub mod profiles;
mod propagation;
mod queue;
pub mod reference;
pub mod words;

pub use config::{ConfigError, DirectionConfig, Jitter, LinkConfig, Reorder};
pub use counters::{Counters, Tally};
pub use errors::{GilbertElliott, MarkovState, Outage, TwoStateMarkov};
pub use framing::Framing;
pub use link::Link;
pub use queue::{Discipline, Limit, QueueConfig, Red};

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
