//! The links between the nodes, the routes, and the packet counters.

use super::packet::{NodeId, Packet, Pool};
use super::routes::{Port, Routes};
use crate::capture::PacketDirection;
use crate::faults::FaultSource;
use crate::{Capture, Faults, Meter, TimerTree, TraceHash};
use satlink::{Admission, Direction, Frame, Link};
use units::{Instant, Span};

/// Maximum hops; more indicate a loop in manual routes.
const MAX_HOPS: u8 = 64;
/// Initial length of a link meter's bins, and their maximum number.
const BIN: Span = Span::from_millis(10);
const BINS: usize = 512;

/// Everything between the nodes.
#[derive(Default)]
pub(super) struct Fabric {
    pub(super) lines: Vec<Line>,
    /// When each link has its next event.
    pub(super) link_timers: TimerTree,
    pub(super) routes: Routes,
    pub(super) pool: Pool,
    pub(super) trace: Option<TraceHash>,
    /// Packets sent by nodes, with copies made by faults.
    pub(super) created: u64,
    /// Packets delivered to nodes.
    pub(super) arrived: u64,
    /// Packets replaced by faults.
    replaced: u64,
    /// Packets without a route.
    pub(super) unroutable: u64,
    /// Packets larger than the MTU of the next link.
    pub(super) too_big: u64,
}

/// A link with its faults and meters. Packets of its first end take the forward direction.
pub(super) struct Line {
    pub(super) link: Link<Packet>,
    pub(super) ends: [NodeId; 2],
    /// MTU in octets, if there is one.
    pub(super) mtu: Option<u16>,
    pub(super) offered: [Meter; 2],
    pub(super) delivered: [Meter; 2],
    pub(super) faults: [Option<(Faults, FaultSource)>; 2],
    /// At each end.
    pub(super) captures: [Option<Box<Capture>>; 2],
}

impl Line {
    pub(super) fn new(link: Link<Packet>, ends: [NodeId; 2]) -> Self {
        let meters = || [(); 2].map(|()| Meter::bounded(BIN, BINS));
        Self {
            link,
            ends,
            mtu: None,
            offered: meters(),
            delivered: meters(),
            faults: [None, None],
            captures: [None, None],
        }
    }

    /// The node at the output of `direction`.
    pub(super) fn receiver(&self, direction: Direction) -> NodeId {
        self.ends[1 - direction as usize]
    }
}

impl Fabric {
    /// Sends `packet` on its route from `at`.
    pub(super) fn forward(&mut self, now: Instant, at: NodeId, packet: Packet) {
        match self.routes.port(at, packet.to.node) {
            Some(port) if self.fits(now, at, port.link as usize, &packet) => {
                self.offer(now, port, packet);
            }
            Some(_) => self.pool.put(packet.payload),
            None => {
                self.unroutable += 1;
                self.pool.put(packet.payload);
            }
        }
    }

    /// Forwards a packet that arrived at the router `at`.
    pub(super) fn forward_on(&mut self, now: Instant, at: NodeId, mut packet: Packet) {
        packet.hops += 1;
        assert!(packet.hops <= MAX_HOPS, "a packet for {} is in a routing loop", packet.to.node);
        self.forward(now, at, packet);
    }

    fn offer(&mut self, now: Instant, port: Port, packet: Packet) {
        let place = port.link as usize;
        let line = &mut self.lines[place];
        let direction = Direction::BOTH[usize::from(port.end)];
        line.offered[direction as usize].count(now, packet.len() as u64);
        if let Some(capture) = &mut line.captures[usize::from(port.end)] {
            capture.packet(now, PacketDirection::Outbound, &packet);
        }
        match line.link.offer(now, direction, packet) {
            Admission::Queued => {}
            Admission::Dropped(_, packet) => self.pool.put(packet.payload),
        }
        self.link_timers.set(place, line.link.poll_timeout());
    }

    /// The next packet delivered by the link `place` until `now`, and its direction; updates the
    /// link's timer.
    pub(super) fn arrival(&mut self, now: Instant, place: usize) -> Option<(Direction, Packet)> {
        let line = &mut self.lines[place];
        let delivery = line.link.poll_delivery(now);
        self.link_timers.set(place, line.link.poll_timeout());
        let delivery = delivery?;
        let (direction, packet) = (delivery.direction, delivery.frame);
        line.delivered[direction as usize].count(now, packet.len() as u64);
        if let Some(capture) = &mut line.captures[1 - direction as usize] {
            capture.packet(now, PacketDirection::Inbound, &packet);
        }
        if let Some(trace) = &mut self.trace {
            let kind = (2 * place + direction as usize) as u64;
            packet.payload.mark(|bytes| trace.event(now, kind, bytes));
        }
        Some((direction, packet))
    }

    /// Applies the faults of a link's direction to a packet; `None` without faults. TCP segments
    /// have no octets that could be damaged, and are unchanged.
    pub(super) fn apply(
        &mut self,
        place: usize,
        direction: Direction,
        packet: &Packet,
    ) -> Option<Vec<Packet>> {
        if packet.segment().is_some() {
            return None;
        }
        let (faults, source) = self.lines[place].faults[direction as usize].as_mut()?;
        let struck = source.apply(faults, packet.bytes().to_vec());
        self.created += struck.len() as u64;
        self.replaced += 1;
        Some(
            struck
                .into_iter()
                .map(|bytes| Packet { payload: bytes.into(), ..packet.clone() })
                .collect(),
        )
    }

    /// Recounts all packets; returns the first inconsistency.
    pub(super) fn audit(&self) -> Result<(), String> {
        let (mut lost, mut copies, mut inside) = (0, 0, 0);
        for (place, line) in self.lines.iter().enumerate() {
            if !line.link.audit() {
                return Err(format!("packet conservation does not hold on link {place}"));
            }
            for direction in Direction::BOTH {
                let counters = line.link.counters(direction);
                lost += counters.dropped_in_all().packets;
                copies += counters.duplicated.packets;
                inside += counters.held.packets;
            }
        }
        let came = self.created + copies;
        let went = self.arrived + self.unroutable + self.too_big + self.replaced + lost + inside;
        if came == went {
            Ok(())
        } else {
            Err(format!("of {came} packets {went} are accounted for"))
        }
    }
}
