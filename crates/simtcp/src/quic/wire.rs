//! Packets and frames as octets, with the lengths of RFC 9000.
//!
//! A packet has the short header with an 8-octet connection ID and a 4-octet packet number, or the
//! long header of an Initial; nothing is encrypted, and 16 octets stand for the tag of the AEAD.

use crate::segment::Block;

/// First octets of the two headers (RFC 9000, section 17).
const SHORT: u8 = 0x43;
const INITIAL: u8 = 0xc3;
/// Octets of the short header: flags, connection ID, packet number.
const SHORT_HEADER: usize = 1 + 8 + 4;
/// Octets of an Initial's header: also version, lengths, a second connection ID, empty token.
const INITIAL_HEADER: usize = 1 + 4 + 1 + 8 + 1 + 8 + 1 + 2 + 4;
/// Octets of the tag of the AEAD.
pub(super) const TAG: usize = 16;
/// Maximum number of ranges in an ACK frame: bounds the work per packet.
pub(super) const MAX_RANGES: usize = 32;

/// A packet could not be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// An ACK frame (RFC 9000, section 19.3).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ack {
    /// Acknowledged packet numbers, the highest first; each the first and the one after the last.
    pub(super) ranges: alloc::vec::Vec<Block>,
    /// The field "ACK Delay", in units of 2^`ack_delay_exponent` µs.
    pub(super) delay: u64,
}

/// Transport parameters (RFC 9000, section 18.2), in a CRYPTO frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parameters {
    pub(super) ack_delay_exponent: u64,
    pub(super) max_ack_delay_ms: u64,
    pub(super) max_stream_data: u64,
}

/// A frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Frame<'a> {
    Ping,
    Ack(Ack),
    Crypto(Parameters),
    Stream { offset: u64, fin: bool, bytes: &'a [u8] },
    MaxStreamData(u64),
}

/// Writes a packet.
pub(super) struct Writer<'a> {
    out: &'a mut [u8],
    at: usize,
}

impl<'a> Writer<'a> {
    /// Starts a packet; `out` has room for a whole datagram.
    pub(super) fn new(out: &'a mut [u8], number: u64, initial: bool) -> Self {
        let header = if initial { INITIAL_HEADER } else { SHORT_HEADER };
        let first = if initial { INITIAL } else { SHORT };
        out[..header].fill(0);
        out[0] = first;
        // A model's connection sends fewer than 2^32 packets, so the number is not truncated.
        out[header - 4..header].copy_from_slice(&(number as u32).to_be_bytes());
        Self { out, at: header }
    }

    /// Octets left for frames.
    pub(super) fn room(&self) -> usize {
        self.out.len().saturating_sub(self.at + TAG)
    }

    /// Octets so far.
    pub(super) fn len(&self) -> usize {
        self.at
    }

    fn octet(&mut self, octet: u8) {
        self.out[self.at] = octet;
        self.at += 1;
    }

    /// A variable-length integer (RFC 9000, section 16).
    fn integer(&mut self, value: u64) {
        let (len, prefix) = match integer_len(value) {
            1 => (1, 0x00),
            2 => (2, 0x40),
            4 => (4, 0x80),
            len => (len, 0xc0),
        };
        let bytes = value.to_be_bytes();
        self.out[self.at..self.at + len].copy_from_slice(&bytes[8 - len..]);
        self.out[self.at] |= prefix;
        self.at += len;
    }

    pub(super) fn ping(&mut self) {
        self.octet(0x01);
    }

    /// An ACK frame with as many of its ranges as there is room for.
    pub(super) fn ack(&mut self, ack: &Ack) {
        let room = self.room();
        let Some(&(first, end)) = ack.ranges.first() else { return };
        let mut used = 1 + 8 + integer_len(ack.delay) + 1 + 8;
        let mut count = 0;
        for pair in ack.ranges.windows(2) {
            used += integer_len(pair[0].0 - pair[1].1 - 1) + integer_len(pair[1].1 - pair[1].0 - 1);
            if used > room {
                break;
            }
            count += 1;
        }
        self.octet(0x02);
        self.integer(end - 1);
        self.integer(ack.delay);
        self.integer(count as u64);
        self.integer(end - 1 - first);
        for pair in ack.ranges.windows(2).take(count) {
            // Gap and length (section 19.3.1): one less than the numbers that they contain.
            self.integer(pair[0].0 - pair[1].1 - 1);
            self.integer(pair[1].1 - pair[1].0 - 1);
        }
    }

    pub(super) fn crypto(&mut self, parameters: Parameters) {
        self.octet(0x06);
        self.integer(parameters.ack_delay_exponent);
        self.integer(parameters.max_ack_delay_ms);
        self.integer(parameters.max_stream_data);
    }

    pub(super) fn max_stream_data(&mut self, limit: u64) {
        self.octet(0x11);
        self.integer(0);
        self.integer(limit);
    }

    /// Octets of a STREAM frame's header at `offset`.
    pub(super) fn stream_header(offset: u64) -> usize {
        1 + 1 + integer_len(offset) + 2
    }

    /// A STREAM frame of `len` octets, which `fill` writes.
    pub(super) fn stream(
        &mut self,
        offset: u64,
        len: usize,
        fin: bool,
        fill: impl FnOnce(&mut [u8]),
    ) {
        self.octet(0x0e | u8::from(fin));
        self.integer(0);
        self.integer(offset);
        let bytes = (len as u16 | 0x4000).to_be_bytes();
        self.octet(bytes[0]);
        self.octet(bytes[1]);
        fill(&mut self.out[self.at..self.at + len]);
        self.at += len;
    }

    /// Ends the packet, padded to `least` octets; returns its length.
    pub(super) fn finish(self, least: usize) -> usize {
        let end = (self.at + TAG).max(least.min(self.out.len()));
        self.out[self.at..end].fill(0);
        end
    }
}

fn integer_len(value: u64) -> usize {
    match value {
        0..0x40 => 1,
        0x40..0x4000 => 2,
        0x4000..0x4000_0000 => 4,
        _ => 8,
    }
}

/// Whether a datagram opens a connection.
pub(super) fn is_initial(datagram: &[u8]) -> bool {
    datagram.first() == Some(&INITIAL) && datagram.len() >= 1_200
}

/// Reads a packet.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
    pub(super) number: u64,
    /// Whether it is an Initial.
    pub(super) initial: bool,
}

impl<'a> Reader<'a> {
    pub(super) fn new(datagram: &'a [u8]) -> Result<Self, Malformed> {
        let header = match datagram.first() {
            Some(&SHORT) => SHORT_HEADER,
            Some(&INITIAL) => INITIAL_HEADER,
            _ => return Err(Malformed),
        };
        let end = datagram.len().checked_sub(TAG).filter(|&end| end >= header).ok_or(Malformed)?;
        let number =
            u32::from_be_bytes(datagram[header - 4..header].try_into().map_err(|_| Malformed)?);
        let initial = header == INITIAL_HEADER;
        Ok(Self { rest: &datagram[header..end], number: u64::from(number), initial })
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (head, tail) = self.rest.split_at_checked(len).ok_or(Malformed)?;
        self.rest = tail;
        Ok(head)
    }

    fn integer(&mut self) -> Result<u64, Malformed> {
        let first = *self.rest.first().ok_or(Malformed)?;
        let bytes = self.take(1 << (first >> 6))?;
        let value = bytes.iter().fold(0_u64, |value, &byte| value << 8 | u64::from(byte));
        Ok(value & (u64::MAX >> (64 - (8 * bytes.len() as u32 - 2))))
    }

    /// The next frame.
    pub(super) fn frame(&mut self) -> Result<Option<Frame<'a>>, Malformed> {
        while self.rest.first() == Some(&0) {
            self.rest = &self.rest[1..];
        }
        if self.rest.is_empty() {
            return Ok(None);
        }
        let kind = self.take(1)?[0];
        Ok(Some(match kind {
            0x01 => Frame::Ping,
            0x02 => Frame::Ack(self.ack()?),
            0x06 => Frame::Crypto(Parameters {
                ack_delay_exponent: self.integer()?.min(20),
                max_ack_delay_ms: self.integer()?.min(1 << 14),
                max_stream_data: self.integer()?,
            }),
            0x0e | 0x0f => {
                let _ = self.integer()?;
                let offset = self.integer()?;
                let len = self.integer()?;
                let bytes = self.take(usize::try_from(len).map_err(|_| Malformed)?)?;
                Frame::Stream { offset, fin: kind == 0x0f, bytes }
            }
            0x11 => {
                let _ = self.integer()?;
                Frame::MaxStreamData(self.integer()?)
            }
            _ => return Err(Malformed),
        }))
    }

    fn ack(&mut self) -> Result<Ack, Malformed> {
        let largest = self.integer()?;
        let delay = self.integer()?;
        let count = self.integer()?;
        let first = self.integer()?;
        let mut low = largest.checked_sub(first).ok_or(Malformed)?;
        let mut ranges = alloc::vec![(low, largest + 1)];
        for _ in 0..count {
            let (gap, len) = (self.integer()?, self.integer()?);
            let high = low.checked_sub(gap.saturating_add(2)).ok_or(Malformed)?;
            low = high.checked_sub(len).ok_or(Malformed)?;
            ranges.push((low, high + 1));
        }
        Ok(Ack { ranges, delay })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc_9000_section_19_3_ranges_and_delay_survive_a_packet() {
        let ranges: alloc::vec::Vec<Block> =
            (0..20).rev().map(|n| (n * 100, n * 100 + 7 + n)).collect();
        let sent = Ack { ranges, delay: 3_125 };
        let mut out = [0xff; 1_252];
        let mut writer = Writer::new(&mut out, 77, false);
        writer.ack(&sent);
        writer.stream(70_000, 3, true, |room| room.copy_from_slice(b"abc"));
        let len = writer.finish(0);
        let mut reader = Reader::new(&out[..len]).unwrap();
        assert_eq!(reader.number, 77);
        assert_eq!(reader.frame(), Ok(Some(Frame::Ack(sent))));
        let stream = Frame::Stream { offset: 70_000, fin: true, bytes: b"abc" };
        assert_eq!(reader.frame(), Ok(Some(stream)));
        assert_eq!(reader.frame(), Ok(None));
        // 13 of header, 16 of tag; STREAM: type, ID, offset of 4, length of 2.
        assert_eq!(SHORT_HEADER + TAG, 29);
        assert_eq!(Writer::stream_header(70_000), 8);
    }

    #[test]
    fn damaged_packets_are_rejected_without_a_panic() {
        let mut out = [0; 200];
        let mut writer = Writer::new(&mut out, 5, false);
        writer.ack(&Ack { ranges: alloc::vec![(9, 12), (3, 5)], delay: 1 });
        writer.stream(9, 100, false, |room| room.fill(7));
        let len = writer.finish(0);
        for place in 0..len {
            for value in [0x00, 0x02, 0x3f, 0x7f, 0xbf, 0xff] {
                let mut damaged = out;
                damaged[place] = value;
                if let Ok(mut reader) = Reader::new(&damaged[..len]) {
                    while let Ok(Some(_)) = reader.frame() {}
                }
            }
            assert!(Reader::new(&out[..place.min(28)]).is_err());
        }
    }
}
