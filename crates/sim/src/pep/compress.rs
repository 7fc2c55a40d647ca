//! Header compression on a link, as two elements at its ends (ITU-R S.1711 Annex 2, table 3 and
//! section 4.2; RFC 3135, section 3.3; RFC 2507).
//!
//! ```text
//!   ── packet ──▶ [HeaderCompressor] ══ short headers ══▶ [HeaderDecompressor] ── packet ──▶
//!                         ◀──────────── requests ────────────┘
//! ```
//!
//! XSTP's headers are compressed for good: what crosses the link are the frames of
//! [`satlink::compression`]. TCP's segments are structs here, so their frames are reckoned: of
//! RFC 2507's compressed TCP header, which tells changes from the packet before (section 6), the
//! length is taken and the damage done that the loss of the packet before does. What repairs is a
//! full header: with a number that goes back, as that of a retransmission does, with an
//! acknowledgement that is repeated, and when the other end asks for it (section 10.2).

use super::{Element, Leaving, Way};
use crate::capture;
use crate::network::{Address, IPV4, Packet, Payload, Protocol, Squeezed};
use satlink::compression::{Compressor, Decompressor};
use simtcp::Segment;
use std::collections::BTreeMap;
use units::Instant;
use xstp::wire::PROTOCOL_NUMBER;

/// Contexts for TCP (RFC 2507, section 14: 16 where nothing is said, 256 at most).
const CONTEXTS: usize = 256;
/// RFC 2507, section 7: a context number, flags, TCP's checksum; at least.
const SHORTEST: u16 = 4;
/// TCP's protocol number, and so that of requests: what is no segment is one.
const TCP: u8 = 6;
/// A request comes with every such packet that cannot be made.
const REQUEST_EVERY: u64 = 8;
/// Octets of a request for one context (RFC 2507, section 10.2).
const REQUEST: usize = 4;
/// IPv4's header and TCP's, without options.
const WHOLE: u16 = 40;

/// A connection, one way.
type Flow = (Address, Address);

/// What an end of a compressed link did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compressed {
    /// Packets that went or came with a short header.
    pub short: u64,
    /// Packets that went or came with a full one.
    pub full: u64,
    /// Octets that were saved.
    pub saved: u64,
    /// Packets that could not be made again.
    pub dropped: u64,
}

/// The sending end of a link whose headers are compressed in one direction.
#[derive(Debug)]
pub struct HeaderCompressor {
    way: Way,
    xstp: Compressor,
    number: u16,
    tcp: BTreeMap<Flow, Context>,
    counts: Compressed,
}

#[derive(Clone, Copy, Debug)]
struct Context {
    last: Segment,
    /// Packets of it so far.
    packets: u32,
    used: u64,
    /// The other end lacks it.
    asked: bool,
}

impl HeaderCompressor {
    /// Compresses what goes `way`.
    pub fn new(way: Way) -> Self {
        let (xstp, tcp) = (Compressor::new(), BTreeMap::new());
        Self { way, xstp, number: 0, tcp, counts: Compressed::default() }
    }

    /// What it did so far.
    pub fn counts(&self) -> Compressed {
        self.counts
    }

    fn count(&mut self, is_short: bool, saved: u64) {
        self.counts.short += u64::from(is_short);
        self.counts.full += u64::from(!is_short);
        self.counts.saved += saved;
    }

    fn squeeze_xstp(&mut self, packet: &Packet) -> Packet {
        self.number = self.number.wrapping_add(1);
        let octets = capture::octets(packet, self.number);
        let frame = self.xstp.compress(&octets);
        self.count(frame.len() < octets.len(), octets.len().saturating_sub(frame.len()) as u64);
        Packet { header: 0, payload: frame.into(), ..packet.clone() }
    }

    fn squeeze_tcp(&mut self, mut packet: Packet, segment: &Segment) -> Packet {
        let flow = (packet.from, packet.to);
        let used = self.counts.short + self.counts.full;
        let old = self.tcp.get(&flow).copied();
        let packets = old.map_or(0, |context| context.packets) + 1;
        if old.is_none() && self.tcp.len() == CONTEXTS {
            let oldest = self.tcp.iter().min_by_key(|(_, context)| context.used);
            let oldest = oldest.map(|(&flow, _)| flow);
            oldest.and_then(|flow| self.tcp.remove(&flow));
        }
        self.tcp.insert(flow, Context { last: *segment, packets, used, asked: false });
        let old = old.filter(|context| !context.asked);
        let short = old.and_then(|context| short_header(&context.last, segment));
        let saved = short.map_or(0, |short| whole_header(segment).saturating_sub(short));
        self.count(short.is_some(), u64::from(saved));
        packet.squeezed = Some(Squeezed { saved, packets, refers: short.is_some() });
        packet
    }
}

/// Octets of both headers, options included.
fn whole_header(segment: &Segment) -> u16 {
    WHOLE + segment.options.len() as u16
}

/// Octets of the compressed header of `new` after `old`; none where a full one has to go
/// (RFC 2507, section 6, as RFC 1144, section 3.2).
fn short_header(old: &Segment, new: &Segment) -> Option<u16> {
    let flags = old.flags.syn || new.flags.syn || new.flags.fin || new.flags.reset;
    let forward = |old: u64, new: u64| new.checked_sub(old).filter(|&step| step < 1 << 16);
    let sequence = forward(old.sequence, new.sequence)?;
    let acknowledgement = forward(old.acknowledgement?, new.acknowledgement?)?;
    if flags {
        return None;
    }
    // Nothing for no change, one octet below 256, else three.
    let octets = |step: u64| match step {
        0 => 0,
        1..=255 => 1,
        _ => 3,
    };
    let window = u64::from(new.window.abs_diff(old.window));
    if sequence + acknowledgement + window == 0 && new.payload.len == 0 {
        return None;
    }
    let options = if new.options == old.options { 0 } else { new.options.len() as u16 };
    // IPv4's identification goes on by one each time, which costs nothing.
    Some(SHORTEST + octets(sequence) + octets(acknowledgement) + octets(window) + options)
}

/// Whether a packet is XSTP's, with plain IPv4 below.
fn is_xstp(packet: &Packet) -> bool {
    packet.protocol == Protocol::Ip(PROTOCOL_NUMBER) && packet.segment().is_none()
}

/// Whether a packet asks for a full header of TCP.
fn is_request(packet: &Packet) -> bool {
    packet.protocol == Protocol::Ip(TCP) && packet.segment().is_none()
}

impl Element for HeaderCompressor {
    fn pass(&mut self, _: Instant, way: Way, packet: Packet, out: &mut Leaving) {
        let request = is_xstp(&packet) && packet.header == 0;
        if way != self.way {
            // A request of the other end is not for anybody else.
            if is_request(&packet) {
                if let Some(context) = self.tcp.get_mut(&(packet.to, packet.from)) {
                    context.asked = true;
                }
            } else if !(request && self.xstp.handle_request(packet.bytes())) {
                out.push_back((way, packet));
            }
            return;
        }
        let packet = match packet.segment().copied() {
            Some(segment) => self.squeeze_tcp(packet, &segment),
            None if is_xstp(&packet) && usize::from(packet.header) == IPV4 => {
                self.squeeze_xstp(&packet)
            }
            None => packet,
        };
        out.push_back((way, packet));
    }
}

/// The receiving end of a link whose headers are compressed in one direction.
#[derive(Debug)]
pub struct HeaderDecompressor {
    way: Way,
    xstp: Decompressor,
    /// The packet of a context that came last, and when.
    tcp: BTreeMap<Flow, (u32, u64)>,
    /// Packets of a connection that were dropped since one was not.
    damaged: BTreeMap<Flow, u64>,
    counts: Compressed,
}

impl HeaderDecompressor {
    /// Restores what goes `way`.
    pub fn new(way: Way) -> Self {
        let (xstp, tcp, damaged) = (Decompressor::new(), BTreeMap::new(), BTreeMap::new());
        Self { way, xstp, tcp, damaged, counts: Compressed::default() }
    }

    /// What it did so far.
    pub fn counts(&self) -> Compressed {
        self.counts
    }

    fn restore_xstp(&mut self, packet: &Packet, out: &mut Leaving) {
        let made = self.xstp.decompress(packet.bytes());
        if let Some(request) = self.xstp.poll_request() {
            let &Packet { from, to, .. } = packet;
            let request = Packet::ip(to, from, PROTOCOL_NUMBER, &request[..]);
            let request = Packet { header: 0, ..request };
            out.push_back((self.way.back(), request));
        }
        match made {
            Ok(octets) if octets.len() >= IPV4 => {
                let saved = octets.len().saturating_sub(packet.bytes().len()) as u64;
                self.counts.short += u64::from(saved > 0);
                self.counts.full += u64::from(saved == 0);
                self.counts.saved += saved;
                let payload = Payload::from(&octets[IPV4..]);
                out.push_back((
                    self.way,
                    Packet { header: IPV4 as u16, payload, ..packet.clone() },
                ));
            }
            Ok(_) | Err(_) => self.counts.dropped += 1,
        }
    }

    fn restore_tcp(&mut self, packet: Packet, squeezed: Squeezed, out: &mut Leaving) {
        let flow = (packet.from, packet.to);
        let used = self.counts.short + self.counts.full + self.counts.dropped;
        let last = self.tcp.get(&flow).map(|&(last, _)| last);
        if squeezed.refers && last.is_none_or(|last| last + 1 != squeezed.packets) {
            // TCP's checksum would not fit what was made.
            self.counts.dropped += 1;
            if self.damaged.len() == CONTEXTS {
                self.damaged.clear();
            }
            let dropped = self.damaged.entry(flow).or_default();
            if dropped.is_multiple_of(REQUEST_EVERY) {
                let ask = Packet::ip(packet.to, packet.from, TCP, vec![0; REQUEST]);
                out.push_back((self.way.back(), Packet { header: 0, ..ask }));
            }
            *dropped += 1;
            return;
        }
        self.damaged.remove(&flow);
        if last.is_none() && self.tcp.len() == CONTEXTS {
            let oldest = self.tcp.iter().min_by_key(|(_, (_, used))| *used);
            let oldest = oldest.map(|(&flow, _)| flow);
            oldest.and_then(|flow| self.tcp.remove(&flow));
        }
        self.tcp.insert(flow, (squeezed.packets, used));
        self.counts.short += u64::from(squeezed.refers);
        self.counts.full += u64::from(!squeezed.refers);
        self.counts.saved += u64::from(squeezed.saved);
        out.push_back((self.way, Packet { squeezed: None, ..packet }));
    }
}

impl Element for HeaderDecompressor {
    fn pass(&mut self, _: Instant, way: Way, packet: Packet, out: &mut Leaving) {
        if way != self.way {
            out.push_back((way, packet));
        } else if let Some(squeezed) = packet.squeezed {
            self.restore_tcp(packet, squeezed, out);
        } else if is_xstp(&packet) && packet.header == 0 {
            self.restore_xstp(&packet, out);
        } else {
            out.push_back((way, packet));
        }
    }
}

#[cfg(test)]
mod tests;
