//! The frames in SD segments, and the notes in POLL and STAT segments.
//!
//! ```text
//! STREAM   1 H L W E O C Z   stream, [open], [offset], [length], data
//! ACCEPT   0 H 0 0 0 0 0 1   stream
//! RESET    0 H 0 0 0 0 1 0   stream, final offset, shared credit used, reason (1 byte)
//! CREDIT   0 H 0 0 0 0 1 1   stream, limit / 1024
//! SHARED   0 0 0 0 0 1 0 0   shared credit returned / 1024
//! DATAGRAM 0 0 L 0 0 1 0 1   [length], an IP packet
//! PIECE    0 0 L 0 0 1 1 0   number, total, offset, [length], a part of an IP packet
//! GRANT    0 0 0 0 0 1 1 1   number, rate in thousands of bits per second
//! NEED     0 0 0 0 1 0 0 0   number, bytes that wait / 1024
//! FAMILIES 0 0 0 0 1 0 0 1   number, address families that the hub reaches
//! GOAWAY   0 0 0 1 0 0 0 0   length, streams opened, flags (1 byte; 1: no session follows)
//! PADDING  0 0 0 1 0 0 0 1   length, zeros
//! REPORT   0 0 0 1 0 0 1 0   length, number, a terminal's state
//! RECEIVED 0 0 0 1 0 0 1 1   length, 2 * stream + H, bytes in order
//! (headers) 0 0 0 1 0 1 n n  DEFINE, COMPRESSED, CONTEXTS, INVALID: see `headers`
//! other    0 0 0 1 n n n n   length, octets that a receiver without this frame skips
//! ```
//!
//! `stream`, `final offset`, `length` and the other numbers are variable-length integers of 7
//! bits a byte, least significant first. `H`: the hub opened the stream. `L`: a length follows;
//! without it the data goes to the end of the segment. `W`: the offset's low 32 bits in 4 bytes;
//! without it the offset, below 2²⁴, in 3 bytes; both big-endian. `E`: the data ends the stream. `O`: the stream is opened by this
//! frame, at offset 0, which is then not written. `C`: uses shared credit. `Z`: coded.

use crate::families::Families;
use crate::headers::Rule;
use crate::target::{Priority, StreamId, Target};
use core::fmt;

mod headers;
mod note;
mod opening;
mod reader;
mod report;

use note::stream_key;
use opening::open_len;
pub(crate) use reader::Reader;

const STREAM: u8 = 0x80;
const HUB: u8 = 0x40;
const LENGTH: u8 = 0x20;
const WIDE: u8 = 0x10;
const END: u8 = 0x08;
const OPEN: u8 = 0x04;
const CHARGED: u8 = 0x02;
const CODED: u8 = 0x01;
const ACCEPT: u8 = 0x01;
const RESET: u8 = 0x02;
const CREDIT: u8 = 0x03;
const SHARED: u8 = 0x04;
const DATAGRAM: u8 = 0x05;
const PIECE: u8 = 0x06;
const GRANT: u8 = 0x07;
const NEED: u8 = 0x08;
const FAMILIES: u8 = 0x09;
/// First octet of the first extension frame; all of them have a length.
const EXTENSION: u8 = 0x10;
const GOAWAY: u8 = EXTENSION;
const PADDING: u8 = EXTENSION + 1;
const REPORT: u8 = EXTENSION + 2;
const RECEIVED: u8 = EXTENSION + 3;
const DEFINE: u8 = EXTENSION + 4;
const COMPRESSED: u8 = EXTENSION + 5;
const CONTEXTS: u8 = EXTENSION + 6;
const INVALID: u8 = EXTENSION + 7;

/// Minimum number of bytes of a packet in a PIECE.
pub(crate) const LEAST_PIECE: usize = 32;

/// Offsets below this are written in 3 bytes. The limit is fixed, because a frame must not be
/// longer in a retransmission.
const NARROW: u64 = 1 << 24;

/// Credit is written in units of this many bytes, rounded down.
pub(crate) const CREDIT_UNIT: u64 = 1024;

/// The opening of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Open {
    pub(crate) priority: Priority,
    pub(crate) target: Target,
}

/// A STREAM frame without its data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamHead<'a> {
    pub(crate) id: StreamId,
    pub(crate) offset: u64,
    pub(crate) open: Option<&'a Open>,
    pub(crate) end: bool,
    pub(crate) charged: bool,
    pub(crate) coded: bool,
}

/// A decoded frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Frame<'a> {
    Stream {
        id: StreamId,
        open: Option<Open>,
        offset: PartialOffset,
        end: bool,
        charged: bool,
        coded: bool,
        data: &'a [u8],
    },
    Accept {
        id: StreamId,
    },
    Reset {
        id: StreamId,
        final_offset: u64,
        charged: u64,
        code: u8,
    },
    Credit {
        id: StreamId,
        limit: u64,
    },
    Shared {
        returned: u64,
    },
    Datagram {
        packet: &'a [u8],
    },
    /// The rate at which a terminal may send.
    Grant {
        number: u64,
        kbps: u64,
    },
    /// Queued bytes at a terminal, in units of [`CREDIT_UNIT`].
    Need {
        number: u64,
        units: u64,
    },
    /// The address families that the hub reaches.
    Families {
        number: u64,
        families: Families,
    },
    /// The part from `offset` of a packet of `total` bytes; it lies within the packet.
    Piece {
        number: u16,
        total: usize,
        offset: usize,
        piece: &'a [u8],
    },
    /// The sender opens no more streams in this session; it has opened `opened`. With `leaves`, it
    /// starts and accepts no session after this one.
    GoAway {
        opened: u64,
        leaves: bool,
    },
    /// Octets that only fill the packet.
    Padding,
    /// A terminal's state.
    Report {
        number: u64,
        content: &'a [u8],
    },
    /// All bytes of the peer's half below `offset` were received.
    Received {
        id: StreamId,
        offset: u64,
    },
    /// The packet in the next frame is the context with this number.
    Define {
        context: u8,
        rule: Rule,
    },
    /// A packet with a compressed header.
    Compressed {
        content: &'a [u8],
    },
    /// The sender stores so many contexts.
    Contexts {
        contexts: u64,
    },
    /// The sender does not have the context.
    Invalid {
        context: u8,
    },
    /// An extension frame of an unknown type, skipped by its length.
    Unknown {
        kind: u8,
    },
    /// A STREAM frame whose opening has an undefined value.
    BadOpening {
        id: StreamId,
    },
}

/// An offset in its encoded form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartialOffset {
    Whole(u64),
    Low(u32),
}

impl PartialOffset {
    /// Returns the offset: of all offsets with these low bits the one nearest to `expected`.
    pub(crate) fn resolve(self, expected: u64) -> u64 {
        let low = match self {
            Self::Whole(offset) => return offset,
            Self::Low(low) => u64::from(low),
        };
        let size = 1u64 << 32;
        let near = (expected & !(size - 1)) | low;
        if near + size / 2 <= expected {
            near + size
        } else if near > expected + size / 2 && near >= size {
            near - size
        } else {
            near
        }
    }
}

/// Reason why a frame could not be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameError {
    Truncated,
    Kind(u8),
    Number,
    Target,
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => write!(f, "frame goes past the end of its segment"),
            Self::Kind(byte) => write!(f, "frame of unknown kind {byte:#04x}"),
            Self::Number => write!(f, "number out of range"),
            Self::Target => write!(f, "target that cannot be read"),
        }
    }
}

/// Writes frames from the front of a buffer of fixed length.
pub(crate) struct Writer<'a> {
    room: &'a mut [u8],
    at: usize,
    /// Set when a frame without a length was written, which extends to the end of the segment.
    closed: bool,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(room: &'a mut [u8]) -> Self {
        Self { room, at: 0, closed: false }
    }

    pub(crate) fn written(&self) -> usize {
        self.at
    }

    pub(crate) fn left(&self) -> usize {
        if self.closed { 0 } else { self.room.len() - self.at }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.room[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }

    fn byte(&mut self, byte: u8) {
        self.bytes(&[byte]);
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.byte(value as u8 | 0x80);
            value >>= 7;
        }
        self.byte(value as u8);
    }

    /// Returns the next `len` bytes, which the caller fills.
    fn claim(&mut self, len: usize) -> &mut [u8] {
        let at = self.at;
        self.at += len;
        &mut self.room[at..at + len]
    }

    /// Writes `frame`, which has no data, if it fits; returns whether it did.
    pub(crate) fn control(&mut self, frame: &Frame<'_>) -> bool {
        let (kind, id, numbers, code): (u8, Option<StreamId>, [Option<u64>; 3], Option<u8>) =
            match *frame {
                Frame::Accept { id } => (ACCEPT, Some(id), [None; 3], None),
                Frame::Reset { id, final_offset, charged, code } => {
                    (RESET, Some(id), [Some(final_offset), Some(charged), None], Some(code))
                }
                Frame::Credit { id, limit } => {
                    (CREDIT, Some(id), [Some(limit / CREDIT_UNIT), None, None], None)
                }
                Frame::Shared { returned } => {
                    (SHARED, None, [Some(returned / CREDIT_UNIT), None, None], None)
                }
                Frame::Grant { number, kbps } => {
                    (GRANT, None, [Some(number), Some(kbps), None], None)
                }
                Frame::Need { number, units } => {
                    (NEED, None, [Some(number), Some(units), None], None)
                }
                Frame::Families { number, families } => {
                    (FAMILIES, None, [Some(number), Some(families.bits()), None], None)
                }
                Frame::GoAway { opened, leaves } => {
                    let len = varint_len(opened) as u64 + 1;
                    (GOAWAY, None, [Some(len), Some(opened), None], Some(u8::from(leaves)))
                }
                Frame::Received { id, offset } => {
                    let key = stream_key(id);
                    let len = (varint_len(key) + varint_len(offset)) as u64;
                    (RECEIVED, None, [Some(len), Some(key), Some(offset)], None)
                }
                Frame::Contexts { contexts } => {
                    let len = varint_len(contexts) as u64;
                    (CONTEXTS, None, [Some(len), Some(contexts), None], None)
                }
                Frame::Invalid { context } => (INVALID, None, [Some(1), None, None], Some(context)),
                Frame::Stream { .. }
                | Frame::Define { .. }
                | Frame::Compressed { .. }
                | Frame::Datagram { .. }
                | Frame::Piece { .. }
                | Frame::Report { .. }
                | Frame::Padding => {
                    unreachable!("a frame with data has a writer of its own")
                }
                Frame::Unknown { .. } | Frame::BadOpening { .. } => {
                    unreachable!("this side writes only frames that are defined")
                }
            };
        let numbers = numbers.into_iter().flatten();
        let len = 1
            + id.map_or(0, |id| varint_len(u64::from(id.number())))
            + numbers.clone().map(varint_len).sum::<usize>()
            + usize::from(code.is_some());
        if len > self.left() {
            return false;
        }
        let hub = id.is_some_and(StreamId::opened_by_hub);
        self.byte(kind | if hub { HUB } else { 0 });
        if let Some(id) = id {
            self.varint(u64::from(id.number()));
        }
        for number in numbers {
            self.varint(number);
        }
        if let Some(code) = code {
            self.byte(code);
        }
        true
    }

    /// Writes the head of a STREAM frame and as many of `available` bytes of data as fit.
    /// `more_follows` if another frame may follow. `fill` writes the data. Returns the number of
    /// bytes, or `None` if the head and `least` bytes do not fit.
    pub(crate) fn stream(
        &mut self,
        head: StreamHead<'_>,
        available: usize,
        least: usize,
        more_follows: bool,
        fill: impl FnOnce(&mut [u8]),
    ) -> Option<usize> {
        let head_len = head.len();
        let room = self.left().checked_sub(head_len)?;
        let (len, with_length) = if available >= room || !more_follows {
            (available.min(room), false)
        } else if available + varint_len(available as u64) <= room {
            (available, true)
        } else {
            // The length field would displace the last bytes, which are sent in the next packet.
            (room.saturating_sub(varint_len(available as u64)), true)
        };
        if len < least.min(available) {
            return None;
        }
        let last = len == available;
        self.stream_head(head, with_length, head.end && last);
        if with_length {
            self.varint(len as u64);
        }
        fill(self.claim(len));
        self.closed = !with_length;
        Some(len)
    }

    /// Fills the remaining room with PADDING.
    pub(crate) fn padding(&mut self) {
        let room = self.left();
        // A length of 128 octets or more takes two octets.
        let len = if room < 2 + 128 { room.checked_sub(2) } else { Some(room - 3) };
        let Some(len) = len else { return };
        self.byte(PADDING);
        self.varint(len as u64);
        self.claim(len).fill(0);
    }

    /// Writes a DATAGRAM if it fits; returns whether it did.
    pub(crate) fn datagram(&mut self, packet: &[u8], more_follows: bool) -> bool {
        let Some(room) = self.left().checked_sub(1 + packet.len()) else { return false };
        // Without room for a length no frame can follow.
        let with_length = more_follows && varint_len(packet.len() as u64) <= room;
        self.byte(DATAGRAM | if with_length { LENGTH } else { 0 });
        if with_length {
            self.varint(packet.len() as u64);
        }
        self.bytes(packet);
        self.closed = !with_length;
        true
    }

    /// Writes as much of `rest` as fits, from `offset` of a packet of `total` bytes. Returns the
    /// number of bytes, or `None` if fewer than [`LEAST_PIECE`] fit.
    pub(crate) fn piece(
        &mut self,
        number: u16,
        total: usize,
        offset: usize,
        rest: &[u8],
        more_follows: bool,
    ) -> Option<usize> {
        let numbers = [u64::from(number), total as u64, offset as u64];
        let head = 1 + numbers.into_iter().map(varint_len).sum::<usize>();
        let room = self.left().checked_sub(head)?;
        let len = rest.len().min(room);
        if len < LEAST_PIECE.min(rest.len()) || len == 0 {
            return None;
        }
        let with_length = more_follows && len + varint_len(len as u64) <= room;
        self.byte(PIECE | if with_length { LENGTH } else { 0 });
        for number in numbers {
            self.varint(number);
        }
        if with_length {
            self.varint(len as u64);
        }
        self.bytes(&rest[..len]);
        self.closed = !with_length;
        Some(len)
    }

    fn stream_head(&mut self, head: StreamHead<'_>, with_length: bool, end: bool) {
        let wide = head.offset >= NARROW;
        let mut flags = STREAM;
        for (bit, set) in [
            (HUB, head.id.opened_by_hub()),
            (LENGTH, with_length),
            (WIDE, wide && head.open.is_none()),
            (END, end),
            (OPEN, head.open.is_some()),
            (CHARGED, head.charged),
            (CODED, head.coded),
        ] {
            flags |= if set { bit } else { 0 };
        }
        self.byte(flags);
        self.varint(u64::from(head.id.number()));
        match head.open {
            Some(open) => self.open(open),
            None if wide => self.bytes(&(head.offset as u32).to_be_bytes()),
            None => self.bytes(&(head.offset as u32).to_be_bytes()[1..]),
        }
    }
}

impl StreamHead<'_> {
    /// Returns the number of bytes before the length and the data.
    fn len(&self) -> usize {
        let offset = match self.open {
            Some(open) => open_len(open),
            None if self.offset >= NARROW => 4,
            None => 3,
        };
        1 + varint_len(u64::from(self.id.number())) + offset
    }
}

fn varint_len(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

#[cfg(test)]
mod tests;
