//! Address learning: the terminal behind which a station is.

use std::collections::BTreeMap;

/// Maximum stations learned per terminal; frames to others are broadcast.
const EACH: usize = 64;

/// An Ethernet address.
type Address = [u8; 6];

/// Stations behind terminals, learned from their source addresses.
#[derive(Debug)]
pub(super) struct Switch {
    stations: BTreeMap<Address, usize>,
    /// Number of stations behind each terminal.
    behind: Vec<usize>,
}

impl Switch {
    pub(super) fn new(terminals: usize) -> Self {
        Self { stations: BTreeMap::new(), behind: vec![0; terminals] }
    }

    /// Learns the source address of `frame` from `terminal`.
    pub(super) fn learn(&mut self, terminal: usize, frame: &[u8]) {
        let Some(source) = address(frame, 6).filter(|source| source[0] & 1 == 0) else { return };
        match self.stations.get_mut(&source) {
            Some(before) if *before == terminal => {}
            Some(before) => {
                self.behind[*before] -= 1;
                self.behind[terminal] += 1;
                *before = terminal;
            }
            None if self.behind[terminal] < EACH => {
                self.behind[terminal] += 1;
                self.stations.insert(source, terminal);
            }
            None => {}
        }
    }

    /// The only terminal that needs `frame`; `None`: any may.
    pub(super) fn find(&self, frame: &[u8]) -> Option<usize> {
        self.stations.get(&address(frame, 0)?).copied()
    }
}

fn address(frame: &[u8], at: usize) -> Option<Address> {
    frame.get(at..at + 6)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(to: u8, from: u8) -> Vec<u8> {
        vec![2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from, 8, 0]
    }

    #[test]
    fn stations_are_at_the_terminal_of_their_last_frame() {
        let mut switch = Switch::new(3);
        switch.learn(1, &frame(9, 7));
        assert_eq!(switch.find(&frame(7, 9)), Some(1));
        assert_eq!(switch.find(&frame(8, 9)), None);
        switch.learn(2, &frame(9, 7));
        assert_eq!(switch.find(&frame(7, 9)), Some(2));
        assert_eq!(switch.behind, [0, 0, 1]);
        // Broadcast addresses are not learned, and a truncated frame has none.
        let mut group = frame(7, 7);
        group[..12].fill(0xff);
        switch.learn(0, &group);
        assert_eq!(switch.find(&group), None);
        switch.learn(0, &[1, 2, 3]);
        assert_eq!(switch.find(&[]), None);
    }

    #[test]
    fn forged_stations_use_only_the_terminals_own_table() {
        let mut switch = Switch::new(2);
        for number in 0..=255 {
            switch.learn(0, &frame(9, number));
        }
        assert_eq!((switch.stations.len(), switch.behind[0]), (EACH, EACH));
        switch.learn(1, &frame(9, 255));
        assert_eq!(switch.find(&frame(255, 9)), Some(1));
    }
}
