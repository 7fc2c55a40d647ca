//! The compressor: selects the context of a packet and encodes the changes of its header.

use super::CONTEXTS;
use super::header::{Fields, Kind, Moving, Static, crc, head, meant};
use alloc::vec::Vec;

/// CMP-3.1.4: number of consecutive packets whose loss is tolerated.
const MEMORY: usize = 16;
/// CMP-3.1.2: full frames at the start of a context, and the initial spacing of later ones.
const FIRST_FULL: u8 = 2;
const FIRST_INTERVAL: u32 = 4;
const LONGEST_INTERVAL: u32 = 64;

/// Compresses packets into frames; one for each direction of a link.
#[derive(Clone, Debug, Default)]
pub struct Compressor {
    contexts: [Option<Context>; CONTEXTS],
    generations: [u8; CONTEXTS],
    packets: u64,
}

#[derive(Clone, Debug)]
struct Context {
    fixed: Static,
    /// The changing fields of the last packets, newest last.
    sent: [Moving; MEMORY],
    known: usize,
    last_used: u64,
    /// Full frames due before the next compressed one.
    full_due: u8,
    short_since_full: u32,
    interval: u32,
}

impl Compressor {
    /// Creates a compressor without contexts.
    pub fn new() -> Self {
        Self::default()
    }

    /// The frame that carries `packet`; at most [`LONGEST_ADDED`](super::LONGEST_ADDED) octets
    /// longer.
    pub fn compress(&mut self, packet: &[u8]) -> Vec<u8> {
        self.packets += 1;
        let Some((fields, payload)) = Fields::of(packet) else {
            return framed(Kind::Plain.octet(0, 0), packet);
        };
        let index = self.context(&fields.fixed);
        let generation = self.generations[index];
        let now = self.packets;
        let context = self.contexts[index].get_or_insert_with(|| Context::new(&fields.fixed));
        context.last_used = now;
        let full = context.is_full_due();
        let frame = if full {
            framed(Kind::Full.octet(index, generation), packet)
        } else {
            let mut frame = Vec::with_capacity(16 + payload.len());
            frame.push(Kind::Short.octet(index, generation));
            context.write(&fields, &mut frame);
            frame.push(crc(packet, head(&fields)));
            frame.extend_from_slice(payload);
            frame
        };
        context.remember(fields.moving);
        frame
    }

    /// Handles a header request of the decompressor; returns false if `frame` is none.
    pub fn handle_request(&mut self, frame: &[u8]) -> bool {
        let &[octet] = frame else { return false };
        let (Kind::Request, index, generation) = Kind::split(octet) else { return false };
        if let Some(context) = &mut self.contexts[index]
            && self.generations[index] == generation
        {
            context.full_due = context.full_due.max(1);
        }
        true
    }

    /// The context of a flow, which may replace the least recently used one (CMP-1.1.3).
    fn context(&mut self, fixed: &Static) -> usize {
        let is = |slot: &Option<Context>| slot.as_ref().is_some_and(|it| it.fixed == *fixed);
        if let Some(index) = self.contexts.iter().position(is) {
            return index;
        }
        let age = |index: &usize| self.contexts[*index].as_ref().map(|it| it.last_used);
        // A free slot counts as the oldest.
        let index = (0..CONTEXTS).min_by_key(age).unwrap_or_default();
        if self.contexts[index].take().is_some() {
            self.generations[index] = (self.generations[index] + 1) & 7;
        }
        index
    }
}

impl Context {
    fn new(fixed: &Static) -> Self {
        Self {
            fixed: fixed.clone(),
            sent: [Moving::default(); MEMORY],
            known: 0,
            last_used: 0,
            full_due: FIRST_FULL,
            short_since_full: 0,
            interval: FIRST_INTERVAL,
        }
    }

    /// Whether this packet is sent in a full frame; updates the counters.
    fn is_full_due(&mut self) -> bool {
        if self.short_since_full >= self.interval {
            self.interval = (self.interval * 2).min(LONGEST_INTERVAL);
            self.full_due = self.full_due.max(1);
        }
        if self.full_due == 0 {
            self.short_since_full += 1;
            return false;
        }
        self.full_due -= 1;
        self.short_since_full = 0;
        true
    }

    fn remember(&mut self, moving: Moving) {
        self.sent.rotate_left(1);
        self.sent[MEMORY - 1] = moving;
        self.known = (self.known + 1).min(MEMORY);
    }

    /// Whether the low bits determine `value` for a decompressor that has any of the last packets.
    fn is_clear(&self, field: fn(&Moving) -> u32, value: u32, bits: u32, width: u32) -> bool {
        let low = value & ((1 << bits) - 1);
        let known = &self.sent[MEMORY - self.known..];
        known.iter().all(|sent| meant(field(sent), low, bits, width) == value)
    }

    /// Writes a compressed frame between its first octet and its CRC (CMP-2.2.1).
    fn write(&self, fields: &Fields, out: &mut Vec<u8>) {
        let Moving { identification, number, timestamp } = fields.moving;
        let whole_number = !self.is_clear(|it| it.number, number, 8, 24);
        let whole_time = !self.is_clear(|it| it.timestamp, timestamp, 16, 32);
        let whole_identification =
            !self.is_clear(|it| it.identification.into(), identification.into(), 8, 16);
        let window: u8 = match fields.window {
            0 => 0,
            1..=255 => 1,
            256.. => 2,
        };
        let bits = [whole_number, whole_time, whole_identification];
        let flags = bits.iter().fold(0, |flags, &bit| flags << 1 | u8::from(bit));
        out.push(flags << 5 | window << 3);
        out.push(fields.kinds);
        let tail = |octets: &[u8], whole: bool, short: usize, out: &mut Vec<u8>| {
            let from = if whole { 0 } else { octets.len() - short };
            out.extend_from_slice(&octets[from..]);
        };
        tail(&identification.to_be_bytes(), whole_identification, 1, out);
        tail(&number.to_be_bytes()[1..], whole_number, 1, out);
        tail(&fields.window.to_be_bytes(), false, usize::from(window), out);
        tail(&timestamp.to_be_bytes(), whole_time, 2, out);
        out.extend_from_slice(&fields.checksum.to_be_bytes());
    }
}

fn framed(octet: u8, packet: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(packet.len() + 1);
    frame.push(octet);
    frame.extend_from_slice(packet);
    frame
}
