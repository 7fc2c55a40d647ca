//! Networks built from plans: the [reference models](satlink::reference) of ITU-R S.1711 Annex 1,
//! with nodes at their sites.
//!
//! ```
//! use satlink::reference::{Plan, Role};
//! use sim::host::{BulkReceiver, BulkSender, Host, Tcp, Xstp};
//! use sim::network::Address;
//! use sim::pep::Split;
//! use sim::{Network, topology};
//! use simtcp::TcpConfig;
//! use units::{Instant, Span};
//! use xstp::session::SessionConfig;
//!
//! let (tcp, stp) = (TcpConfig::linux(), SessionConfig::stp_1999());
//! let lan = satlink::words::parse_link("both rate 100mbit").unwrap();
//! let plan = Plan::point_to_point(&lan, &satlink::profiles::by_name("geo").unwrap());
//! let mut net = Network::new(1, 0);
//! // A sending user, a receiving user, and two gateways with STP between them.
//! let built = topology::build(&mut net, &plan, |net, site, sites| match site {
//!     0 => net.host_with(|node| {
//!         let transport = Tcp::client(node, &tcp, Address::new(sites.node(3), 80));
//!         Host::new(transport, BulkSender::new(Instant::ZERO, 1_000_000, 7))
//!     }),
//!     3 => net.host_with(|node| Host::new(Tcp::server(node, &tcp, 80), BulkReceiver::new(7))),
//!     station => net.gateway_with(|node| {
//!         let (left, right) = (Tcp::gateway(node, &tcp), Xstp::gateway(node, &stp));
//!         Split::new(left, right, sites.ashore(station))
//!     }),
//! });
//! net.run_until(Instant::ZERO + Span::from_secs(30));
//! let sink = net.node::<Host<Tcp, BulkReceiver<_>>>(built.node(3));
//! assert_eq!(sink.application.received(), 1_000_000);
//! ```

use crate::Network;
use crate::network::{LinkId, NodeId};
use satlink::reference::{Plan, Role};

/// The sites and wires of a plan in a network.
#[derive(Clone, Debug)]
pub struct Built<'a> {
    plan: &'a Plan,
    first: u32,
    links: Vec<LinkId>,
}

impl Built<'_> {
    /// The node at a site.
    ///
    /// # Panics
    /// If the plan has no such site.
    pub fn node(&self, site: usize) -> NodeId {
        assert!(site < self.plan.sites.len(), "one of the plan's sites");
        NodeId::numbered(self.first + site as u32)
    }

    /// The node at the site of this name.
    ///
    /// # Panics
    /// If the plan has no such site.
    pub fn named(&self, name: &str) -> NodeId {
        self.node(self.plan.find(name).expect("one of the plan's sites"))
    }

    /// The nodes that a station reaches through the terrestrial network: its left side.
    pub fn ashore(&self, station: usize) -> Vec<NodeId> {
        self.plan.ashore(station).into_iter().map(|site| self.node(site)).collect()
    }

    /// The link of a wire. There are none while nodes are being added.
    pub fn link(&self, wire: usize) -> LinkId {
        self.links[wire]
    }
}

/// Adds `plan` to `net`. `place` adds one node for each site except satellites, which are routers;
/// it has the identifiers of all nodes.
///
/// # Panics
/// If `place` does not add exactly one node, or a link of the plan is invalid.
pub fn build<'a>(
    net: &mut Network,
    plan: &'a Plan,
    mut place: impl FnMut(&mut Network, usize, &Built<'a>) -> NodeId,
) -> Built<'a> {
    let mut built = Built { plan, first: net.next_node().index() as u32, links: Vec::new() };
    for (site, what) in plan.sites.iter().enumerate() {
        let node = match what.role {
            Role::Satellite => net.router(),
            Role::User | Role::Station => place(net, site, &built),
        };
        let next = built.first as usize + site + 1;
        assert!(
            node == built.node(site) && net.next_node().index() == next,
            "one node for the site {}",
            what.name
        );
    }
    for wire in &plan.wires {
        let [one, other] = wire.ends.map(|site| built.node(site));
        built.links.push(net.link(one, other, &wire.config));
    }
    built
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{Host, Tcp, TcpId, Xstp};
    use crate::network::Address;
    use crate::pep::Split;
    use crate::traffic::{Client, ConnectionPlan, Server};
    use satlink::LinkConfig;
    use simtcp::TcpConfig;
    use units::{Instant, Span};
    use xstp::session::SessionConfig;

    type Asks = Host<Tcp, Client<TcpId>>;
    type Gateway = Split<Tcp, Xstp>;

    /// Users fetch a page and a file each from the site `server`, through gateways at each station.
    /// Returns the connections of each station.
    fn run(plan: &Plan, server: &str) -> Vec<u64> {
        let (tcp, stp) = (TcpConfig::linux(), SessionConfig::stp_1999());
        let at = |secs| Instant::ZERO + Span::from_secs(secs);
        let mut net = Network::new(3, 0);
        let answers = plan.find(server).expect("a site");
        let built = build(&mut net, plan, |net, site, sites| match plan.sites[site].role {
            Role::User if site == answers => {
                net.host_with(|node| Host::new(Tcp::server(node, &tcp, 80), Server::<TcpId>::new()))
            }
            Role::User => net.host_with(|node| {
                let mut plans = ConnectionPlan::page(at(1), 8, 72_103, 4);
                plans.push(ConnectionPlan::download(at(2), 200_000));
                let to = Address::new(sites.node(answers), 80);
                Host::new(Tcp::client(node, &tcp, to), Client::<TcpId>::new(plans))
            }),
            Role::Station | Role::Satellite => net.gateway_with(|node| {
                let (left, right) = (Tcp::gateway(node, &tcp), Xstp::gateway(node, &stp));
                Split::new(left, right, sites.ashore(site))
            }),
        });
        net.run_until(at(120));
        for user in plan.with_role(Role::User).filter(|&site| site != answers) {
            let seen = &net.node::<Asks>(built.node(user)).application;
            assert!(seen.is_done() && seen.lost() == 0, "{user} {:?}", seen.exchanged());
        }
        let stations = plan.with_role(Role::Station).map(|site| built.node(site));
        stations.map(|node| net.node::<Gateway>(node).usage().connections).collect()
    }

    #[test]
    fn reference_models_carry_pages_and_files_through_gateways() {
        let lan = satlink::words::parse_link("both rate 100mbit delay 1ms").unwrap();
        let space = satlink::words::parse_link("profile geo both loss 1%").unwrap();
        // Five connections for each user; each hop has its own two gateways.
        assert_eq!(run(&Plan::point_to_point(&lan, &space), "user-1"), [5, 5]);
        assert_eq!(run(&Plan::several_hops(&lan, &space, 3), "user-2"), [5; 6]);
        assert_eq!(run(&Plan::star(&lan, &space, 4), "server"), [20, 5, 5, 5, 5]);
        assert_eq!(run(&Plan::mesh(&lan, &space, 3), "user-2"), [5, 10, 5]);
    }

    #[test]
    fn sites_and_wires_are_those_of_the_plan() {
        let link = satlink::words::parse_link("both delay 250ms").unwrap();
        let plan = Plan::mesh(&link, &link, 3);
        let mut net = Network::new(3, 0);
        let other = net.router();
        let before = net.link(other, other, &link);
        let built = build(&mut net, &plan, |net, _, _| net.router());
        assert_eq!(built.named("station-1").index(), 1);
        assert_eq!(built.node(5).index(), 6);
        for wire in 0..plan.wires.len() {
            assert_eq!(built.link(wire).index(), before.index() + 1 + wire);
        }
    }

    #[test]
    #[should_panic(expected = "one node for the site user-1")]
    fn site_without_a_node_is_detected() {
        let lan = LinkConfig::default();
        let plan = Plan::point_to_point(&lan, &lan);
        let mut net = Network::new(3, 0);
        let other = net.router();
        build(&mut net, &plan, |_, _, _| other);
    }
}
