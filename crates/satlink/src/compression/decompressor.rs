//! The decompressor: restores packets or reports why it cannot.

use super::CONTEXTS;
use super::header::{Fields, Kind, Moving, Static, crc, head, meant};
use alloc::vec::Vec;
use core::fmt;

/// CMP-4.1.3: number of consecutive CRC errors that damage a context.
const WRONG_AT_MOST: u8 = 3;
/// CMP-4.1.4: every eighth frame dropped for lack of a context causes a request.
const REQUEST_EVERY: u8 = 8;

/// Decompresses frames into packets; one for each direction of a link.
#[derive(Clone, Debug, Default)]
pub struct Decompressor {
    slots: [Slot; CONTEXTS],
    request: Option<u8>,
}

#[derive(Clone, Debug, Default)]
struct Slot {
    context: Option<Context>,
    /// Frames dropped since the last full one, as counted for requests.
    dropped: u8,
}

#[derive(Clone, Debug)]
struct Context {
    fixed: Static,
    generation: u8,
    last: Moving,
    wrong: u8,
}

/// Why a frame was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// The frame is malformed.
    Malformed,
    /// It is a request for the [`Compressor`](super::Compressor) of the other direction.
    Request,
    /// Its context is not set, damaged, or of another generation.
    Context {
        /// The context's number.
        number: usize,
    },
    /// The CRC of the restored packet differs.
    Crc {
        /// The CRC of the packet that was sent.
        expected: u8,
        /// The CRC of the restored packet.
        found: u8,
    },
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => f.write_str("malformed frame"),
            Self::Request => f.write_str("a request, no packet"),
            Self::Context { number } => write!(f, "context {number} is not set"),
            Self::Crc { expected, found } => {
                write!(f, "header CRC: found {found:02x}, expected {expected:02x}")
            }
        }
    }
}

impl core::error::Error for Refused {}

impl Decompressor {
    /// Creates a decompressor without contexts.
    pub fn new() -> Self {
        Self::default()
    }

    /// Restores the packet in `frame`.
    ///
    /// # Errors
    /// If the frame carries no packet, or its header cannot be restored.
    pub fn decompress(&mut self, frame: &[u8]) -> Result<Vec<u8>, Refused> {
        let (&octet, rest) = frame.split_first().ok_or(Refused::Malformed)?;
        let (kind, number, generation) = Kind::split(octet);
        match kind {
            Kind::Plain if octet == 0 => Ok(rest.to_vec()),
            Kind::Request if rest.is_empty() => Err(Refused::Request),
            Kind::Plain | Kind::Request => Err(Refused::Malformed),
            Kind::Full => {
                let (fields, _) = Fields::of(rest).ok_or(Refused::Malformed)?;
                let Fields { fixed, moving, .. } = fields;
                let context = Context { fixed, generation, last: moving, wrong: 0 };
                self.slots[number] = Slot { context: Some(context), dropped: 0 };
                Ok(rest.to_vec())
            }
            Kind::Short => {
                let slot = &mut self.slots[number];
                let made = slot.make(number, generation, rest);
                let lacks = matches!(made, Err(Refused::Context { .. } | Refused::Crc { .. }));
                if lacks && slot.drop_frame() {
                    self.request = Some(Kind::Request.octet(number, generation));
                }
                made
            }
        }
    }

    /// The request for a full header, if one is due.
    pub fn poll_request(&mut self) -> Option<[u8; 1]> {
        self.request.take().map(|octet| [octet])
    }
}

impl Slot {
    /// Counts a dropped frame; returns whether a request is due for it.
    fn drop_frame(&mut self) -> bool {
        let due = self.dropped == 0;
        self.dropped = (self.dropped + 1) % REQUEST_EVERY;
        due
    }

    fn make(&mut self, number: usize, generation: u8, rest: &[u8]) -> Result<Vec<u8>, Refused> {
        let missing = Refused::Context { number };
        let context = self.context.as_mut().ok_or(missing)?;
        if context.generation != generation || context.wrong >= WRONG_AT_MOST {
            return Err(missing);
        }
        let (fields, expected, payload) = context.read(rest).ok_or(Refused::Malformed)?;
        let packet = fields.packet(payload).ok_or(Refused::Malformed)?;
        let found = crc(&packet, head(&fields));
        if found != expected {
            context.wrong += 1;
            return Err(Refused::Crc { expected, found });
        }
        context.wrong = 0;
        context.last = fields.moving;
        Ok(packet)
    }
}

impl Context {
    /// The fields, the CRC and the payload of a compressed frame; `None` if it is malformed.
    fn read<'a>(&self, rest: &'a [u8]) -> Option<(Fields, u8, &'a [u8])> {
        let (&[flags, kinds], mut rest) = rest.split_first_chunk()?;
        let window = usize::from(flags >> 3 & 3);
        if flags & 7 != 0 || window == 3 {
            return None;
        }
        let mut field = |octets: usize| {
            let (taken, left) = rest.split_at_checked(octets)?;
            rest = left;
            Some(taken.iter().fold(0_u32, |value, &octet| value << 8 | u32::from(octet)))
        };
        let whole = |bit: u8| flags >> bit & 1 == 1;
        let last = &self.last;
        let identification =
            if whole(5) { field(2)? } else { meant(last.identification.into(), field(1)?, 8, 16) };
        let number = if whole(7) { field(3)? } else { meant(last.number, field(1)?, 8, 24) };
        let window = field(window)? as u16;
        let timestamp = if whole(6) { field(4)? } else { meant(last.timestamp, field(2)?, 16, 32) };
        let checksum = field(2)? as u16;
        let crc = field(1)? as u8;
        let moving = Moving { identification: identification as u16, number, timestamp };
        let fields = Fields { fixed: self.fixed.clone(), moving, kinds, window, checksum };
        Some((fields, crc, rest))
    }
}
