//! The network of one point of a scenario.

use super::file::{Case, GatewayKind, Traffic};
use super::traffic::{Flow, Sender};
use crate::LabError;
use crate::document::Document;
use crate::experiments::{Draw, Stop};
use relay::RelayConfig;
use satlink::{Direction, DropCause, LinkConfig};
use sim::Network;
use sim::gateways::acquaint;
use sim::host::{RelayLink, Tcp, Xstp};
use sim::network::{LinkId, NodeId};
use sim::pep::Split;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;
use units::{Instant, RngStream, Span};
use xstp::session::SessionConfig;

/// Simulated time between two looks at a request to stop.
const SLICE: Span = Span::from_millis(100);

/// The measures of each direction of a recorded link.
pub(super) const LINK_MEASURES: [(&str, &str); 4] =
    [("used", "%"), ("overflowed", "packets"), ("lost", "packets"), ("queue_max", "kB")];

/// A network that is ready to run.
pub(super) struct Built {
    pub(super) net: Network,
    flows: BTreeMap<String, Flow>,
    /// Each link with the node at its first end.
    links: BTreeMap<String, (LinkId, NodeId)>,
    /// The hub and the terminal of a `pair`.
    pair: Option<[NodeId; 2]>,
}

impl Case {
    /// Reads the traces of the links, whose files are relative to `folder`; returns their texts.
    pub(super) fn load(
        &mut self,
        folder: &Path,
        document: &Document<'_>,
    ) -> Result<String, LabError> {
        let mut texts = String::new();
        for (name, link) in &mut self.links {
            texts += &link.load(folder).map_err(|[key, found, expected]| {
                document.wrong(&format!("links.{name}.{key}"), &found, &expected)
            })?;
        }
        Ok(texts)
    }

    /// Checks what a single key does not show.
    pub(super) fn check(&self, document: &Document<'_>) -> Result<(), LabError> {
        let mut sites = BTreeSet::new();
        for name in self.links.keys() {
            let Some([one, other]) = ends(name) else {
                let found = format!("the name \"{name}\"");
                let expected = "two different names joined by a dash, such as hub-terminal";
                return Err(document.wrong(&format!("links.{name}"), &found, expected));
            };
            sites.extend([one, other]);
        }
        let known = || sites.iter().copied().collect::<Vec<_>>().join(", ");
        let site = |path: String, name: &str| match sites.contains(name) {
            true => Ok(()),
            false => {
                let expected = format!("a node of a link: {}", known());
                Err(document.wrong(&path, &format!("\"{name}\""), &expected))
            }
        };
        if self.gateways.kind != GatewayKind::None {
            site("gateways.hub".to_owned(), &self.gateways.hub)?;
            site("gateways.terminal".to_owned(), &self.gateways.terminal)?;
            self.joined(
                document,
                "gateways.terminal",
                &self.gateways.hub,
                &self.gateways.terminal,
            )?;
        }
        for (name, traffic) in &self.traffic {
            site(format!("traffic.{name}.from"), &traffic.from)?;
            site(format!("traffic.{name}.to"), &traffic.to)?;
            self.joined(document, &format!("traffic.{name}.to"), &traffic.from, &traffic.to)?;
            traffic.check(document, name)?;
        }
        for (key, names) in [("links", &self.record.links), ("capture", &self.record.capture)] {
            if let Some(name) = names.iter().find(|name| !self.links.contains_key(*name)) {
                let links = self.links.keys().cloned().collect::<Vec<_>>().join(", ");
                let (path, found) = (format!("record.{key}"), format!("\"{name}\""));
                return Err(document.wrong(&path, &found, &format!("links: {links}")));
            }
        }
        if self.record.series.is_some_and(|every| every.0.is_zero()) {
            return Err(document.wrong("record.series", "0", "a time above 0"));
        }
        if self.duration.0.is_zero() {
            return Err(document.wrong("duration", "0", "a time above 0"));
        }
        Ok(())
    }

    /// Checks that two different nodes are joined by links.
    fn joined(
        &self,
        document: &Document<'_>,
        path: &str,
        from: &str,
        to: &str,
    ) -> Result<(), LabError> {
        if from != to && self.reached(from, None).contains(to) {
            return Ok(());
        }
        let expected = format!("another node that links join with \"{from}\"");
        Err(document.wrong(path, &format!("\"{to}\""), &expected))
    }

    /// The nodes that are reached from `from` without the link `without`.
    fn reached<'a>(&'a self, from: &'a str, without: Option<&str>) -> BTreeSet<&'a str> {
        let mut reached = BTreeSet::from([from]);
        loop {
            let before = reached.len();
            for name in self.links.keys().filter(|name| Some(name.as_str()) != without) {
                let Some(ends) = ends(name) else { continue };
                if ends.iter().any(|end| reached.contains(end)) {
                    reached.extend(ends);
                }
            }
            if reached.len() == before {
                return reached;
            }
        }
    }

    /// The nodes on the side of `gateway` that is not towards the gateway `other`: without the link
    /// that separates the two, or else without the direct one.
    fn ashore<'a>(&'a self, gateway: &'a str, other: &str) -> BTreeSet<&'a str> {
        let links = || self.links.keys().map(String::as_str);
        let joins = |name: &str, end| ends(name).is_some_and(|ends| ends.contains(&end));
        let separates = |name: &&str| {
            joins(name, gateway) && !self.reached(gateway, Some(name)).contains(other)
        };
        let is_direct = |name: &&str| joins(name, gateway) && joins(name, other);
        let towards = links().find(separates).or_else(|| links().find(is_direct));
        self.reached(gateway, towards)
    }

    /// The end of a run.
    pub(super) fn end(&self) -> Instant {
        Instant::ZERO + self.duration.0
    }

    /// The measures with their units.
    pub(super) fn measures(&self) -> Vec<(String, &'static str)> {
        let mut all = Vec::new();
        for (name, traffic) in &self.traffic {
            let measures = traffic.kind.measures().iter();
            all.extend(measures.map(|(measure, unit)| (format!("{name}.{measure}"), *unit)));
        }
        for name in &self.record.links {
            for direction in Direction::BOTH {
                let measures = LINK_MEASURES.iter();
                all.extend(
                    measures
                        .map(|(measure, unit)| (format!("{name}.{direction}.{measure}"), *unit)),
                );
            }
        }
        all
    }

    /// Builds the network for one replication.
    pub(super) fn build(&self, draw: &Draw) -> Built {
        let mut net = Network::new(draw.seed, draw.run);
        let duration = self.duration.0;
        let build = |(name, traffic): (&String, &Traffic)| {
            (name.clone(), traffic.build(&mut net, name, duration))
        };
        let flows: BTreeMap<String, Flow> = self.traffic.iter().map(build).collect();
        let hosts: Vec<&(NodeId, String)> = flows.values().flat_map(|flow| &flow.hosts).collect();
        let mut sites: BTreeMap<&str, NodeId> = BTreeMap::new();
        let gateways = &self.gateways;
        let side = |gateway: &str, other: &str| {
            let near = self.ashore(gateway, other);
            let near = hosts.iter().filter(|(_, site)| near.contains(site.as_str()));
            near.map(|(host, _)| *host).collect::<Vec<NodeId>>()
        };
        if gateways.kind != GatewayKind::None {
            let (hub, terminal) = (gateways.hub.as_str(), gateways.terminal.as_str());
            let sides = [side(hub, terminal), side(terminal, hub)];
            let [hub_node, terminal_node] = self.add_gateways(&mut net, draw, sides);
            sites.extend([(hub, hub_node), (terminal, terminal_node)]);
        }
        for name in self.links.keys().filter_map(|name| ends(name)).flatten() {
            sites.entry(name).or_insert_with(|| net.router());
        }
        for (host, site) in &hosts {
            net.link(*host, sites[site.as_str()], &LinkConfig::default());
        }
        let mut links = BTreeMap::new();
        for (name, link) in &self.links {
            let [one, other] = ends(name).expect("it was checked").map(|end| sites[end]);
            links.insert(name.clone(), (net.link(one, other, &link.config), one));
        }
        let pair = (gateways.kind == GatewayKind::Pair)
            .then(|| [sites[gateways.hub.as_str()], sites[gateways.terminal.as_str()]]);
        Built { net, flows, links, pair }
    }

    /// Adds the gateways; `sides` are the hosts behind the hub and behind the terminal.
    fn add_gateways(&self, net: &mut Network, draw: &Draw, sides: [Vec<NodeId>; 2]) -> [NodeId; 2] {
        let [far, near] = sides;
        let gateways = &self.gateways;
        let lan = &gateways.lan_tcp.0;
        let rng = |name| RngStream::new(draw.seed, draw.run, name);
        match gateways.kind {
            GatewayKind::None => [net.router(), net.router()],
            GatewayKind::Single => {
                let space = &gateways.satellite_tcp.0;
                let hub = net.gateway_with(|node| {
                    Split::new(Tcp::gateway(node, lan), Tcp::gateway(node, space), far)
                });
                [hub, net.router()]
            }
            GatewayKind::Stp => [far, near].map(|side| {
                net.gateway_with(|node| {
                    let stp = Xstp::gateway(node, &SessionConfig::stp_1999());
                    Split::new(Tcp::gateway(node, lan), stp, side)
                })
            }),
            GatewayKind::Pair => {
                let [hub, terminal] = self.relays(draw);
                let hub = net.gateway_with(|node| {
                    let relay = RelayLink::hub(node, &hub, rng("scenario/hub"));
                    Split::new(Tcp::gateway(node, lan), relay, far)
                });
                let terminal = net.gateway_with(|node| {
                    let rng = rng("scenario/terminal");
                    let relay = RelayLink::terminal(node, &terminal, hub, rng);
                    Split::new(Tcp::gateway(node, lan), relay, near)
                });
                [hub, terminal]
            }
        }
    }

    /// The configurations of the hub's relay and of the terminal's.
    fn relays(&self, draw: &Draw) -> [RelayConfig; 2] {
        let gateways = &self.gateways;
        let (forward, back) = (gateways.rate_forward, gateways.rate_return);
        let (forward, back) = (forward.map(|rate| rate.0), back.map(|rate| rate.0));
        // As gateways do by default.
        let config = |name: &str| RelayConfig {
            control: gateways.control.into(),
            probe_mtu: true,
            repair_percent: gateways.repair_percent,
            ..RelayConfig::new(name)
        };
        let mut hub = config("hub").with_rates(forward, back);
        let mut terminal = config("terminal").with_rates(back, forward);
        hub.probe_rate = true;
        if gateways.encrypted {
            acquaint(&mut terminal, &mut hub, draw.seed);
        }
        [hub, terminal]
    }
}

impl Built {
    /// Runs until `until`.
    ///
    /// # Errors
    /// If `stop` is set, which is looked at between slices of simulated time.
    pub(super) fn run_until(&mut self, until: Instant, stop: &Stop) -> Result<(), LabError> {
        while self.net.now() < until {
            if stop.is_set() {
                return Err(LabError::Stopped);
            }
            self.net.run_until(until.min(self.net.now() + SLICE));
        }
        Ok(())
    }

    /// The measures that have a value now.
    pub(super) fn measured(&self, case: &Case) -> Vec<(String, f64)> {
        let passed = self.net.now().since(Instant::ZERO);
        let mut all = Vec::new();
        for (name, flow) in &self.flows {
            let measured = (flow.measured)(&self.net);
            all.extend(measured.into_iter().map(|(one, value)| (format!("{name}.{one}"), value)));
        }
        for name in &case.record.links {
            for direction in Direction::BOTH {
                let rate = case.links[name].config.direction(direction).rate;
                let counters = self.net.line(self.links[name].0).counters(direction);
                let full = counters.dropped(DropCause::QueueFull).packets;
                let overflowed = full + counters.dropped(DropCause::Early).packets;
                let mut put =
                    |one: &str, value| all.push((format!("{name}.{direction}.{one}"), value));
                if let Some(rate) = rate {
                    let most = rate.bytes_in(passed).max(1);
                    put("used", counters.sent.bytes as f64 * 100.0 / most as f64);
                }
                put("overflowed", overflowed as f64);
                put("lost", (counters.dropped_in_all().packets - overflowed) as f64);
                put("queue_max", counters.fullest.bytes as f64 / 1e3);
            }
        }
        all
    }

    /// Records time series at this interval from now on.
    pub(super) fn sample(&mut self, every: Span) {
        type Variable = fn(&simtcp::Snapshot) -> Option<f64>;
        let variables: [(&str, &'static str, Variable); 3] = [
            ("congestion window", "bytes", |seen| Some(seen.congestion_window as f64)),
            ("outstanding", "bytes", |seen| Some(seen.flight as f64)),
            ("round trip", "s", |seen| seen.round_trip.map(Span::as_secs_f64)),
        ];
        for (name, flow) in &self.flows {
            for (number, &sender) in flow.senders.iter().enumerate() {
                let flow =
                    if number == 0 { name.clone() } else { format!("{name} {}", number + 1) };
                for (variable, unit, value) in variables {
                    self.net.sample(every, &format!("{flow} {variable}"), unit, move |net| {
                        let transport = &net.node::<Sender>(sender).transport;
                        value(&transport.first()?.0)
                    });
                }
            }
            let received = Rc::clone(&flow.received);
            self.net.sample(every, &format!("{name} received"), "bytes", move |net| {
                Some(received(net))
            });
        }
        for (name, (link, _)) in self.links.clone() {
            for direction in Direction::BOTH {
                self.net.sample(every, &format!("{name} {direction} queue"), "bytes", move |net| {
                    Some(net.line(link).backlog(direction).bytes as f64)
                });
            }
        }
        for (name, node) in ["hub", "terminal"].into_iter().zip(self.pair.into_iter().flatten()) {
            self.net.sample_session(every, name, move |net| {
                net.node::<Split<Tcp, RelayLink>>(node).right.snapshot(net.now())
            });
        }
    }

    /// The link of this name, and its first end.
    pub(super) fn link(&self, name: &str) -> (LinkId, NodeId) {
        self.links[name]
    }
}

/// The two nodes in the name of a link.
fn ends(name: &str) -> Option<[&str; 2]> {
    let (one, other) = name.split_once('-')?;
    let fits = |end: &str| {
        !end.is_empty() && end.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    };
    (fits(one) && fits(other) && one != other).then_some([one, other])
}
