//! The satellite as a network node: the MAC of the return link, and pass-through in forward
//! direction.

use crate::network::{Node, NodeId, Outbox, Packet, Payload};
use satlink::mac::aloha::AlohaConfig;
use satlink::mac::mf_tdma::{Arrived, Class, MfTdma, MfTdmaConfig};
use satlink::mac::mixed::Mixed;
use satlink::mac::schedule::ScheduleError;
use satlink::{Admission, Frame};
use std::collections::{BTreeMap, VecDeque};
use units::{Instant, Span};
use xstp::wire::{Kinds, PROTOCOL_NUMBER};

/// A frame on the return link: a packet, or the STATs of several sessions.
#[derive(Clone, Debug)]
pub struct UplinkFrame {
    packets: Vec<Packet>,
    bytes: usize,
}

impl Frame for UplinkFrame {
    fn len(&self) -> usize {
        self.bytes
    }
}

/// Carriers of slotted Aloha for short packets, beside those of the burst time plan.
#[derive(Clone, Debug, PartialEq)]
pub struct RandomAccess {
    /// The carriers.
    pub carriers: AlohaConfig,
    /// Slots of the longest packet sent by random access.
    pub short: u64,
}

/// The medium access of the return link.
#[expect(clippy::large_enum_variant, reason = "a satellite has one")]
enum Uplink {
    Planned(MfTdma<UplinkFrame>),
    Mixed(Mixed<UplinkFrame>),
}

impl Uplink {
    fn planned(&self) -> &MfTdma<UplinkFrame> {
        match self {
            Self::Planned(mac) => mac,
            Self::Mixed(mac) => mac.dedicated(),
        }
    }

    fn offer(&mut self, now: Instant, terminal: usize, class: Class, frame: UplinkFrame) {
        let admission = match self {
            Self::Planned(mac) => mac.offer(now, terminal, class, frame),
            // The length of a packet selects the carriers.
            Self::Mixed(mac) => mac.offer(now, terminal, frame),
        };
        match admission {
            // The MAC counts packets dropped at a full queue.
            Admission::Queued | Admission::Dropped(..) => {}
        }
    }

    fn expect(&mut self, now: Instant, terminal: usize, slots: u32) {
        match self {
            Self::Planned(mac) => mac.expect(now, terminal, slots),
            Self::Mixed(mac) => mac.expect(now, terminal, slots),
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Planned(mac) => mac.poll_timeout(),
            Self::Mixed(mac) => mac.poll_timeout(),
        }
    }

    fn poll_arrival(&mut self, now: Instant) -> Option<Arrived<UplinkFrame>> {
        match self {
            Self::Planned(mac) => mac.poll_arrival(now),
            Self::Mixed(mac) => mac.poll_arrival(now),
        }
    }
}

/// How acknowledgements are sent on the return link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reports {
    /// STATs of one terminal within this time share a packet. `None`: one packet each.
    pub shared: Option<Span>,
    /// Slots that the hub grants for the STAT of each POLL that it sends, without a capacity
    /// request. 0: none.
    pub expected: u32,
    /// Slots that the hub grants for a terminal's next request when it sends the last segment of an
    /// object, recognized by not being full. 0: none.
    pub next: u32,
}

/// STATs of a terminal that wait for others to share a packet with.
#[derive(Debug)]
struct PendingReports {
    due: Instant,
    packets: Vec<Packet>,
}

/// A node between the terminals and the hub. Packets of a terminal take the MAC's time; all others
/// are forwarded immediately (the link before has their rate and delay).
pub struct Satellite {
    mac: Uplink,
    reports: Reports,
    /// The terminal of each node.
    terminals: BTreeMap<NodeId, usize>,
    /// By terminal.
    pending: BTreeMap<usize, PendingReports>,
    passing: VecDeque<Packet>,
    /// Octets of the longest forward packet so far: a full segment.
    longest: usize,
    offered: u64,
    delivered: u64,
}

impl Satellite {
    /// Creates a satellite with this MAC, and optionally with random-access carriers; `terminals`
    /// maps nodes to terminals.
    ///
    /// # Errors
    /// If a setting of the MAC is invalid.
    pub fn new(
        config: &MfTdmaConfig,
        random: Option<&RandomAccess>,
        reports: Reports,
        terminals: BTreeMap<NodeId, usize>,
        seed: u64,
        run: u64,
    ) -> Result<Self, ScheduleError> {
        let mac = match random {
            None => Uplink::Planned(MfTdma::new(config, seed, run)?),
            Some(RandomAccess { carriers, short }) => {
                Uplink::Mixed(Mixed::new(carriers, config, *short, seed, run)?)
            }
        };
        Ok(Self {
            mac,
            reports,
            terminals,
            pending: BTreeMap::new(),
            passing: VecDeque::new(),
            longest: 0,
            offered: 0,
            delivered: 0,
        })
    }

    /// The MAC of the burst time plan.
    pub fn mac(&self) -> &MfTdma<UplinkFrame> {
        self.mac.planned()
    }

    /// Packets sent in slots of the plan, bursts on random-access carriers, and delivered bursts.
    pub fn shares(&self) -> (u64, u64, u64) {
        let planned = self.mac.planned().counters().offered.packets;
        match &self.mac {
            Uplink::Planned(_) => (planned, 0, 0),
            Uplink::Mixed(mac) => (planned, mac.random().bursts, mac.random().through),
        }
    }

    /// Adds a node at a terminal.
    pub fn add(&mut self, node: NodeId, terminal: usize) {
        self.terminals.insert(node, terminal);
    }

    /// Octets of IP packets sent by terminals; packets that were merged count once.
    pub fn offered(&self) -> u64 {
        self.offered
    }

    /// Octets of IP packets delivered to the hub.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    fn up(&mut self, now: Instant, terminal: usize, packet: Packet) {
        // TCP acknowledgements are not merged: the hub has nothing that would separate them.
        let sharing = self.reports.shared.filter(|span| !span.is_zero());
        let sharing = sharing.filter(|_| packet.segment().is_none());
        match (sharing, kind_of(&packet)) {
            (Some(span), Kind::Report) => {
                let due =
                    Instant::from_nanos((now.as_nanos() / span.as_nanos() + 1) * span.as_nanos());
                let fresh = || PendingReports { due, packets: Vec::new() };
                self.pending.entry(terminal).or_insert_with(fresh).packets.push(packet);
            }
            (_, Kind::Report) => self.offer(now, terminal, Class::Control, packet),
            (_, Kind::Data) => self.offer(now, terminal, Class::Data, packet),
        }
    }

    fn offer(&mut self, now: Instant, terminal: usize, class: Class, packet: Packet) {
        let bytes = packet.len();
        self.offer_all(now, terminal, class, UplinkFrame { packets: vec![packet], bytes });
    }

    fn offer_all(&mut self, now: Instant, terminal: usize, class: Class, frame: UplinkFrame) {
        self.offered += frame.bytes as u64;
        self.mac.offer(now, terminal, class, frame);
    }

    /// Sends the STATs that have waited for the configured time.
    fn release(&mut self, now: Instant) {
        let due = self.pending.iter().filter(|(_, pending)| pending.due <= now);
        let due: Vec<usize> = due.map(|(&terminal, _)| terminal).collect();
        for terminal in due {
            let Some(pending) = self.pending.remove(&terminal) else { continue };
            // One IP header for all; each segment has a length field.
            let header = usize::from(pending.packets[0].header);
            let each = |packet: &Packet| packet.len() - usize::from(packet.header);
            let bytes = header + pending.packets.iter().map(each).sum::<usize>();
            let frame = UplinkFrame { packets: pending.packets, bytes };
            self.offer_all(now, terminal, Class::Control, frame);
        }
    }

    fn down(&mut self, now: Instant, packet: Packet) {
        self.longest = self.longest.max(packet.len());
        let Reports { expected, next, .. } = self.reports;
        let answer = if has_poll(&packet) { expected } else { 0 };
        let ends = next > 0 && packet.len() < self.longest && has_data(&packet);
        let slots = answer + if ends { next } else { 0 };
        if slots > 0
            && let Some(&terminal) = self.terminals.get(&packet.to.node)
        {
            self.mac.expect(now, terminal, slots);
        }
        self.passing.push_back(packet);
    }

    fn collect(&mut self, now: Instant) {
        while let Some(arrived) = self.mac.poll_arrival(now) {
            self.delivered += arrived.frame.bytes as u64;
            self.passing.extend(arrived.frame.packets);
        }
    }
}

impl Node for Satellite {
    fn handle_packet(&mut self, now: Instant, packet: &mut Packet) {
        let packet = packet.clone();
        match self.terminals.get(&packet.from.node) {
            Some(&terminal) => self.up(now, terminal, packet),
            None => self.down(now, packet),
        }
    }

    fn poll_transmit(&mut self, _: Instant, out: &mut Outbox<'_>) {
        self.passing.drain(..).for_each(|packet| out.forward_on(packet));
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let gathered = self.pending.values().map(|pending| pending.due).min();
        [gathered, self.mac.poll_timeout()].into_iter().flatten().min()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.release(now);
        self.collect(now);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A STAT or USTAT without data, or a pure TCP acknowledgement: may be merged and may overtake
    /// data.
    Report,
    /// Everything else. A POLL must not overtake the data before it, which would be reported
    /// missing.
    Data,
}

/// Offset of the kinds in a published segment.
const KINDS_AT: usize = 4;

/// Kinds of a report.
const REPORTS: Kinds = Kinds::STAT.and(Kinds::USTAT);

/// The kinds of a published segment of XSTP.
fn kinds(packet: &Packet) -> Option<Kinds> {
    let published = packet.protocol == crate::network::Protocol::Ip(PROTOCOL_NUMBER);
    let bits = packet.bytes().get(KINDS_AT).filter(|_| published)?;
    Kinds::from_bits(*bits)
}

fn kind_of(packet: &Packet) -> Kind {
    match &packet.payload {
        Payload::Tcp(segment) | Payload::Stream(segment, _) => {
            let session_endpoint = segment.span() == 0;
            if session_endpoint { Kind::Report } else { Kind::Data }
        }
        Payload::Bytes(_) => match kinds(packet) {
            Some(kinds) if REPORTS.contains(kinds) => Kind::Report,
            Some(_) | None => Kind::Data,
        },
    }
}

/// Whether a packet carries octets of a stream.
fn has_data(packet: &Packet) -> bool {
    kinds(packet).is_some_and(|kinds| kinds.contains(Kinds::SD))
}

/// Whether a packet carries a POLL.
fn has_poll(packet: &Packet) -> bool {
    kinds(packet).is_some_and(|kinds| kinds.contains(Kinds::POLL))
}
