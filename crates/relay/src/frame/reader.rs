//! Decoding of frames from a peer, which may be malformed.

use super::{
    ACCEPT, CHARGED, CODED, CREDIT, CREDIT_UNIT, DATAGRAM, END, EXTENSION, FAMILIES, Frame,
    FrameError, GOAWAY, GRANT, HUB, LEAST_PIECE, LENGTH, NEED, OPEN, Open, PADDING, PIECE,
    PartialOffset, RECEIVED, REPORT, RESET, SHARED, STREAM, WIDE,
};
use crate::datagram::LARGEST;
use crate::families::Families;
use crate::target::{Destination, MAX_NUMBER, Priority, StreamId, Target};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// Decodes from the front of bytes from the network.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Returns the first octet of the rest, or 0.
    pub(crate) fn first(&self) -> u8 {
        self.rest.first().copied().unwrap_or_default()
    }

    /// Returns the rest.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Decodes the next field of a report, a key and a value; `None` if there is none.
    pub(crate) fn field(&mut self) -> Option<(u64, Self)> {
        let key = self.varint().ok()?;
        Some((key, Self::new(self.data(LENGTH).ok()?)))
    }

    fn bytes(&mut self, len: usize) -> Result<&'a [u8], FrameError> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(FrameError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], FrameError> {
        let bytes = self.bytes(N)?;
        Ok(core::array::from_fn(|at| bytes[at]))
    }

    pub(super) fn byte(&mut self) -> Result<u8, FrameError> {
        Ok(self.array::<1>()?[0])
    }

    /// At most 9 bytes, 63 bits, so that the sum of two does not overflow.
    pub(crate) fn varint(&mut self) -> Result<u64, FrameError> {
        let mut value = 0;
        for shift in (0..63).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(FrameError::Number)
    }

    fn credit(&mut self) -> Result<u64, FrameError> {
        let units = self.varint()?;
        if units > u64::MAX / CREDIT_UNIT / 4 {
            Err(FrameError::Number)
        } else {
            Ok(units * CREDIT_UNIT)
        }
    }

    fn stream_id(&mut self, flags: u8) -> Result<StreamId, FrameError> {
        let number = self.varint()?;
        match u32::try_from(number) {
            Ok(number) if number <= MAX_NUMBER => Ok(StreamId::new(number, flags & HUB != 0)),
            Ok(_) | Err(_) => Err(FrameError::Number),
        }
    }

    /// Returns the stream with this key.
    fn stream_of(key: u64) -> Result<StreamId, FrameError> {
        match u32::try_from(key >> 1) {
            Ok(number) if number <= MAX_NUMBER => Ok(StreamId::new(number, key & 1 != 0)),
            Ok(_) | Err(_) => Err(FrameError::Number),
        }
    }

    /// Decodes the next frame.
    pub(crate) fn frame(&mut self) -> Result<Frame<'a>, FrameError> {
        let flags = self.byte()?;
        if flags & STREAM != 0 {
            return self.stream(flags);
        }
        if flags & 0xf0 == EXTENSION {
            return self.extension(flags);
        }
        match flags & !LENGTH {
            DATAGRAM => return Ok(Frame::Datagram { packet: self.data(flags)? }),
            PIECE => return self.piece(flags),
            _ => {}
        }
        match flags & !HUB {
            ACCEPT => Ok(Frame::Accept { id: self.stream_id(flags)? }),
            RESET => Ok(Frame::Reset {
                id: self.stream_id(flags)?,
                final_offset: self.varint()?,
                charged: self.varint()?,
                code: self.byte()?,
            }),
            CREDIT => Ok(Frame::Credit { id: self.stream_id(flags)?, limit: self.credit()? }),
            SHARED if flags & HUB == 0 => Ok(Frame::Shared { returned: self.credit()? }),
            GRANT if flags & HUB == 0 => {
                Ok(Frame::Grant { number: self.varint()?, kbps: self.varint()? })
            }
            NEED if flags & HUB == 0 => {
                Ok(Frame::Need { number: self.varint()?, units: self.varint()? })
            }
            FAMILIES if flags & HUB == 0 => Ok(Frame::Families {
                number: self.varint()?,
                families: Families::from_bits(self.varint()?),
            }),
            _ => Err(FrameError::Kind(flags)),
        }
    }

    /// Decodes an extension frame: a length, and content whose octets after the known ones are
    /// skipped.
    fn extension(&mut self, flags: u8) -> Result<Frame<'a>, FrameError> {
        let mut content = Reader::new(self.data(LENGTH)?);
        match flags {
            GOAWAY => {
                let opened = content.varint()?;
                Ok(Frame::GoAway { opened, leaves: content.byte()? & 1 != 0 })
            }
            PADDING => Ok(Frame::Padding),
            RECEIVED => {
                let id = Self::stream_of(content.varint()?)?;
                Ok(Frame::Received { id, offset: content.varint()? })
            }
            REPORT => Ok(Frame::Report { number: content.varint()?, content: content.rest }),
            _ => content.headers(flags),
        }
    }

    fn stream(&mut self, flags: u8) -> Result<Frame<'a>, FrameError> {
        if flags & OPEN != 0 && flags & WIDE != 0 {
            return Err(FrameError::Kind(flags));
        }
        let id = self.stream_id(flags)?;
        let open = if flags & OPEN != 0 { Some(self.open()?) } else { None };
        if let Some(None) = open {
            self.data(flags)?;
            return Ok(Frame::BadOpening { id });
        }
        let open = open.flatten();
        let offset = if open.is_some() {
            PartialOffset::Whole(0)
        } else if flags & WIDE != 0 {
            PartialOffset::Low(u32::from_be_bytes(self.array()?))
        } else {
            let [a, b, c] = self.array()?;
            PartialOffset::Whole(u64::from(u32::from_be_bytes([0, a, b, c])))
        };
        let data = self.data(flags)?;
        let [end, charged, coded] = [END, CHARGED, CODED].map(|flag| flags & flag != 0);
        Ok(Frame::Stream { id, open, offset, end, charged, coded, data })
    }

    /// Returns the data at the end of a frame.
    fn data(&mut self, flags: u8) -> Result<&'a [u8], FrameError> {
        let len = if flags & LENGTH != 0 {
            usize::try_from(self.varint()?).map_err(|_| FrameError::Truncated)?
        } else {
            self.rest.len()
        };
        self.bytes(len)
    }

    fn piece(&mut self, flags: u8) -> Result<Frame<'a>, FrameError> {
        let number = u16::try_from(self.varint()?).map_err(|_| FrameError::Number)?;
        let size = |number| match usize::try_from(number) {
            Ok(size) if size <= LARGEST => Ok(size),
            Ok(_) | Err(_) => Err(FrameError::Number),
        };
        let (total, offset) = (size(self.varint()?)?, size(self.varint()?)?);
        let piece = self.data(flags)?;
        let end = offset + piece.len();
        // Only the last piece may be shorter, which bounds the number of ranges in reassembly.
        if piece.is_empty() || end > total || (piece.len() < LEAST_PIECE && end < total) {
            return Err(FrameError::Number);
        }
        Ok(Frame::Piece { number, total, offset, piece })
    }

    /// Decodes an opening; `None` if its length is valid but it has an undefined value.
    fn open(&mut self) -> Result<Option<Open>, FrameError> {
        let priority = match self.byte()? {
            0 => Some(Priority::Interactive),
            1 => Some(Priority::Normal),
            2 => Some(Priority::Background),
            _ => None,
        };
        let kind = self.byte()?;
        let destination = match kind & 0x0f {
            0 => Some(Destination::Address(self.address_v4()?)),
            1 => Some(Destination::Address(self.address_v6()?)),
            2 => {
                let len = usize::from(self.byte()?);
                let name = core::str::from_utf8(self.bytes(len)?);
                let (name, port) = (name.ok().filter(|name| !name.is_empty()), self.port()?);
                name.map(|name| Destination::Name(name.into(), port))
            }
            // The length of the target is unknown, so the rest cannot be decoded.
            _ => return Err(FrameError::Target),
        };
        let source = match kind >> 4 {
            0 => None,
            1 => Some(self.address_v4()?),
            2 => Some(self.address_v6()?),
            _ => return Err(FrameError::Target),
        };
        let open = priority.zip(destination);
        Ok(open.map(|(priority, destination)| Open {
            priority,
            target: Target { destination, source },
        }))
    }

    fn address_v4(&mut self) -> Result<SocketAddr, FrameError> {
        let ip = Ipv4Addr::from(self.array::<4>()?);
        Ok(SocketAddr::from((ip, self.port()?)))
    }

    fn address_v6(&mut self) -> Result<SocketAddr, FrameError> {
        let ip = Ipv6Addr::from(self.array::<16>()?);
        Ok(SocketAddr::from((ip, self.port()?)))
    }

    fn port(&mut self) -> Result<u16, FrameError> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    /// Decodes the next entry of a note: a stream's limit, or (without a stream) the returned
    /// shared credit.
    pub(crate) fn note(&mut self) -> Result<(Option<StreamId>, u64), FrameError> {
        let key = self.varint()?;
        let value = self.credit()?;
        let Some(key) = key.checked_sub(1) else { return Ok((None, value)) };
        Ok((Some(Self::stream_of(key)?), value))
    }
}
