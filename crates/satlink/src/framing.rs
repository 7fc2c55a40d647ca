//! Framing: octets on air per packet.

/// The overhead of the link layer on a layer-3 packet.
///
/// Sizes are those of frames sent back to back. Bit and byte stuffing (HDLC, AX.25) depends on the
/// payload and is not included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    /// None: the rate counts IP octets.
    #[default]
    Plain,
    /// IEEE 802.3: header 14, check sequence 4, at least 64 together; then preamble 8, gap 12.
    Ethernet,
    /// RFC 1662 without compression: one flag between frames, address, control, two bytes of
    /// protocol, 16-bit check sequence: 7 bytes. Cisco's HDLC has the same size.
    Hdlc,
    /// ATM cells by AAL5 with LLC/SNAP (RFC 2684 section 5.1, 8 bytes): a trailer of 8, padded
    /// to a multiple of 48, in cells of 53.
    Aal5,
    /// As [`Framing::Aal5`], but multiplexed by virtual circuit (RFC 2684 section 6): no LLC.
    Aal5VirtualCircuit,
    /// Multiprotocol encapsulation over an MPEG-2 transport stream (EN 301 192 section 7.1):
    /// section header 12, CRC 4; cut into packets of 188, of which 184 carry payload and the
    /// first gives one byte to the pointer field; the last is padded. A section holds 4,080
    /// bytes of packet; longer packets take several.
    MpeTransportStream,
    /// An AX.25 UI frame (version 2.2, section 3): two addresses 14, control, protocol, check
    /// sequence 2, two flags: 20 bytes.
    Ax25,
    /// netem's `rate RATE OVERHEAD CELLSIZE CELLOVERHEAD`: adds `overhead` bytes, then, with
    /// `cell_size` above zero, cuts into cells that each cost `cell_overhead` more. Each of the
    /// three is at most 65,535 in a link's configuration.
    Cells {
        /// Bytes added to each packet.
        overhead: u32,
        /// Payload bytes of a cell; 0: no cells.
        cell_size: u32,
        /// Bytes added to each cell.
        cell_overhead: u32,
    },
}

impl Framing {
    /// Bytes on air for a layer-3 packet of `bytes` bytes.
    pub fn on_air(self, bytes: u64) -> u64 {
        match self {
            Self::Plain => bytes,
            Self::Ethernet => (bytes + 18).max(64) + 20,
            Self::Hdlc => bytes + 7,
            Self::Aal5 => (bytes + 8 + 8).div_ceil(48) * 53,
            Self::Aal5VirtualCircuit => (bytes + 8).div_ceil(48) * 53,
            Self::MpeTransportStream => mpe(bytes),
            Self::Ax25 => bytes + 20,
            Self::Cells { overhead, cell_size, cell_overhead } => {
                let bytes = bytes + u64::from(overhead);
                if cell_size == 0 {
                    return bytes;
                }
                bytes.div_ceil(u64::from(cell_size))
                    * (u64::from(cell_size) + u64::from(cell_overhead))
            }
        }
    }
}

fn mpe(bytes: u64) -> u64 {
    const MOST: u64 = 4_080;
    let packets = |payload: u64| (payload + 12 + 4 + 1).div_ceil(184) * 188;
    let rest = bytes % MOST;
    let whole = bytes / MOST * packets(MOST);
    if rest > 0 || bytes == 0 { whole + packets(rest) } else { whole }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ethernet_pads_short_packets_and_counts_preamble_and_gap() {
        // IEEE 802.3: 1518 + 8 + 12; the shortest frame is 64 + 8 + 12.
        assert_eq!(Framing::Ethernet.on_air(1500), 1538);
        assert_eq!(Framing::Ethernet.on_air(46), 84);
        assert_eq!(Framing::Ethernet.on_air(20), 84);
        assert_eq!(Framing::Ethernet.on_air(47), 85);
    }

    #[test]
    fn aal5_fills_whole_cells() {
        // RFC 2684: 40 + 8 (LLC) + 8 (trailer) = 56: two cells; without LLC 48: exactly one.
        assert_eq!(Framing::Aal5.on_air(40), 106);
        assert_eq!(Framing::Aal5VirtualCircuit.on_air(40), 53);
        assert_eq!(Framing::Aal5VirtualCircuit.on_air(41), 106);
        // 1500 + 16 = 1516 = 31.6 cells.
        assert_eq!(Framing::Aal5.on_air(1500), 32 * 53);
        // RFC 2684's default MTU: 9180 + 16 = 9196 = 191.6 cells.
        assert_eq!(Framing::Aal5.on_air(9180), 192 * 53);
    }

    #[test]
    fn mpe_fills_whole_transport_packets() {
        // EN 301 192: 1500 + 16 + pointer 1 = 1517 = 8.2 payloads of 184.
        assert_eq!(Framing::MpeTransportStream.on_air(1500), 9 * 188);
        // 167 + 17 = 184: exactly one; one more byte takes a second.
        assert_eq!(Framing::MpeTransportStream.on_air(167), 188);
        assert_eq!(Framing::MpeTransportStream.on_air(168), 376);
        // The longest section: 4080 + 17 = 4097 = 22.3 payloads.
        assert_eq!(Framing::MpeTransportStream.on_air(4080), 23 * 188);
        assert_eq!(Framing::MpeTransportStream.on_air(4081), 24 * 188);
    }

    #[test]
    fn serial_lines_add_a_constant() {
        assert_eq!(Framing::Plain.on_air(1500), 1500);
        // RFC 1662: 7E FF 03 00 21, packet, FCS 2.
        assert_eq!(Framing::Hdlc.on_air(1500), 1507);
        // AX.25 2.2: 7E, 14, 03, CC, packet, FCS 2, 7E.
        assert_eq!(Framing::Ax25.on_air(238), 258);
    }

    #[test]
    fn cells_have_the_overhead_of_netem() {
        let atm = Framing::Cells { overhead: 8, cell_size: 48, cell_overhead: 5 };
        assert_eq!(atm.on_air(40), 53);
        assert_eq!(atm.on_air(1500), Framing::Aal5VirtualCircuit.on_air(1500));
        let plain = Framing::Cells { overhead: 26, cell_size: 0, cell_overhead: 0 };
        assert_eq!(plain.on_air(1500), 1526);
    }
}
