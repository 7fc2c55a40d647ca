//! The standard test network: a client behind a terminal, a server behind a hub.

use crate::{Host, TestbedError};
use rt::netlink::{Netlink, NetlinkError, Route, VethEnd, sysctl};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The addresses. Every wire is a network of its own, `10.n.0.0/24` and `fd00:n::/64`.
pub mod addresses {
    use std::net::{Ipv4Addr, Ipv6Addr};

    /// The client's.
    pub const CLIENT: (Ipv4Addr, Ipv6Addr) = on_wire(1, 2);
    /// The terminal's on the client's side.
    pub const TERMINAL_LAN: (Ipv4Addr, Ipv6Addr) = on_wire(1, 1);
    /// The terminal's on the satellite's side.
    pub const TERMINAL: (Ipv4Addr, Ipv6Addr) = on_wire(2, 1);
    /// The hub's on the satellite's side.
    pub const HUB: (Ipv4Addr, Ipv6Addr) = on_wire(2, 2);
    /// The hub's on the server's side.
    pub const HUB_WAN: (Ipv4Addr, Ipv6Addr) = on_wire(3, 1);
    /// The terminal's on the [second link](super::Satellite::add_second).
    pub const SECOND_TERMINAL: (Ipv4Addr, Ipv6Addr) = on_wire(9, 1);
    /// The hub's on the second link.
    pub const SECOND_HUB: (Ipv4Addr, Ipv6Addr) = on_wire(9, 2);
    /// The server's.
    pub const SERVER: (Ipv4Addr, Ipv6Addr) = on_wire(3, 2);

    const fn on_wire(wire: u8, host: u8) -> (Ipv4Addr, Ipv6Addr) {
        let (w, h) = (wire as u16, host as u16);
        (Ipv4Addr::new(10, wire, 0, host), Ipv6Addr::new(0xfd00, w, 0, 0, 0, 0, 0, h))
    }
}

/// Parameters of the network.
#[derive(Clone, Debug)]
pub struct SatelliteConfig {
    /// The MTU of every wire, in octets of layer 3.
    pub mtu: u32,
    /// Maximum buffer of each TCP socket per direction, in octets. The default suffices for 50
    /// Mbit/s over 600 ms with a queue of the same length, in the kernel's accounting (twice the
    /// payload).
    pub tcp_buffer: u32,
    /// Whether the satellite's wires end on [`Satellite::space`]. Otherwise one wire joins
    /// terminal and hub, and no emulator can run.
    pub emulated: bool,
    /// Whether the wires hand on unsegmented packets, as a network adapter with segmentation and
    /// receive offloads does. An emulator needs them as they would be on a real wire.
    pub offloads: bool,
}

impl Default for SatelliteConfig {
    fn default() -> Self {
        Self { mtu: 1500, tcp_buffer: 32 << 20, emulated: true, offloads: false }
    }
}

/// Client, terminal, emulator, hub and server.
///
/// The satellite's two wires end on [`Satellite::space`] in the interfaces [`TO_TERMINAL`] and
/// [`TO_HUB`]; nothing passes until an emulator runs there.
///
/// [`TO_TERMINAL`]: Satellite::TO_TERMINAL
/// [`TO_HUB`]: Satellite::TO_HUB
#[derive(Debug)]
pub struct Satellite {
    /// The user's machine; its interface is `eth0`.
    pub client: Host,
    /// The user's side of the link: `lan` and `sat`.
    pub terminal: Host,
    /// Where the emulator runs.
    pub space: Host,
    /// The operator's side: `sat` and `wan`.
    pub hub: Host,
    /// The remote host; its interface is `eth0`.
    pub server: Host,
}

/// One of the network's wires, for removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// Between client and terminal.
    Lan,
    /// Between terminal and emulator. An emulator that runs there ends.
    TerminalSatellite,
}

/// Addresses of an interface.
type Pair = (Ipv4Addr, Ipv6Addr);
/// An interface of a host.
pub(crate) type End<'a> = (&'a Host, &'a str);
/// An interface with its name in the network.
type Named<'a> = (&'a Host, &'static str, Pair);

impl Satellite {
    /// The emulator's interface towards the terminal.
    pub const TO_TERMINAL: &'static str = "term";
    /// The emulator's interface towards the hub.
    pub const TO_HUB: &'static str = "hub";

    /// Builds the five hosts and their wires.
    ///
    /// # Errors
    /// The kernel's error, and the host.
    pub fn new(config: &SatelliteConfig) -> Result<Self, TestbedError> {
        let net = Self {
            client: Host::new("client")?,
            terminal: Host::new("terminal")?,
            space: Host::new("space")?,
            hub: Host::new("hub")?,
            server: Host::new("server")?,
        };
        for host in [&net.client, &net.terminal, &net.space, &net.hub, &net.server] {
            host.configure(|_| tune(config))?;
        }
        // Only the emulator carries frames, and the kernel must not generate any.
        net.space.configure(|_| sysctl("net.ipv6.conf.default.disable_ipv6", "1"))?;
        let mut wires = vec![net.ends(Wire::Lan), ((&net.hub, "wan"), (&net.server, "eth0"))];
        if config.emulated {
            wires.push(net.ends(Wire::TerminalSatellite));
            wires.push(((&net.hub, "sat"), (&net.space, Self::TO_HUB)));
        } else {
            wires.push(((&net.terminal, "sat"), (&net.hub, "sat")));
        }
        for (near, far) in wires {
            lay_wire(near, far, config.mtu, config.offloads)?;
        }
        net.address()?;
        net.route()?;
        Ok(net)
    }

    /// The emulator's interfaces of a second link, towards the terminal and the hub.
    pub const SECOND: [&'static str; 2] = ["term2", "hub2"];
    /// The interface of the second link at terminal and hub.
    pub const SECOND_LINK: &'static str = "second";

    /// Adds a second link between terminal and hub. Sockets of the terminal that are bound to its
    /// interface reach the hub's address of the first link over it; it is not used otherwise.
    ///
    /// # Errors
    /// The kernel's error, and the host.
    pub fn add_second(&self, mtu: u32) -> Result<(), TestbedError> {
        use addresses::*;
        let [near, far] = [&self.terminal, &self.hub].map(|host| (host, Self::SECOND_LINK));
        for (host, end) in [near, far].into_iter().zip(Self::SECOND) {
            lay_wire(host, (&self.space, end), mtu, false)?;
        }
        meet((near.0, near.1, SECOND_TERMINAL), (far.0, far.1, SECOND_HUB))?;
        self.lead_second()
    }

    /// Sets the second link's interface at the terminal down, or up again.
    ///
    /// # Errors
    /// The kernel's error, and the host.
    pub fn set_second(&self, up: bool) -> Result<(), TestbedError> {
        if up {
            self.terminal.configure(|net| net.set_up(Self::SECOND_LINK))?;
            self.lead_second()
        } else {
            self.terminal.configure(|net| net.set_down(Self::SECOND_LINK))
        }
    }

    /// Adds the neighbours and the route of the second link, which a link that is down does not keep.
    fn lead_second(&self) -> Result<(), TestbedError> {
        use addresses::*;
        let hub = hardware((&self.hub, Self::SECOND_LINK));
        // A shorter prefix than that of the first link.
        let mut route = Route::to(Ipv4Addr::new(10, 2, 0, 0).into(), 16).via(SECOND_HUB.0.into());
        route.interface = Some(Self::SECOND_LINK.into());
        self.terminal.configure(|net| {
            net.add_neighbour(Self::SECOND_LINK, SECOND_HUB.0.into(), hub)?;
            net.add_route(&route)
        })
    }

    fn ends(&self, wire: Wire) -> (End<'_>, End<'_>) {
        match wire {
            Wire::Lan => ((&self.terminal, "lan"), (&self.client, "eth0")),
            Wire::TerminalSatellite => ((&self.terminal, "sat"), (&self.space, Self::TO_TERMINAL)),
        }
    }

    /// Removes a wire: the interfaces at both ends, with their addresses and routes.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn remove(&self, wire: Wire) -> Result<(), TestbedError> {
        let ((host, name), _) = self.ends(wire);
        host.configure(|net| net.delete_link(name))
    }

    /// Restores a removed wire with interfaces of the same names. The terminal's address on the
    /// satellite's side is `terminal`, the others are unchanged.
    ///
    /// # Errors
    /// The kernel's error, and the host.
    pub fn restore(&self, wire: Wire, mtu: u32, terminal: Pair) -> Result<(), TestbedError> {
        use addresses::*;
        let (near, far) = self.ends(wire);
        lay_wire(near, far, mtu, false)?;
        match wire {
            Wire::Lan => {
                meet((&self.terminal, "lan", TERMINAL_LAN), (&self.client, "eth0", CLIENT))?;
                lead(&self.client, TERMINAL_LAN)
            }
            Wire::TerminalSatellite => {
                let hub = hardware((&self.hub, "sat"));
                introduce((&self.terminal, "sat", terminal), HUB, hub)?;
                let own = hardware((&self.terminal, "sat"));
                self.hub.configure(|net| {
                    net.add_neighbour("sat", terminal.0.into(), own)?;
                    net.add_neighbour("sat", terminal.1.into(), own)
                })?;
                lead(&self.terminal, HUB)
            }
        }
    }

    fn address(&self) -> Result<(), TestbedError> {
        use addresses::*;
        let neighbours = [
            ((&self.client, "eth0", CLIENT), (&self.terminal, "lan", TERMINAL_LAN)),
            ((&self.terminal, "sat", TERMINAL), (&self.hub, "sat", HUB)),
            ((&self.hub, "wan", HUB_WAN), (&self.server, "eth0", SERVER)),
        ];
        neighbours.into_iter().try_for_each(|(one, other)| meet(one, other))
    }

    fn route(&self) -> Result<(), TestbedError> {
        use addresses::*;
        let defaults = [
            (&self.client, TERMINAL_LAN),
            (&self.terminal, HUB),
            (&self.hub, TERMINAL),
            (&self.server, HUB_WAN),
        ];
        defaults.into_iter().try_for_each(|(host, gateway)| lead(host, gateway))?;
        self.set_forwarding(true)
    }

    /// Sets whether terminal and hub forward packets, as they do initially. Without forwarding only
    /// gateways carry client traffic over the link.
    ///
    /// # Errors
    /// The kernel's error, and the host.
    pub fn set_forwarding(&self, on: bool) -> Result<(), TestbedError> {
        let value = if on { "1" } else { "0" };
        for host in [&self.terminal, &self.hub] {
            host.configure(|_| {
                sysctl("net.ipv4.ip_forward", value)?;
                sysctl("net.ipv6.conf.all.forwarding", value)
            })?;
        }
        Ok(())
    }
}

pub(crate) fn lay_wire(
    near: End<'_>,
    far: End<'_>,
    mtu: u32,
    offloads: bool,
) -> Result<(), TestbedError> {
    let end =
        |end| VethEnd { mtu: Some(mtu), hardware: Some(hardware(end)), ..VethEnd::new(end.1) };
    let peer = end(far).in_namespace(far.0.namespace());
    let near_end = end(near);
    near.0.configure(|net| net.create_veth(&near_end, &peer))?;
    for (host, name) in [near, far] {
        host.configure(|net| {
            if !offloads {
                net.disable_offloads(name)?;
            }
            net.set_up(name)
        })?;
    }
    Ok(())
}

/// Adds the addresses and the permanent neighbour entries of both ends of a wire.
fn meet(one: Named<'_>, other: Named<'_>) -> Result<(), TestbedError> {
    introduce(one, other.2, hardware((other.0, other.1)))?;
    introduce(other, one.2, hardware((one.0, one.1)))
}

fn introduce(
    (host, interface, own): Named<'_>,
    theirs: Pair,
    hardware: [u8; 6],
) -> Result<(), TestbedError> {
    host.configure(|net| {
        give_address(net, interface, own.0.into())?;
        give_address(net, interface, own.1.into())?;
        net.add_neighbour(interface, theirs.0.into(), hardware)?;
        net.add_neighbour(interface, theirs.1.into(), hardware)
    })
}

/// Adds default routes via `gateway`.
fn lead(host: &Host, gateway: Pair) -> Result<(), TestbedError> {
    host.configure(|net| {
        net.add_route(&Route::default_v4(gateway.0))?;
        net.add_route(&Route::default_v6(gateway.1))
    })
}

/// MAC addresses are fixed, so that permanent neighbour entries can be set.
pub(crate) fn hardware((host, interface): End<'_>) -> [u8; 6] {
    let sum = |text: &str| text.bytes().fold(0, |sum: u8, byte| sum.wrapping_mul(31) ^ byte);
    [0x02, 0, 0, 0, sum(host.name()), sum(interface)]
}

pub(crate) fn give_address(
    net: &mut Netlink,
    interface: &str,
    own: IpAddr,
) -> Result<(), NetlinkError> {
    net.add_address(interface, own, if own.is_ipv4() { 24 } else { 64 })?;
    net.await_address(own)
}

/// Kernel parameters of every host, set before it has interfaces.
pub(crate) fn tune(config: &SatelliteConfig) -> Result<(), NetlinkError> {
    let memory = format!("4096 131072 {}", config.tcp_buffer);
    let settings = [
        ("net.ipv4.tcp_rmem", memory.as_str()),
        ("net.ipv4.tcp_wmem", memory.as_str()),
        // A socket created with bbr as default congestion control, as on some systems, stays paced
        // by the kernel even when it is switched to cubic. Of the defaults that every namespace
        // allows, reno does not pace.
        ("net.ipv4.tcp_congestion_control", "reno"),
        // Metrics of one measurement must not affect the next.
        ("net.ipv4.tcp_no_metrics_save", "1"),
        // Interception makes routes asymmetric.
        ("net.ipv4.conf.all.rp_filter", "0"),
        ("net.ipv4.conf.default.rp_filter", "0"),
        ("net.ipv4.conf.all.send_redirects", "0"),
        ("net.ipv4.conf.default.send_redirects", "0"),
        // The kernel must not send packets on its own.
        ("net.ipv6.conf.default.accept_dad", "0"),
        ("net.ipv6.conf.default.accept_ra", "0"),
        ("net.ipv6.conf.default.router_solicitations", "0"),
        ("net.ipv6.conf.default.addr_gen_mode", "1"),
    ];
    settings.into_iter().try_for_each(|(key, value)| sysctl(key, value))
}
