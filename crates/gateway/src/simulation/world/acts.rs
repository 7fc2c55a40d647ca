//! Events at links and gateways while connections run: blackouts, restarts, drains, reloads, and
//! exhausted descriptors.

use super::gateway::{Engaged, confirms};
use super::{World, parse};
use crate::engine::Admission;
use crate::simulation::draw::site::{Options, name};
use crate::simulation::host::DESCRIPTORS;
use crate::simulation::net::datagrams::Datagrams;
use crate::simulation::net::progress::Progress;
use crate::simulation::task::Task;
use crate::{Role, SecuritySection};
use relay::Security;
use std::net::SocketAddr;
use units::{Instant, Span};

/// Maximum time for the orderly end of the sessions when no connection is left at either gateway.
const MAX_SESSION_END: Span = Span::from_secs(10);
/// Maximum number of lost datagrams with which sessions still end in order.
const MAX_LOST_AT_END: usize = 1;

/// An event at a scheduled time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::simulation) enum Act {
    /// The link with this number transmits nothing for this time, in its one direction.
    Blackout(usize, Span),
    /// A gateway is killed, and another one starts immediately.
    Restart(usize),
    /// A gateway is ordered to stop: it drains and ends, and another starts after this time.
    Drain(usize, Span),
    /// A gateway reloads its other configuration.
    Reload(usize),
    /// The limit on descriptors of a gateway is set to its open ones plus this number.
    Descriptors(usize, usize),
    /// The MTU of the first hop changes to this size.
    PathMtu(usize),
    /// A client sends DNS queries for so many names from `name` on.
    NameQueries { node: usize, client: u8, name: u8, count: u8 },
}

impl Act {
    /// Returns the event with its values limited to the links of `options`: IPv6 links have an MTU
    /// of at least 1,280 octets.
    pub(in crate::simulation) fn within(self, options: &Options) -> Self {
        match self {
            Self::PathMtu(mtu) if options.ipv6 => Self::PathMtu(mtu.max(1_280)),
            other => other,
        }
    }
}

impl World {
    pub(super) fn act(&mut self, now: Instant, act: Act) -> Result<(), String> {
        match act {
            Act::Blackout(number, length) => {
                let mut net = self.net.net();
                let ends = self.site.links.get(number).map(|(ends, _)| *ends);
                if let Some(link) = ends.and_then(|ends| net.links.get_mut(&ends)) {
                    link.dark_until = now + length;
                }
            }
            Act::Restart(node) => self.restart(now, node),
            Act::Drain(node, pause) => self.drain(now, node, pause),
            Act::Reload(node) => self.reload(node)?,
            // A gateway that begins has enough.
            Act::Descriptors(node, left) if self.places[node].gateway.is_some() => {
                let node = &mut self.net.net().nodes[node];
                node.limit = node.open + left;
            }
            Act::Descriptors(..) => {}
            Act::PathMtu(mtu) => self.net.net().path_mtu = mtu,
            Act::NameQueries { node, client, name, count } => {
                let mut net = self.net.net();
                for number in 0..count {
                    net.query_name(node, client, name.wrapping_add(number));
                }
            }
        }
        Ok(())
    }

    /// Returns the terminals whose connections the gateway `node` relays.
    fn terminals_of(&self, node: usize) -> Vec<usize> {
        if self.site.is_terminal(node) { vec![node] } else { self.site.peers_of(node) }
    }

    /// Permits failures after the end of the gateway `node`: connections that it relayed may be
    /// reset, and those that had not reached their servers may be refused.
    fn excuse(&mut self, node: usize) {
        let terminals = self.terminals_of(node);
        let net = self.net.net();
        let running = self.tasks.iter_mut().filter(|task| task.is_running());
        for task in running.filter(|task| terminals.contains(&task.node)) {
            match net.progress_of(task) {
                Progress::Connected(hub) => task.excuses.lost |= node == hub || node == task.node,
                Progress::Accepted => task.excuses.lost |= node == task.node,
                Progress::Held | Progress::Bypassing => {}
            }
            task.excuses.refused |= task.sides[1].id.is_none();
        }
    }

    /// Permits refusals by the gateway `node`, which accepts no new connections from now on.
    fn excuse_new(&mut self, node: usize) {
        let terminals = self.terminals_of(node);
        let net = self.net.net();
        let running = self.tasks.iter_mut().filter(|task| task.is_running());
        for task in running.filter(|task| terminals.contains(&task.node)) {
            task.excuses.refused |= match net.progress_of(task) {
                // A draining terminal serves connections that it has accepted, and a draining hub
                // those that it has connected.
                Progress::Accepted => node != task.node || !net.is_accepted(task),
                // A held SYN may be released before the terminal knows that its hub drains.
                Progress::Held => node != task.node,
                Progress::Connected(_) | Progress::Bypassing => false,
            };
        }
    }

    /// Marks the terminals of a hub that was replaced, until they have new sessions.
    fn make_stale(&mut self, hub: usize) {
        for terminal in self.site.peers_of(hub) {
            self.places[terminal].is_stale = true;
        }
    }

    /// Kills a gateway: its kernel closes its sockets.
    fn restart(&mut self, now: Instant, node: usize) {
        self.excuse(node);
        self.replace(now, node, Span::ZERO);
    }

    /// Ends the gateway at `node` and schedules the start of another after `pause`.
    fn replace(&mut self, now: Instant, node: usize, pause: Span) {
        let is_there = |&peer: &usize| {
            self.places[peer].gateway.as_ref().is_some_and(|gateway| !gateway.is_draining())
        };
        let is_stale = !self.site.peers_of(node).iter().all(is_there);
        let place = &mut self.places[node];
        drop(place.gateway.take());
        (place.back_at, place.is_stale, place.is_another) = (now + pause, is_stale, true);
        {
            let mut net = self.net.net();
            let node = &mut net.nodes[node];
            node.lookups.clear();
            node.updates.clear();
            node.syns.clear();
            node.limit = DESCRIPTORS;
            // The rules of the gateway are removed with it.
            node.filter.bypass = true;
        }
        if !self.site.is_terminal(node) {
            self.make_stale(node);
        }
        self.excuse_held(node);
    }

    /// Clients whose SYNs were held bypass the gateway when they retransmit them.
    pub(super) fn excuse_held(&mut self, node: usize) {
        if !self.site.can_hold[node] {
            return;
        }
        let net = self.net.net();
        let its = |task: &&mut Task| task.is_running() && task.node == node;
        for task in self.tasks.iter_mut().filter(its) {
            task.excuses.opened_again |= net.is_held(task);
        }
    }

    fn drain(&mut self, now: Instant, node: usize, pause: Span) {
        if self.site.is_terminal(node) {
            self.net.net().nodes[node].filter.bypass = true;
            self.excuse_held(node);
        }
        for terminal in self.terminals_of(node) {
            self.places[terminal].is_stale = true;
        }
        self.excuse_new(node);
        let place = &mut self.places[node];
        place.pause = pause;
        let limit = place.config.limits.drain;
        place.drained_by = now + limit;
        let Some(gateway) = &mut place.gateway else { return };
        gateway.next = now;
        if let Some(engine) = gateway.engine() {
            engine.drain(now, limit);
        } else if let Some(single) = gateway.single() {
            single.drain(now, limit);
        }
    }

    /// Updates the state of a gateway after its round.
    pub(super) fn review(&mut self, now: Instant, node: usize) {
        if self.places[node].is_stale && self.site.is_terminal(node) {
            let peers = self.site.peers_of(node);
            let is_there = |&peer: &usize| {
                self.places[peer].gateway.as_ref().is_some_and(|gateway| !gateway.is_draining())
            };
            let whole = peers.iter().chain([&node]).all(is_there);
            let knows = |peer: &usize| {
                let hub = self.places[*peer].gateway.as_mut();
                hub.is_some_and(|hub| hub.is_connected_to(now, name(node)))
            };
            self.places[node].is_stale = !whole || !peers.iter().all(knows);
        }
    }

    /// Returns whether datagrams to or from `node` were lost while its sessions ended, or a peer
    /// was replaced meanwhile.
    fn is_disturbed(&self, since: Instant, node: usize) -> bool {
        let net = self.net.net();
        let of_node = |socket: &&Datagrams| socket.node == node && socket.open;
        let own: Vec<SocketAddr> =
            net.sockets.iter().filter(of_node).map(|socket| socket.address).collect();
        let links =
            net.links.iter().filter(|((from, to), _)| own.contains(from) || own.contains(to));
        let lost: usize = links.map(|(_, link)| link.lost_since(since)).sum();
        lost > MAX_LOST_AT_END
            || self.site.peers_of(node).iter().any(|&peer| self.places[peer].is_another)
    }

    /// Returns whether connections of the terminals of `node` were open after `since`.
    fn is_used_since(&self, node: usize, since: Instant) -> bool {
        let terminals = self.terminals_of(node);
        let mut tasks = self.tasks.iter().filter(|task| terminals.contains(&task.node));
        tasks.any(|task| task.is_running() || task.finished.is_some_and(|at| at > since))
    }

    /// Ends a gateway that has drained.
    ///
    /// # Errors
    /// Returns a message if its sessions have not ended although no datagrams were lost.
    pub(super) fn end(&mut self, now: Instant, node: usize) -> Result<(), String> {
        // At this time running connections are cut off; before, the drain ends only without them.
        if now >= self.places[node].drained_by {
            self.excuse(node);
        }
        let engine = self.places[node].gateway.as_mut().and_then(Engaged::engine);
        if let Some(since) = engine.and_then(|engine| engine.unended_since())
            && now.since(since) > MAX_SESSION_END
            && !self.is_disturbed(since, node)
            && !self.is_used_since(node, now - MAX_SESSION_END)
        {
            return Err(format!("gateway {node} ended by timeout, not by END, at {now:?}"));
        }
        let pause = self.places[node].pause;
        if let Some(gateway) = &mut self.places[node].gateway {
            if let Some(engine) = gateway.engine() {
                engine.end(now);
                let mut at = now;
                while let Some(due) = engine.transmit_close(at) {
                    at = due.max(at + Span::from_micros(50));
                }
            } else if let Some(single) = gateway.single() {
                single.end();
            }
        }
        self.replace(now, node, pause);
        Ok(())
    }

    /// Reloads a configuration as `reload.rs` does.
    fn reload(&mut self, node: usize) -> Result<(), String> {
        let new = parse(&self.site.reloads[node])?;
        let place = &mut self.places[node];
        let Some(gateway) = &mut place.gateway else { return Ok(()) };
        let (config, _) = place.config.merged(&new);
        if let Some(single) = gateway.single() {
            single.set_limits(config.limits.clone(), false);
        }
        let Some(engine) = gateway.engine().filter(|engine| !engine.is_draining()) else {
            return Ok(());
        };
        let words = |error: &dyn std::fmt::Display| error.to_string();
        let (up, down) = (config.link.rate_up, config.link.rate_down);
        match &config.role {
            Role::Terminal(section) => {
                let bounds = section.intercept.as_ref().map(|it| it.confirm);
                engine.set_syn_gate(None, bounds.unwrap_or_default());
                engine.apply(&config, None);
                engine.set_rates(up, down);
            }
            Role::Hub(section) => {
                let admission = Admission::new(section, &config.limits).map_err(|it| words(&it))?;
                engine.apply(&config, Some(admission));
                if let SecuritySection::Noise(_) = config.security
                    && let Security::Noise(keys) = config.keys().map_err(|it| words(&it))?
                {
                    engine.set_keys(keys);
                }
                engine.set_rates(down, up);
            }
            Role::Single(_) => {}
        }
        let mut net = self.net.net();
        net.nodes[node].filter.confirm = confirms(&config);
        drop(net);
        place.config = config;
        Ok(())
    }
}
