//! The settings of a TCP that are more than a number.

use units::Span;

/// How much may be sent before the first acknowledgement.
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
    /// With every so many full segments; 1 is every segment, and there is no delay.
    pub every: u32,
    /// After this time in any case; 500 ms at most.
    pub after: Span,
    /// But the first so many full segments of a connection at once, as Linux does.
    pub at_once: u32,
    /// The delay ends at the next multiple of `after`, as with one clock for all connections of
    /// a host: 4.4BSD's of 200 ms makes delays of 0 to 200 ms.
    pub ticks: bool,
    /// Nothing is acknowledged at once where a host answers: when it has sent data within `after`
    /// of what came last, all of its acknowledgements may wait for the next data, until a delayed
    /// one had to go alone. So Linux from 2.4 on (`pingpong`).
    pub with_answers: bool,
}

impl DelayedAck {
    /// Every segment at once.
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

/// What becomes of the window when nothing was sent for longer than the retransmission timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterIdle {
    /// It stays, and may leave in one burst.
    Keep,
    /// Slow start from the initial window (RFC 5681, section 4.1).
    SlowStart,
    /// Half of it for each retransmission timer that went by, and not less than the initial
    /// window; the threshold keeps three quarters of what it was (RFC 2861, section 3.2). Linux.
    Decay,
    /// It stays, and leaves spread over a round trip until acknowledgements come (Visweswaraiah &
    /// Heidemann, USC 97-661, 1997: rate-based pacing).
    Paced,
}
