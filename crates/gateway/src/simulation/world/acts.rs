//! What happens to links and gateways while connections run: blackouts, restarts, drains, other
//! configurations, and hosts without descriptors.

use super::gateway::{Engaged, confirms};
use super::{World, parse};
use crate::engine::Admission;
use crate::simulation::draw::site::{Options, name};
use crate::simulation::host::DESCRIPTORS;
use crate::simulation::net::datagrams::Datagrams;
use crate::simulation::net::way::Way;
use crate::simulation::task::Task;
use crate::{Role, SecuritySection};
use relay::Security;
use std::net::SocketAddr;
use units::{Instant, Span};

/// Maximum time for the orderly end of the sessions when no connection is left at either gateway.
const MAX_SESSION_END: Span = Span::from_secs(10);
/// Datagrams that may be lost while sessions end, so that they end in order nevertheless.
const MAX_LOST_AT_END: usize = 1;

/// Something that happens at its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::simulation) enum Act {
    /// Nothing passes for so long by the link with this number, in its one direction.
    Blackout(usize, Span),
    /// A gateway dies without a word, and another takes its place at once.
    Restart(usize),
    /// A gateway is asked to stop: it drains and ends, and another begins after that time.
    Drain(usize, Span),
    /// A gateway reads the other configuration that there is for it.
    Reload(usize),
    /// So many more descriptors are left to a gateway.
    Descriptors(usize, usize),
    /// The first hop takes packets of this size.
    PathMtu(usize),
}

impl Act {
    /// The same on the links of `options`: those of IPv6 take packets of 1,280 octets at least.
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
        }
        Ok(())
    }

    /// The terminals whose connections the gateway `node` carries.
    fn terminals_of(&self, node: usize) -> Vec<usize> {
        if self.site.is_terminal(node) { vec![node] } else { self.site.peers_of(node) }
    }

    /// The gateway `node` is gone: connections that it carried may break, and those that it may have
    /// carried and that have not reached their servers may be refused.
    fn excuse(&mut self, node: usize) {
        let terminals = self.terminals_of(node);
        let net = self.net.net();
        let running = self.tasks.iter_mut().filter(|task| task.is_running());
        for task in running.filter(|task| terminals.contains(&task.node)) {
            match net.way_of(task) {
                Way::Through(hub) => task.excuses.lost |= node == hub || node == task.node,
                Way::Begun => task.excuses.lost |= node == task.node,
                Way::Held | Way::Past => {}
            }
            task.excuses.refused |= task.sides[1].id.is_none();
        }
    }

    /// The gateway `node` takes no new connections from here on.
    fn excuse_new(&mut self, node: usize) {
        let terminals = self.terminals_of(node);
        let net = self.net.net();
        let running = self.tasks.iter_mut().filter(|task| task.is_running());
        for task in running.filter(|task| terminals.contains(&task.node)) {
            task.excuses.refused |= match net.way_of(task) {
                // A terminal serves whom it has accepted, and a hub whom it connects.
                Way::Begun => node != task.node || !net.has_come_in(task),
                // A SYN that is held is let in before the terminal knows that its hub drains.
                Way::Held => node != task.node,
                Way::Through(_) | Way::Past => false,
            };
        }
    }

    /// Until they have new sessions, the terminals of a hub do not know that it is another one.
    fn make_stale(&mut self, hub: usize) {
        for terminal in self.site.peers_of(hub) {
            self.places[terminal].is_stale = true;
        }
    }

    /// A gateway dies: its kernel closes its sockets.
    fn restart(&mut self, now: Instant, node: usize) {
        self.excuse(node);
        self.replace(now, node, Span::ZERO);
    }

    /// What was at `node` is gone, and something new begins there after `pause`.
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
            // Its rules are gone with it.
            node.filter.bypass = true;
        }
        if !self.site.is_terminal(node) {
            self.make_stale(node);
        }
        self.excuse_held(node);
    }

    /// Clients whose SYNs were held go another way when they send them again.
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

    /// Looks after a gateway that has had its round.
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

    /// Whether datagrams to or from `node` were lost while its sessions ended, or a peer is not the
    /// one with which they began.
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

    /// Whether connections of the terminals of `node` have run since.
    fn is_used_since(&self, node: usize, since: Instant) -> bool {
        let terminals = self.terminals_of(node);
        let mut tasks = self.tasks.iter().filter(|task| terminals.contains(&task.node));
        tasks.any(|task| task.is_running() || task.finished.is_some_and(|at| at > since))
    }

    /// A gateway that has drained ends.
    ///
    /// # Errors
    /// When sessions have not ended although nothing has kept them from that.
    pub(super) fn end(&mut self, now: Instant, node: usize) -> Result<(), String> {
        // Connections that still run have had their time; before that there are none.
        if now >= self.places[node].drained_by {
            self.excuse(node);
        }
        let engine = self.places[node].gateway.as_mut().and_then(Engaged::engine);
        if let Some(since) = engine.and_then(|engine| engine.unended_since())
            && now.since(since) > MAX_SESSION_END
            && !self.is_disturbed(since, node)
            && !self.is_used_since(node, now - MAX_SESSION_END)
        {
            return Err(format!("gateway {node} ended by time, not by END, at {now:?}"));
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

    /// Does what `reload.rs` does with a configuration that has changed.
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
