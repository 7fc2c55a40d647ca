//! What a storm rages over, and what is told of it.

use super::fault::Strikes;
use core::fmt;
use units::Span;
use xstp::session::Coverage;

/// What a storm rages over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Two sessions, sealed, with immediate delivery.
    Sessions,
    /// Two connections in order, as published.
    Connections,
    /// Two gateways with clients and servers, on a satellite link that does all that links and
    /// networks do, and no more: [`scenario::storm`](crate::scenario::storm).
    Links,
    /// Two gateways with clients and servers, and all that can befall them.
    Gateways,
    /// A hub and terminals on one link, and hostile clients beside honest ones.
    Fairness,
}

impl Subject {
    /// Every subject.
    pub const ALL: [Self; 5] =
        [Self::Sessions, Self::Connections, Self::Links, Self::Gateways, Self::Fairness];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sessions => "sessions",
            Self::Connections => "connections",
            Self::Links => "links",
            Self::Gateways => "gateways",
            Self::Fairness => "fairness",
        }
    }

    /// The subject of a seed when all take turns.
    pub fn of_seed(seed: u64) -> Self {
        match seed % 16 {
            // These take many times as long.
            15 if seed % 64 == 31 => Self::Fairness,
            // These take several times as long.
            7 => Self::Links,
            15 => Self::Gateways,
            odd if odd % 2 == 1 => Self::Connections,
            _ => Self::Sessions,
        }
    }
}

/// A promise that a storm broke, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage(String);

impl Damage {
    pub(crate) fn new(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Damage {}

/// What a storm was like that broke no promise.
#[derive(Clone, Debug)]
pub struct Report {
    /// A number that two runs share only if they were the same.
    pub trace: u64,
    /// Configuration of the ends.
    pub flavour: &'static str,
    /// Datagrams that the ends sent.
    pub packets: u64,
    /// How long the storm raged.
    pub storm: Span,
    /// How long after it everything was finished.
    pub healed: Span,
    /// Sessions that began, and how many of them died.
    pub lives: u64,
    /// Sessions that did not come to their end in order.
    pub deaths: u64,
    /// Payload bytes that arrived.
    pub bytes: u64,
    /// States and events that sessions met.
    pub coverage: Coverage,
    /// Faults that struck.
    pub strikes: Strikes,
}

/// One life of an end, for the judge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    pub(super) incarnation: Option<u32>,
    /// Bytes that it had to send, and that its peer had.
    pub(super) task: u64,
    pub(super) expected: u64,
    pub(super) delivered: u64,
    pub(super) peer_ended: bool,
    pub(super) self_ended: bool,
    /// Came to its end in order.
    pub(super) closed: bool,
    pub(super) died: bool,
    pub(super) packets: u64,
}
