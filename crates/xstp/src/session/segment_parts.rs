//! Parts of a segment that is being assembled.

use super::upper::UpperLayer;
use crate::seq::Seq24;
use crate::wire::{Control, Poll, Profile, Segment, Stat, Ustat};

/// Maximum length of a NOTE.
pub(super) const NOTE_ROOM: usize = 255;

/// Parts of a segment.
#[derive(Clone, Copy)]
pub(super) struct SegmentParts<'a> {
    /// VT(S), after the SD if it is a new packet.
    pub(super) next: Seq24,
    pub(super) opening: Option<Control>,
    pub(super) timestamp: u32,
    pub(super) data: Option<Seq24>,
    pub(super) poll: Option<Poll>,
    pub(super) stat: Option<Stat<'a>>,
    pub(super) ustat: Option<Ustat<'a>>,
    pub(super) note: &'a [u8],
}

impl<'a> SegmentParts<'a> {
    pub(super) fn new(next: Seq24, timestamp: u32, opening: Option<Control>) -> Self {
        Self {
            next,
            opening,
            timestamp,
            data: None,
            poll: None,
            stat: None,
            ustat: None,
            note: &[],
        }
    }

    /// Whether BGN is one of the parts.
    pub(super) fn has_begin(&self) -> bool {
        matches!(self.opening, Some(Control::Begin(_)))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.opening.is_none()
            && self.data.is_none()
            && self.poll.is_none()
            && self.stat.is_none()
            && self.ustat.is_none()
    }

    /// The segment, without its payload, which is in the buffer.
    pub(super) fn segment(&self) -> Option<Segment<'a>> {
        if let Some(number) = self.data
            && self.is_data_alone()
        {
            return Some(Segment::data(number, &[]).with_timestamp(self.timestamp));
        }
        let mut built = match self.opening {
            Some(Control::Begin(begin)) => Some(Segment::begin(self.next, self.timestamp, begin)),
            Some(Control::BeginAck(ack)) => Some(Segment::begin_ack(self.next, ack)),
            Some(Control::End(_) | Control::EndAck(_) | Control::Reset(_)) | None => None,
        };
        if let Some(number) = self.data {
            built = Some(match built {
                None => Segment::data(number, &[]),
                Some(segment) => segment.and_data(number, &[]),
            });
        }
        if let Some(poll) = self.poll {
            built = Some(match built {
                None => Segment::poll(self.timestamp, poll),
                Some(segment) => segment.and_poll(self.timestamp, poll),
            });
        }
        if let Some(stat) = self.stat {
            built = Some(match built {
                None => Segment::stat(self.next, stat),
                Some(segment) => segment.and_stat(stat),
            });
        }
        if let Some(ustat) = self.ustat {
            built = Some(match built {
                None => Segment::ustat(self.next, ustat),
                Some(segment) => segment.and_ustat(ustat),
            });
        }
        let built = built?.with_timestamp(self.timestamp);
        Some(if self.note.is_empty() { built } else { built.and_note(self.note) })
    }

    /// Whether there is no part beside an SD, as in most segments.
    fn is_data_alone(&self) -> bool {
        self.opening.is_none()
            && self.poll.is_none()
            && self.stat.is_none()
            && self.ustat.is_none()
            && self.note.is_empty()
    }

    pub(super) fn overhead(&self, profile: &Profile) -> usize {
        if self.data.is_some() && self.is_data_alone() {
            return profile.header_len();
        }
        self.segment().map_or(0, |segment| segment.overhead(profile))
    }
}

/// The NOTE for these parts, which leaves the segment within `room` octets.
pub(super) fn take_note<'a>(
    profile: &Profile,
    parts: &SegmentParts<'_>,
    room: usize,
    upper: &mut impl UpperLayer,
    buffer: &'a mut [u8],
) -> &'a [u8] {
    let carries = parts.poll.is_some() || parts.stat.is_some();
    if !carries || matches!(profile, Profile::Published(_)) {
        return &[];
    }
    // Its length takes one octet more than the one that `overhead` includes.
    let left = room.saturating_sub(parts.overhead(profile) + 1).min(buffer.len());
    let len = upper.fill_note(&mut buffer[..left]).min(left);
    &buffer[..len]
}
