//! Encoding and decoding of a segment: its parts in their order.
//!
//! ```text
//!  header | BGN, BGNAK, END, ENDAK or RST | timestamp | POLL | STAT | USTAT | NOTE | SD payload
//! ```

use super::header::{CHECKSUM, Header};
use super::octets::{self, Counter, Reader, Sink, Writer};
use super::segment::{Control, Segment};
use super::{
    Begin, BeginAck, DecodeError, EncodeError, End, Kinds, Part, Poll, Profile, Repair, Stat,
    Ustat, checksum, data, note,
};

/// Encoding.
impl Segment<'_> {
    /// Octets of the segment without the payload of its SD.
    pub fn overhead(&self, profile: &Profile) -> usize {
        let mut counter = Counter::default();
        // A list that is too long to be written is refused when it is written.
        let _ = self.encode_head(profile, &mut counter);
        counter.0
    }

    /// Octets that a NOTE of `len` octets adds to a sealed segment with POLL or STAT.
    pub const fn note_overhead(len: usize) -> usize {
        // One octet of length is part of every such segment.
        octets::varint_len(len as u32) - 1 + len
    }

    /// Writes the segment to the start of `out`; returns its length.
    ///
    /// # Errors
    /// If `out` is too short, or a published list has more than 255 boundaries.
    pub fn encode(&self, profile: &Profile, out: &mut [u8]) -> Result<usize, EncodeError> {
        let payload = self.payload.unwrap_or_default();
        let overhead = self.overhead(profile);
        let expected = overhead + payload.len();
        let found = out.len();
        let place =
            out.get_mut(overhead..expected).ok_or(EncodeError::NoRoom { expected, found })?;
        place.copy_from_slice(payload);
        self.encode_in_place(profile, out, payload.len())
    }

    /// Writes the segment around a payload of `payload_len` octets that is in `out` already, at the
    /// offset [`Segment::overhead`]; the payload of this value is ignored. Returns the length of
    /// the segment.
    ///
    /// # Errors
    /// If `out` is too short, or a published list has more than 255 boundaries.
    ///
    /// # Panics
    /// If `payload_len` is above zero and the segment has no SD.
    pub fn encode_in_place(
        &self,
        profile: &Profile,
        out: &mut [u8],
        payload_len: usize,
    ) -> Result<usize, EncodeError> {
        assert!(payload_len == 0 || self.payload.is_some(), "a payload needs SD");
        let expected = self.overhead(profile) + payload_len;
        let found = out.len();
        let segment = out.get_mut(..expected).ok_or(EncodeError::NoRoom { expected, found })?;
        self.encode_head(profile, &mut Writer { out: segment, at: 0 })?;
        if let Profile::Published(ends) = profile {
            let sum = checksum::outgoing(ends, segment);
            segment[CHECKSUM].copy_from_slice(&sum.to_be_bytes());
        }
        Ok(expected)
    }

    /// Writes all parts but the payload.
    fn encode_head(&self, profile: &Profile, sink: &mut impl Sink) -> Result<(), EncodeError> {
        let kinds = self.kinds();
        let header = Header {
            kinds,
            number: self.number,
            window: self.header_window(),
            timestamp: self.poll.map_or(self.timestamp, |poll| poll.seq),
        };
        header.encode(profile, sink);
        match self.control {
            Some(Control::Begin(begin)) => begin.encode(profile, sink),
            Some(Control::BeginAck(begin_ack)) => begin_ack.encode(profile, sink),
            Some(Control::End(end) | Control::EndAck(end) | Control::Reset(end)) => {
                end.encode(profile, sink);
            }
            None => {}
        }
        if has_timestamp_part(profile, kinds) {
            sink.u32(self.timestamp);
        }
        if let Some(poll) = self.poll {
            poll.encode(profile, self.payload.map(|_| self.number), sink);
        }
        if let Some(stat) = self.stat {
            stat.encode(profile, sink)?;
        }
        if let Some(ustat) = self.ustat {
            ustat.encode(profile, sink)?;
        }
        if note::is_carried(profile, kinds) {
            note::encode(self.note, sink);
        }
        if let Some(repair) = self.repair {
            repair.encode(sink);
        }
        Ok(())
    }

    /// Window of a published header: that of STAT, BGN or BGNAK.
    fn header_window(&self) -> u32 {
        match (self.stat, self.control) {
            (Some(stat), _) => stat.window,
            (None, Some(Control::Begin(begin))) => begin.window,
            (None, Some(Control::BeginAck(ack))) => ack.begin.window,
            (None, Some(Control::End(_) | Control::EndAck(_) | Control::Reset(_)) | None) => 0,
        }
    }
}

/// Decoding.
impl<'a> Segment<'a> {
    /// Decodes one segment.
    ///
    /// # Errors
    /// If the octets are not one complete segment of this profile in its canonical form.
    pub fn decode(profile: &Profile, octets: &'a [u8]) -> Result<Self, DecodeError> {
        let header = Header::decode(profile, octets)?;
        let kinds = header.kinds;
        let mut reader = Reader::new(&octets[profile.header_len()..], Part::Header);
        let mut segment = Self::empty(header.number);
        if kinds == Kinds::REPAIR {
            segment.repair = Some(Repair::decode(reader.in_part(Part::Repair))?);
            return Ok(segment);
        }
        segment.control = decode_control(profile, &header, &mut reader)?;
        if has_timestamp_part(profile, kinds) {
            segment.timestamp = reader.in_part(Part::Timestamp).u32()?;
        } else if let Profile::Published(_) = profile {
            segment.timestamp = header.timestamp;
        }
        if kinds.contains(Kinds::POLL) {
            let has_data = kinds.contains(Kinds::SD);
            let reader = reader.in_part(Part::Poll);
            let poll = Poll::decode(profile, header.number, has_data, header.timestamp, reader)?;
            segment.poll = Some(poll);
        }
        if kinds.contains(Kinds::STAT) {
            segment.stat = Some(Stat::decode(profile, &header, reader.in_part(Part::Stat))?);
        }
        if kinds.contains(Kinds::USTAT) {
            segment.ustat = Some(Ustat::decode(profile, reader.in_part(Part::Ustat))?);
        }
        if note::is_carried(profile, kinds) {
            segment.note = note::decode(reader.in_part(Part::Note))?;
        }
        segment.payload = data::decode(kinds.contains(Kinds::SD), reader)?;
        Ok(segment)
    }
}

/// Whether a segment of these types has a timestamp; BGNAK alone does not.
const fn has_timestamp(kinds: Kinds) -> bool {
    kinds.contains(Kinds::POLL) || kinds.contains(Kinds::BGN) && !kinds.contains(Kinds::AK)
}

/// Whether the timestamp is a separate part.
const fn has_timestamp_part(profile: &Profile, kinds: Kinds) -> bool {
    match profile {
        Profile::Published(_) => false,
        Profile::Sealed => has_timestamp(kinds),
    }
}

fn decode_control(
    profile: &Profile,
    header: &Header,
    reader: &mut Reader<'_>,
) -> Result<Option<Control>, DecodeError> {
    let kinds = header.kinds;
    let is_ack = kinds.contains(Kinds::AK);
    let control = if kinds.contains(Kinds::BGN) {
        let reader = reader.in_part(Part::Begin);
        if is_ack {
            Control::BeginAck(BeginAck::decode(profile, header, reader)?)
        } else {
            Control::Begin(Begin::decode(profile, header, reader)?)
        }
    } else if kinds.contains(Kinds::END) {
        let end = End::decode(profile, reader.in_part(Part::End))?;
        if is_ack { Control::EndAck(end) } else { Control::End(end) }
    } else if kinds.contains(Kinds::RST) {
        Control::Reset(End::decode(profile, reader.in_part(Part::Reset))?)
    } else {
        return Ok(None);
    };
    Ok(Some(control))
}
