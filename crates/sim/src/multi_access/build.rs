//! A star's network, from its nodes to what they saw.

use super::{Answerer, Asker, Seen, Site, SiteSeen, Space, Stack, Star};
use crate::Network;
use crate::host::{Host, Proxy, Tcp, TcpId, Xstp};
use crate::network::{Address, LinkId, NodeId};
use satlink::{Direction, DirectionConfig, LinkConfig};
use std::collections::BTreeMap;
use units::BitRate;

/// The servers' port, and that of the hub's STP.
const PORT: u16 = 80;

type Client = Host<Tcp, Asker<TcpId>>;
type Server = Host<Tcp, Answerer<TcpId>>;
type Terminal = Proxy<Tcp, Xstp>;

pub(super) struct SiteNodes {
    client: NodeId,
    server: NodeId,
    terminal: Option<NodeId>,
}

pub(super) struct Built {
    pub(super) net: Network,
    space: NodeId,
    forward: LinkId,
    sites: Vec<SiteNodes>,
    /// Slots that each terminal had been granted when rates were last set, and what it is
    /// granted in a frame, smoothed.
    granted: Vec<(u64, f64)>,
}

impl Built {
    pub(super) fn new(star: &Star, seed: u64, run: u64) -> Self {
        let mut net = Network::new(seed, run);
        net.trace();
        let channel = net.rng("sim/multi-access").next_u64();
        let space = net.gateway_with(|_| {
            let random = star.random.as_ref();
            Space::new(&star.mac, random, star.reports, BTreeMap::new(), channel, run)
                .expect("the MAC's settings should make sense")
        });
        let hub = net.router();
        let forward = net.link(hub, space, &sky(star));
        let mut built = Self {
            net,
            space,
            forward,
            sites: Vec::new(),
            granted: vec![(0, 0.0); star.mac.terminals.len()],
        };
        for (place, site) in star.sites.iter().enumerate() {
            let nodes = match &star.stack {
                Stack::EndToEnd(_) => built.direct(star, place, site, hub),
                Stack::Split { .. } => built.split(star, place, site, hub),
            };
            built.sites.push(nodes);
        }
        built
    }

    /// Client and server speak TCP with one another.
    fn direct(&mut self, star: &Star, place: usize, site: &Site, hub: NodeId) -> SiteNodes {
        let Stack::EndToEnd(tcp) = &star.stack else { unreachable!("asked for with that stack") };
        let net = &mut self.net;
        let server = net.host_with(|node| {
            Host::new(Tcp::server(node, tcp, PORT), Answerer::<TcpId>::new(&site.asking))
        });
        let asker = asker(net, place, site);
        let client = net
            .host_with(|node| Host::new(Tcp::client(node, tcp, Address::new(server, PORT)), asker));
        net.link(client, self.space, &from_the_sky(star, lan(star)));
        net.link(hub, server, &lan(star));
        net.node_mut::<Space>(self.space).add(client, site.terminal);
        SiteNodes { client, server, terminal: None }
    }

    /// A proxy at the terminal and one at the hub stand between them.
    fn split(&mut self, star: &Star, place: usize, site: &Site, hub: NodeId) -> SiteNodes {
        let Stack::Split { lan: tcp, space: session, .. } = &star.stack else {
            unreachable!("asked for with that stack")
        };
        let net = &mut self.net;
        let server = net.host_with(|node| {
            Host::new(Tcp::server(node, tcp, PORT), Answerer::<TcpId>::new(&site.asking))
        });
        let far = net.host_with(|node| {
            let to_server = Tcp::client(node, tcp, Address::new(server, PORT));
            let mut to_terminal = Xstp::server(node, session, PORT);
            star.caps.iter().for_each(|&(_, down)| to_terminal.set_max_rate(down));
            Proxy::new(to_terminal, to_server)
        });
        let near = net.host_with(|node| {
            let mut to_hub = Xstp::client(node, session, Address::new(far, PORT));
            star.caps.iter().for_each(|&(up, _)| to_hub.set_max_rate(up));
            Proxy::new(Tcp::server(node, tcp, PORT), to_hub)
        });
        let asker = asker(net, place, site);
        let client = net
            .host_with(|node| Host::new(Tcp::client(node, tcp, Address::new(near, PORT)), asker));
        let at_once = LinkConfig::default();
        net.link(client, near, &lan(star));
        net.link(near, self.space, &from_the_sky(star, at_once.clone()));
        net.link(hub, far, &at_once);
        net.link(far, server, &lan(star));
        net.node_mut::<Space>(self.space).add(near, site.terminal);
        SiteNodes { client, server, terminal: Some(near) }
    }

    /// Tells the sessions of each terminal their part of what it was granted since the last time.
    pub(super) fn follow_grants(&mut self, star: &Star) {
        let mac = self.net.node::<Space>(self.space).mac();
        let bits = (star.mac.format.payload() * 8) as f64 / star.mac.period.as_secs_f64();
        for (terminal, (before, smoothed)) in self.granted.iter_mut().enumerate() {
            let granted = mac.terminal(terminal).granted;
            *smoothed += ((granted - *before) as f64 - *smoothed) / SMOOTHING;
            *before = granted;
        }
        // With less than half of an equal share nobody would ever queue enough to ask for more.
        let frame = f64::from(star.mac.positions() * star.mac.carriers);
        let least = frame / star.mac.terminals.len() as f64 / 2.0;
        let rate = |(terminal, &(_, slots)): (usize, &(u64, f64))| {
            // What waits should be what two frames carry: then there is something to ask with.
            let short = (mac.backlog(terminal) as f64) < 2.0 * slots;
            slots.max(least) * bits * if short { MORE } else { LESS }
        };
        let rates: Vec<f64> = self.granted.iter().enumerate().map(rate).collect();
        let mut senders = vec![0_usize; rates.len()];
        for (site, nodes) in star.sites.iter().zip(&self.sites) {
            if let Some(node) = nodes.terminal {
                let sends = self.net.node::<Terminal>(node).far.connections();
                let sends = sends.filter(|(_, one)| one.unacknowledged_bytes() > 0);
                senders[site.terminal] += sends.count();
            }
        }
        for (site, nodes) in star.sites.iter().zip(&self.sites) {
            let Some(node) = nodes.terminal else { continue };
            let part = rates[site.terminal] / senders[site.terminal].max(1) as f64;
            let rate = BitRate::from_bps((part as u64).max(1));
            self.net.node_mut::<Terminal>(node).far.set_max_rate(rate);
        }
    }

    pub(super) fn seen(self, star: &Star) -> Seen {
        let net = &self.net;
        let space = net.node::<Space>(self.space);
        let mut timeouts = 0;
        let site = |(site, nodes): (&Site, &SiteNodes)| {
            let client = net.node::<Client>(nodes.client);
            let server = net.node::<Server>(nodes.server);
            if nodes.terminal.is_none() {
                let ends = client.transport.connections().chain(server.transport.connections());
                timeouts += ends.map(|(_, end)| end.counters().timeouts).sum::<u64>();
            }
            SiteSeen {
                connections: site.connections,
                responses: client.application.responses().to_vec(),
                received: client.application.received(),
                sent: server.application.received(),
                lost: client.application.lost(),
            }
        };
        let sites = star.sites.iter().zip(&self.sites).map(site).collect();
        let counters = space.mac().counters();
        let given = space.mac().scheduler().given();
        Seen {
            sites,
            down: net.delivered(self.forward, Direction::Forward).total().bytes,
            up: space.delivered(),
            slots: (counters.granted, counters.used),
            asked_and_free: (given.rate + given.volume, given.free),
            access: space.shares(),
            timeouts,
            duration: star.duration,
            trace: net.trace_hash(),
        }
    }
}

/// Frames over which grants are smoothed before a session is told of them.
const SMOOTHING: f64 = 8.0;
/// Of what is granted, what sessions are told while too little waits below them, and while
/// enough does.
const MORE: f64 = 1.5;
const LESS: f64 = 0.9;

fn asker(net: &Network, place: usize, site: &Site) -> Asker<TcpId> {
    let rng = net.rng(&format!("sim/multi-access/users/{place}"));
    Asker::new(site.asking, site.connections, rng)
}

fn lan(star: &Star) -> LinkConfig {
    let (rate, delay) = star.lan;
    LinkConfig::symmetric(DirectionConfig { rate: Some(rate), delay, ..DirectionConfig::default() })
}

/// Down there is a rate; up that and the way are the MAC's.
fn sky(star: &Star) -> LinkConfig {
    let forward = DirectionConfig { rate: Some(star.forward), ..DirectionConfig::default() };
    LinkConfig { forward, outages: star.outages.clone(), ..LinkConfig::default() }
}

/// The way down stands behind the MAC, to which the hub says at once what it has sent.
fn from_the_sky(star: &Star, mut link: LinkConfig) -> LinkConfig {
    link.return_.delay = link.return_.delay + star.mac.terminals[0].up + star.mac.hub_leg;
    link
}
