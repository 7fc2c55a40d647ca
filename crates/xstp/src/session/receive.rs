//! Reception: the order in which the parts of a segment are processed, and their effects.
//!
//! The order is fixed (XSTP-4.1.2): RST, BGN or BGNAK, SD, STAT, USTAT, POLL, NOTE, END or ENDAK.
//! For each part the state machine decides whether it is accepted.

use super::lifecycle::{Action, RejectedBegin, State, StateInput, initial_poll_seq};
use super::receiver::Accept;
use super::upper::UpperLayer;
use super::{Event, Session};
use crate::seq::Seq24;
use crate::wire::{Begin, BeginAck, Control, DecodeError, End, Poll, Segment};
use core::fmt;
use units::Instant;

/// Reason why a segment was dropped. Each is also counted in [`Statistics`](super::Statistics).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReceiveError {
    /// The octets are not a segment.
    Malformed(DecodeError),
    /// The segment belongs to another incarnation of the session.
    OtherIncarnation,
    /// The segment is not allowed in this state.
    Unexpected(State),
}

impl fmt::Display for ReceiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(error) => error.fmt(f),
            Self::OtherIncarnation => f.write_str("segment of another incarnation"),
            Self::Unexpected(state) => write!(f, "segment not allowed in state {state:?}"),
        }
    }
}

impl core::error::Error for ReceiveError {}

impl Session {
    /// Processes a segment that was received at `now`.
    ///
    /// # Errors
    /// If the segment was dropped as a whole: the session is unchanged. Single parts that are
    /// invalid are only counted.
    pub fn handle_segment(
        &mut self,
        now: Instant,
        bytes: &[u8],
        upper: &mut impl UpperLayer,
    ) -> Result<(), ReceiveError> {
        let segment = match Segment::decode(&self.config.profile, bytes) {
            Ok(segment) => segment,
            Err(error) => {
                self.statistics.malformed += 1;
                return Err(ReceiveError::Malformed(error));
            }
        };
        if segment.repair_part().is_some() && !self.has_repair() {
            self.statistics.malformed += 1;
            let found = segment.kinds();
            return Err(ReceiveError::Malformed(DecodeError::Combination { found }));
        }
        if self.lifecycle.is_stale_incarnation(&segment) {
            return self.other_incarnation();
        }
        self.statistics.segments_received += 1;
        self.statistics.octets_received += bytes.len() as u64;
        match segment.control() {
            Some(Control::Begin(begin)) => self.on_begin(now, &segment, begin)?,
            Some(Control::BeginAck(ack)) => self.on_begin_ack(now, segment.timestamp(), ack)?,
            Some(Control::Reset(end)) => return self.on_reset(now, segment.number(), end),
            Some(Control::End(end) | Control::EndAck(end)) => self.check_incarnation(end)?,
            None => {}
        }
        if self.lifecycle.is_connected() {
            self.liveness.on_received(now);
            let has_report = || segment.stat_part().is_some() || segment.ustat_part().is_some();
            if self.liveness.outage_since().is_none() || self.liveness.resumes(now, has_report()) {
                self.congestion.on_peer_activity(now);
            }
            self.receiver.on_octets((bytes.len() + self.config.packet_overhead) as u32);
        }
        self.on_parts(now, &segment, upper);
        match segment.control() {
            Some(Control::End(end)) => self.on_end(now, &segment, end),
            Some(Control::EndAck(_)) => self.on_end_ack(now, &segment),
            Some(Control::Begin(_) | Control::BeginAck(_) | Control::Reset(_)) | None => Ok(()),
        }
    }

    /// Processes SD, STAT, USTAT, POLL and NOTE, in this order.
    fn on_parts(&mut self, now: Instant, segment: &Segment<'_>, upper: &mut impl UpperLayer) {
        if let Some(payload) = segment.payload()
            && self.accepts(now, StateInput::Data)
        {
            self.on_data(now, segment, payload, upper);
        }
        if let Some(repair) = segment.repair_part()
            && self.accepts(now, StateInput::Data)
        {
            self.on_repair(now, segment.number(), repair, upper);
        }
        if let Some(stat) = segment.stat_part()
            && self.accepts(now, StateInput::Report)
        {
            self.on_stat(now, &stat, upper);
        }
        if let Some(ustat) = segment.ustat_part()
            && self.accepts(now, StateInput::Report)
        {
            self.on_ustat(now, &ustat, upper);
        }
        if let Some(poll) = segment.poll_part()
            && self.accepts(now, StateInput::Poll)
        {
            self.on_poll(now, segment.timestamp(), poll);
        }
        if !segment.note().is_empty() && self.lifecycle.is_connected() {
            upper.on_note(segment.note());
        }
    }

    /// Whether the state machine accepts this part.
    fn accepts(&mut self, now: Instant, input: StateInput) -> bool {
        let action = self.apply(now, input);
        if action == Action::SendReset {
            self.lifecycle.reset_unless_ended();
        }
        action == Action::Process
    }

    fn on_begin(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        begin: Begin,
    ) -> Result<(), ReceiveError> {
        let input = match self.lifecycle.classify_begin(&begin) {
            Ok(input) => input,
            Err(RejectedBegin::Unexpected) => return self.unexpected(),
            Err(RejectedBegin::OldIncarnation) => return self.other_incarnation(),
        };
        let is_listening = self.state() == State::Listening;
        if is_listening && begin.delivery != self.config.delivery {
            self.lifecycle.handshake.reset(Some(begin.incarnation));
            return self.unexpected();
        }
        match self.apply(now, input) {
            Action::Accept => {
                self.lifecycle.accept(begin.incarnation, segment.timestamp());
                self.apply_peer_limits(&begin);
                // `listen` has no time argument: the timers start here.
                self.polling.start_at(initial_poll_seq(&self.config.profile, now), now);
                self.liveness.restart(now);
                self.emit(Event::Established);
            }
            Action::RetransmitBeginAck => self.lifecycle.handshake.begin_ack(segment.timestamp()),
            Action::SendReset => self.lifecycle.handshake.reset(Some(begin.incarnation)),
            _ => {}
        }
        Ok(())
    }

    fn on_begin_ack(
        &mut self,
        now: Instant,
        timestamp: u32,
        ack: BeginAck,
    ) -> Result<(), ReceiveError> {
        if !self.lifecycle.is_own_begin(&ack) {
            return self.other_incarnation();
        }
        if self.apply(now, StateInput::BeginAck) == Action::Opened {
            let sent = self.lifecycle.on_opened(timestamp, ack.echo);
            if let Some(sent) = sent.filter(|&sent| now > sent) {
                self.rtt.sample(now.since(sent));
            }
            self.apply_peer_limits(&ack.begin);
            self.emit(Event::Established);
        }
        Ok(())
    }

    fn apply_peer_limits(&mut self, begin: &Begin) {
        let max_segment = usize::from(begin.max_segment);
        self.sender.apply_peer_limits(begin.window, max_segment, &self.config);
    }

    fn on_reset(&mut self, now: Instant, reason: Seq24, end: End) -> Result<(), ReceiveError> {
        self.check_incarnation(end)?;
        self.peer_reset_reason = Some(reason);
        self.apply(now, StateInput::Reset);
        Ok(())
    }

    fn check_incarnation(&mut self, end: End) -> Result<(), ReceiveError> {
        if self.lifecycle.is_current(end.incarnation) { Ok(()) } else { self.other_incarnation() }
    }

    fn on_end(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        end: End,
    ) -> Result<(), ReceiveError> {
        // END is sent when all packets before it are acknowledged; any other one is invalid.
        if self.lifecycle.is_connected() && segment.number() != self.receiver.received_below() {
            return self.unexpected();
        }
        match self.apply(now, StateInput::End) {
            Action::PeerEnds | Action::PeerEndsLast | Action::RetransmitEndAck => {
                self.lifecycle.handshake.end_ack(segment.number(), end.incarnation);
            }
            _ => {}
        }
        Ok(())
    }

    fn on_end_ack(&mut self, now: Instant, segment: &Segment<'_>) -> Result<(), ReceiveError> {
        if segment.number() != self.sender.table.next_number() {
            return self.unexpected();
        }
        self.apply(now, StateInput::EndAck);
        Ok(())
    }

    fn on_data(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        payload: &[u8],
        upper: &mut impl UpperLayer,
    ) {
        let number = segment.number();
        match self.receiver.on_data(now, number) {
            Accept::New => {
                self.statistics.data_received += 1;
                self.statistics.data_bytes_received += payload.len() as u64;
                upper.deliver(number, payload);
                self.store_for_repair(number, payload);
            }
            Accept::Duplicate => self.statistics.duplicates_received += 1,
            Accept::BeyondWindow => self.statistics.beyond_window_received += 1,
        }
    }

    fn on_poll(&mut self, now: Instant, timestamp: u32, poll: Poll) {
        self.statistics.polls_received += 1;
        if !self.receiver.on_poll(now, timestamp, poll) {
            self.statistics.stale_polls_received += 1;
        }
    }

    fn unexpected(&mut self) -> Result<(), ReceiveError> {
        self.statistics.unexpected += 1;
        Err(ReceiveError::Unexpected(self.state()))
    }

    fn other_incarnation(&mut self) -> Result<(), ReceiveError> {
        self.statistics.other_incarnation += 1;
        Err(ReceiveError::OtherIncarnation)
    }
}
