//! Routing tables.

use super::packet::NodeId;
use std::collections::VecDeque;

/// An interface of a node: a link, and which of its ends (0: the first).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Port {
    pub(super) link: u32,
    pub(super) end: u8,
    pub(super) to: NodeId,
}

/// The interfaces and routes of all nodes. A host with a single link needs no table.
#[derive(Debug, Default)]
pub(super) struct Routes {
    ports: Vec<Vec<Port>>,
    /// Whether a node forwards packets.
    forwards: Vec<bool>,
    /// By node, then by destination; empty for nodes with a single link.
    tables: Vec<Vec<Option<Port>>>,
    /// Manual routes: at this node, to that node, over this link.
    fixed: Vec<(NodeId, NodeId, u32)>,
    stale: bool,
}

impl Routes {
    pub(super) fn add_node(&mut self, forwards: bool) {
        self.ports.push(Vec::new());
        self.forwards.push(forwards);
        self.stale = true;
    }

    pub(super) fn add_link(&mut self, link: u32, ends: [NodeId; 2]) {
        for (end, here) in ends.into_iter().enumerate() {
            let to = ends[1 - end];
            self.ports[here.index()].push(Port { link, end: end as u8, to });
        }
        self.stale = true;
    }

    pub(super) fn fix(&mut self, at: NodeId, to: NodeId, link: u32) {
        self.fixed.push((at, to, link));
        self.stale = true;
    }

    /// The interface at which a packet for `to` leaves `at`.
    pub(super) fn port(&mut self, at: NodeId, to: NodeId) -> Option<Port> {
        if self.stale {
            self.compute();
        }
        match self.ports[at.index()].as_slice() {
            [only] if !self.forwards[at.index()] => Some(*only),
            _ => *self.tables[at.index()].get(to.index())?,
        }
    }

    fn compute(&mut self) {
        let nodes = self.ports.len();
        self.tables = (0..nodes)
            .map(|node| {
                let choice = self.forwards[node] || self.ports[node].len() > 1;
                if choice { self.table_of(node) } else { Vec::new() }
            })
            .collect();
        for &(at, to, link) in &self.fixed {
            let port = self.ports[at.index()].iter().find(|port| port.link == link);
            if let (Some(port), Some(entry)) = (port, self.tables[at.index()].get_mut(to.index())) {
                *entry = Some(*port);
            }
        }
        self.stale = false;
    }

    /// The first hop of a shortest path, in hops, to each node; of equal ones the link that was
    /// created first. Paths lead through routers and gateways, not through hosts.
    fn table_of(&self, from: usize) -> Vec<Option<Port>> {
        let mut table: Vec<Option<Port>> = vec![None; self.ports.len()];
        let mut reached: VecDeque<usize> = VecDeque::new();
        for &port in &self.ports[from] {
            let to = port.to.index();
            if to != from && table[to].is_none() {
                table[to] = Some(port);
                reached.push_back(to);
            }
        }
        while let Some(node) = reached.pop_front() {
            if !self.forwards[node] {
                continue;
            }
            for port in &self.ports[node] {
                let to = port.to.index();
                if to != from && table[to].is_none() {
                    table[to] = table[node];
                    reached.push_back(to);
                }
            }
        }
        table
    }
}
