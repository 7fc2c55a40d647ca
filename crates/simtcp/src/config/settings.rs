//! Structured settings of a TCP.

use units::Span;

/// The initial window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialWindow {
    /// So many full segments: 1 (RFC 2001), 10 (RFC 6928).
    Segments(u32),
    /// min(4 MSS, max(2 MSS, 4380 bytes)) (RFC 2414, section 1; RFC 3390, section 1).
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
    /// Acknowledge every so many full segments; 1: no delay.
    pub every: u32,
    /// Maximum delay; 500 ms at most.
    pub after: Span,
    /// The first so many full segments of a connection are acknowledged immediately, as in Linux.
    pub at_once: u32,
    /// The delay ends at the next multiple of `after`, as with one timer for all connections of a
    /// host: 4.4BSD's of 200 ms causes delays of 0 to 200 ms.
    pub ticks: bool,
    /// While the application responds to requests within `after`, all acknowledgements may wait for
    /// the next data, until a delayed one had to be sent standalone. As Linux from 2.4 on
    /// (`pingpong`).
    pub with_answers: bool,
}

impl DelayedAck {
    /// Immediate acknowledgement of every segment.
    pub const OFF: Self =
        Self { every: 1, after: Span::ZERO, at_once: 0, ticks: false, with_answers: false };

    /// Every second segment, and after 200 ms.
    pub const USUAL: Self = Self {
        every: 2,
        after: Span::from_millis(200),
        at_once: 0,
        ticks: false,
        with_answers: false,
    };
}

/// The window after an idle time longer than the retransmission timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterIdle {
    /// It is kept and may be sent in one burst.
    Keep,
    /// Slow start from the initial window (RFC 5681, section 4.1).
    SlowStart,
    /// Halved for each elapsed retransmission timeout down to the initial window; the threshold
    /// becomes 3/4 of the old window (RFC 2861, section 3.2). Linux.
    Decay,
    /// It is kept, and paced over a round trip until acknowledgements arrive (Visweswaraiah &
    /// Heidemann, USC 97-661, 1997: rate-based pacing).
    Paced,
}
