//! Header compression on a link, as two elements at its ends (ITU-R S.1711 Annex 2, table 3 and
//! section 4.2; RFC 3135, section 3.3; RFC 2507).
//!
//! ```text
//!   ── packet ──▶ [HeaderCompressor] ── compressed ──▶ [HeaderDecompressor] ── packet ──▶
//!                         ◀──────── header requests ────────┘
//! ```
//!
//! XSTP headers are really compressed: the link carries the frames of [`satlink::compression`]. TCP
//! segments are structs here, so their compression is modelled with RFC 2507's compressed TCP
//! header, which encodes changes since the previous packet (section 6): packets have the compressed
//! length, and the loss of a packet damages the next ones. The decompressor repairs the loss of one
//! packet whose changes were the same as those of the next, by applying these twice (section 10.1);
//! otherwise a full header repairs the context. It is sent with a decreasing sequence number, as of a
//! retransmission, with a duplicate acknowledgement, and on a header request (section 10.2).

use super::{Element, Output, Toward};
use crate::capture;
use crate::network::{Address, CompressedHeaders, IPV4, Packet, Payload, Protocol};
use satlink::compression::{Compressor, Decompressor};
use simtcp::Segment;
use std::collections::BTreeMap;
use units::Instant;
use xstp::wire::PROTOCOL_NUMBER;

/// Contexts for TCP (RFC 2507, section 14: default 16, at most 256).
const CONTEXTS: usize = 256;
/// Minimum compressed header (RFC 2507, section 7): context identifier, flags, TCP checksum.
const MIN_HEADER: u16 = 4;
/// Protocol number of TCP; a packet with it that is no segment is a header request.
const TCP: u8 = 6;
/// A header request is sent for every eighth packet that cannot be decompressed.
const REQUEST_EVERY: u64 = 8;
/// Octets of a request for one context (RFC 2507, section 10.2).
const REQUEST: usize = 4;
/// Octets of IPv4's header and TCP's, without options.
const FULL_HEADER: u16 = 40;

/// One direction of a connection.
type Flow = (Address, Address);

/// Counters of one end of a compressed link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compressed {
    /// Packets sent or received with a compressed header.
    pub short: u64,
    /// Packets sent or received with a full header.
    pub full: u64,
    /// Octets saved.
    pub saved: u64,
    /// Packets that were decompressed by applying their changes twice.
    pub repaired: u64,
    /// Packets that could not be decompressed.
    pub dropped: u64,
}

/// The sending end of a link with header compression in one direction.
#[derive(Debug)]
pub struct HeaderCompressor {
    toward: Toward,
    xstp: Compressor,
    number: u16,
    tcp: BTreeMap<Flow, Context>,
    counts: Compressed,
}

#[derive(Clone, Copy, Debug)]
struct Context {
    last: Segment,
    /// Packets of the context so far.
    packets: u32,
    used: u64,
    /// Changes of the last packet; `None` if its header was full.
    changes: Option<Changes>,
    /// A full header was requested.
    asked: bool,
}

/// What a compressed header encodes: the changes of sequence number, acknowledgement and window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Changes {
    sequence: u64,
    acknowledgement: u64,
    window: i64,
}

impl HeaderCompressor {
    /// Compresses packets to the side `toward`.
    pub fn new(toward: Toward) -> Self {
        let (xstp, tcp) = (Compressor::new(), BTreeMap::new());
        Self { toward, xstp, number: 0, tcp, counts: Compressed::default() }
    }

    /// Its counters.
    pub fn counts(&self) -> Compressed {
        self.counts
    }

    fn count(&mut self, is_short: bool, saved: u64) {
        self.counts.short += u64::from(is_short);
        self.counts.full += u64::from(!is_short);
        self.counts.saved += saved;
    }

    fn compress_xstp(&mut self, packet: &Packet) -> Packet {
        self.number = self.number.wrapping_add(1);
        let octets = capture::octets(packet, self.number);
        let frame = self.xstp.compress(&octets);
        self.count(frame.len() < octets.len(), octets.len().saturating_sub(frame.len()) as u64);
        Packet { header: 0, payload: frame.into(), ..packet.clone() }
    }

    fn compress_tcp(&mut self, mut packet: Packet, segment: &Segment) -> Packet {
        let flow = (packet.from, packet.to);
        let used = self.counts.short + self.counts.full;
        let old = self.tcp.get(&flow).copied();
        let packets = old.map_or(0, |context| context.packets) + 1;
        if old.is_none() && self.tcp.len() == CONTEXTS {
            let oldest = self.tcp.iter().min_by_key(|(_, context)| context.used);
            let oldest = oldest.map(|(&flow, _)| flow);
            oldest.and_then(|flow| self.tcp.remove(&flow));
        }
        let asked = old.is_some_and(|context| context.asked);
        let last = old.filter(|_| !asked).map(|context| context.last);
        let changes = last.and_then(|last| changes(&last, segment));
        let short = last.zip(changes).map(|(last, changes)| short_header(&last, segment, changes));
        let repeats = changes.is_some() && old.is_some_and(|context| context.changes == changes);
        self.tcp.insert(flow, Context { last: *segment, packets, used, changes, asked: false });
        let saved = short.map_or(0, |short| full_header(segment).saturating_sub(short));
        self.count(short.is_some(), u64::from(saved));
        let refers = short.is_some();
        packet.compressed = Some(CompressedHeaders { saved, packets, refers, repeats });
        packet
    }
}

/// Octets of both headers, options included.
fn full_header(segment: &Segment) -> u16 {
    FULL_HEADER + segment.options.len() as u16
}

/// Returns the changes from `old` to `new`; `None` where a full header is necessary (RFC 2507,
/// section 6, as RFC 1144, section 3.2).
fn changes(old: &Segment, new: &Segment) -> Option<Changes> {
    let flags = old.flags.syn || new.flags.syn || new.flags.fin || new.flags.reset;
    let forward = |old: u64, new: u64| new.checked_sub(old).filter(|&step| step < 1 << 16);
    let sequence = forward(old.sequence, new.sequence)?;
    let acknowledgement = forward(old.acknowledgement?, new.acknowledgement?)?;
    let window = i64::from(new.window) - i64::from(old.window);
    let same = sequence + acknowledgement == 0 && window == 0 && new.payload.len == 0;
    (!flags && !same).then_some(Changes { sequence, acknowledgement, window })
}

/// Octets of the compressed header of `new` after `old` (RFC 2507, section 6).
fn short_header(old: &Segment, new: &Segment, changes: Changes) -> u16 {
    // None without a change, one octet below 256, otherwise three.
    let octets = |step: u64| match step {
        0 => 0,
        1..=255 => 1,
        _ => 3,
    };
    let Changes { sequence, acknowledgement, window } = changes;
    let numbers = octets(sequence) + octets(acknowledgement) + octets(window.unsigned_abs());
    let options = if new.options == old.options { 0 } else { new.options.len() as u16 };
    // IPv4's identification increases by one each time, which needs no octets.
    MIN_HEADER + numbers + options
}

/// Whether a packet is XSTP with plain IPv4 below.
fn is_xstp(packet: &Packet) -> bool {
    packet.protocol == Protocol::Ip(PROTOCOL_NUMBER) && packet.segment().is_none()
}

/// Whether a packet is a header request for TCP.
fn is_request(packet: &Packet) -> bool {
    packet.protocol == Protocol::Ip(TCP) && packet.segment().is_none()
}

impl Element for HeaderCompressor {
    fn pass(&mut self, _: Instant, toward: Toward, packet: Packet, out: &mut Output) {
        let request = is_xstp(&packet) && packet.header == 0;
        if toward != self.toward {
            // A header request is consumed here.
            if is_request(&packet) {
                if let Some(context) = self.tcp.get_mut(&(packet.to, packet.from)) {
                    context.asked = true;
                }
            } else if !(request && self.xstp.handle_request(packet.bytes())) {
                out.push_back((toward, packet));
            }
            return;
        }
        let packet = match packet.segment().copied() {
            Some(segment) => self.compress_tcp(packet, &segment),
            None if is_xstp(&packet) && usize::from(packet.header) == IPV4 => {
                self.compress_xstp(&packet)
            }
            None => packet,
        };
        out.push_back((toward, packet));
    }
}

/// The receiving end of a link with header compression in one direction.
#[derive(Debug)]
pub struct HeaderDecompressor {
    toward: Toward,
    xstp: Decompressor,
    /// The last packet of each context, and when it arrived.
    tcp: BTreeMap<Flow, (u32, u64)>,
    /// Packets of a connection dropped since the last good one.
    damaged: BTreeMap<Flow, u64>,
    counts: Compressed,
}

impl HeaderDecompressor {
    /// Decompresses packets to the side `toward`.
    pub fn new(toward: Toward) -> Self {
        let (xstp, tcp, damaged) = (Decompressor::new(), BTreeMap::new(), BTreeMap::new());
        Self { toward, xstp, tcp, damaged, counts: Compressed::default() }
    }

    /// Its counters.
    pub fn counts(&self) -> Compressed {
        self.counts
    }

    fn restore_xstp(&mut self, packet: &Packet, out: &mut Output) {
        let made = self.xstp.decompress(packet.bytes());
        if let Some(request) = self.xstp.poll_request() {
            let &Packet { from, to, .. } = packet;
            let request = Packet::ip(to, from, PROTOCOL_NUMBER, &request[..]);
            let request = Packet { header: 0, ..request };
            out.push_back((self.toward.reverse(), request));
        }
        match made {
            Ok(octets) if octets.len() >= IPV4 => {
                let saved = octets.len().saturating_sub(packet.bytes().len()) as u64;
                self.counts.short += u64::from(saved > 0);
                self.counts.full += u64::from(saved == 0);
                self.counts.saved += saved;
                let payload = Payload::from(&octets[IPV4..]);
                out.push_back((
                    self.toward,
                    Packet { header: IPV4 as u16, payload, ..packet.clone() },
                ));
            }
            Ok(_) | Err(_) => self.counts.dropped += 1,
        }
    }

    fn restore_tcp(&mut self, packet: Packet, compressed: CompressedHeaders, out: &mut Output) {
        let flow = (packet.from, packet.to);
        let used = self.counts.short + self.counts.full + self.counts.dropped;
        let last = self.tcp.get(&flow).map(|&(last, _)| last);
        // Missing packets before this one, of which one can be made up for.
        let missing = last.and_then(|last| compressed.packets.checked_sub(last + 1));
        let twice = compressed.refers && compressed.repeats && missing == Some(1);
        if compressed.refers && missing != Some(0) && !twice {
            // TCP's checksum would not match the decompressed header.
            self.counts.dropped += 1;
            if self.damaged.len() == CONTEXTS {
                self.damaged.clear();
            }
            let dropped = self.damaged.entry(flow).or_default();
            if dropped.is_multiple_of(REQUEST_EVERY) {
                let ask = Packet::ip(packet.to, packet.from, TCP, vec![0; REQUEST]);
                out.push_back((self.toward.reverse(), Packet { header: 0, ..ask }));
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
        self.tcp.insert(flow, (compressed.packets, used));
        self.counts.short += u64::from(compressed.refers);
        self.counts.full += u64::from(!compressed.refers);
        self.counts.repaired += u64::from(twice);
        self.counts.saved += u64::from(compressed.saved);
        out.push_back((self.toward, Packet { compressed: None, ..packet }));
    }
}

impl Element for HeaderDecompressor {
    fn pass(&mut self, _: Instant, toward: Toward, packet: Packet, out: &mut Output) {
        if toward != self.toward {
            out.push_back((toward, packet));
        } else if let Some(compressed) = packet.compressed {
            self.restore_tcp(packet, compressed, out);
        } else if is_xstp(&packet) && packet.header == 0 {
            self.restore_xstp(&packet, out);
        } else {
            out.push_back((toward, packet));
        }
    }
}

#[cfg(test)]
mod tests;
