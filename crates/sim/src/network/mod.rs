//! A network of any topology under virtual time: hosts, routers, gateways, links.
//!
//! ```text
//!    host ──link── router ──link── router ──link── host
//!                    │  each link a satlink::Link, both directions
//!    host ──link─────┘  each host a Node: packets in, packets out, a timer
//! ```
//!
//! Routers forward packets by address on a shortest path (in hops) unless a route is set. A gateway
//! is a host on the path: it receives every packet that is routed through it. Packet conservation
//! is checked: packets sent by nodes are those delivered to nodes, lost or held by links, or
//! without a route. A violation is a panic whose message has the seed and the time.

mod fabric;
mod node;
mod observe;
mod packet;
mod routes;
mod too_big;

pub use node::{Node, Outbox};
pub(crate) use packet::CompressedHeaders;
pub use packet::{Address, Buffer, IPV4, IPV4_UDP, NodeId, Packet, Payload, Protocol};
pub use too_big::TooBig;

use crate::faults::FaultSource;
use crate::series::Recorders;
use crate::{Capture, EventQueue, Faults, Meter, TimerTree};
use core::any::Any;
use fabric::{Fabric, Line};
use satlink::{ConfigError, Direction, Link, LinkConfig};
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use units::{Instant, RngStream};

/// Identifies a link of a [`Network`]. Packets of its first node take [`Direction::Forward`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(u32);

impl LinkId {
    /// Its index: links are numbered from 0 in the order of their creation.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Iterations at one instant after which the run counts as an endless loop.
const MAX_ROUNDS: u32 = 1_000_000;
/// Number of delivered packets between audits.
const AUDIT_EVERY: u64 = 1 << 16;

enum Place {
    Host(Box<dyn Node>),
    Gateway(Box<dyn Node>),
    Router,
}

impl Place {
    fn node_mut(&mut self) -> Option<&mut dyn Node> {
        match self {
            Self::Host(node) | Self::Gateway(node) => Some(node.as_mut()),
            Self::Router => None,
        }
    }
}

type Change = Box<dyn FnOnce(&mut Network)>;

/// Nodes, the links between them, and time.
pub struct Network {
    seed: u64,
    run: u64,
    places: Vec<Place>,
    fabric: Fabric,
    /// The timer of each node.
    timers: TimerTree,
    /// Nodes with an event at this instant, each once.
    touched: Vec<NodeId>,
    is_touched: Vec<bool>,
    changes: EventQueue<Change>,
    recorders: Recorders<Self>,
    now: Instant,
    rounds: u32,
    passed: u64,
    audited: u64,
}

/// Construction.
impl Network {
    /// Creates an empty network at time zero; `seed` and `run` determine all randomness.
    pub fn new(seed: u64, run: u64) -> Self {
        Self {
            seed,
            run,
            places: Vec::new(),
            fabric: Fabric::default(),
            timers: TimerTree::new(),
            touched: Vec::new(),
            is_touched: Vec::new(),
            changes: EventQueue::new(),
            recorders: Recorders::default(),
            now: Instant::ZERO,
            rounds: 0,
            passed: 0,
            audited: 0,
        }
    }

    /// Adds a host.
    pub fn host(&mut self, node: impl Node) -> NodeId {
        self.host_with(|_| node)
    }

    /// Adds a host that is constructed with its own identifier.
    pub fn host_with<N: Node>(&mut self, make: impl FnOnce(NodeId) -> N) -> NodeId {
        let node = make(self.next_node());
        self.place(Place::Host(Box::new(node)))
    }

    /// Adds a gateway: a host that receives every packet routed through it and forwards those that
    /// it does not handle.
    pub fn gateway_with<N: Node>(&mut self, make: impl FnOnce(NodeId) -> N) -> NodeId {
        let node = make(self.next_node());
        self.place(Place::Gateway(Box::new(node)))
    }

    /// Adds a router.
    pub fn router(&mut self) -> NodeId {
        self.place(Place::Router)
    }

    /// The identifier of the node that is added next.
    pub fn next_node(&self) -> NodeId {
        NodeId(self.places.len() as u32)
    }

    fn place(&mut self, place: Place) -> NodeId {
        let id = self.next_node();
        self.fabric.routes.add_node(!matches!(place, Place::Host(_)));
        self.places.push(place);
        self.timers.grow(self.places.len());
        self.is_touched.push(false);
        self.touch(id);
        id
    }

    /// Connects `first` and `second`. The forward direction is from `first` to `second`. The link's
    /// random stream is determined by the network's seed and the link's index.
    ///
    /// # Errors
    /// If the link's configuration is invalid.
    pub fn try_link(
        &mut self,
        first: NodeId,
        second: NodeId,
        config: &LinkConfig,
    ) -> Result<LinkId, ConfigError> {
        let place = self.fabric.lines.len();
        let seed = RngStream::new(self.seed, self.run, &format!("sim/link/{place}")).next_u64();
        let link = Link::starting_at(config, seed, self.run, self.now)?;
        self.fabric.lines.push(Line::new(link, [first, second]));
        self.fabric.link_timers.grow(place + 1);
        self.fabric.routes.add_link(place as u32, [first, second]);
        Ok(LinkId(place as u32))
    }

    /// As [`Network::try_link`].
    ///
    /// # Panics
    /// If the link's configuration is invalid.
    pub fn link(&mut self, first: NodeId, second: NodeId, config: &LinkConfig) -> LinkId {
        self.try_link(first, second, config).expect("the link should be valid")
    }

    /// Routes packets for `to` at the node `at` over `link` from now on.
    pub fn route(&mut self, at: NodeId, to: NodeId, link: LinkId) {
        self.fabric.routes.fix(at, to, link.0);
    }
}

/// Inspection and changes.
impl Network {
    /// The time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The seed and the replication.
    pub fn seed(&self) -> (u64, u64) {
        (self.seed, self.run)
    }

    /// The random stream of the component `name` in this run.
    pub fn rng(&self, name: &str) -> RngStream {
        RngStream::new(self.seed, self.run, name)
    }

    /// A host or gateway.
    ///
    /// # Panics
    /// If `id` has another type.
    pub fn node<N: Node>(&self, id: NodeId) -> &N {
        let node: Option<&dyn Any> = match &self.places[id.index()] {
            Place::Host(node) | Place::Gateway(node) => Some(node.as_ref()),
            Place::Router => None,
        };
        node.and_then(|node| node.downcast_ref()).expect("a node of the type that is asked for")
    }

    /// A host or gateway, for changes; it may send packets immediately afterwards.
    ///
    /// # Panics
    /// If `id` has another type.
    pub fn node_mut<N: Node>(&mut self, id: NodeId) -> &mut N {
        self.touch(id);
        let node: Option<&mut dyn Any> = match &mut self.places[id.index()] {
            Place::Host(node) | Place::Gateway(node) => Some(node.as_mut()),
            Place::Router => None,
        };
        node.and_then(|node| node.downcast_mut()).expect("a node of the type that is asked for")
    }

    /// A link, for its counters and queue.
    pub fn line(&self, link: LinkId) -> &Link<Packet> {
        &self.fabric.lines[link.index()].link
    }

    /// Octets offered to a link in one direction, headers included. Meters start with bins of 10 ms
    /// and have at most 512.
    pub fn offered(&self, link: LinkId, direction: Direction) -> &Meter {
        &self.fabric.lines[link.index()].offered[direction as usize]
    }

    /// Octets delivered by a link in one direction.
    pub fn delivered(&self, link: LinkId, direction: Direction) -> &Meter {
        &self.fabric.lines[link.index()].delivered[direction as usize]
    }

    /// Sets the MTU of a link in octets. The node before it answers larger TCP segments with
    /// [`TooBig`].
    pub fn set_mtu(&mut self, link: LinkId, mtu: Option<u16>) {
        self.fabric.lines[link.index()].mtu = mtu;
    }

    /// Packets dropped because they exceeded the MTU of the next link.
    pub fn too_big(&self) -> u64 {
        self.fabric.too_big
    }

    /// Packets dropped without a route.
    pub fn unroutable(&self) -> u64 {
        self.fabric.unroutable
    }

    /// Reconfigures a link; packets in flight are not affected.
    ///
    /// # Errors
    /// If the configuration is invalid; the link is unchanged then.
    pub fn reconfigure(&mut self, link: LinkId, config: &LinkConfig) -> Result<(), ConfigError> {
        let (now, place) = (self.now, link.index());
        let line = &mut self.fabric.lines[place];
        line.link.reconfigure(now, config)?;
        self.fabric.link_timers.set(place, line.link.poll_timeout());
        Ok(())
    }

    /// Sets the faults at the output of one direction of a link.
    pub fn set_faults(&mut self, link: LinkId, direction: Direction, faults: Faults) {
        let name = format!("sim/faults/{}/{direction}", link.0);
        let rng = self.rng(&name);
        let place = &mut self.fabric.lines[link.index()].faults[direction as usize];
        let source = match place.take() {
            Some((_, source)) => source,
            None => FaultSource::new(rng),
        };
        *place = (faults != Faults::default()).then_some((faults, source));
    }

    /// Captures the packets of `link` at its end at `node` from now on, both directions, as pcapng:
    /// sent packets when `node` sends them, received ones when they arrive.
    ///
    /// # Panics
    /// If `node` is not an end of `link`.
    pub fn capture(&mut self, link: LinkId, node: NodeId, out: impl Write + 'static) {
        let line = &mut self.fabric.lines[link.index()];
        let end = line.ends.iter().position(|&end| end == node).expect("an end of the link");
        let name = format!("link {} at {node}", link.0);
        line.captures[end] = Some(Box::new(Capture::new(Box::new(out), &name)));
    }

    /// Ends all captures.
    ///
    /// # Errors
    /// Returns the first error of writing.
    pub fn finish_captures(&mut self) -> io::Result<()> {
        let captures = self.fabric.lines.iter_mut().flat_map(|line| &mut line.captures);
        captures.filter_map(Option::take).try_for_each(|capture| capture.finish().map(drop))
    }

    /// Runs `change` at `at`, before all other events of that instant.
    pub fn change_at(&mut self, at: Instant, change: impl FnOnce(&mut Self) + 'static) {
        self.changes.push(at, Box::new(change));
    }

    /// Hashes all packets delivered by links from now on.
    pub fn trace(&mut self) {
        self.fabric.trace.get_or_insert_default();
    }

    /// A hash of the run, equal for equal [traced](Self::trace) runs.
    pub fn trace_hash(&self) -> u64 {
        self.fabric.trace.unwrap_or_default().value()
    }

    /// Checks packet conservation on all links. Every run does so periodically.
    ///
    /// # Panics
    /// If packet conservation does not hold.
    pub fn audit(&mut self) {
        self.audited = self.passed;
        if let Err(damage) = self.fabric.audit() {
            panic!("{damage}");
        }
    }

    fn touch(&mut self, id: NodeId) {
        let touched = &mut self.is_touched[id.index()];
        if !*touched {
            *touched = true;
            self.touched.push(id);
        }
    }
}

/// Execution.
impl Network {
    /// Runs until `end`, events at `end` included.
    ///
    /// # Panics
    /// If an invariant is violated; the message has seed, run and time.
    pub fn run_until(&mut self, end: Instant) {
        self.run_while(end, |_| true);
    }

    /// Runs while `go_on` returns true, until `end` at most; returns whether it stopped before.
    /// `go_on` is called after each instant with an event.
    ///
    /// # Panics
    /// If an invariant is violated; the message has seed, run and time.
    pub fn run_while(&mut self, end: Instant, go_on: impl FnMut(&Self) -> bool) -> bool {
        match catch_unwind(AssertUnwindSafe(|| self.run_to(end, go_on))) {
            Ok(stopped) => stopped,
            Err(damage) => {
                let what = damage
                    .downcast_ref::<String>()
                    .map(String::as_str)
                    .or_else(|| damage.downcast_ref::<&str>().copied());
                match what {
                    Some(what) => {
                        panic!("seed {} run {} at {:?}: {what}", self.seed, self.run, self.now)
                    }
                    None => resume_unwind(damage),
                }
            }
        }
    }

    fn run_to(&mut self, end: Instant, mut go_on: impl FnMut(&Self) -> bool) -> bool {
        self.transmit();
        let stopped = loop {
            if !go_on(self) {
                break true;
            }
            let at = self.next_at();
            if at > end || at == Instant::FAR_FUTURE {
                self.now = self.now.max(end);
                break false;
            }
            self.step(at);
        };
        self.audit();
        stopped
    }

    /// The time of the next event; the far future if there is none.
    fn next_at(&self) -> Instant {
        let changes = self.changes.next_at().unwrap_or(Instant::FAR_FUTURE);
        let samples = self.recorders.next_at();
        self.fabric.link_timers.earliest().min(self.timers.earliest()).min(changes).min(samples)
    }

    /// Advances to `at`, unless that is in the past, and processes all events due.
    fn step(&mut self, at: Instant) {
        if at > self.now {
            self.now = at;
            self.rounds = 0;
        } else {
            self.rounds += 1;
            assert!(self.rounds < MAX_ROUNDS, "no progress of time");
        }
        while let Some((_, change)) = self.changes.pop_due(self.now) {
            change(self);
        }
        self.deliver();
        self.tick();
        self.transmit();
        if !self.recorders.is_empty() {
            let mut recorders = core::mem::take(&mut self.recorders);
            recorders.take(self.now, self);
            self.recorders = recorders;
        }
    }

    /// Delivers arrived packets to the nodes.
    fn deliver(&mut self) {
        while let Some(place) = self.fabric.link_timers.first_due(self.now) {
            let Some((direction, packet)) = self.fabric.arrival(self.now, place) else { continue };
            self.passed += 1;
            match self.fabric.apply(place, direction, &packet) {
                None => self.hand_over(place, direction, packet),
                Some(struck) => {
                    for packet in struck {
                        self.hand_over(place, direction, packet);
                    }
                }
            }
        }
        if self.passed - self.audited >= AUDIT_EVERY {
            self.audit();
        }
    }

    fn hand_over(&mut self, line: usize, direction: Direction, mut packet: Packet) {
        let to = self.fabric.lines[line].receiver(direction);
        match self.places[to.index()].node_mut() {
            None => self.fabric.forward_on(self.now, to, packet),
            Some(node) => {
                node.handle_packet(self.now, &mut packet);
                self.fabric.arrived += 1;
                self.fabric.pool.put(packet.payload);
                self.touch(to);
            }
        }
    }

    /// Calls the nodes whose timers have expired.
    fn tick(&mut self) {
        let now = self.now;
        while let Some(index) = self.timers.first_due(now) {
            self.timers.set(index, None);
            if let Some(node) = self.places[index].node_mut() {
                node.handle_timeout(now);
                self.touch(NodeId(index as u32));
            }
        }
    }

    /// Lets the nodes with an event send.
    fn transmit(&mut self) {
        let now = self.now;
        // Sending causes no event at other nodes: arrivals at this instant are processed in the
        // next iteration.
        for place in 0..self.touched.len() {
            let id = self.touched[place];
            self.is_touched[id.index()] = false;
            if let Some(node) = self.places[id.index()].node_mut() {
                let mut out = Outbox { fabric: &mut self.fabric, node: id, now };
                node.poll_transmit(now, &mut out);
                self.timers.set(id.index(), node.poll_timeout());
            }
        }
        self.touched.clear();
    }
}

#[cfg(test)]
mod tests;
