//! Subjects, violations and reports of storms.

use super::fault::FaultCounts;
use core::fmt;
use units::Span;
use xstp::session::Coverage;

/// The system under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Two sealed sessions with immediate delivery.
    Sessions,
    /// Two published connections with in-order delivery.
    Connections,
    /// Two gateways with clients and servers on a satellite link with the link's and the network's
    /// faults only: [`scenario::storm`](crate::scenario::storm).
    Links,
    /// Two gateways with clients and servers, with all faults.
    Gateways,
    /// A hub and terminals on one link, with hostile clients beside honest ones.
    Fairness,
}

impl Subject {
    /// Every subject.
    pub const ALL: [Self; 5] =
        [Self::Sessions, Self::Connections, Self::Links, Self::Gateways, Self::Fairness];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sessions => "sessions",
            Self::Connections => "connections",
            Self::Links => "links",
            Self::Gateways => "gateways",
            Self::Fairness => "fairness",
        }
    }

    /// The subject of a seed in a run over all subjects.
    pub fn of_seed(seed: u64) -> Self {
        match seed % 16 {
            // One in 64: a run takes many times as long.
            15 if seed % 64 == 31 => Self::Fairness,
            // One in 16: a run takes several times as long.
            7 => Self::Links,
            15 => Self::Gateways,
            odd if odd % 2 == 1 => Self::Connections,
            _ => Self::Sessions,
        }
    }
}

/// A violated guarantee.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation(String);

impl Violation {
    pub(crate) fn new(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Violation {}

/// The results of a storm without a violation.
#[derive(Clone, Debug)]
pub struct Report {
    /// A hash of the run; equal for equal runs.
    pub trace: u64,
    /// Preset of the endpoints.
    pub preset: &'static str,
    /// Datagrams sent by both endpoints.
    pub packets: u64,
    /// Duration of the faults.
    pub storm: Span,
    /// Time from the end of the faults until everything was finished.
    pub recovery: Span,
    /// Sessions started.
    pub sessions: u64,
    /// Sessions that did not close in order.
    pub aborted: u64,
    /// Payload octets delivered.
    pub bytes: u64,
    /// Session states and events that occurred.
    pub coverage: Coverage,
    /// Faults that occurred.
    pub fault_counts: FaultCounts,
}

/// One session of an endpoint, for the final checks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    pub(super) incarnation: Option<u32>,
    /// Octets that it had to send, and that its peer had to send.
    pub(super) task: u64,
    pub(super) expected: u64,
    pub(super) delivered: u64,
    pub(super) peer_ended: bool,
    pub(super) self_ended: bool,
    /// Closed in order.
    pub(super) closed: bool,
    pub(super) aborted: bool,
    pub(super) packets: u64,
}
