//! What arrives: order of the parts, and what each of them does.
//!
//! A composite is taken apart in a fixed order (XSTP-4.1.2): RST, BGN or BGNAK, SD, STAT,
//! USTAT, POLL, NOTE, END or ENDAK. Each part asks the state machine whether it is wanted.

use super::receiver::Accept;
use super::sender::{Asked, Disbelief, Outcome};
use super::state::{Action, State, Stimulus};
use super::upper::Upper;
use super::{Event, Session, count_before};
use crate::config::RetransmitRule;
use crate::congestion::{Answered, Feedback};
use crate::wire::{
    Begin, BeginAck, Control, DecodeError, End, Poll, Profile, Segment, Stat, Ustat,
};
use core::fmt;
use units::Instant;

/// Why a segment was dropped. Each is counted in [`Statistics`](super::Statistics) too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReceiveError {
    /// It is not a segment.
    Malformed(DecodeError),
    /// It belongs to another incarnation of the connection.
    OtherIncarnation,
    /// It has no business in this state.
    Unexpected(State),
}

impl fmt::Display for ReceiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(error) => error.fmt(f),
            Self::OtherIncarnation => f.write_str("a segment of another incarnation"),
            Self::Unexpected(state) => write!(f, "no such segment is expected in {state:?}"),
        }
    }
}

impl core::error::Error for ReceiveError {}

impl Session {
    /// Takes in one segment that arrived at `now`.
    ///
    /// # Errors
    /// When it was dropped as a whole: the session is as it was before. Parts of it that could
    /// not be believed are only counted.
    pub fn handle_segment(
        &mut self,
        now: Instant,
        bytes: &[u8],
        upper: &mut impl Upper,
    ) -> Result<(), ReceiveError> {
        let segment = match Segment::decode(&self.config.profile, bytes) {
            Ok(segment) => segment,
            Err(error) => {
                self.statistics.malformed += 1;
                return Err(ReceiveError::Malformed(error));
            }
        };
        if self.is_from_the_past(&segment) {
            return self.other_incarnation();
        }
        self.statistics.segments_received += 1;
        self.statistics.octets_received += bytes.len() as u64;
        match segment.control() {
            Some(Control::Begin(begin)) => self.on_begin(now, &segment, begin)?,
            Some(Control::BeginAck(ack)) => self.on_begin_ack(now, segment.stamp(), ack)?,
            Some(Control::Reset(end)) => return self.on_reset(now, end),
            Some(Control::End(end) | Control::EndAck(end)) => self.check_incarnation(end)?,
            None => {}
        }
        if self.state.is_connected() {
            self.heard(now);
            self.receiver.on_octets((bytes.len() + self.config.packet_overhead) as u32);
        }
        self.on_parts(now, &segment, upper);
        match segment.control() {
            Some(Control::End(end)) => self.on_end(now, &segment, end),
            Some(Control::EndAck(_)) => self.on_end_ack(now, &segment),
            Some(Control::Begin(_) | Control::BeginAck(_) | Control::Reset(_)) | None => Ok(()),
        }
    }

    /// SD, STAT, USTAT, POLL and NOTE, in this order.
    fn on_parts(&mut self, now: Instant, segment: &Segment<'_>, upper: &mut impl Upper) {
        if let Some(payload) = segment.payload()
            && self.wants(now, Stimulus::Data)
        {
            self.on_data(now, segment, payload, upper);
        }
        if let Some(stat) = segment.stat_part()
            && self.wants(now, Stimulus::Report)
        {
            self.on_stat(now, &stat, upper);
        }
        if let Some(ustat) = segment.ustat_part()
            && self.wants(now, Stimulus::Report)
        {
            self.on_ustat(now, &ustat, upper);
        }
        if let Some(poll) = segment.poll_part()
            && self.wants(now, Stimulus::Poll)
        {
            self.on_poll(now, segment.stamp(), poll);
        }
        if !segment.note().is_empty() && self.state.is_connected() {
            upper.noted(segment.note());
        }
    }

    /// Whether the state machine takes this part.
    fn wants(&mut self, now: Instant, stimulus: Stimulus) -> bool {
        match self.apply(now, stimulus) {
            Action::Process => true,
            // After an orderly end the peer only misses an ENDAK, which its END will get.
            Action::SendReset if !self.ended => {
                // A BGN in the same segment is answered already, by its own incarnation.
                if !self.handshake.is_reset_due() {
                    self.handshake.reset(self.incarnation);
                }
                false
            }
            _ => false,
        }
    }

    /// Whether a published segment was sent in an earlier incarnation, or may have been.
    ///
    /// What is compared with moves along, a quarter of a turn of the clock behind: else half a
    /// turn after its beginning, 25 days, a connection would take itself for an earlier one.
    fn is_from_the_past(&mut self, segment: &Segment<'_>) -> bool {
        let Profile::Published(_) = self.config.profile else { return false };
        if !self.state.is_connected() || segment.control().is_some() {
            // These name their incarnation.
            return false;
        }
        match self.peer_began {
            Some(began) => {
                let since = segment.stamp().wrapping_sub(began) as i32;
                if since > 1 << 30 {
                    self.peer_began = Some(segment.stamp().wrapping_sub(1 << 30));
                }
                since < 0
            }
            // A client that has not heard BGNAK cannot tell, nor whether the server that will
            // send it is the one that sent this.
            None => true,
        }
    }

    fn heard(&mut self, now: Instant) {
        self.last_heard = now;
        self.unanswered_since = None;
        self.congestion.on_heard(now);
    }

    fn on_begin(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        begin: Begin,
    ) -> Result<(), ReceiveError> {
        if self.is_client && self.state != State::Closed {
            return self.unexpected();
        }
        let stimulus = match self.incarnation {
            // For a listener that is the one that it must not accept again.
            Some(running) if begin.incarnation == running && self.state != State::Listening => {
                Stimulus::Begin
            }
            Some(running) if !self.is_newer_incarnation(begin.incarnation, running) => {
                return self.other_incarnation();
            }
            Some(_) | None => Stimulus::BeginNewer,
        };
        if self.state == State::Listening && begin.delivery != self.config.delivery {
            self.handshake.reset(Some(begin.incarnation));
            return self.unexpected();
        }
        match self.apply(now, stimulus) {
            Action::Accept => {
                self.incarnation = Some(begin.incarnation);
                self.peer_began = Some(segment.stamp());
                self.agree(&begin);
                // A listener has no time; its counts begin here.
                self.polling.start_at(count_before(&self.config.profile, now));
                self.last_heard = now;
                self.armed_at = now;
                self.handshake.begin_ack(segment.stamp());
                self.emit(Event::Established);
            }
            Action::AcceptAgain => self.handshake.begin_ack(segment.stamp()),
            Action::SendReset => self.handshake.reset(Some(begin.incarnation)),
            _ => {}
        }
        Ok(())
    }

    fn on_begin_ack(
        &mut self,
        now: Instant,
        stamp: u32,
        ack: BeginAck,
    ) -> Result<(), ReceiveError> {
        if self.incarnation != Some(ack.begin.incarnation) || !self.is_client {
            return self.other_incarnation();
        }
        if self.apply(now, Stimulus::BeginAck) == Action::Opened {
            if let Some(sent) = self.handshake.begun_at(ack.echo)
                && now > sent
            {
                self.round_trip.sample(now.since(sent));
            }
            self.peer_began = Some(stamp);
            self.handshake.settle();
            self.agree(&ack.begin);
            self.emit(Event::Established);
        }
        Ok(())
    }

    /// Takes over what the peer can take.
    fn agree(&mut self, begin: &Begin) {
        self.sender.set_first_window(begin.window);
        self.peer_max_segment = usize::from(begin.max_segment);
        self.set_max_segment(self.max_segment);
    }

    fn on_reset(&mut self, now: Instant, end: End) -> Result<(), ReceiveError> {
        self.check_incarnation(end)?;
        self.apply(now, Stimulus::Reset);
        Ok(())
    }

    /// A listener and a session that never began know no incarnation.
    fn check_incarnation(&mut self, end: End) -> Result<(), ReceiveError> {
        match self.incarnation {
            Some(running) if self.state != State::Listening && running != end.incarnation => {
                self.other_incarnation()
            }
            Some(_) | None => Ok(()),
        }
    }

    fn on_end(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        end: End,
    ) -> Result<(), ReceiveError> {
        // An END is sent when everything before it is acknowledged; any other is nonsense.
        if self.state.is_connected() && segment.number() != self.receiver.received_below() {
            return self.unexpected();
        }
        match self.apply(now, Stimulus::End) {
            Action::PeerEnds | Action::PeerEndsLast | Action::AckEndAgain => {
                self.handshake.end_ack(segment.number(), end.incarnation);
            }
            _ => {}
        }
        Ok(())
    }

    fn on_end_ack(&mut self, now: Instant, segment: &Segment<'_>) -> Result<(), ReceiveError> {
        if segment.number() != self.sender.next_number() {
            return self.unexpected();
        }
        self.apply(now, Stimulus::EndAck);
        Ok(())
    }

    fn on_data(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        payload: &[u8],
        upper: &mut impl Upper,
    ) {
        let number = segment.number();
        match self.receiver.on_data(now, number) {
            Accept::New => {
                self.statistics.data_received += 1;
                self.statistics.data_bytes_received += payload.len() as u64;
                upper.deliver(number, payload);
            }
            Accept::Duplicate => self.statistics.duplicates_received += 1,
            Accept::BeyondWindow => self.statistics.beyond_window_received += 1,
        }
    }

    fn on_poll(&mut self, now: Instant, stamp: u32, poll: Poll) {
        self.statistics.polls_received += 1;
        if self.receiver.on_poll(now, stamp, poll) {
            // The list begins anew, and waits its time.
            self.in_list = false;
        } else {
            self.statistics.polls_old += 1;
        }
    }

    fn on_stat(&mut self, now: Instant, stat: &Stat<'_>, upper: &mut impl Upper) {
        let backoff = self.polling.backoff();
        let Some(answer) = self.polling.on_answer(now, stat.echo.count) else {
            self.statistics.stat_poll_errors += 1;
            return;
        };
        self.statistics.stats_received += 1;
        if self.config.gateway.low_rate.is_some()
            && let Some((sent, silent)) = answer.sent_at.zip(self.outage_since)
            && answer.first
            && sent >= silent
        {
            self.round_trip.stretch(now.since(sent));
        }
        self.end_outage(now);
        if let Some(sent) = answer.sent_at
            && answer.first
            && sent >= self.samples_from
            // A clock that was set back measures nothing.
            && now > sent
        {
            self.round_trip.sample(now.since(sent));
        }
        if answer.first {
            self.tell_controller(now, stat);
        }
        let asked = self.asked(now, stat.echo.count, backoff);
        match self.sender.on_stat(stat.received_below, stat.window, stat.runs(), asked, upper) {
            Ok(outcome) if asked.hold => self.probe_by_stat(now, stat, answer, asked, outcome),
            Ok(outcome) => self.on_outcome(now, outcome),
            Err(Disbelief::ReceivedBelow | Disbelief::List) => {
                self.statistics.stat_list_errors += 1;
            }
        }
    }

    /// What is sent again of what the answer to the POLL counted `count` tells as missing.
    fn asked(&self, now: Instant, count: u32, backoff: u32) -> Asked {
        let doublings = match self.config.xstp.retransmit_rule {
            RetransmitRule::PollOrder => None,
            RetransmitRule::RoundTrip => Some(0),
            RetransmitRule::BackedOff if self.is_probing() => Some(0),
            RetransmitRule::BackedOff => Some(backoff.min(16)),
        };
        let age = doublings.map(|doublings| (now, self.round_trip.smoothed() * (1 << doublings)));
        Asked { poll: count, age, hold: self.holds_losses(Some(count)) }
    }

    /// Tells the controller what the receiver measured.
    fn tell_controller(&mut self, now: Instant, stat: &Stat<'_>) {
        let Some(arrival) = stat.arrival else { return };
        self.congestion.on_answer(&Answered {
            now,
            count: stat.echo.count,
            stamp: stat.echo.stamp,
            arrived_at: arrival.at,
            arrived: arrival.octets,
            least_round_trip: self.round_trip.least().unwrap_or(self.config.initial_round_trip),
        });
    }

    fn on_ustat(&mut self, now: Instant, ustat: &Ustat<'_>, upper: &mut impl Upper) {
        if self.is_probing() {
            self.statistics.probing.ustats_ignored += 1;
            return;
        }
        let hold = self.holds_losses(None);
        match self.sender.on_ustat(ustat.received_below(), ustat.gaps(), hold, upper) {
            Ok(outcome) => {
                self.statistics.ustats_received += 1;
                if hold {
                    self.probe_by_ustat(now, outcome);
                } else {
                    self.on_outcome(now, outcome);
                }
            }
            Err(Disbelief::ReceivedBelow | Disbelief::List) => self.statistics.ustat_errors += 1,
        }
    }

    /// What a STAT or USTAT did to the table goes on to the controller and the schedule.
    pub(super) fn on_outcome(&mut self, now: Instant, outcome: Outcome) {
        self.note_losses(outcome);
        let restarts =
            outcome.lost > 0 && self.config.xstp.outage_is_idle && self.restart_when_idle(now);
        self.congestion.on_feedback(&Feedback {
            now,
            released: outcome.released,
            lost: if restarts { 0 } else { outcome.lost },
            oldest: self.sender.oldest(),
            next: self.sender.next(),
            round_trip: self.round_trip.measured(),
        });
        if !self.credit && !self.sender.is_shut_by_peer() {
            self.credit = true;
            self.statistics.credit_regained += 1;
            self.emit(Event::CreditRegained);
        }
        self.replan(now);
    }

    /// Something is to be sent again.
    pub(super) fn note_losses(&mut self, outcome: Outcome) {
        if outcome.lost > 0 {
            self.statistics.reported_lost += outcome.lost;
            self.again_at_once = self.config.xstp.retransmit_burst;
        }
        self.ask_when_resent |=
            self.config.gateway.poll_after_second_loss && outcome.lost_again > 0;
    }

    /// Slow start, if data has not been sent for the time that is configured.
    fn restart_when_idle(&mut self, now: Instant) -> bool {
        let idle = self.last_data_sent.map(|last| now.since(last));
        idle.is_some_and(|idle| self.congestion.on_restart(idle))
    }

    fn unexpected(&mut self) -> Result<(), ReceiveError> {
        self.statistics.unexpected += 1;
        Err(ReceiveError::Unexpected(self.state))
    }

    fn other_incarnation(&mut self) -> Result<(), ReceiveError> {
        self.statistics.other_incarnation += 1;
        Err(ReceiveError::OtherIncarnation)
    }
}
