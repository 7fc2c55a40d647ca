//! The configuration of relays, from that of the gateway.

use crate::config::joins;
use crate::engine::{PathPlan, Route};
use crate::service::handover;
use crate::state::State;
use crate::{Config, Error, HubAddress, LinkSection, PathSection, Role, TerminalSection};
use relay::RelayConfig;
use rt::Clock;
use std::net::Ipv6Addr;

/// Returns the route of a terminal's path; `None` at a hub.
pub(crate) fn route(path: &PathSection) -> Option<Route> {
    let LinkSection { peer, listen, .. } = &path.link;
    let peer = match peer.as_ref()? {
        HubAddress::Address(address) => *address,
        // The engine resolves the name.
        HubAddress::Name(_, port) => (Ipv6Addr::UNSPECIFIED, *port).into(),
    };
    Some(Route { peer, source: listen.ip(), interface: path.interface.clone() })
}

/// Returns a terminal's paths, as far as their addresses are known.
pub(crate) fn path_plans(
    config: &Config,
    section: &TerminalSection,
    state: &State,
) -> Result<Vec<PathPlan>, Error> {
    let paths = config.effective_paths();
    let joins: Vec<Option<usize>> = (0..paths.len()).map(|number| joins(&paths, number)).collect();
    let relays = joins.iter().filter(|joins| joins.is_none()).count() as u64;
    let plan = |(path, joins): (PathSection, Option<usize>)| {
        let route = route(&path).ok_or(Error::NoPeer)?;
        let mut relay = relay_config(config, &path.link);
        relay.security = path.security()?;
        relay.keep_alive = config.keep_alive();
        // The hub is to keep the association of the process that this one replaces.
        relay.is_beside = handover::is_replacing();
        if let Some(memory) = config.limits.memory {
            // All relays share it.
            relay = relay.with_memory(memory / relays);
        }
        let PathSection { name, priority, weight, link, .. } = path;
        let ports = link.ports;
        let hub_name = match link.peer {
            Some(HubAddress::Name(name, _)) => Some(name),
            Some(HubAddress::Address(_)) | None => None,
        };
        if !name.is_empty() {
            relay.name = format!("{}/{name}", section.name);
        }
        let mut plan = PathPlan { name, relay, route, hub_name, ports, priority, weight, joins };
        plan.relay.path_metrics = state.get(&plan.cache_key());
        Ok(plan)
    };
    paths.into_iter().zip(joins).map(plan).collect()
}

/// Returns the configuration of a relay over `link`, without keys.
pub(crate) fn relay_config(config: &Config, link: &LinkSection) -> RelayConfig {
    let LinkSection { listen, rate_up, rate_down, round_trip, mtu, overhead, padding, .. } = link;
    let (name, send, receive) = match &config.role {
        Role::Terminal(terminal) => (terminal.name.as_str(), *rate_up, *rate_down),
        Role::Hub(_) | Role::Single(_) => ("hub", *rate_down, *rate_up),
    };
    let mut relay = RelayConfig::new(name).with_rates(send, receive);
    if let Some(memory) = config.limits.memory {
        relay = relay.with_memory(memory);
    }
    relay.control = link.controller;
    relay.capabilities = relay::Capabilities::of_this_machine();
    relay.repair_percent = link.repair;
    relay.compress = link.compress;
    relay.filter_acks = config.forward.as_ref().is_some_and(|forward| forward.tcp.filter_acks);
    relay.compress_headers =
        config.forward.as_ref().is_some_and(|forward| forward.compress_headers);
    relay.mtu = *mtu as usize;
    relay.probe_mtu = true;
    relay.probe_rate = *padding;
    relay.ip_overhead = if listen.is_ipv4() { relay::IPV4_UDP } else { relay::IPV6_UDP };
    relay.link_overhead = *overhead as usize;
    if let Role::Hub(hub) = &config.role {
        let known = u32::try_from(hub.terminals.len()).unwrap_or(u32::MAX);
        let usual = known.max(relay.max_terminals as u32);
        relay.max_terminals = config.limits.terminals.unwrap_or(usual) as usize;
        relay.total_memory = config.limits.memory_total.or_else(crate::memory::usual_total);
    }
    // A stream exists for a round trip after its connection is closed.
    relay.max_streams = config.limits.connections as usize * 2;
    relay.initial_rtt = *round_trip;
    relay.no_response = config.limits.outage;
    relay.wall_clock_ns = Clock::new().epoch_unix_ns();
    relay
}
