//! A whole segment: what it says, and which parts go together.

#[cfg(doc)]
use super::Profile;
use super::{Begin, BeginAck, End, Kinds, Poll, Stat, Ustat};
use crate::seq::Seq24;

/// What one segment says, borrowed from its octets or from what its sender holds.
///
/// Begun by one of the constructors and joined by the `and_` methods; the types of the result
/// always go together ([`Kinds::is_legal`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    pub(super) number: Seq24,
    pub(super) stamp: u32,
    pub(super) control: Option<Control>,
    pub(super) poll: Option<Poll>,
    pub(super) stat: Option<Stat<'a>>,
    pub(super) ustat: Option<Ustat<'a>>,
    pub(super) note: &'a [u8],
    pub(super) payload: Option<&'a [u8]>,
}

/// What a segment says about the connection as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// BGN.
    Begin(Begin),
    /// BGNAK.
    BeginAck(BeginAck),
    /// END; the segment's number is one past the last packet.
    End(End),
    /// ENDAK; the segment's number is that of the END.
    EndAck(End),
    /// RST.
    Reset(End),
}

/// Building one.
impl<'a> Segment<'a> {
    pub(super) const fn empty(number: Seq24) -> Self {
        Self {
            number,
            stamp: 0,
            control: None,
            poll: None,
            stat: None,
            ustat: None,
            note: &[],
            payload: None,
        }
    }

    const fn control_only(number: Seq24, control: Control) -> Self {
        Self { control: Some(control), ..Self::empty(number) }
    }

    /// BGN, sent at `stamp` (in [`Profile::tick`]s), from a sender whose VT(S) is `next`.
    pub const fn begin(next: Seq24, stamp: u32, begin: Begin) -> Self {
        Self { stamp, ..Self::control_only(next, Control::Begin(begin)) }
    }

    /// BGNAK, from a sender whose VT(S) is `next`.
    pub const fn begin_ack(next: Seq24, begin_ack: BeginAck) -> Self {
        Self::control_only(next, Control::BeginAck(begin_ack))
    }

    /// END of the direction whose last packet is the one before `next`.
    pub const fn end(next: Seq24, end: End) -> Self {
        Self::control_only(next, Control::End(end))
    }

    /// ENDAK of an END with number `next`.
    pub const fn end_ack(next: Seq24, end: End) -> Self {
        Self::control_only(next, Control::EndAck(end))
    }

    /// RST.
    pub const fn reset(end: End) -> Self {
        Self::control_only(Seq24::ZERO, Control::Reset(end))
    }

    /// SD with packet `number`.
    pub const fn data(number: Seq24, payload: &'a [u8]) -> Self {
        Self { payload: Some(payload), ..Self::empty(number) }
    }

    /// POLL, sent at `stamp` (in [`Profile::tick`]s; as published, the count).
    pub const fn poll(stamp: u32, poll: Poll) -> Self {
        Self { stamp, poll: Some(poll), ..Self::empty(poll.next) }
    }

    /// STAT, from a sender whose VT(S) is `next`.
    pub const fn stat(next: Seq24, stat: Stat<'a>) -> Self {
        Self { stat: Some(stat), ..Self::empty(next) }
    }

    /// USTAT, from a sender whose VT(S) is `next`.
    pub const fn ustat(next: Seq24, ustat: Ustat<'a>) -> Self {
        Self { ustat: Some(ustat), ..Self::empty(next) }
    }

    /// The same with SD.
    ///
    /// # Panics
    /// When this segment does not go with SD, or its POLL's VT(S) is not above `number`.
    #[must_use]
    pub fn and_data(self, number: Seq24, payload: &'a [u8]) -> Self {
        Self { number, payload: Some(payload), ..self }.checked()
    }

    /// The same with POLL; `stamp` is that of the whole segment.
    ///
    /// # Panics
    /// When this segment does not go with POLL, or its packet is not below the POLL's VT(S).
    #[must_use]
    pub fn and_poll(self, stamp: u32, poll: Poll) -> Self {
        let number = if self.payload.is_some() { self.number } else { poll.next };
        Self { number, stamp, poll: Some(poll), ..self }.checked()
    }

    /// The same with STAT.
    ///
    /// # Panics
    /// When this segment does not go with STAT.
    #[must_use]
    pub fn and_stat(self, stat: Stat<'a>) -> Self {
        Self { stat: Some(stat), ..self }.checked()
    }

    /// The same with USTAT.
    ///
    /// # Panics
    /// When this segment does not go with USTAT.
    #[must_use]
    pub fn and_ustat(self, ustat: Ustat<'a>) -> Self {
        Self { ustat: Some(ustat), ..self }.checked()
    }

    /// The same with a NOTE, which takes [`Segment::note_overhead`] more octets. The published
    /// profile leaves it out.
    ///
    /// # Panics
    /// When this segment has neither POLL nor STAT.
    #[must_use]
    pub fn and_note(self, note: &'a [u8]) -> Self {
        assert!(self.poll.is_some() || self.stat.is_some(), "a NOTE rides on POLL or STAT");
        Self { note, ..self }
    }

    /// The same sent at `stamp`, which every published segment says. With BGN or POLL the stamp
    /// is theirs already; sealed segments without them do not carry one.
    #[must_use]
    pub fn stamped(self, stamp: u32) -> Self {
        let has_one = self.poll.is_some() || matches!(self.control, Some(Control::Begin(_)));
        if has_one { self } else { Self { stamp, ..self } }
    }

    fn checked(self) -> Self {
        let kinds = self.kinds();
        assert!(kinds.is_legal(), "{kinds} do not go together");
        if let (Some(poll), Some(_)) = (self.poll, self.payload) {
            assert!(poll.ahead_of(self.number) < Seq24::HALF, "a POLL is ahead of its packet");
        }
        self
    }
}

/// Reading one.
impl<'a> Segment<'a> {
    /// Its types.
    pub fn kinds(&self) -> Kinds {
        let control = match self.control {
            None => Kinds::unchecked(0),
            Some(Control::Begin(_)) => Kinds::BGN,
            Some(Control::BeginAck(_)) => Kinds::BGN.and(Kinds::AK),
            Some(Control::End(_)) => Kinds::END,
            Some(Control::EndAck(_)) => Kinds::END.and(Kinds::AK),
            Some(Control::Reset(_)) => Kinds::RST,
        };
        [
            (self.payload.is_some(), Kinds::SD),
            (self.poll.is_some(), Kinds::POLL),
            (self.stat.is_some(), Kinds::STAT),
            (self.ustat.is_some(), Kinds::USTAT),
        ]
        .into_iter()
        .filter(|(present, _)| *present)
        .fold(control, |kinds, (_, kind)| kinds.and(kind))
    }

    /// N(S) of its packet; without SD, its sender's VT(S).
    pub const fn number(&self) -> Seq24 {
        self.number
    }

    /// When it was sent, by its sender's clock, in [`Profile::tick`]s; sealed, zero without BGN
    /// and POLL.
    pub const fn stamp(&self) -> u32 {
        self.stamp
    }

    /// BGN, BGNAK, END, ENDAK or RST.
    pub const fn control(&self) -> Option<Control> {
        self.control
    }

    /// The payload of SD.
    pub const fn payload(&self) -> Option<&'a [u8]> {
        self.payload
    }

    /// POLL.
    pub const fn poll_part(&self) -> Option<Poll> {
        self.poll
    }

    /// STAT.
    pub const fn stat_part(&self) -> Option<Stat<'a>> {
        self.stat
    }

    /// USTAT.
    pub const fn ustat_part(&self) -> Option<Ustat<'a>> {
        self.ustat
    }

    /// NOTE; empty when there is none.
    pub const fn note(&self) -> &'a [u8] {
        self.note
    }
}
