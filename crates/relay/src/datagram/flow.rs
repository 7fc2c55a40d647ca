//! Classification of an IP packet by its headers: flow and urgency.

/// Classification of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flow {
    /// Hash that is equal for packets of one flow in one direction.
    pub(super) hash: u64,
    pub(super) mark: Mark,
}

/// Class that the packet's DSCP requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// Expedited forwarding, voice admit, network control.
    Urgent,
    None,
    /// Lower effort, and its former code point CS1.
    Background,
}

const TCP: u8 = 6;
const UDP: u8 = 17;
const ESP: u8 = 50;
const AH: u8 = 51;

impl Flow {
    /// Classifies a packet; packets other than IP form one flow.
    pub(super) fn of(packet: &[u8]) -> Self {
        let parts = match packet.first().map(|byte| byte >> 4) {
            Some(4) => v4(packet),
            Some(6) => v6(packet),
            Some(_) | None => None,
        };
        let Some((service, addresses, rest)) = parts else {
            return Self { hash: 0, mark: Mark::None };
        };
        let hash =
            [addresses, &rest].into_iter().flatten().fold(0xcbf2_9ce4_8422_2325, |hash, b| {
                (hash ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3)
            });
        let mark = match service >> 2 {
            46 | 44 | 48 | 56 => Mark::Urgent,
            1 | 8 => Mark::Background,
            _ => Mark::None,
        };
        // The low bits of a product depend little on the high bits of its factors.
        Self { hash: hash ^ (hash >> 32), mark }
    }
}

/// Traffic class, addresses, protocol with ports.
type Parts<'a> = (u8, &'a [u8], [u8; 5]);

fn v4(packet: &[u8]) -> Option<Parts<'_>> {
    let header = packet.first_chunk::<20>()?;
    let length = usize::from(header[0] & 0x0f) * 4;
    // Later fragments have no ports, so all fragments are classified by addresses only, and stay in
    // one flow.
    let whole = u16::from_be_bytes([header[6], header[7]]) & 0x3fff == 0;
    let inner = packet.get(length..).filter(|_| whole).unwrap_or_default();
    Some((header[1], &packet[12..20], ports(header[9], inner)))
}

fn v6(packet: &[u8]) -> Option<Parts<'_>> {
    let header = packet.first_chunk::<40>()?;
    let service = header[0] << 4 | header[1] >> 4;
    Some((service, &packet[8..40], ports(header[6], &packet[40..])))
}

/// Returns the protocol, and the ports or the security parameters index.
fn ports(protocol: u8, inner: &[u8]) -> [u8; 5] {
    let at = match protocol {
        TCP | UDP | ESP => 0,
        AH => 4,
        _ => return [protocol, 0, 0, 0, 0],
    };
    match inner.get(at..at + 4) {
        Some(&[a, b, c, d]) => [protocol, a, b, c, d],
        Some(_) | None => [protocol, 0, 0, 0, 0],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn udp(port: u8, service: u8) -> Vec<u8> {
        let mut packet = vec![0x45, service, 0, 28, 0, 0, 0, 0, 64, UDP, 0, 0];
        packet.extend([10, 1, 0, 2, 10, 3, 0, 2, 0x10, port, 0, 53, 0, 8, 0, 0]);
        packet
    }

    #[test]
    fn a_flow_is_addresses_protocol_and_ports() {
        assert_eq!(Flow::of(&udp(1, 0)), Flow::of(&udp(1, 0)));
        assert_ne!(Flow::of(&udp(1, 0)).hash, Flow::of(&udp(2, 0)).hash);
        let mut esp = udp(1, 0);
        esp[9] = ESP;
        assert_ne!(Flow::of(&esp).hash, Flow::of(&udp(1, 0)).hash);
        // The first fragment is in the flow of the others.
        let (mut first, mut later) = (udp(1, 0), udp(7, 0));
        (first[6], later[7]) = (0x20, 9);
        assert_eq!(Flow::of(&first).hash, Flow::of(&later).hash);
        let mut v6 = vec![0x60; 48];
        v6[6] = UDP;
        let before = Flow::of(&v6).hash;
        v6[43] ^= 1;
        assert_ne!(Flow::of(&v6).hash, before);
    }

    #[test]
    fn dscp_determines_the_class() {
        for (dscp, mark) in
            [(46, Mark::Urgent), (48, Mark::Urgent), (0, Mark::None), (8, Mark::Background)]
        {
            assert_eq!(Flow::of(&udp(1, dscp << 2 | 3)).mark, mark);
            let mut v6 = vec![0; 40];
            (v6[0], v6[1]) = (0x60 | dscp >> 2, dscp << 6);
            assert_eq!(Flow::of(&v6).mark, mark);
        }
    }

    proptest! {
        #[test]
        fn anything_is_a_flow(packet in prop::collection::vec(any::<u8>(), 0..80)) {
            Flow::of(&packet);
        }
    }
}
