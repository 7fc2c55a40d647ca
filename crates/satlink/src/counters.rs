//! Packet counters of a link.

use crate::DropCause;

/// A number of packets and of their layer-3 octets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Packets.
    pub packets: u64,
    /// Layer-3 octets.
    pub bytes: u64,
}

impl Tally {
    pub(crate) fn add(&mut self, bytes: u64) {
        self.packets += 1;
        self.bytes += bytes;
    }

    pub(crate) fn remove(&mut self, bytes: u64) {
        self.packets -= 1;
        self.bytes -= bytes;
    }

    fn plus(self, other: Self) -> Self {
        Self { packets: self.packets + other.packets, bytes: self.bytes + other.bytes }
    }
}

/// Counters of one direction.
///
/// Packet conservation holds at all times, in packets and in octets: `offered + duplicated =
/// delivered + dropped + held`; see [`Counters::balances`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Offered to the link.
    pub offered: Tally,
    /// Copies made by the link.
    pub duplicated: Tally,
    /// Delivered.
    pub delivered: Tally,
    /// In the link: queued, in transmission, in propagation, or due and not yet fetched.
    pub held: Tally,
    /// Transmitted, delivered or not; octets include framing.
    pub sent: Tally,
    /// Maximum occupancy of the queue, the frame in service included; octets include framing.
    pub fullest: Tally,
    /// Frames marked with congestion experienced in place of a drop.
    pub marked: u64,
    /// Frames reordered by configuration.
    pub reordered: u64,
    dropped: [Tally; DropCause::ALL.len()],
}

impl Counters {
    /// Frames dropped for `cause`.
    pub fn dropped(&self, cause: DropCause) -> Tally {
        self.dropped[cause as usize]
    }

    /// Frames dropped for any cause.
    pub fn dropped_in_all(&self) -> Tally {
        self.dropped.iter().fold(Tally::default(), |sum, &tally| sum.plus(tally))
    }

    /// Whether packet conservation holds: `offered + duplicated = delivered + dropped + held`.
    pub fn balances(&self) -> bool {
        self.offered.plus(self.duplicated)
            == self.delivered.plus(self.dropped_in_all()).plus(self.held)
    }

    pub(crate) fn drop_frame(&mut self, cause: DropCause, bytes: u64) {
        self.dropped[cause as usize].add(bytes);
    }

    pub(crate) fn note_backlog(&mut self, packets: u64, bytes: u64) {
        self.fullest.packets = self.fullest.packets.max(packets);
        self.fullest.bytes = self.fullest.bytes.max(bytes);
    }
}
