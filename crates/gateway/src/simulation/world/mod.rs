//! Gateways, their clients and servers, and virtual time.
//!
//! ```text
//!   loop:  network events ─▶ acts ─▶ tasks ─▶ gateways ─▶ tasks ─▶ the next due time
//! ```

mod acts;
mod gateway;

pub(super) use acts::Act;
use gateway::Engaged;

use super::draw::site::Site;
use super::host::DESCRIPTORS;
use super::net::{Net, Node, Shared};
use super::task::{ClientKind, Task};
use crate::engine::Held;
use crate::{Config, Role};
use std::collections::BTreeMap;
use units::{BitRate, Instant, RngStream, Span};

/// A node on which a gateway runs, or will run again.
struct Place {
    /// `None` after a drain, until the next gateway starts.
    gateway: Option<Engaged>,
    config: Config,
    /// Start of the next gateway.
    back_at: Instant,
    /// Time from a drain to that start.
    pause: Span,
    /// End of a drain although connections still run.
    drained_by: Instant,
    /// Set while this terminal or a hub of it drains, or while it has no session yet with a hub
    /// that was replaced.
    is_stale: bool,
    /// The gateway here has replaced another.
    is_another: bool,
}

/// The simulated gateways, network and tasks.
pub(super) struct World {
    pub(super) net: Shared,
    places: Vec<Place>,
    pub(super) site: Site,
    pub(super) tasks: Vec<Task>,
    pub(super) acts: BTreeMap<Instant, Act>,
    rng: RngStream,
    entropy: RngStream,
    pub(super) rounds: u64,
}

impl World {
    /// Starts the gateways of `site`.
    ///
    /// # Errors
    /// Returns a message if a configuration is invalid.
    pub(super) fn new(seed: u64, site: &Site) -> Result<Self, String> {
        let mut net = Net::new(RngStream::new(seed, 0, "gateway/simulation/net"));
        for (ends, link) in &site.links {
            net.links.insert(*ends, link.clone());
        }
        let mut world = Self {
            net: Shared::new(net),
            places: Vec::new(),
            site: site.clone(),
            tasks: Vec::new(),
            acts: BTreeMap::new(),
            rng: RngStream::new(seed, 0, "gateway/simulation/costs"),
            entropy: RngStream::new(seed, 0, "gateway/simulation/entropy"),
            rounds: 0,
        };
        for (node, text) in site.configs.iter().enumerate() {
            let config = parse(text)?;
            world.net.net().nodes.push(Node::new(DESCRIPTORS));
            let gateway = world.start(node, &config)?;
            let (gateway, back_at) = (Some(gateway), Instant::FAR_FUTURE);
            world.places.push(Place {
                gateway,
                config,
                back_at,
                pause: Span::ZERO,
                drained_by: Instant::FAR_FUTURE,
                is_stale: false,
                is_another: false,
            });
        }
        Ok(world)
    }

    /// Returns the current time.
    pub(super) fn now(&self) -> Instant {
        self.net.net().now
    }

    /// Returns the resources that each gateway holds.
    pub(super) fn held(&mut self) -> Vec<Held> {
        let gateways = self.places.iter_mut().filter_map(|place| place.gateway.as_mut());
        gateways.map(Engaged::held).collect()
    }

    /// Returns the rate of the slowest link.
    pub(super) fn slowest_link(&self) -> BitRate {
        let rates = self.site.links.iter().map(|(_, link)| link.rate);
        rates.min().unwrap_or(BitRate::from_mbps(1))
    }

    /// Returns a gateway's status of its peers as JSON.
    pub(super) fn status(&mut self, node: usize) -> String {
        let now = self.now();
        self.places[node].gateway.as_mut().map_or_else(String::new, |it| it.status(now))
    }

    /// Returns whether all gateways run, and none of them drains.
    pub(super) fn is_whole(&self) -> bool {
        self.places.iter().all(|place| place.gateway.as_ref().is_some_and(|it| !it.is_draining()))
    }

    /// Returns the largest number of consecutive rounds without effect, of all gateways.
    pub(super) fn max_empty_rounds(&self) -> u64 {
        let gateways = self.places.iter().filter_map(|place| place.gateway.as_ref());
        gateways.map(Engaged::max_empty_rounds).max().unwrap_or_default()
    }

    /// Runs until `done`, or until `until`; returns whether it is done.
    ///
    /// # Errors
    /// Returns a gateway's violation.
    pub(super) fn run(
        &mut self,
        until: Instant,
        mut done: impl FnMut(&mut Self) -> bool,
    ) -> Result<bool, String> {
        loop {
            let now = self.now();
            self.net.net().advance(now);
            while let Some((&at, &act)) = self.acts.first_key_value()
                && at <= now
            {
                self.acts.remove(&at);
                self.act(now, act)?;
            }
            self.drive_tasks(now)?;
            for node in 0..self.places.len() {
                self.drive_place(now, node)?;
            }
            self.drive_tasks(now)?;
            if done(self) {
                return Ok(true);
            }
            let due = self.due();
            if due > until {
                self.net.net().now = until;
                return Ok(false);
            }
            self.net.net().now = due.max(now);
        }
    }

    fn due(&self) -> Instant {
        let net = self.net.net();
        let places = self.places.iter().map(|place| match &place.gateway {
            Some(gateway) => gateway.next,
            None => place.back_at,
        });
        let tasks = self.tasks.iter().filter_map(Task::due);
        let acts = self.acts.first_key_value().map(|(at, _)| *at);
        let all = places.chain(tasks).chain(acts).chain(net.due());
        all.min().unwrap_or(Instant::FAR_FUTURE)
    }

    fn drive_tasks(&mut self, now: Instant) -> Result<(), String> {
        let mut net = self.net.net();
        let woken = std::mem::take(&mut net.woken);
        for task in &mut self.tasks {
            let is_due = task.due().is_some_and(|due| due <= now);
            if !is_due && !woken.contains(&task.number) {
                continue;
            }
            let was_waiting = !task.is_running();
            task.drive(&mut net)?;
            if was_waiting && task.is_running() {
                let place = &self.places[task.node];
                let passes = net.nodes[task.node].filter.bypass;
                let is_intercepted = task.kind == ClientKind::Intercepted;
                let takes_none = place.is_stale || place.gateway.is_none();
                task.excuses.refused |= takes_none && !(is_intercepted && passes);
            }
        }
        Ok(())
    }

    fn drive_place(&mut self, now: Instant, node: usize) -> Result<(), String> {
        if self.places[node].gateway.is_none() {
            if self.places[node].back_at > now {
                return Ok(());
            }
            let config = self.places[node].config.clone();
            let gateway = self.start(node, &config)?;
            self.places[node].gateway = Some(gateway);
        }
        let Some(gateway) = &mut self.places[node].gateway else { return Ok(()) };
        let news = gateway.handle_readiness(now, &self.net, node);
        if !news && now < gateway.next {
            return Ok(());
        }
        if gateway.has_drained(now) {
            return self.end(now, node);
        }
        self.rounds += 1;
        let cost = Span::from_micros(20 + self.rng.below(100));
        let changed = gateway.round(now, news, cost, &self.net, node)?;
        if changed {
            self.excuse_held(node);
        }
        self.review(now, node);
        Ok(())
    }
}

/// Parses the configuration in `text`; settings of the host machine are ignored.
fn parse(text: &str) -> Result<Config, String> {
    let mut config = Config::parse("storm.toml", text).map_err(|all| all.to_string())?;
    if let Role::Hub(hub) = &mut config.role {
        hub.guarded = false;
    }
    Ok(config)
}
