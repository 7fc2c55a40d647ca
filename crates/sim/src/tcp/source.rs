//! Flows that begin at set times.

use super::content_of;
use super::hosts::Connections;
use crate::network::{Address, Node, NodeId, Outbox, Packet};
use simtcp::{Endpoint, HostCache, Ports, State, TcpConfig};
use units::Instant;

/// One flow.
#[derive(Clone, Debug)]
pub struct FlowPlan {
    /// When its SYN goes.
    pub start: Instant,
    /// When it is broken off, if it still goes on.
    pub stop: Option<Instant>,
    /// How much it has to send; `u64::MAX`: without end.
    pub bytes: u64,
    /// To whom.
    pub to: Address,
    /// By which TCP.
    pub tcp: TcpConfig,
}

/// The first of the ports that flows leave from.
const FIRST_PORT: u16 = 10_000;

/// A host that opens connections and sends on each as much as it takes.
#[derive(Debug)]
pub struct TcpSource {
    node: NodeId,
    plans: Vec<FlowPlan>,
    /// Plans by the time of their start, the next one last.
    waiting: Vec<usize>,
    /// Flows that will be broken off, the next one last.
    ending: Vec<(Instant, usize)>,
    connections: Connections,
    cache: HostCache,
    /// The connection of each plan, and what it may still write.
    flows: Vec<Option<usize>>,
    left: Vec<u64>,
}

impl TcpSource {
    /// A host at `node` with these flows.
    ///
    /// # Panics
    /// When there are more flows than ports.
    pub fn new(node: NodeId, plans: Vec<FlowPlan>) -> Self {
        assert!(plans.len() < usize::from(u16::MAX - FIRST_PORT), "more flows than ports");
        let mut waiting: Vec<usize> = (0..plans.len()).collect();
        waiting.sort_by_key(|&plan| core::cmp::Reverse((plans[plan].start, plan)));
        let mut ending: Vec<(Instant, usize)> = plans
            .iter()
            .enumerate()
            .filter_map(|(plan, flow)| flow.stop.map(|stop| (stop, plan)))
            .collect();
        ending.sort_by_key(|&end| core::cmp::Reverse(end));
        let flows = vec![None; plans.len()];
        let (connections, left) = (Connections::new(), Vec::new());
        let cache = HostCache::new(0);
        Self { node, plans, waiting, ending, connections, cache, flows, left }
    }

    /// The connection of the plan `flow`, once it has begun.
    pub fn connection(&self, flow: usize) -> Option<&Endpoint> {
        self.flows[flow].map(|number| self.connections.get(number))
    }

    /// The address that the plan `flow` sends from.
    pub fn address(&self, flow: usize) -> Address {
        Address::new(self.node, FIRST_PORT + flow as u16)
    }

    /// All connections that have begun.
    pub fn connections(&self) -> impl Iterator<Item = &Endpoint> {
        self.connections.iter()
    }

    fn start(&mut self, flow: usize) {
        let plan = &self.plans[flow];
        let from = self.address(flow);
        let ports = Ports { from: from.port, to: plan.to.port };
        let peer = plan.to.node.index() as u64;
        let endpoint = self.cache.connect(peer, &plan.tcp, ports, content_of(from));
        let number = self.connections.add(plan.to.node, endpoint);
        self.left.push(plan.bytes);
        self.flows[flow] = Some(number);
    }
}

impl Node for TcpSource {
    fn handle_packet(&mut self, now: Instant, packet: &mut Packet) {
        let told = packet.too_big();
        let port = told.map_or(packet.to.port, |told| told.from.port);
        let flow = usize::from(port.wrapping_sub(FIRST_PORT));
        let number = self.flows.get(flow).copied().flatten();
        if let (Some(number), Some(told)) = (number, told) {
            let endpoint = self.connections.get_mut(number);
            told.tell(now, endpoint);
            self.cache.learn(told.to.node.index() as u64, endpoint);
        }
        if let (Some(number), Some(segment)) = (number, packet.segment()) {
            let endpoint = self.connections.get_mut(number);
            endpoint.handle_segment(now, segment);
            self.cache.learn(packet.from.node.index() as u64, endpoint);
        }
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Outbox<'_>) {
        let left = &mut self.left;
        self.connections.transmit(now, out, |number, endpoint| {
            let left = &mut left[number];
            if *left > 0 {
                let taken = endpoint.write(*left);
                // A flow without end stays one.
                *left -= if *left == u64::MAX { 0 } else { taken };
            }
            if *left == 0 && endpoint.state() == State::Established {
                endpoint.close();
            }
        });
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let starts = self.waiting.last().map(|&flow| self.plans[flow].start);
        let ends = self.ending.last().map(|&(stop, _)| stop);
        [starts, ends, self.connections.poll_timeout()].into_iter().flatten().min()
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(&flow) = self.waiting.last()
            && self.plans[flow].start <= now
        {
            self.waiting.pop();
            self.start(flow);
        }
        while let Some(&(stop, flow)) = self.ending.last()
            && stop <= now
        {
            self.ending.pop();
            if let Some(number) = self.flows[flow] {
                self.left[number] = 0;
                self.connections.get_mut(number).abort();
            }
        }
        self.connections.handle_timeout(now);
    }
}
