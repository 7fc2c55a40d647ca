//! Equations 1 to 3 of annex 1, and the calculations of annex 3, sections 2.1 and 3.2.

/// Orbits of tables 1 and 2 with their round trips in seconds.
pub(super) const ORBITS: [(&str, f64); 4] =
    [("LEO", 0.02), ("MEO", 0.2), ("HEO", 0.6), ("GSO", 0.52)];
/// Rates of table 2 in bit/s.
pub(super) const RATES: [(&str, f64); 3] =
    [("1 Mbit/s", 1e6), ("10 Mbit/s", 1e7), ("155 Mbit/s", 1.55e8)];

/// Possible packet lengths of table 2 in bits; the first one is printed.
pub(super) const LENGTHS: [(&str, f64); 4] =
    [("1 kbit", 1e3), ("1,024 bits", 1_024.0), ("1 kbyte", 8e3), ("1,024 bytes", 8_192.0)];

/// Equation 1: throughput in octets/s of a window over a round trip.
pub(super) fn throughput(window: f64, round_trip: f64) -> f64 {
    window / round_trip
}

/// Equations 2 and 3: time in seconds until slow start reaches a rate if each round trip multiplies
/// the window by `growth`: 2, or 1.5 with delayed acknowledgements.
pub(super) fn slow_start(round_trip: f64, rate: f64, length: f64, growth: f64) -> f64 {
    round_trip * (1.0 + (rate * round_trip / length).ln() / growth.ln())
}

/// Octets of a segment over AAL5 by section 3.2.
pub(super) struct Aal5 {
    /// Octets of padding.
    pub(super) padding: u64,
    /// Octets of the cells' payloads.
    pub(super) cells: u64,
}

/// Returns the encapsulation of a segment of `payload` octets with IPv6 in IPv4: 8 octets of
/// LLC/SNAP, 20, 40 and 20 of headers, and AAL5's trailer of 8.
pub(super) fn aal5(payload: u64) -> Aal5 {
    let bare = 8 + 20 + 40 + 20 + payload + 8;
    let cells = bare.next_multiple_of(48);
    Aal5 { padding: cells - bare, cells }
}

/// Payload of ATM cells on OC-3 in Mbit/s (section 3.2).
pub(super) const CELL_PAYLOAD: f64 = 134.94;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_start_of_a_hand_calculated_example() {
        // 1 Mbit/s and 200 ms are 25 packets of 8,000 bits: 1 + log2 25 = 5.644 round trips.
        assert!((slow_start(0.2, 1e6, 8e3, 2.0) - 1.128_77).abs() < 1e-5);
        assert!(slow_start(0.2, 1e6, 8e3, 1.5) > slow_start(0.2, 1e6, 8e3, 2.0));
    }

    #[test]
    fn the_last_cell_is_padded() {
        let full = aal5(9_100);
        assert_eq!((full.padding, full.cells % 48), (20, 0));
    }
}
