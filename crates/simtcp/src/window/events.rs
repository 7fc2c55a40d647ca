//! Inputs of a window.

use crate::log::{Flight, Rate};
use units::{Instant, Span};

/// An acknowledgement of new data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acked {
    pub(crate) now: Instant,
    /// Octets acknowledged.
    pub(crate) bytes: u64,
    /// The acknowledgement number.
    pub(crate) up_to: u64,
    /// The next number to be sent.
    pub(crate) next: u64,
    /// The window limited the sender (RFC 9438, section 4.2; RFC 7661).
    pub(crate) limited: bool,
    /// The round trip that it measured.
    pub(crate) sample: Option<Span>,
    /// The smoothed round trip.
    pub(crate) round_trip: Option<Span>,
    /// The round trip with fine granularity, if a log is maintained.
    pub(crate) fine: Option<Span>,
}

/// An acknowledgement as input of a window that models the path; also during recovery.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sample {
    pub(crate) now: Instant,
    /// Octets delivered by it, and in total.
    pub(crate) newly: u64,
    pub(crate) delivered: u64,
    pub(crate) rate: Option<Rate>,
    pub(crate) round_trip: Option<Span>,
    pub(crate) smoothed: Option<Span>,
    /// Octets in flight, before and after it.
    pub(crate) prior_in_flight: u64,
    pub(crate) in_flight: u64,
    /// Octets newly considered lost.
    pub(crate) lost: u64,
    /// Recovery is in progress.
    pub(crate) repairing: bool,
    /// The acknowledgement number, and the next number to be sent.
    pub(crate) up_to: u64,
    pub(crate) next: u64,
    /// The window limited the sender.
    pub(crate) held: bool,
    /// Time for which pacing delays the next segment.
    pub(crate) ahead: Span,
    /// The flight in which the newest delivered segment was sent.
    pub(crate) flight: Option<Flight>,
    /// A segment by whose loss its flight's loss rate exceeded the threshold.
    pub(crate) heavy_loss: Option<Flight>,
}

/// The marks reported by an acknowledgement (AccECN).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marks {
    /// Octets of the marked segments, and all octets delivered.
    pub(crate) bytes: u64,
    pub(crate) delivered: u64,
    /// The acknowledgement number, and the next number to be sent.
    pub(crate) up_to: u64,
    pub(crate) next: u64,
}
