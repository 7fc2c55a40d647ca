//! Lists of gaps.
//!
//! ```text
//!  numbers     N(R)                                              VR(H)
//!               |  missing  |    received    | missing | received |
//!  boundaries   e1          e2               e3        e4         e5
//!  lengths      |<-- l1 --->|<----- l2 ----->|<-- l3 ->|<-- l4 -->|
//! ```
//!
//! The list of a STAT covers all packets from N(R) up to VR(H). N(R) is the first missing packet, so
//! the runs alternate, and the first one is missing. A list that is too long for one segment is
//! divided before a missing run, and the list of each segment contains its start. The list of a
//! USTAT starts and ends with a gap; packets between gaps are not reported as received.
//!
//! ```text
//! published   1-octet count of boundaries (in the part's first octet), then
//!             +-----------------------+-----------------------+----
//!             |          e1           |          e2           | ...   3 octets each
//!             +-----------------------+-----------------------+----
//! sealed      count of lengths, then each length, all variable-length integers
//! ```

use super::octets::{Reader, Sink, varint_len};
use super::{DecodeError, EncodeError, Profile};
use crate::seq::Seq24;
use core::fmt;

/// Maximum number of boundaries of a published list.
const MAX_BOUNDARIES: usize = 255;

/// Alternating runs of missing and other packets, relative to N(R) of a STAT or USTAT.
#[derive(Clone, Copy)]
pub struct RunList<'a> {
    /// Distance from N(R) to the first missing run.
    skip: u32,
    lengths: Lengths<'a>,
}

/// One run of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Sequence number of its first packet.
    pub start: Seq24,
    /// Number of packets, at least one.
    pub len: u32,
    /// Whether the packets are missing.
    pub missing: bool,
}

#[derive(Clone, Copy)]
enum Lengths<'a> {
    Plain(&'a [u32]),
    /// Checked to be complete and in the shortest form.
    Varints(&'a [u8]),
    /// Checked to increase; absolute sequence numbers, of which the first is the start of the list.
    Boundaries(Seq24, &'a [[u8; 3]]),
}

impl<'a> RunList<'a> {
    /// No gaps.
    pub const EMPTY: Self = Self { skip: 0, lengths: Lengths::Plain(&[]) };

    /// A list that starts `skip` packets after N(R): missing, received, missing, ...
    ///
    /// Returns `None` if a length is zero or the list ends more than [`Seq24::HALF`] after N(R).
    pub fn new(skip: u32, lengths: &'a [u32]) -> Option<Self> {
        if lengths.is_empty() {
            return Some(Self::EMPTY);
        }
        let end = lengths.iter().fold(u64::from(skip), |end, &length| end + u64::from(length));
        let fits = end <= u64::from(Seq24::HALF) && !lengths.contains(&0);
        fits.then_some(Self { skip, lengths: Lengths::Plain(lengths) })
    }

    /// Whether there is no gap.
    pub fn is_empty(&self) -> bool {
        self.lengths.iter().next().is_none()
    }

    /// Number of runs.
    pub fn len(&self) -> usize {
        self.lengths.iter().count()
    }

    /// Packets between N(R) and the first run.
    pub const fn skip(&self) -> u32 {
        self.skip
    }

    /// The runs of a list whose N(R) is `received_below`.
    pub fn runs(&self, received_below: Seq24) -> Runs<'a> {
        Runs { at: received_below.add(self.skip), missing: true, lengths: self.lengths.iter() }
    }

    /// Writes the number of lengths and the lengths.
    pub(super) fn encode_lengths(&self, sink: &mut impl Sink) {
        // At most 2²³ runs of one packet each.
        sink.varint(self.len() as u32);
        self.lengths.iter().for_each(|length| sink.varint(length));
    }

    /// Writes the boundaries.
    pub(super) fn encode_boundaries(&self, received_below: Seq24, sink: &mut impl Sink) {
        let mut at = received_below.add(self.skip);
        for (index, length) in self.lengths.iter().enumerate() {
            if index == 0 {
                sink.number(at);
            }
            at = at.add(length);
            sink.number(at);
        }
    }

    /// Number of boundaries of the list, in one octet.
    pub(super) fn boundary_count(&self) -> Result<u8, EncodeError> {
        let found = match self.len() {
            0 => 0,
            runs => runs + 1,
        };
        u8::try_from(found).map_err(|_| EncodeError::ListLength { expected: MAX_BOUNDARIES, found })
    }

    /// Decodes the output of [`RunList::encode_lengths`].
    pub(super) fn decode_lengths(skip: u32, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let part = reader.part();
        let count = reader.varint()?;
        let left = reader.left();
        let mut end = u64::from(skip);
        for _ in 0..count {
            let length = reader.varint()?;
            let next = end + u64::from(length);
            if length == 0 || next > u64::from(Seq24::HALF) {
                // `end` passed this check, or `skip` did.
                return Err(DecodeError::ListOrder { part, expected: end as u32 + 1, found: next });
            }
            end = next;
        }
        let octets = &left[..left.len() - reader.left().len()];
        let skip = if count == 0 { 0 } else { skip };
        Ok(Self { skip, lengths: Lengths::Varints(octets) })
    }

    /// Decodes `count` boundaries.
    pub(super) fn decode_boundaries(
        received_below: Seq24,
        count: u8,
        reader: &mut Reader<'a>,
    ) -> Result<Self, DecodeError> {
        let part = reader.part();
        let octets = reader.take(3 * usize::from(count))?;
        let Some((first, rest)) = octets.as_chunks::<3>().0.split_first() else {
            return Ok(Self::EMPTY);
        };
        let first = Seq24::from_octets(*first);
        let skip = first.distance(received_below);
        let mut expected = 0;
        for distance in core::iter::once(skip)
            .chain(rest.iter().map(|&next| Seq24::from_octets(next).distance(received_below)))
        {
            if distance < expected || distance > Seq24::HALF {
                return Err(DecodeError::ListOrder { part, expected, found: u64::from(distance) });
            }
            expected = distance + 1;
        }
        Ok(Self { skip, lengths: Lengths::Boundaries(first, rest) })
    }
}

impl PartialEq for RunList<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.skip == other.skip && self.lengths.iter().eq(other.lengths.iter())
    }
}

impl Eq for RunList<'_> {}

impl fmt::Debug for RunList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "+{} ", self.skip)?;
        f.debug_list().entries(self.lengths.iter()).finish()
    }
}

/// The runs of a list, in order.
#[derive(Clone)]
pub struct Runs<'a> {
    at: Seq24,
    missing: bool,
    lengths: LengthIter<'a>,
}

impl Iterator for Runs<'_> {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        let len = self.lengths.next()?;
        let run = Run { start: self.at, len, missing: self.missing };
        self.at = self.at.add(len);
        self.missing = !self.missing;
        Some(run)
    }
}

impl<'a> Lengths<'a> {
    fn iter(self) -> LengthIter<'a> {
        LengthIter(self)
    }
}

#[derive(Clone)]
struct LengthIter<'a>(Lengths<'a>);

impl Iterator for LengthIter<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        match &mut self.0 {
            Lengths::Plain(lengths) => {
                let (&length, rest) = lengths.split_first()?;
                *lengths = rest;
                Some(length)
            }
            Lengths::Varints(octets) => {
                let mut reader = Reader::new(octets, super::Part::Stat);
                let length = reader.varint().ok()?;
                *octets = reader.left();
                Some(length)
            }
            Lengths::Boundaries(at, rest) => {
                let (&next, others) = rest.split_first()?;
                let next = Seq24::from_octets(next);
                let length = next.distance(*at);
                (*at, *rest) = (next, others);
                Some(length)
            }
        }
    }
}

/// Room for a list in a segment.
#[derive(Clone, Debug)]
pub struct RunBudget {
    octets: usize,
    runs: usize,
    /// Octets per run; `None` for variable-length integers.
    each: Option<usize>,
}

impl RunBudget {
    /// Room for a STAT of `room` octets.
    pub fn stat(profile: &Profile, room: usize) -> Self {
        // Published: number of boundaries, N(R), echo and e1. Sealed: flags, POLL sequence number,
        // timestamp, N(R), window, arrival, skip and number of lengths, at their maximum lengths.
        Self::new(profile, room, 1 + 3 + 4 + 3, 1 + 5 + 4 + 3 + 4 + 8 + 4 + 4)
    }

    /// Room for a USTAT of `room` octets.
    pub fn ustat(profile: &Profile, room: usize) -> Self {
        // Published: number of boundaries, N(R) and e1. Sealed: N(R), skip and the number of lengths.
        Self::new(profile, room, 1 + 3 + 3, 3 + 4 + 4)
    }

    fn new(profile: &Profile, room: usize, published: usize, sealed: usize) -> Self {
        match profile {
            Profile::Published(_) => Self {
                octets: room.saturating_sub(published),
                runs: MAX_BOUNDARIES - 1,
                each: Some(3),
            },
            Profile::Sealed => {
                Self { octets: room.saturating_sub(sealed), runs: usize::MAX, each: None }
            }
        }
    }

    /// Takes the room for all runs of these lengths; returns false if there is not enough.
    pub fn take(&mut self, lengths: &[u32]) -> bool {
        let octets: usize = lengths.iter().map(|&len| self.each.unwrap_or(varint_len(len))).sum();
        let fits = octets <= self.octets && lengths.len() <= self.runs;
        if fits {
            self.octets -= octets;
            self.runs -= lengths.len();
        }
        fits
    }
}
