//! What the headers of an IP packet say about where it comes from and goes to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Ends of an IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ends {
    pub(crate) source: IpAddr,
    /// With the port of TCP and UDP, 0 for others.
    pub(crate) destination: SocketAddr,
    pub(crate) protocol: u8,
    /// The port that TCP and UDP come from, 0 for others.
    pub(crate) source_port: u16,
}

/// UDP's number.
pub(crate) const UDP: u8 = 17;
const TCP: u8 = 6;

impl Ends {
    /// Of a packet; `None` for what is no whole IP packet.
    pub(crate) fn of(packet: &[u8]) -> Option<Self> {
        let (source, destination, protocol, inner) = match packet.first()? >> 4 {
            4 => v4(packet)?,
            6 => v6(packet)?,
            _ => return None,
        };
        let ports = inner.first_chunk::<4>().filter(|_| matches!(protocol, TCP | UDP));
        let [a, b, c, d] = ports.copied().unwrap_or_default();
        Some(Self {
            source,
            destination: SocketAddr::new(destination, u16::from_be_bytes([c, d])),
            protocol,
            source_port: u16::from_be_bytes([a, b]),
        })
    }

    /// Whether it is between two hosts, and not for many or for the own link alone.
    pub(crate) fn is_between_hosts(&self) -> bool {
        let host = |address: IpAddr| match address {
            IpAddr::V4(ip) => {
                let many = ip.is_unspecified() || ip.is_multicast() || ip.is_broadcast();
                !many && !ip.is_loopback() && !ip.is_link_local()
            }
            IpAddr::V6(ip) => {
                let many = ip.is_unspecified() || ip.is_multicast();
                !many && !ip.is_loopback() && !ip.is_unicast_link_local()
            }
        };
        host(self.source) && host(self.destination.ip())
    }
}

type Parts<'a> = (IpAddr, IpAddr, u8, &'a [u8]);

fn v4(packet: &[u8]) -> Option<Parts<'_>> {
    let header = packet.first_chunk::<20>()?;
    let (length, total) = (
        usize::from(header[0] & 0x0f) * 4,
        usize::from(u16::from_be_bytes([header[2], header[3]])),
    );
    if length < 20 || total != packet.len() || length > total {
        return None;
    }
    let address = |at: usize| {
        IpAddr::V4(Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]))
    };
    // A later fragment has no ports.
    let first = u16::from_be_bytes([header[6], header[7]]) & 0x1fff == 0;
    let inner = if first { &packet[length..] } else { &[] };
    Some((address(12), address(16), header[9], inner))
}

fn v6(packet: &[u8]) -> Option<Parts<'_>> {
    let header = packet.first_chunk::<40>()?;
    let payload = usize::from(u16::from_be_bytes([header[4], header[5]]));
    if payload + 40 != packet.len() {
        return None;
    }
    let address = |at: usize| {
        let bytes: [u8; 16] = core::array::from_fn(|index| header[at + index]);
        IpAddr::V6(Ipv6Addr::from(bytes))
    };
    // Behind extension headers ports are not looked for: rules on addresses hold all the same.
    Some((address(8), address(24), header[6], &packet[40..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ends_of_packets() {
        let mut packet = vec![0x45, 0, 0, 30, 0, 0, 0, 0, 64, UDP, 0, 0, 10, 1, 0, 2, 10, 3, 0, 2];
        packet.extend([0x1b, 0x58, 0, 53, 0, 10, 0, 0, 1, 2]);
        let ends = Ends::of(&packet).unwrap();
        assert_eq!(ends.source, IpAddr::from([10, 1, 0, 2]));
        assert_eq!(ends.destination, "10.3.0.2:53".parse().unwrap());
        assert_eq!((ends.protocol, ends.source_port), (UDP, 7000));
        assert!(ends.is_between_hosts());
        packet[7] = 1;
        assert_eq!(Ends::of(&packet).unwrap().destination.port(), 0, "a later fragment");
        packet[16] = 224;
        assert!(!Ends::of(&packet).unwrap().is_between_hosts());
        packet.pop();
        assert_eq!(Ends::of(&packet), None, "cut off");
        let mut packet = vec![0x60, 0, 0, 0, 0, 4, 50, 64];
        packet.extend([0xfd, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
        packet.extend([0xfd, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
        packet.extend([1, 2, 3, 4]);
        let ends = Ends::of(&packet).unwrap();
        assert_eq!((ends.protocol, ends.source_port), (50, 0));
        assert_eq!(ends.destination, "[fd00:3::2]:0".parse().unwrap());
        packet[24] = 0xff;
        assert!(!Ends::of(&packet).unwrap().is_between_hosts());
    }

    proptest! {
        #[test]
        fn anything_is_a_packet_or_none(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            Ends::of(&bytes);
        }
    }
}
