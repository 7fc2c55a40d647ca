//! What went in, what came out, and what became of the rest.

use crate::DropCause;

/// Packets, and their layer-3 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many.
    pub packets: u64,
    /// Their layer-3 bytes together.
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

/// The accounts of one direction.
///
/// At every moment `offered + duplicated = delivered + dropped + held`, in packets and in
/// bytes; see [`Counters::balances`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Handed in.
    pub offered: Tally,
    /// Copies that the link made.
    pub duplicated: Tally,
    /// Handed out.
    pub delivered: Tally,
    /// In the link: waiting, on the line, under way, or due and not yet fetched.
    pub held: Tally,
    /// Put on air, delivered or not; bytes are bytes on air, with framing.
    pub sent: Tally,
    /// The fullest that the queue has been, bytes as on air, with the one in service.
    pub fullest: Tally,
    /// Frames marked with congestion experienced in place of a drop.
    pub marked: u64,
    /// Frames sent ahead of their turn on request.
    pub reordered: u64,
    dropped: [Tally; DropCause::ALL.len()],
}

impl Counters {
    /// What was dropped for `cause`.
    pub fn dropped(&self, cause: DropCause) -> Tally {
        self.dropped[cause as usize]
    }

    /// What was dropped for any cause.
    pub fn dropped_in_all(&self) -> Tally {
        self.dropped.iter().fold(Tally::default(), |sum, &tally| sum.plus(tally))
    }

    /// Whether the accounts balance: `offered + duplicated = delivered + dropped + held`.
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
