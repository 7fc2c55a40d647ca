//! What a segment is put together from, while it is not yet known what rides along.

use super::upper::Upper;
use crate::Seq24;
use crate::wire::{Control, Poll, Profile, Segment, Stat, Ustat};

/// A NOTE is at most this long.
pub(super) const NOTE_ROOM: usize = 255;

/// What a segment is put together from.
#[derive(Clone, Copy)]
pub(super) struct Parts<'a> {
    /// VT(S), after the SD if there is a new one.
    pub(super) next: Seq24,
    pub(super) opening: Option<Control>,
    pub(super) stamp: u32,
    pub(super) data: Option<Seq24>,
    pub(super) poll: Option<Poll>,
    pub(super) stat: Option<Stat<'a>>,
    pub(super) ustat: Option<Ustat<'a>>,
    pub(super) note: &'a [u8],
}

impl<'a> Parts<'a> {
    pub(super) fn new(next: Seq24, stamp: u32, opening: Option<Control>) -> Self {
        Self { next, opening, stamp, data: None, poll: None, stat: None, ustat: None, note: &[] }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.opening.is_none()
            && self.data.is_none()
            && self.poll.is_none()
            && self.stat.is_none()
            && self.ustat.is_none()
    }

    /// The segment. Its payload stands in the buffer already.
    pub(super) fn segment(&self) -> Option<Segment<'a>> {
        if let Some(number) = self.data
            && self.is_data_alone()
        {
            return Some(Segment::data(number, &[]).stamped(self.stamp));
        }
        let mut built = match self.opening {
            Some(Control::Begin(begin)) => Some(Segment::begin(self.next, self.stamp, begin)),
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
                None => Segment::poll(self.stamp, poll),
                Some(segment) => segment.and_poll(self.stamp, poll),
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
        let built = built?.stamped(self.stamp);
        Some(if self.note.is_empty() { built } else { built.and_note(self.note) })
    }

    /// Whether nothing goes beside an SD: most segments.
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

/// The NOTE that goes with these parts, as long as `room` octets are not exceeded.
pub(super) fn take_note<'a>(
    profile: &Profile,
    parts: &Parts<'_>,
    room: usize,
    upper: &mut impl Upper,
    buffer: &'a mut [u8],
) -> &'a [u8] {
    let carries = parts.poll.is_some() || parts.stat.is_some();
    if !carries || matches!(profile, Profile::Published(_)) {
        return &[];
    }
    // One octet more for its length, beyond the one that is there anyway.
    let left = room.saturating_sub(parts.overhead(profile) + 1).min(buffer.len());
    let len = upper.note(&mut buffer[..left]).min(left);
    &buffer[..len]
}
