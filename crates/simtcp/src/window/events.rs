//! What a window is told of an acknowledgement.

use crate::log::Rate;
use units::{Instant, Span};

/// An acknowledgement of something new, as the window sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acked {
    pub(crate) now: Instant,
    /// Bytes that it acknowledges.
    pub(crate) bytes: u64,
    /// The number up to which it does.
    pub(crate) up_to: u64,
    /// The next number to be sent.
    pub(crate) next: u64,
    /// The window was what held the sender back (RFC 9438, section 4.2; RFC 7661).
    pub(crate) limited: bool,
    /// The round trip that it measured.
    pub(crate) sample: Option<Span>,
    /// The smoothed round trip.
    pub(crate) round_trip: Option<Span>,
    /// The round trip of what it acknowledges by a clock without grain, where a log is kept.
    pub(crate) fine: Option<Span>,
}

/// An acknowledgement, as a window sees it that models the path; there is one for each, whatever
/// is being repaired.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sample {
    pub(crate) now: Instant,
    /// Bytes that it delivers, and all so far.
    pub(crate) newly: u64,
    pub(crate) delivered: u64,
    pub(crate) rate: Option<Rate>,
    pub(crate) round_trip: Option<Span>,
    pub(crate) smoothed: Option<Span>,
    /// Bytes on the way, before and after it.
    pub(crate) prior_in_flight: u64,
    pub(crate) in_flight: u64,
    /// Bytes newly taken to be lost.
    pub(crate) lost: u64,
    /// Losses are being repaired.
    pub(crate) repairing: bool,
    /// The number up to which it acknowledges, and the next to be sent.
    pub(crate) up_to: u64,
    pub(crate) next: u64,
    /// The window was what held the sender back.
    pub(crate) held: bool,
    /// How long pacing keeps the next segment back.
    pub(crate) ahead: Span,
}
