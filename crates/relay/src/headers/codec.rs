//! Compressed headers: what is written of a header, given its context, and the header restored.
//!
//! ```text
//!   F | context   1   F: a form follows
//!   form          1   which fields follow
//!   CRC           1   of the header
//!   counter       1   2 if form bit 6; only by rules that count
//!   service       1   form bit 0
//!   hops          1   form bit 1
//!   UDP checksum  2   form bit 2
//!   identification 2  form bit 3, or by the rule
//!   RTP M, type   1   form bit 4
//!   RTP timestamp 1–5 form bit 5: difference from the expected one
//! ```

use super::layout::{LONGEST, Layout, double_word, word};
use super::{IdRule, Rule};
use smallvec::SmallVec;

const SERVICE: u8 = 0x01;
const HOPS: u8 = 0x02;
const CHECKSUM: u8 = 0x04;
const ID: u8 = 0x08;
const MARKER: u8 = 0x10;
const TIMESTAMP: u8 = 0x20;
const WIDE: u8 = 0x40;
/// In the first octet: a form follows.
pub(super) const FORM: u8 = 0x80;

/// The header to which compressed headers refer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Context {
    pub(super) rule: Rule,
    layout: Layout,
    /// The header of the packet that defined the context.
    header: [u8; LONGEST],
    /// The header without the fields that may change.
    fixed: [u8; LONGEST],
}

/// A compressed header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Compressed {
    pub(crate) octets: SmallVec<[u8; 24]>,
    /// Octets of the packet that these replace.
    pub(crate) replaced: usize,
    /// Whether it has no field but the CRC, a counter of one octet and what the rule always writes.
    pub(super) is_least: bool,
    /// The counter, or 0.
    pub(super) counter: u16,
}

/// Values that follow from the context and the counter.
struct Expected {
    id: u16,
    timestamp: u32,
}

impl Context {
    /// Makes a context of a packet; `None` if the packet has not the header that the rule states.
    pub(super) fn new(rule: Rule, packet: &[u8]) -> Option<Self> {
        let found = Layout::of(packet)?;
        if found.profile < rule.profile || found.v6 && rule.id != IdRule::Constant {
            return None;
        }
        let layout = Layout::of_context(packet[0], rule.profile);
        let (fixed, len) = layout.fixed(packet);
        let mut header = [0; LONGEST];
        header[..len].copy_from_slice(&packet[..len]);
        Some(Self { rule, layout, header, fixed })
    }

    /// The bits that a form may have.
    fn form_bits(&self) -> u8 {
        let parts = [
            (SERVICE | HOPS, true),
            (CHECKSUM, self.layout.udp_checksum().is_some()),
            (ID, !self.layout.v6 && self.rule.id != IdRule::Written),
            (MARKER | TIMESTAMP, self.layout.rtp().is_some()),
            (WIDE, self.rule.counts()),
        ];
        parts.into_iter().filter(|part| part.1).fold(0, |bits, part| bits | part.0)
    }

    fn expected(&self, counter: u16) -> Expected {
        let id = match self.rule.id {
            IdRule::Sequential => word(&self.header, 4).wrapping_add(counter),
            IdRule::Constant | IdRule::Written => word(&self.header, 4),
        };
        // A packet from before the definition has a counter above 2^15.
        let steps = i32::from(counter as i16) as u32;
        let timestamp = self.layout.rtp().map_or(0, |at| {
            double_word(&self.header, at + 4).wrapping_add(steps.wrapping_mul(self.rule.stride))
        });
        Expected { id, timestamp }
    }

    /// The checksum of a packet that has none of its own.
    fn usual_checksum(&self, at: usize, packet: &[u8]) -> u16 {
        if word(&self.header, at) == 0 { 0 } else { self.layout.right_udp_checksum(packet) }
    }

    /// Compresses the header of a packet for the context `number`; `None` if it is not one of this
    /// context.
    pub(super) fn compress(&self, number: u8, packet: &[u8]) -> Option<Compressed> {
        let layout = self.layout;
        if packet.len() < layout.len() || packet[0] >> 4 != self.header[0] >> 4 {
            return None;
        }
        let (fixed, len) = layout.fixed(packet);
        if fixed != self.fixed || Layout::of(packet)?.profile < self.rule.profile {
            return None;
        }
        let (mut form, mut fields) = (0, SmallVec::<[u8; 24]>::new());
        let mut field = |bit, octets: &[u8]| {
            form |= bit;
            fields.extend_from_slice(octets);
        };
        let counter = match layout.rtp() {
            _ if !self.rule.counts() => 0,
            Some(at) => word(packet, at + 2).wrapping_sub(word(&self.header, at + 2)),
            None => word(packet, 4).wrapping_sub(word(&self.header, 4)),
        };
        let expected = self.expected(counter);
        match u8::try_from(counter) {
            _ if !self.rule.counts() => {}
            Ok(counter) => field(0, &[counter]),
            Err(_) => field(WIDE, &counter.to_be_bytes()),
        }
        if layout.service(packet) != layout.service(&self.header) {
            field(SERVICE, &[layout.service(packet)]);
        }
        if packet[layout.hops()] != self.header[layout.hops()] {
            field(HOPS, &[packet[layout.hops()]]);
        }
        if let Some(at) = layout.udp_checksum()
            && word(packet, at) != self.usual_checksum(at, packet)
        {
            field(CHECKSUM, &packet[at..at + 2]);
        }
        if self.rule.id == IdRule::Written {
            field(0, &packet[4..6]);
        } else if !layout.v6 && word(packet, 4) != expected.id {
            field(ID, &packet[4..6]);
        }
        if let Some(at) = layout.rtp() {
            if packet[at + 1] != self.header[at + 1] {
                field(MARKER, &[packet[at + 1]]);
            }
            let off = double_word(packet, at + 4).wrapping_sub(expected.timestamp) as i32;
            if off != 0 {
                field(TIMESTAMP, &varint(zigzag(off)));
            }
        }
        let mut octets = SmallVec::new();
        octets.push(number | if form == 0 { 0 } else { FORM });
        if form != 0 {
            octets.push(form);
        }
        octets.push(crc(&packet[..len]));
        octets.extend_from_slice(&fields);
        Some(Compressed { octets, replaced: len, is_least: form == 0, counter })
    }

    /// Restores a packet from what follows the first octet of a compressed one; `None` if it is
    /// damaged or refers to another context.
    pub(super) fn restore(&self, has_form: bool, content: &[u8]) -> Option<Vec<u8>> {
        let mut rest = Fields(content);
        let form = if has_form { rest.byte()? } else { 0 };
        let sum = rest.byte()?;
        let (layout, len) = (self.layout, self.layout.len());
        if form & !self.form_bits() != 0 {
            return None;
        }
        let mut header = self.header;
        let counter = match form & WIDE {
            _ if !self.rule.counts() => 0,
            0 => u16::from(rest.byte()?),
            _ => rest.word()?,
        };
        let expected = self.expected(counter);
        if form & SERVICE != 0 {
            layout.set_service(&mut header, rest.byte()?);
        }
        if form & HOPS != 0 {
            header[layout.hops()] = rest.byte()?;
        }
        let checksum = if form & CHECKSUM != 0 { Some(rest.word()?) } else { None };
        let id = match form & ID {
            0 if self.rule.id != IdRule::Written => expected.id,
            _ => rest.word()?,
        };
        if !layout.v6 {
            header[4..6].copy_from_slice(&id.to_be_bytes());
        }
        if form & MARKER != 0 {
            header[layout.rtp()? + 1] = rest.byte()?;
        }
        let off = if form & TIMESTAMP != 0 { unzigzag(rest.varint()?) } else { 0 };
        if let Some(at) = layout.rtp() {
            let number = word(&self.header, at + 2).wrapping_add(counter);
            header[at + 2..at + 4].copy_from_slice(&number.to_be_bytes());
            let timestamp = expected.timestamp.wrapping_add(off as u32);
            header[at + 4..at + 8].copy_from_slice(&timestamp.to_be_bytes());
        }
        if len + rest.0.len() > usize::from(u16::MAX) {
            return None;
        }
        let mut packet = Vec::with_capacity(len + rest.0.len());
        packet.extend_from_slice(&header[..len]);
        packet.extend_from_slice(rest.0);
        layout.seal(&mut packet);
        if let Some(at) = layout.udp_checksum() {
            let checksum = checksum.unwrap_or_else(|| self.usual_checksum(at, &packet));
            packet[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
        }
        (crc(&packet[..len]) == sum).then_some(packet)
    }
}

/// The fields of a compressed header that are not read yet, and the payload.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    fn word(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes([self.byte()?, self.byte()?]))
    }

    /// A number of at most 32 bits, in at most 5 octets.
    fn varint(&mut self) -> Option<u32> {
        let mut value = 0u64;
        for shift in (0..35).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return u32::try_from(value).ok();
            }
        }
        None
    }
}

fn varint(mut value: u32) -> SmallVec<[u8; 5]> {
    let mut octets = SmallVec::new();
    while value >= 0x80 {
        octets.push(value as u8 | 0x80);
        value >>= 7;
    }
    octets.push(value as u8);
    octets
}

/// Numbers near zero of either sign as small numbers: 0, -1, 1, -2 are 0, 1, 2, 3.
fn zigzag(value: i32) -> u32 {
    (value << 1 ^ value >> 31) as u32
}

fn unzigzag(value: u32) -> i32 {
    (value >> 1) as i32 ^ -((value & 1) as i32)
}

/// The CRC of 8 bits of RFC 5795, section 5.3.1.1: polynomial 1 + x + x² + x⁸, least significant
/// bits first, initially all ones.
pub(super) fn crc(octets: &[u8]) -> u8 {
    octets.iter().fold(0xff, |crc, octet| {
        (0..8).fold(crc ^ octet, |crc, _| crc >> 1 ^ if crc & 1 != 0 { 0xe0 } else { 0 })
    })
}
