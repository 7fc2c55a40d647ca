//! A hub with many terminals behind one emulated star, and a server behind the hub.

use crate::topology::{End, give_address, tune};
use crate::{Host, SatelliteConfig, TestbedError};
use rt::netlink::{VethEnd, sysctl};
use std::net::Ipv4Addr;

/// Maximum number of terminals, given by the addresses.
const MAX_TERMINALS: usize = 250;

/// The hosts of a star: `space` carries packets between hub and terminals once an emulator runs on
/// its interfaces. Only gateways carry traffic from a terminal to the server.
///
/// ```text
///   terminals 10.2.0.2, 10.2.0.3, … ══ space ══ hub 10.2.0.1 | 10.3.0.1 ── server 10.3.0.2
/// ```
#[derive(Debug)]
pub struct StarNetwork {
    /// Users' sides, each with an interface `sat`.
    pub terminals: Vec<Host>,
    /// Where the emulator runs.
    pub space: Host,
    /// The operator's side: `sat` and `wan`.
    pub hub: Host,
    /// The remote host.
    pub server: Host,
}

impl StarNetwork {
    /// The emulator's interface towards the hub.
    pub const TO_HUB: &'static str = "hub";
    /// The hub's address on the satellite's side.
    pub const HUB: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 1);
    /// The server's address.
    pub const SERVER: Ipv4Addr = Ipv4Addr::new(10, 3, 0, 2);

    /// Builds the hosts and their wires.
    ///
    /// # Errors
    /// The kernel's error, and the host.
    ///
    /// # Panics
    /// If there are more than 250 terminals.
    pub fn new(terminals: usize, config: &SatelliteConfig) -> Result<Self, TestbedError> {
        assert!(terminals <= MAX_TERMINALS, "at most {MAX_TERMINALS} terminals");
        let host = |name: &str| {
            let host = Host::new(name)?;
            host.configure(|_| tune(config)).map(|()| host)
        };
        let sites: Result<Vec<Host>, TestbedError> =
            (0..terminals).map(|number| host(&Self::name(number))).collect();
        let net = Self {
            terminals: sites?,
            space: host("space")?,
            hub: host("hub")?,
            server: host("server")?,
        };
        // Only the emulator carries frames, and the kernel must not generate any.
        net.space.configure(|_| sysctl("net.ipv6.conf.default.disable_ipv6", "1"))?;
        lay((&net.hub, "sat"), (&net.space, Self::TO_HUB), hardware(0), config.mtu)?;
        give(&net.hub, "sat", Self::HUB)?;
        for (number, site) in net.terminals.iter().enumerate() {
            let own = hardware(number + 1);
            lay((site, "sat"), (&net.space, &Self::name(number)), own, config.mtu)?;
            let address = Self::address(number);
            give(site, "sat", address)?;
            site.configure(|net| net.add_neighbour("sat", Self::HUB.into(), hardware(0)))?;
            net.hub.configure(|net| net.add_neighbour("sat", address.into(), own))?;
        }
        lay((&net.hub, "wan"), (&net.server, "eth0"), [2, 0, 0, 2, 0, 1], config.mtu)?;
        give(&net.hub, "wan", Ipv4Addr::new(10, 3, 0, 1))?;
        give(&net.server, "eth0", Self::SERVER)?;
        Ok(net)
    }

    /// The name of a terminal, and of the emulator's interface towards it: `site-01` is the first.
    pub fn name(number: usize) -> String {
        format!("site-{:02}", number + 1)
    }

    /// A terminal's address.
    pub fn address(number: usize) -> Ipv4Addr {
        Ipv4Addr::new(10, 2, 0, u8::try_from(number + 2).unwrap_or(u8::MAX))
    }
}

/// Fixed, so that permanent neighbour entries can be set; different, so that the emulator can
/// distinguish terminals.
fn hardware(number: usize) -> [u8; 6] {
    [2, 0, 0, 1, (number >> 8) as u8, number as u8]
}

fn lay(near: End<'_>, far: End<'_>, own: [u8; 6], mtu: u32) -> Result<(), TestbedError> {
    let near_end = VethEnd { mtu: Some(mtu), hardware: Some(own), ..VethEnd::new(near.1) };
    let far_end = VethEnd { mtu: Some(mtu), ..VethEnd::new(far.1) };
    let far_end = far_end.in_namespace(far.0.namespace());
    near.0.configure(|net| net.create_veth(&near_end, &far_end))?;
    for (host, name) in [near, far] {
        host.configure(|net| {
            net.disable_offloads(name)?;
            net.set_up(name)
        })?;
    }
    Ok(())
}

fn give(host: &Host, interface: &str, address: Ipv4Addr) -> Result<(), TestbedError> {
    host.configure(|net| give_address(net, interface, address.into()))
}
