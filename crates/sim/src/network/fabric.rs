//! Everything between the nodes: links, the ways over them, and the accounts.

use super::packet::{NodeId, Packet, Pool};
use super::routes::{Port, Routes};
use crate::capture::Way;
use crate::faults::FaultSource;
use crate::{Capture, Faults, Meter, TimerTree, TraceHash};
use satlink::{Admission, Direction, Frame, Link};
use units::{Instant, Span};

/// Routers that a packet may pass; more are a circle in routes that were set by hand.
const MOST_HOPS: u8 = 64;
/// Bins of a link's meters: the finest, and how many of them at most.
const BIN: Span = Span::from_millis(10);
const BINS: usize = 512;

/// What the nodes send into.
#[derive(Default)]
pub(super) struct Fabric {
    pub(super) lines: Vec<Line>,
    /// When each line is due.
    pub(super) link_timers: TimerTree,
    pub(super) routes: Routes,
    pub(super) pool: Pool,
    pub(super) trace: Option<TraceHash>,
    /// Packets that nodes have sent, with copies that faults made.
    pub(super) created: u64,
    /// Packets that nodes have got.
    pub(super) arrived: u64,
    /// Packets that faults put others in place of.
    replaced: u64,
    /// Packets that no way led on for.
    pub(super) stranded: u64,
    /// Packets that the next link did not take.
    pub(super) too_big: u64,
}

/// A link and what stands around it. Its first end's packets take the forward direction.
pub(super) struct Line {
    pub(super) link: Link<Packet>,
    pub(super) ends: [NodeId; 2],
    /// Octets of the largest packet that it takes, if there is one.
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

    /// Who gets what comes out in `direction`.
    pub(super) fn receiver(&self, direction: Direction) -> NodeId {
        self.ends[1 - direction as usize]
    }
}

impl Fabric {
    /// Sends `packet` on from `at`.
    pub(super) fn forward(&mut self, now: Instant, at: NodeId, packet: Packet) {
        match self.routes.port(at, packet.to.node) {
            Some(port) if self.fits(now, at, port.link as usize, &packet) => {
                self.offer(now, port, packet);
            }
            Some(_) => self.pool.put(packet.payload),
            None => {
                self.stranded += 1;
                self.pool.put(packet.payload);
            }
        }
    }

    /// Sends a packet on that came to the router `at`.
    pub(super) fn pass_on(&mut self, now: Instant, at: NodeId, mut packet: Packet) {
        packet.hops += 1;
        assert!(packet.hops <= MOST_HOPS, "a packet for {} goes in circles", packet.to.node);
        self.forward(now, at, packet);
    }

    fn offer(&mut self, now: Instant, port: Port, packet: Packet) {
        let place = port.link as usize;
        let line = &mut self.lines[place];
        let direction = Direction::BOTH[usize::from(port.end)];
        line.offered[direction as usize].count(now, packet.len() as u64);
        if let Some(capture) = &mut line.captures[usize::from(port.end)] {
            capture.packet(now, Way::Outbound, &packet);
        }
        match line.link.offer(now, direction, packet) {
            Admission::Queued => {}
            Admission::Dropped(_, packet) => self.pool.put(packet.payload),
        }
        self.link_timers.set(place, line.link.poll_timeout());
    }

    /// A packet that has come out of the line `place` by `now`, and which way; the line's next
    /// time is in the calendar afterwards.
    pub(super) fn arrival(&mut self, now: Instant, place: usize) -> Option<(Direction, Packet)> {
        let line = &mut self.lines[place];
        let delivery = line.link.poll_delivery(now);
        self.link_timers.set(place, line.link.poll_timeout());
        let delivery = delivery?;
        let (direction, packet) = (delivery.direction, delivery.frame);
        line.delivered[direction as usize].count(now, packet.len() as u64);
        if let Some(capture) = &mut line.captures[1 - direction as usize] {
            capture.packet(now, Way::Inbound, &packet);
        }
        if let Some(trace) = &mut self.trace {
            let kind = (2 * place + direction as usize) as u64;
            packet.payload.mark(|bytes| trace.event(now, kind, bytes));
        }
        Some((direction, packet))
    }

    /// What becomes of a packet at the end of a line with faults; `None` without any. TCP's
    /// segments have no bytes that could be damaged, and pass.
    pub(super) fn strike(
        &mut self,
        place: usize,
        direction: Direction,
        packet: &Packet,
    ) -> Option<Vec<Packet>> {
        if packet.segment().is_some() {
            return None;
        }
        let (faults, source) = self.lines[place].faults[direction as usize].as_mut()?;
        let struck = source.strike(faults, packet.bytes().to_vec());
        self.created += struck.len() as u64;
        self.replaced += 1;
        Some(
            struck
                .into_iter()
                .map(|bytes| Packet { payload: bytes.into(), ..packet.clone() })
                .collect(),
        )
    }

    /// Counts all packets anew and says what does not balance.
    pub(super) fn audit(&self) -> Result<(), String> {
        let (mut lost, mut copies, mut inside) = (0, 0, 0);
        for (place, line) in self.lines.iter().enumerate() {
            if !line.link.audit() {
                return Err(format!("the accounts of link {place} do not balance"));
            }
            for direction in Direction::BOTH {
                let counters = line.link.counters(direction);
                lost += counters.dropped_in_all().packets;
                copies += counters.duplicated.packets;
                inside += counters.held.packets;
            }
        }
        let came = self.created + copies;
        let went = self.arrived + self.stranded + self.too_big + self.replaced + lost + inside;
        if came == went {
            Ok(())
        } else {
            Err(format!("of {came} packets {went} are accounted for"))
        }
    }
}
