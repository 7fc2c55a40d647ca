//! Segment: its contents, and the combinations of its parts.

#[cfg(doc)]
use super::Profile;
use super::{Begin, BeginAck, End, Kinds, Poll, Repair, Stat, Ustat};
use crate::seq::Seq24;

/// Contents of a segment, borrowed from its octets or from its sender.
///
/// A constructor creates it, and the `and_` methods add parts; the combination of types is always
/// valid ([`Kinds::is_legal`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    pub(super) number: Seq24,
    pub(super) timestamp: u32,
    pub(super) control: Option<Control>,
    pub(super) poll: Option<Poll>,
    pub(super) stat: Option<Stat<'a>>,
    pub(super) ustat: Option<Ustat<'a>>,
    pub(super) note: &'a [u8],
    pub(super) payload: Option<&'a [u8]>,
    pub(super) repair: Option<Repair<'a>>,
}

/// Control part of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// BGN.
    Begin(Begin),
    /// BGNAK.
    BeginAck(BeginAck),
    /// END; the number of the segment is one after the last packet.
    End(End),
    /// ENDAK; the number of the segment is that of the END.
    EndAck(End),
    /// RST.
    Reset(End),
}

/// Construction.
impl<'a> Segment<'a> {
    pub(super) const fn empty(number: Seq24) -> Self {
        Self {
            number,
            timestamp: 0,
            control: None,
            poll: None,
            stat: None,
            ustat: None,
            note: &[],
            payload: None,
            repair: None,
        }
    }

    const fn control_only(number: Seq24, control: Control) -> Self {
        Self { control: Some(control), ..Self::empty(number) }
    }

    /// BGN, sent at `timestamp` (in [`Profile::tick`]s), from a sender whose VT(S) is `next`.
    pub const fn begin(next: Seq24, timestamp: u32, begin: Begin) -> Self {
        Self { timestamp, ..Self::control_only(next, Control::Begin(begin)) }
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

    /// RST. When sealed, `reason` is in place of the sequence number (XSTP-6.5.3).
    pub const fn reset(reason: Seq24, end: End) -> Self {
        Self::control_only(reason, Control::Reset(end))
    }

    /// SD with packet `number`.
    pub const fn data(number: Seq24, payload: &'a [u8]) -> Self {
        Self { payload: Some(payload), ..Self::empty(number) }
    }

    /// POLL, sent at `timestamp` (in [`Profile::tick`]s; as published, its sequence number).
    pub const fn poll(timestamp: u32, poll: Poll) -> Self {
        Self { timestamp, poll: Some(poll), ..Self::empty(poll.next) }
    }

    /// STAT, from a sender whose VT(S) is `next`.
    pub const fn stat(next: Seq24, stat: Stat<'a>) -> Self {
        Self { stat: Some(stat), ..Self::empty(next) }
    }

    /// USTAT, from a sender whose VT(S) is `next`.
    pub const fn ustat(next: Seq24, ustat: Ustat<'a>) -> Self {
        Self { ustat: Some(ustat), ..Self::empty(next) }
    }

    /// REPAIR, whose first covered packet is `number`. The published profile has none.
    pub const fn repair(number: Seq24, repair: Repair<'a>) -> Self {
        Self { repair: Some(repair), ..Self::empty(number) }
    }

    /// Adds SD.
    ///
    /// # Panics
    /// If the segment cannot have SD, or VT(S) of its POLL is not above `number`.
    #[must_use]
    pub fn and_data(self, number: Seq24, payload: &'a [u8]) -> Self {
        Self { number, payload: Some(payload), ..self }.checked()
    }

    /// Adds POLL; `timestamp` is that of the segment.
    ///
    /// # Panics
    /// If the segment cannot have POLL, or its packet is not below VT(S) of the POLL.
    #[must_use]
    pub fn and_poll(self, timestamp: u32, poll: Poll) -> Self {
        let number = if self.payload.is_some() { self.number } else { poll.next };
        Self { number, timestamp, poll: Some(poll), ..self }.checked()
    }

    /// Adds STAT.
    ///
    /// # Panics
    /// If the segment cannot have STAT.
    #[must_use]
    pub fn and_stat(self, stat: Stat<'a>) -> Self {
        Self { stat: Some(stat), ..self }.checked()
    }

    /// Adds USTAT.
    ///
    /// # Panics
    /// If the segment cannot have USTAT.
    #[must_use]
    pub fn and_ustat(self, ustat: Ustat<'a>) -> Self {
        Self { ustat: Some(ustat), ..self }.checked()
    }

    /// Adds a NOTE, which takes [`Segment::note_overhead`] more octets. The published profile omits
    /// it.
    ///
    /// # Panics
    /// If the segment has neither POLL nor STAT.
    #[must_use]
    pub fn and_note(self, note: &'a [u8]) -> Self {
        assert!(self.poll.is_some() || self.stat.is_some(), "a NOTE needs POLL or STAT");
        Self { note, ..self }
    }

    /// Sets the timestamp, which every published segment has. BGN and POLL have one already; sealed
    /// segments without them have none.
    #[must_use]
    pub fn with_timestamp(self, timestamp: u32) -> Self {
        let has_one = self.poll.is_some() || matches!(self.control, Some(Control::Begin(_)));
        if has_one { self } else { Self { timestamp, ..self } }
    }

    fn checked(self) -> Self {
        let kinds = self.kinds();
        assert!(kinds.is_legal(), "{kinds} cannot be combined");
        if let (Some(poll), Some(_)) = (self.poll, self.payload) {
            assert!(poll.ahead_of(self.number) < Seq24::HALF, "a POLL is ahead of its packet");
        }
        self
    }
}

/// Contents.
impl<'a> Segment<'a> {
    /// Whether a sealed segment names its incarnation: it has BGN, BGNAK, END, ENDAK or RST.
    pub fn names_incarnation(octets: &[u8]) -> bool {
        let naming = Kinds::BGN.bits() | Kinds::END.bits() | Kinds::RST.bits();
        octets.first().is_some_and(|kinds| kinds & naming != 0)
    }

    /// Types.
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
            (self.repair.is_some(), Kinds::REPAIR),
        ]
        .into_iter()
        .filter(|(present, _)| *present)
        .fold(control, |kinds, (_, kind)| kinds.and(kind))
    }

    /// Sequence number N(S) of the packet, or of the first packet that REPAIR covers; in all other
    /// segments, VT(S) of the sender.
    pub const fn number(&self) -> Seq24 {
        self.number
    }

    /// Transmission time on the clock of the sender, in [`Profile::tick`]s; zero in a sealed segment
    /// without BGN and POLL.
    pub const fn timestamp(&self) -> u32 {
        self.timestamp
    }

    /// BGN, BGNAK, END, ENDAK or RST.
    pub const fn control(&self) -> Option<Control> {
        self.control
    }

    /// Payload of SD.
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

    /// REPAIR.
    pub const fn repair_part(&self) -> Option<Repair<'a>> {
        self.repair
    }

    /// NOTE; empty if there is none.
    pub const fn note(&self) -> &'a [u8] {
        self.note
    }
}
