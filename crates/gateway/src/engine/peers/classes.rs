//! Service classes on the forward link: `[[class]]`.

use crate::ClassSection;
use crate::forward::packet::Ends;
use relay::{Destination, Service};
use std::net::{IpAddr, SocketAddr};

/// Classes of a hub, of which the first that matches applies.
#[derive(Clone, Debug, Default)]
pub(crate) struct Classes {
    all: Vec<ClassSection>,
}

impl Classes {
    pub(crate) fn new(sections: &[ClassSection]) -> Self {
        Self { all: sections.to_vec() }
    }

    /// Returns the service class of a connection.
    pub(crate) fn of_stream(
        &self,
        server: &Destination,
        client: Option<SocketAddr>,
    ) -> Option<Service> {
        let (address, port) = match server {
            Destination::Address(address) => (Some(address.ip()), address.port()),
            Destination::Name(_, port) => (None, *port),
        };
        let ends = [address, client.map(|client| client.ip())];
        // The DSCP of a server's packets is unknown.
        self.find(|class| class.dscp.is_empty() && fits(class, ends, &[port]))
    }

    /// Returns the service class of a packet that is forwarded unsplit.
    pub(crate) fn of_packet(&self, packet: &[u8], ends: &Ends) -> Option<Service> {
        let dscp = dscp(packet)?;
        let ports: &[u16] =
            if ends.port_is_hidden { &[] } else { &[ends.source_port, ends.destination.port()] };
        self.find(|class| {
            let marked = class.dscp.is_empty() || class.dscp.contains(&dscp);
            marked && fits(class, [Some(ends.source), Some(ends.destination.ip())], ports)
        })
    }

    fn find(&self, fits: impl Fn(&ClassSection) -> bool) -> Option<Service> {
        let at = self.all.iter().position(fits)?;
        let ClassSection { level, weight, .. } = self.all[at];
        // Class 0 is the default.
        Some(Service { level, class: u8::try_from(at + 1).ok()?, weight })
    }
}

fn fits(class: &ClassSection, ends: [Option<IpAddr>; 2], ports: &[u16]) -> bool {
    let inside = |address: IpAddr| class.networks.iter().any(|network| network.contains(address));
    let named = |port: &u16| class.ports.iter().any(|range| range.contains(*port));
    (class.networks.is_empty() || ends.into_iter().flatten().any(inside))
        && (class.ports.is_empty() || ports.iter().any(named))
}

/// Returns the DSCP of an IP packet.
fn dscp(packet: &[u8]) -> Option<u8> {
    match packet {
        [first, service, ..] if first >> 4 == 4 => Some(service >> 2),
        [first, second, ..] if first >> 4 == 6 => Some((first << 4 | second >> 4) >> 2),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use relay::Level;
    use std::net::Ipv6Addr;

    fn class(name: &str, level: Level) -> ClassSection {
        let (ports, networks, dscp) = (Vec::new(), Vec::new(), Vec::new());
        ClassSection { name: name.into(), ports, networks, dscp, level, weight: 2 }
    }

    #[test]
    fn the_first_class_that_fits_decides() {
        let mut shell = class("shell", Level::Urgent);
        shell.ports = vec!["22".parse().unwrap()];
        let mut backup = class("backup", Level::Background);
        backup.networks = vec!["10.9.0.0/16".parse().unwrap()];
        let mut voice = class("voice", Level::Urgent);
        voice.dscp = vec![46, 34];
        let classes = Classes::new(&[shell, backup, voice]);
        let to = |text: &str| Destination::Address(text.parse().unwrap());
        let level = |server: &Destination, client: Option<&str>| {
            let client = client.map(|client| client.parse().unwrap());
            classes.of_stream(server, client).map(|service| (service.level, service.class))
        };
        assert_eq!(level(&to("10.9.1.1:22"), None), Some((Level::Urgent, 1)));
        assert_eq!(level(&to("10.9.1.1:80"), None), Some((Level::Background, 2)));
        assert_eq!(level(&to("10.8.1.1:80"), Some("10.9.4.4:999")), Some((Level::Background, 2)));
        assert_eq!(level(&to("10.8.1.1:80"), None), None);
        assert_eq!(level(&Destination::Name("x".into(), 22), None), Some((Level::Urgent, 1)));

        let mut packet = vec![0x45, 46 << 2, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0];
        packet.extend([10, 1, 0, 2, 10, 3, 0, 2, 0x10, 1, 0, 53, 0, 8, 0, 0]);
        let of = |packet: &[u8]| classes.of_packet(packet, &Ends::of(packet).unwrap());
        assert_eq!(of(&packet).map(|service| service.class), Some(3));
        packet[1] = 0;
        assert_eq!(of(&packet), None);
        packet[21] = 22;
        packet[20] = 0;
        assert_eq!(
            of(&packet).map(|service| service.class),
            Some(1),
            "the port that it comes from"
        );
        assert_eq!(dscp(&[0x6b, 0x80]), Some(46));
    }

    #[test]
    fn ipv4_networks_match_ipv4_mapped_addresses() {
        for written in ["10.9.0.0/16", "::ffff:10.9.0.0/112"] {
            let mut backup = class("backup", Level::Background);
            backup.networks = vec![written.parse().unwrap()];
            let classes = Classes::new(&[backup]);
            let stream = |server: &str, client: Option<&str>| {
                let server = Destination::Address(server.parse().unwrap());
                classes.of_stream(&server, client.map(|client| client.parse().unwrap())).is_some()
            };
            for inside in ["10.9.1.1:80", "[::ffff:10.9.1.1]:80"] {
                assert!(stream(inside, None), "{written}: {inside}");
                assert!(stream("192.0.2.1:80", Some(inside)), "{written}: from {inside}");
            }
            for outside in ["10.8.1.1:80", "[::ffff:10.8.1.1]:80", "[::10.9.1.1]:80"] {
                assert!(!stream(outside, Some("[2001:db8::1]:80")), "{written}: {outside}");
            }
            // UDP over IPv6, to a server in clothes.
            let mut packet = vec![0x60, 0, 0, 0, 0, 8, 17, 64];
            packet.extend("2001:db8::7".parse::<Ipv6Addr>().unwrap().octets());
            packet.extend("::ffff:10.9.1.1".parse::<Ipv6Addr>().unwrap().octets());
            packet.extend([0x10, 1, 0, 53, 0, 8, 0, 0]);
            let of = |packet: &[u8]| classes.of_packet(packet, &Ends::of(packet).unwrap());
            assert!(of(&packet).is_some(), "{written}");
            packet[37] = 8;
            assert!(of(&packet).is_none(), "{written}");
        }
    }
}
