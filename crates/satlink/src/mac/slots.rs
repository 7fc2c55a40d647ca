//! Slots: their capacity, and the position of a terminal's slots in a frame.
//!
//! Source: EN 301 790, clauses 6.2 and 6.7 (traffic slots of ATM cells or MPEG-2 packets;
//! superframes, frames and slots).

use alloc::vec::Vec;

/// The format of a traffic slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotFormat {
    /// An ATM cell: 53 octets on air, 48 of them data.
    Atm,
    /// An MPEG-2 transport packet: 188 octets on air, 184 of them data.
    Mpeg,
}

impl SlotFormat {
    /// Octets added to each packet before segmentation: the trailer of AAL5. A unidirectional
    /// encapsulation in MPEG packets has the same overhead (4 octets of header, 4 of CRC).
    pub const TRAILER: u64 = 8;

    /// Bytes on air.
    pub const fn on_air(self) -> u64 {
        match self {
            Self::Atm => 53,
            Self::Mpeg => 188,
        }
    }

    /// Bytes of data.
    pub const fn payload(self) -> u64 {
        match self {
            Self::Atm => 48,
            Self::Mpeg => 184,
        }
    }

    /// Slots for a packet of `bytes` IP octets. A slot never carries parts of two packets.
    pub const fn slots_for(self, bytes: u64) -> u64 {
        (bytes + Self::TRAILER).div_ceil(self.payload())
    }
}

/// Position of a terminal's slots in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// As evenly spread over the frame as possible.
    Spread,
    /// Contiguous.
    Contiguous,
}

/// The order in which the positions of a frame are assigned.
///
/// The slots of all terminals are laid end to end on a line as long as all carriers; a piece no
/// longer than a carrier then never has two slots at the same time, wherever the line is cut
/// (McNaughton 1959). [`Placement::Spread`] permutes the positions of all carriers equally by
/// multiples of the golden ratio, which keeps that property and spreads any run evenly.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The position assigned as the `i`th of each carrier.
    order: Vec<u32>,
    carriers: u32,
}

/// One traffic slot of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The carrier, from 0.
    pub carrier: u32,
    /// The slot of it, from 0.
    pub position: u32,
}

impl Layout {
    /// `carriers` of `positions` slots each.
    pub fn new(placement: Placement, carriers: u32, positions: u32) -> Self {
        let mut order: Vec<u32> = (0..positions).collect();
        if placement == Placement::Spread {
            // 2^64 over the golden ratio; the keys are the fractional parts of its multiples.
            const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
            order.sort_by_key(|&index| GOLDEN.wrapping_mul(u64::from(index)));
            let mut rank = alloc::vec![0; order.len()];
            for (place, &index) in order.iter().enumerate() {
                rank[index as usize] = place as u32;
            }
            order = rank;
        }
        Self { order, carriers }
    }

    /// Slots per frame.
    pub fn slots(&self) -> u32 {
        self.carriers * self.order.len() as u32
    }

    /// The index of the slot that is assigned first in `frame`.
    pub fn start_of(&self, frame: u64) -> u32 {
        let total = u64::from(self.slots());
        // The offset grows by a golden section of a frame each time; below the total, so it fits.
        ((frame % total) * (total * 382 / 1_000 + 1) % total) as u32
    }

    /// The `index`th slot in order of assignment, modulo their number.
    pub fn place(&self, index: u32) -> Place {
        let each = self.order.len() as u32;
        let index = index % self.slots();
        Place { carrier: index / each, position: self.order[(index % each) as usize] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn packets_take_the_slots_implied_by_the_paper() {
        let atm = SlotFormat::Atm;
        // A pure acknowledgement, a request of 43 octets with TCP's header, a full segment.
        assert_eq!([40, 83, 576].map(|bytes| atm.slots_for(bytes)), [1, 2, 13]);
        assert_eq!([176, 177].map(|bytes| SlotFormat::Mpeg.slots_for(bytes)), [1, 2]);
        assert_eq!((atm.on_air(), SlotFormat::Mpeg.on_air()), (53, 188));
    }

    #[test]
    fn a_run_of_spread_slots_has_no_gap_above_three_times_its_share() {
        let layout = Layout::new(Placement::Spread, 1, 58);
        for (first, count) in (0..50).flat_map(|first| [2, 3, 5, 8].map(|count| (first, count))) {
            let mut at: Vec<u32> =
                (first..first + count).map(|index| layout.place(index).position).collect();
            at.sort_unstable();
            let gaps = (0..at.len()).map(|i| match at.get(i + 1) {
                Some(next) => next - at[i],
                None => at[0] + 58 - at[i],
            });
            let most = gaps.max().unwrap();
            assert!(most * count <= 3 * 58, "{count} from {first}: {at:?}");
        }
    }

    proptest! {
        #[test]
        fn every_slot_is_assigned_once(
            spread: bool, carriers in 1u32..8, positions in 1u32..70,
        ) {
            let placement = if spread { Placement::Spread } else { Placement::Contiguous };
            let layout = Layout::new(placement, carriers, positions);
            let mut all: Vec<Place> = (0..layout.slots()).map(|i| layout.place(i)).collect();
            all.sort_unstable();
            all.dedup();
            prop_assert_eq!(all.len() as u32, carriers * positions);
            prop_assert!(all.iter().all(|p| p.carrier < carriers && p.position < positions));
        }

        #[test]
        fn a_run_no_longer_than_a_carrier_never_has_two_slots_at_one_time(
            carriers in 1u32..6, positions in 1u32..60, first: u32, count: u32,
        ) {
            let layout = Layout::new(Placement::Spread, carriers, positions);
            let count = count % positions + 1;
            let first = first % layout.slots();
            let mut at: Vec<u32> =
                (first..first + count).map(|i| layout.place(i).position).collect();
            at.sort_unstable();
            at.dedup();
            prop_assert_eq!(at.len() as u32, count);
        }
    }
}
