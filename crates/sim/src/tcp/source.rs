//! Bulk flows that start at scheduled times.

use super::content_of;
use super::hosts::Connections;
use crate::network::{Address, Node, NodeId, Outbox, Packet};
use simtcp::{Endpoint, HostCache, Ports, State, TcpConfig};
use units::Instant;

/// One flow.
#[derive(Clone, Debug)]
pub struct FlowPlan {
    /// When its SYN is sent.
    pub start: Instant,
    /// When it is aborted, if it has not ended.
    pub stop: Option<Instant>,
    /// Octets to send; `u64::MAX`: unlimited.
    pub bytes: u64,
    /// Destination.
    pub to: Address,
    /// TCP configuration.
    pub tcp: TcpConfig,
}

/// The first source port.
const FIRST_PORT: u16 = 10_000;

/// A host that opens connections and sends on each as much as it accepts.
#[derive(Debug)]
pub struct TcpSource {
    node: NodeId,
    plans: Vec<FlowPlan>,
    /// Plans by start time, the next one last.
    waiting: Vec<usize>,
    /// Flows that will be aborted, the next one last.
    ending: Vec<(Instant, usize)>,
    connections: Connections,
    cache: HostCache,
    /// The connection of each plan, and the octets left to write.
    flows: Vec<Option<usize>>,
    left: Vec<u64>,
}

impl TcpSource {
    /// A host at `node` with these flows.
    ///
    /// # Panics
    /// If there are more flows than ports.
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

    /// The connection of the plan `flow`, once it has started.
    pub fn connection(&self, flow: usize) -> Option<&Endpoint> {
        self.flows[flow].map(|number| self.connections.get(number))
    }

    /// The source address of the plan `flow`.
    pub fn address(&self, flow: usize) -> Address {
        Address::new(self.node, FIRST_PORT + flow as u16)
    }

    /// All connections that have started.
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
        let notice = packet.too_big();
        let port = notice.map_or(packet.to.port, |notice| notice.from.port);
        let flow = usize::from(port.wrapping_sub(FIRST_PORT));
        let number = self.flows.get(flow).copied().flatten();
        if let (Some(number), Some(notice)) = (number, notice) {
            let endpoint = self.connections.get_mut(number);
            notice.tell(now, endpoint);
            self.cache.learn(notice.to.node.index() as u64, endpoint);
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
                // An unlimited flow stays unlimited.
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
