//! The satellite: up through the MAC, down as it comes.

use crate::network::{Node, NodeId, Outbox, Packet, Payload};
use satlink::mac::aloha::AlohaConfig;
use satlink::mac::mf_tdma::{Arrived, Class, MfTdma, MfTdmaConfig};
use satlink::mac::mixed::Mixed;
use satlink::mac::schedule::ScheduleError;
use satlink::{Admission, Frame};
use std::collections::{BTreeMap, VecDeque};
use units::{Instant, Span};
use xstp::wire::{Kinds, PROTOCOL_NUMBER};

/// What travels up: a packet, or the STATs of several sessions in one.
#[derive(Clone, Debug)]
pub struct Carried {
    packets: Vec<Packet>,
    bytes: usize,
}

impl Frame for Carried {
    fn len(&self) -> usize {
        self.bytes
    }
}

/// Carriers of slotted Aloha beside those of the plan, for what is short.
#[derive(Clone, Debug, PartialEq)]
pub struct RandomAccess {
    /// These carriers.
    pub carriers: AlohaConfig,
    /// Slots of the longest packet that goes over them.
    pub short: u64,
}

/// What packets go up by.
#[expect(clippy::large_enum_variant, reason = "a satellite has one")]
enum Uplink {
    Planned(MfTdma<Carried>),
    Mixed(Mixed<Carried>),
}

impl Uplink {
    fn planned(&self) -> &MfTdma<Carried> {
        match self {
            Self::Planned(mac) => mac,
            Self::Mixed(mac) => mac.dedicated(),
        }
    }

    fn offer(&mut self, now: Instant, terminal: usize, class: Class, carried: Carried) {
        let admission = match self {
            Self::Planned(mac) => mac.offer(now, terminal, class, carried),
            // Which carriers a packet takes is decided by its length alone.
            Self::Mixed(mac) => mac.offer(now, terminal, carried),
        };
        match admission {
            // What finds no room is lost; the MAC counts it.
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

    fn poll_arrival(&mut self, now: Instant) -> Option<Arrived<Carried>> {
        match self {
            Self::Planned(mac) => mac.poll_arrival(now),
            Self::Mixed(mac) => mac.poll_arrival(now),
        }
    }
}

/// How acknowledgements go up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reports {
    /// STATs of one terminal that come within this time share a packet. `None`: each its own.
    pub shared: Option<Span>,
    /// Slots that the hub counts on for the answer to each POLL that it sends down, in place of
    /// waiting to be asked for them. 0: none.
    pub expected: u32,
    /// Slots that the hub counts on for what a terminal asks for next, when it sends down the end
    /// of an object: a segment that is not full. 0: none.
    pub next: u32,
}

/// STATs of a terminal that wait for others to share a packet with.
#[derive(Debug)]
struct Gathering {
    due: Instant,
    packets: Vec<Packet>,
}

/// A gateway between the terminals and the hub: what comes from a terminal takes the MAC's
/// time, everything else passes at once (the link that brings it has its rate and delay).
pub struct Space {
    mac: Uplink,
    reports: Reports,
    /// Which terminal a node stands at.
    terminals: BTreeMap<NodeId, usize>,
    /// By terminal.
    gathering: BTreeMap<usize, Gathering>,
    passing: VecDeque<Packet>,
    /// Bytes of the longest packet that came down: a full one.
    longest: usize,
    offered: u64,
    delivered: u64,
}

impl Space {
    /// A satellite with this MAC, and with carriers of random access beside it if there are any;
    /// `terminals` says which nodes stand at which terminal.
    ///
    /// # Errors
    /// When a setting of the MAC makes no sense.
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
            gathering: BTreeMap::new(),
            passing: VecDeque::new(),
            longest: 0,
            offered: 0,
            delivered: 0,
        })
    }

    /// The MAC, as far as it goes by the plan.
    pub fn mac(&self) -> &MfTdma<Carried> {
        self.mac.planned()
    }

    /// Packets that waited for the plan, and bursts on carriers of random access with those of
    /// them that came through.
    pub fn shares(&self) -> (u64, u64, u64) {
        let planned = self.mac.planned().counters().offered.packets;
        match &self.mac {
            Uplink::Planned(_) => (planned, 0, 0),
            Uplink::Mixed(mac) => (planned, mac.random().bursts, mac.random().through),
        }
    }

    /// Puts another node at a terminal.
    pub fn add(&mut self, node: NodeId, terminal: usize) {
        self.terminals.insert(node, terminal);
    }

    /// IP bytes that terminals have handed in, packets that share one counted once.
    pub fn offered(&self) -> u64 {
        self.offered
    }

    /// IP bytes that arrived at the hub.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    fn up(&mut self, now: Instant, terminal: usize, packet: Packet) {
        // Acknowledgements of TCP's have nobody at the hub who would part them again.
        let sharing = self.reports.shared.filter(|span| !span.is_zero());
        let sharing = sharing.filter(|_| packet.segment().is_none());
        match (sharing, kind_of(&packet)) {
            (Some(span), Kind::Report) => {
                let due =
                    Instant::from_nanos((now.as_nanos() / span.as_nanos() + 1) * span.as_nanos());
                let fresh = || Gathering { due, packets: Vec::new() };
                self.gathering.entry(terminal).or_insert_with(fresh).packets.push(packet);
            }
            (_, Kind::Report) => self.offer(now, terminal, Class::Control, packet),
            (_, Kind::Data) => self.offer(now, terminal, Class::Data, packet),
        }
    }

    fn offer(&mut self, now: Instant, terminal: usize, class: Class, packet: Packet) {
        let bytes = packet.len();
        self.offer_all(now, terminal, class, Carried { packets: vec![packet], bytes });
    }

    fn offer_all(&mut self, now: Instant, terminal: usize, class: Class, carried: Carried) {
        self.offered += carried.bytes as u64;
        self.mac.offer(now, terminal, class, carried);
    }

    /// Sends what has been gathered for long enough.
    fn release(&mut self, now: Instant) {
        let due = self.gathering.iter().filter(|(_, gathering)| gathering.due <= now);
        let due: Vec<usize> = due.map(|(&terminal, _)| terminal).collect();
        for terminal in due {
            let Some(gathering) = self.gathering.remove(&terminal) else { continue };
            // One IP header for all; each segment knows its length.
            let header = usize::from(gathering.packets[0].header);
            let each = |packet: &Packet| packet.len() - usize::from(packet.header);
            let bytes = header + gathering.packets.iter().map(each).sum::<usize>();
            let carried = Carried { packets: gathering.packets, bytes };
            self.offer_all(now, terminal, Class::Control, carried);
        }
    }

    fn down(&mut self, now: Instant, packet: Packet) {
        self.longest = self.longest.max(packet.len());
        let Reports { expected, next, .. } = self.reports;
        let answer = if asks(&packet) { expected } else { 0 };
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

impl Node for Space {
    fn handle_packet(&mut self, now: Instant, packet: &mut Packet) {
        let packet = packet.clone();
        match self.terminals.get(&packet.from.node) {
            Some(&terminal) => self.up(now, terminal, packet),
            None => self.down(now, packet),
        }
    }

    fn poll_transmit(&mut self, _: Instant, out: &mut Outbox<'_>) {
        self.passing.drain(..).for_each(|packet| out.pass_on(packet));
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let gathered = self.gathering.values().map(|gathering| gathering.due).min();
        [gathered, self.mac.poll_timeout()].into_iter().flatten().min()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.release(now);
        self.collect(now);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A STAT or USTAT without data, a bare acknowledgement of TCP's: others may join it, and
    /// it may overtake data.
    Report,
    /// Everything else. POLLs as well: one that overtook the data before it would have that
    /// reported missing.
    Data,
}

/// Where the kinds of a published segment stand.
const KINDS_AT: usize = 4;

/// What a report consists of.
const REPORTS: Kinds = Kinds::STAT.and(Kinds::USTAT);

/// The kinds of a segment of XSTP as published.
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

/// Whether a packet carries bytes of a stream.
fn has_data(packet: &Packet) -> bool {
    kinds(packet).is_some_and(|kinds| kinds.contains(Kinds::SD))
}

/// Whether a packet asks for a STAT.
fn asks(packet: &Packet) -> bool {
    kinds(packet).is_some_and(|kinds| kinds.contains(Kinds::POLL))
}
