//! Gateways, their links, and their configurations.
//!
//! ```text
//!   pair:          terminal ═══ hub        two terminals:  terminal ═╦═ hub
//!   two hubs:      terminal ═╦═ hub                        terminal ═╝
//!                            ╚═ hub        single:         a single gateway
//!   two links:     terminal ═══ hub
//!                           ═══
//! ```

use crate::simulation::net::link::{Link, headers};
use crate::{PrivateKey, PublicKey};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use units::{BitRate, RngStream, Span};

/// The name server of terminals' DNS forwarders.
pub(in crate::simulation) const NAME_SERVER: SocketAddr =
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 253)), 53);

/// The arrangement of gateways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::simulation) enum Layout {
    /// A terminal and its hub.
    Pair,
    /// A terminal with a path to each of two hubs; new connections use the path that is up.
    TwoHubs,
    /// A terminal with two bonded paths to its hub.
    TwoLinks,
    /// Two terminals of one hub.
    TwoTerminals,
    /// A single gateway.
    Single,
}

/// Settings of the gateways, and properties of the links.
#[derive(Clone, Debug)]
pub(in crate::simulation) struct Options {
    pub(in crate::simulation) layout: Layout,
    /// Clients are accepted when their servers have accepted.
    pub(in crate::simulation) confirms: bool,
    /// The links' rates are configured.
    pub(in crate::simulation) rates_configured: bool,
    /// Datagrams are encrypted.
    pub(in crate::simulation) encrypted: bool,
    pub(in crate::simulation) first_data_wait: Span,
    /// `limits.memory`, if it is configured.
    pub(in crate::simulation) memory: Option<&'static str>,
    pub(in crate::simulation) connections: u32,
    /// `fail.unreachable` and `fail.full`.
    pub(in crate::simulation) fail: [&'static str; 2],
    /// Priorities of the two paths of a terminal with two hubs.
    pub(in crate::simulation) priorities: [u32; 2],
    /// The rates from terminals to hubs, and from hubs to terminals.
    pub(in crate::simulation) rates: [BitRate; 2],
    pub(in crate::simulation) delay: Span,
    /// The links are between IPv6 addresses.
    pub(in crate::simulation) ipv6: bool,
    /// The hubs use the clients' addresses as source addresses.
    pub(in crate::simulation) uses_client_address: bool,
    /// Terminals answer DNS.
    pub(in crate::simulation) dns: bool,
    /// Terminals and hubs compress what they send.
    pub(in crate::simulation) compress: [bool; 2],
}

/// Gateways and links; the first nodes are those with clients.
#[derive(Clone, Debug)]
pub(in crate::simulation) struct Site {
    pub(in crate::simulation) layout: Layout,
    pub(in crate::simulation) configs: Vec<String>,
    /// The configuration that each gateway reads at a reload.
    pub(in crate::simulation) reloads: Vec<String>,
    /// Whether each gateway can hold SYNs.
    pub(in crate::simulation) can_hold: Vec<bool>,
    /// Links by sender and receiver; of each pair the one from the terminal comes first.
    pub(in crate::simulation) links: Vec<((SocketAddr, SocketAddr), Link)>,
}

impl Layout {
    /// Returns the number of gateways with clients, and of those without.
    const fn sizes(self) -> (usize, usize) {
        match self {
            Self::Pair | Self::TwoLinks => (1, 1),
            Self::TwoHubs => (1, 2),
            Self::TwoTerminals => (2, 1),
            Self::Single => (1, 0),
        }
    }

    /// Returns the hub of each path of a terminal.
    fn paths(self) -> Vec<usize> {
        match self {
            Self::TwoLinks => vec![0, 0],
            _ => (0..self.sizes().1).collect(),
        }
    }
}

impl Site {
    /// Creates a site of `options`, with a link made by `link` for each direction.
    pub(in crate::simulation) fn new(
        rng: &mut RngStream,
        options: &Options,
        reloaded: &Options,
        mut link: impl FnMut(&mut RngStream, BitRate) -> Link,
    ) -> Self {
        let (terminals, hubs) = options.layout.sizes();
        let keys: Vec<PrivateKey> =
            (0..terminals + hubs).map(|_| PrivateKey::generate(rng)).collect();
        let second = RngStream::new(0, 0, "gateway/simulation/second");
        let second = PrivateKey::generate(&mut { second });
        let mut links = Vec::new();
        for terminal in 0..terminals {
            for (path, hub) in options.layout.paths().into_iter().enumerate() {
                let (own, peer) =
                    (terminal_address(options, terminal, path), hub_address(options, hub));
                for (ends, rate) in [(own, peer), (peer, own)].into_iter().zip(options.rates) {
                    let mut link = link(rng, rate);
                    if options.layout == Layout::TwoLinks && path == 1 {
                        link.delay = link.delay / 4;
                    }
                    link.headers = headers(own);
                    links.push((ends, link));
                }
            }
        }
        let texts = |options: &Options| match options.layout {
            Layout::Single => vec![single(options)],
            _ => {
                let terminals = (0..terminals).map(|it| terminal(options, it, &keys, &second));
                terminals.chain((0..hubs).map(|it| hub(options, it, &keys, &second))).collect()
            }
        };
        let (configs, reloads) = (texts(options), texts(reloaded));
        let holds = options.confirms || rng.chance(0.7);
        let can_hold = (0..terminals + hubs)
            .map(|node| node < terminals && holds && options.layout != Layout::Single)
            .collect();
        Self { layout: options.layout, configs, reloads, can_hold, links }
    }

    pub(in crate::simulation) fn terminals(&self) -> usize {
        self.layout.sizes().0
    }

    /// Returns whether the gateway `node` connects to servers from the addresses of its clients.
    pub(in crate::simulation) fn uses_client_address(&self, node: usize) -> bool {
        self.configs[node].contains("source = \"client\"")
    }

    pub(in crate::simulation) fn is_terminal(&self, node: usize) -> bool {
        node < self.terminals()
    }

    /// Returns the gateways to which `node` has links.
    pub(in crate::simulation) fn peers_of(&self, node: usize) -> Vec<usize> {
        let (terminals, hubs) = self.layout.sizes();
        if self.is_terminal(node) {
            (terminals..terminals + hubs).collect()
        } else {
            (0..terminals).collect()
        }
    }
}

fn terminal_address(options: &Options, terminal: usize, path: usize) -> SocketAddr {
    let (number, path) = (terminal as u8, 10 + path as u8);
    match options.ipv6 {
        true => SocketAddr::from(([0xfd00, 3, number.into(), 0, 0, 0, 0, path.into()], 7000)),
        false => SocketAddr::from(([10, 3, number, path], 7000)),
    }
}

fn hub_address(options: &Options, hub: usize) -> SocketAddr {
    match options.ipv6 {
        true => SocketAddr::from(([0xfd00, 4, hub as u16, 0, 0, 0, 0, 1], 7000)),
        false => SocketAddr::from(([10, 4, hub as u8, 1], 7000)),
    }
}

/// Returns the address of a gateway's client.
pub(in crate::simulation) fn client_address(
    ipv6: bool,
    (node, host): (usize, u8),
    port: u16,
) -> SocketAddr {
    match ipv6 {
        // Each client has its own network, because IPv6 clients are counted by prefix.
        true => SocketAddr::from(([0xfd00, 1, node as u16, host.into(), 0, 0, 0, 1], port)),
        false => SocketAddr::from(([10, 1, node as u8, host], port)),
    }
}

/// Returns the address of a server.
pub(in crate::simulation) fn server_address(ipv6: bool, host: u8, port: u16) -> SocketAddr {
    match ipv6 {
        true => SocketAddr::from(([0x2001, 0xdb8, 0, 0, 0, 0, 0, host.into()], port)),
        false => SocketAddr::from(([192, 0, 2, host], port)),
    }
}

/// Returns `[link]` without its addresses, for a terminal (0) or a hub (1).
fn rates(options: &Options, role: usize) -> String {
    let compress = if options.compress[role] { "compress = \"auto\"\n" } else { "" };
    let round_trip = format!("round_trip = \"{}ms\"\n", options.delay.as_millis() * 2);
    let kbps = |rate: BitRate| rate.as_bps() / 1000;
    let [up, down] = options.rates.map(kbps);
    match options.rates_configured {
        true => {
            format!("{compress}rate_up = \"{up}kbit\"\nrate_down = \"{down}kbit\"\n{round_trip}")
        }
        false => format!("{compress}{round_trip}"),
    }
}

fn limits(options: &Options) -> String {
    let memory = options.memory.map(|memory| format!("memory = \"{memory}\"\n"));
    format!(
        "[limits]\nconnect = \"5s\"\nvanished = \"15s\"\ndrain = \"20s\"\nconnections = {}\n{}",
        options.connections,
        memory.unwrap_or_default()
    )
}

fn key(options: &Options, own: &PrivateKey) -> String {
    match options.encrypted {
        true => format!("private_key = \"{}\"\n", own.to_text()),
        false => "security = \"none\"\n".to_owned(),
    }
}

fn peer_key(options: &Options, public: PublicKey) -> String {
    if options.encrypted { format!("peer_public_key = \"{public}\"\n") } else { String::new() }
}

fn terminal(options: &Options, number: usize, keys: &[PrivateKey], second: &PrivateKey) -> String {
    let (terminals, _) = options.layout.sizes();
    let (paths, bonds) = (options.layout.paths(), options.layout == Layout::TwoLinks);
    let accept = if options.confirms { "confirm" } else { "early" };
    let place = |path: usize, hub: usize| {
        let (own, peer) = (terminal_address(options, number, path), hub_address(options, hub));
        let key = peer_key(options, keys[terminals + hub].public());
        let is_second = bonds && path == 1 && options.encrypted;
        let own_key = if is_second { self::key(options, second) } else { String::new() };
        format!("listen = \"{own}\"\npeer = \"{peer}\"\n{key}{own_key}")
    };
    let mut text = format!(
        "role = \"terminal\"\nname = \"{}\"\naccept = \"{accept}\"\n{}[link]\n",
        name(number),
        key(options, &keys[number])
    );
    let rates = rates(options, 0);
    if paths.len() == 1 {
        text += &place(0, 0);
        text += &rates;
    } else {
        text += &rates;
        text += if bonds { "bond = true\n" } else { "" };
        for (path, hub) in paths.into_iter().enumerate() {
            let priority = if bonds { 1 } else { options.priorities[path] };
            let place = place(path, hub);
            text += &format!("[[path]]\nname = \"p{path}\"\npriority = {priority}\n{place}");
        }
        text += "[health]\nprobe = \"500ms\"\nhold = \"2s\"\n";
    }
    let [unreachable, full] = options.fail;
    text += &format!("[fail]\nunreachable = \"{unreachable}\"\nfull = \"{full}\"\n");
    text += "[socks5]\nlisten = \"127.0.0.1:1080\"\n[connect]\nlisten = \"127.0.0.1:8080\"\n";
    if options.dns {
        text += "[dns]\nlisten = \"127.0.0.1:53\"\nmemory = \"1mb\"\nplaceholders = \"198.18.0.0/29\"\n";
    }
    text += &limits(options);
    text + &format!("first_data_wait = \"{}ms\"\n", options.first_data_wait.as_millis())
}

fn hub(options: &Options, number: usize, keys: &[PrivateKey], second: &PrivateKey) -> String {
    let (terminals, _) = options.layout.sizes();
    let known = |name: &str, key: &PrivateKey| {
        format!("[[terminal]]\nname = \"{name}\"\npublic_key = \"{}\"\n", key.public())
    };
    let mut all = String::new();
    if options.encrypted {
        all = (0..terminals).map(|terminal| known(name(terminal), &keys[terminal])).collect();
        if options.layout == Layout::TwoLinks {
            all += &known(&format!("{}/p1", name(0)), second);
        }
    }
    let known = all;
    let source = match options.uses_client_address {
        true => "[hub]\nsource = \"client\"\nclients = [\"10.1.0.0/16\", \"fd00:1::/32\"]\n",
        false => "",
    };
    let dns = match options.dns {
        true => format!("[dns]\nservers = [\"{NAME_SERVER}\"]\n"),
        false => String::new(),
    };
    format!(
        "role = \"hub\"\n{}[link]\nlisten = \"{}\"\n{}{source}{dns}{}memory_total = \"64mb\"\n{known}",
        key(options, &keys[terminals + number]),
        hub_address(options, number),
        rates(options, 1),
        limits(options)
    )
}

fn single(options: &Options) -> String {
    let rate = match options.rates_configured {
        true => format!("rate = \"{}kbit\"\n", options.rates[1].as_bps() / 1000),
        false => String::new(),
    };
    let source = if options.encrypted { "client" } else { "own" };
    format!(
        "role = \"single\"\n[single]\nsatellite = [\"sat0\"]\nsource = \"{source}\"\n{rate}{}",
        limits(options)
    )
}

/// Returns the name of a terminal.
pub(in crate::simulation) fn name(terminal: usize) -> &'static str {
    if terminal == 0 { "boat" } else { "ship" }
}
