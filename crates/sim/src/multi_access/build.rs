//! Builds the network of a star and collects its results.

use super::{ObjectServer, RequestClient, Satellite, Site, SiteReport, Stack, Star, StarReport};
use crate::Network;
use crate::host::{Host, Proxy, Tcp, TcpId, Xstp};
use crate::network::{Address, LinkId, NodeId};
use satlink::{Direction, DirectionConfig, LinkConfig};
use std::collections::BTreeMap;
use units::BitRate;

/// The port of the servers and of the hub's STP.
const PORT: u16 = 80;

type Client = Host<Tcp, RequestClient<TcpId>>;
type Server = Host<Tcp, ObjectServer<TcpId>>;
type Terminal = Proxy<Tcp, Xstp>;

pub(super) struct SiteNodes {
    client: NodeId,
    server: NodeId,
    terminal: Option<NodeId>,
}

pub(super) struct Built {
    pub(super) net: Network,
    satellite: NodeId,
    forward: LinkId,
    sites: Vec<SiteNodes>,
    /// Slots granted to each terminal when rates were last set, and its smoothed slots per frame.
    granted: Vec<(u64, f64)>,
}

impl Built {
    pub(super) fn new(star: &Star, seed: u64, run: u64) -> Self {
        let mut net = Network::new(seed, run);
        net.trace();
        let channel = net.rng("sim/multi-access").next_u64();
        let satellite = net.gateway_with(|_| {
            let random = star.random.as_ref();
            Satellite::new(&star.mac, random, star.reports, BTreeMap::new(), channel, run)
                .expect("the MAC's settings should be valid")
        });
        let hub = net.router();
        let forward = net.link(hub, satellite, &satellite_link(star));
        let mut built = Self {
            net,
            satellite,
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

    /// TCP from end to end.
    fn direct(&mut self, star: &Star, place: usize, site: &Site, hub: NodeId) -> SiteNodes {
        let Stack::EndToEnd(tcp) = &star.stack else { unreachable!("called with that stack") };
        let net = &mut self.net;
        let server = net.host_with(|node| {
            Host::new(Tcp::server(node, tcp, PORT), ObjectServer::<TcpId>::new(&site.requests))
        });
        let request_client = request_client(net, place, site);
        let client = net.host_with(|node| {
            Host::new(Tcp::client(node, tcp, Address::new(server, PORT)), request_client)
        });
        net.link(client, self.satellite, &forward_link(star, lan(star)));
        net.link(hub, server, &lan(star));
        net.node_mut::<Satellite>(self.satellite).add(client, site.terminal);
        SiteNodes { client, server, terminal: None }
    }

    /// Split connections, with a proxy at the terminal and one at the hub.
    fn split(&mut self, star: &Star, place: usize, site: &Site, hub: NodeId) -> SiteNodes {
        let Stack::Split { lan: tcp, satellite: session, .. } = &star.stack else {
            unreachable!("called with that stack")
        };
        let net = &mut self.net;
        let server = net.host_with(|node| {
            Host::new(Tcp::server(node, tcp, PORT), ObjectServer::<TcpId>::new(&site.requests))
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
        let request_client = request_client(net, place, site);
        let client = net.host_with(|node| {
            Host::new(Tcp::client(node, tcp, Address::new(near, PORT)), request_client)
        });
        let at_once = LinkConfig::default();
        net.link(client, near, &lan(star));
        net.link(near, self.satellite, &forward_link(star, at_once.clone()));
        net.link(hub, far, &at_once);
        net.link(far, server, &lan(star));
        net.node_mut::<Satellite>(self.satellite).add(near, site.terminal);
        SiteNodes { client, server, terminal: Some(near) }
    }

    /// Sets the rate of each terminal's sessions to their share of the slots granted since the last
    /// call.
    pub(super) fn follow_grants(&mut self, star: &Star) {
        let mac = self.net.node::<Satellite>(self.satellite).mac();
        let bits = (star.mac.format.payload() * 8) as f64 / star.mac.period.as_secs_f64();
        for (terminal, (before, smoothed)) in self.granted.iter_mut().enumerate() {
            let granted = mac.terminal(terminal).granted;
            *smoothed += ((granted - *before) as f64 - *smoothed) / SMOOTHING;
            *before = granted;
        }
        // Below half of an equal share the queue would be too short for a request of more capacity.
        let frame = f64::from(star.mac.positions() * star.mac.carriers);
        let least = frame / star.mac.terminals.len() as f64 / 2.0;
        let rate = |(terminal, &(_, slots)): (usize, &(u64, f64))| {
            // The target queue is what two frames carry, so that capacity is requested.
            let short = (mac.backlog(terminal) as f64) < 2.0 * slots;
            slots.max(least)
                * bits
                * if short { GRANT_FACTOR_SHORT_QUEUE } else { GRANT_FACTOR_LONG_QUEUE }
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

    pub(super) fn report(self, star: &Star) -> StarReport {
        let net = &self.net;
        let satellite = net.node::<Satellite>(self.satellite);
        let mut timeouts = 0;
        let site = |(site, nodes): (&Site, &SiteNodes)| {
            let client = net.node::<Client>(nodes.client);
            let server = net.node::<Server>(nodes.server);
            if nodes.terminal.is_none() {
                let ends = client.transport.connections().chain(server.transport.connections());
                timeouts += ends.map(|(_, end)| end.counters().timeouts).sum::<u64>();
            }
            SiteReport {
                connections: site.connections,
                responses: client.application.responses().to_vec(),
                received: client.application.received(),
                sent: server.application.received(),
                lost: client.application.lost(),
            }
        };
        let sites = star.sites.iter().zip(&self.sites).map(site).collect();
        let counters = satellite.mac().counters();
        let given = satellite.mac().scheduler().given();
        StarReport {
            sites,
            down: net.delivered(self.forward, Direction::Forward).total().bytes,
            up: satellite.delivered(),
            slots: (counters.granted, counters.used),
            asked_and_free: (given.rate + given.volume, given.free),
            access: satellite.shares(),
            timeouts,
            duration: star.duration,
            trace: net.trace_hash(),
        }
    }
}

/// Number of frames over which grants are smoothed.
const SMOOTHING: f64 = 8.0;
/// The sessions' rate as a multiple of the granted rate while the MAC queue is below its target,
/// and while it is not.
const GRANT_FACTOR_SHORT_QUEUE: f64 = 1.5;
const GRANT_FACTOR_LONG_QUEUE: f64 = 0.9;

fn request_client(net: &Network, place: usize, site: &Site) -> RequestClient<TcpId> {
    let rng = net.rng(&format!("sim/multi-access/users/{place}"));
    RequestClient::new(site.requests, site.connections, rng)
}

fn lan(star: &Star) -> LinkConfig {
    let (rate, delay) = star.lan;
    LinkConfig::symmetric(DirectionConfig { rate: Some(rate), delay, ..DirectionConfig::default() })
}

/// The forward rate applies here; return rate and propagation delay are the MAC's.
fn satellite_link(star: &Star) -> LinkConfig {
    let forward = DirectionConfig { rate: Some(star.forward), ..DirectionConfig::default() };
    LinkConfig { forward, outages: star.outages.clone(), ..LinkConfig::default() }
}

/// The forward link is behind the MAC node, to which the hub hands over packets without delay.
fn forward_link(star: &Star, mut link: LinkConfig) -> LinkConfig {
    link.return_.delay = link.return_.delay + star.mac.terminals[0].up + star.mac.hub_leg;
    link
}
