//! The quantities that claims compare.

use super::super::conditions::Condition;
use super::super::trial::Party::{self, Off, On};
use super::seen::{self, Seen};
use crate::experiments::Summary;
use crate::experiments::statistics::relative_gain;

/// A quantity of each replication, by point of a test and party.
#[derive(Clone, Copy)]
pub(super) struct Measure {
    pub(super) name: &'static str,
    /// Name of the job's value.
    pub(super) field: &'static str,
    /// Unit in lists.
    pub(super) unit: &'static str,
    /// Factor from the unit of the value to `unit`.
    pub(super) scale: f64,
    /// Decimals in lists.
    pub(super) digits: usize,
    make: Make,
}

type Make = fn(&Seen<'_>, (Condition, u32), Party, &str) -> Vec<f64>;

const fn measure(
    name: &'static str,
    field: &'static str,
    unit: &'static str,
    make: Make,
) -> Measure {
    Measure { name, field, unit, scale: 1.0, digits: 1, make }
}

const fn plain(name: &'static str, field: &'static str, unit: &'static str) -> Measure {
    measure(name, field, unit, |seen, at, party, field| seen.values(at, party, field))
}

const fn per_event(name: &'static str, field: &'static str, unit: &'static str) -> Measure {
    measure(name, field, unit, |seen, at, party, field| seen.per_event(at, party, field))
}

/// Effective throughput.
pub(super) const SPEED: Measure =
    Measure { scale: 1e-3, digits: 0, ..plain("throughput", seen::THROUGHPUT, "kbit/s") };
/// All octets sent besides the file.
pub(super) const COST: Measure = plain("overhead", seen::OVERHEAD, "%");
/// Retransmissions.
pub(super) const RETRANSMISSIONS: Measure = plain("retransmissions", seen::RETRANSMISSIONS, "%");
/// Throughput over overhead.
pub(super) const WORTH: Measure =
    Measure { scale: 1e-3, ..plain("ratio", seen::RATIO, "kbit/s per %") };
pub(super) const WINDOW: Measure = plain("mean window", seen::WINDOW, "segments");
/// Octets of POLLs, STATs and USTATs.
pub(super) const CONTROL: Measure =
    measure("POLLs and STATs", "", "%", |seen, at, party, _| seen.control(at, party));
/// POLLs alone.
pub(super) const POLLS: Measure =
    measure("POLLs", "", "%", |seen, at, party, _| seen.forward_control(at, party));
/// Number of bad states during a connection.
pub(super) const EVENTS: Measure =
    measure("bad stays met", "", "", |seen, at, party, _| seen.events(at, party));
/// Segments lost per bad state.
pub(super) const LOST: Measure =
    per_event("segments lost each bad stay", "segments_sent_again", "segments");
/// Duration of probing per bad state.
pub(super) const PROBING: Measure = per_event("probing each bad stay", "probing_seconds", "s");
/// Number of probes per bad state.
pub(super) const PROBES: Measure = per_event("probes each bad stay", "probes", "");

pub(super) const ALL: [Measure; 9] =
    [SPEED, COST, RETRANSMISSIONS, WORTH, WINDOW, CONTROL, POLLS, EVENTS, LOST];

impl Measure {
    /// Returns the value of each replication.
    pub(super) fn values(&self, seen: &Seen<'_>, at: (Condition, u32), party: Party) -> Vec<f64> {
        (self.make)(seen, at, party, self.field)
    }

    /// Returns the ratio of the means of ON and OFF less one, in percent.
    pub(super) fn gain(&self, seen: &Seen<'_>, at: (Condition, u32)) -> Summary {
        relative_gain(&self.values(seen, at, On), &self.values(seen, at, Off)).scaled(100.0)
    }
}
