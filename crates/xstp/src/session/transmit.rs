//! Transmission: handshakes, data with piggybacked control, and control without data.
//!
//! ```text
//!   poll_transmit
//!     1. RST, ENDAK, END          each in a segment of its own
//!     2. SD, if the pacer and the windows allow it: retransmissions before new data, and in turn
//!        with urgent new data; BGN or BGNAK is added, and POLL, STAT, USTAT and NOTE are
//!        piggybacked if they fit
//!     3. BGN, BGNAK, POLL, STAT, USTAT that are due and could not be piggybacked
//!     4. REPAIR at the end of a flight
//! ```
//!
//! The upper layer fills a packet before the session knows what is piggybacked, so that full
//! packets are never shortened for a STAT. Control that does not fit is sent right after.

use super::lifecycle::State;
use super::packetizer::StagedPacket;
use super::segment_parts::{NOTE_ROOM, SegmentParts, take_note};
use super::upper::UpperLayer;
use super::{Session, StateInput};
use crate::congestion::PollSent;
use crate::seq::Seq24;
use crate::wire::{Begin, Control, Poll, Profile};
use units::Instant;

/// Minimum room in octets for a STAT or USTAT that is piggybacked; less would shorten its list.
const REPORT_ROOM: usize = 160;

/// Report that is due.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Report {
    None,
    Stat,
    Ustat,
}

impl Session {
    /// Writes the next segment that is due at `now` to the start of `out`; returns its length.
    /// `None`: no segment is due, see [`poll_timeout`](Session::poll_timeout).
    ///
    /// `out` should have the size of the largest segment ([`max_segment`](Session::max_segment)).
    pub fn poll_transmit(
        &mut self,
        now: Instant,
        upper: &mut impl UpperLayer,
        out: &mut [u8],
    ) -> Option<usize> {
        self.sender.has_new_data = upper.has_new_data() || self.padding(upper).is_some();
        if self.is_drained() {
            self.apply(now, StateInput::Drained);
        }
        let sent = self.transmit_standalone(now, out).or_else(|| {
            if !self.lifecycle.is_connected() {
                return None;
            }
            self.lifecycle.on_transmit(now);
            self.detect_missing_stat(now);
            self.check_peer_window();
            self.transmit_data(now, upper, out)
                .or_else(|| self.transmit_control(now, upper, out))
                .or_else(|| self.transmit_repair(now, out))
        });
        if let Some(len) = sent {
            self.statistics.segments_sent += 1;
            self.statistics.octets_sent += len as u64;
            self.report_poll_sent(now);
        }
        sent
    }

    /// Writes RST, ENDAK or END, each in a segment of its own.
    fn transmit_standalone(&mut self, now: Instant, out: &mut [u8]) -> Option<usize> {
        if !self.lifecycle.handshake.is_standalone_due() {
            return None;
        }
        let next = self.sender.table.next_number();
        let segment = self.lifecycle.take_standalone(now, next, self.handshake_timeout())?;
        if matches!(segment.control(), Some(Control::End(_))) {
            self.liveness.on_request_sent(now);
        }
        let len = segment.encode(&self.config.profile, out).ok()?;
        self.charge(now, len, false);
        Some(len)
    }

    /// Reports that the peer's window is closed while data waits, and requests a POLL.
    fn check_peer_window(&mut self) {
        if self.lifecycle.is_opening() || self.is_probing() || !self.sender.detect_window_closed() {
            return;
        }
        self.statistics.windows_closed += 1;
        if self.config.stp.poll_when_window_full || self.sender.table.is_empty() {
            self.polling.request();
        }
        self.emit(super::Event::WindowClosed);
    }

    /// BGN or BGNAK, if one is due with the next segment.
    fn opening(&self, with_poll: bool, with_data: bool) -> Option<Control> {
        let begin = Begin {
            incarnation: self.lifecycle.incarnation().unwrap_or_default(),
            window: self.config.receive_window.min(self.config.profile.max_window()),
            max_segment: u16::try_from(self.config.max_segment).unwrap_or(u16::MAX),
            delivery: self.config.delivery,
        };
        self.lifecycle.opening(begin, with_poll, with_data)
    }

    /// Writes an SD with the control that is piggybacked on it.
    fn transmit_data(
        &mut self,
        now: Instant,
        upper: &mut impl UpperLayer,
        out: &mut [u8],
    ) -> Option<usize> {
        if self.congestion.is_poll_only() {
            self.pacing.pause();
            return None;
        }
        if self.is_probing() || self.sender.is_blocked {
            return None;
        }
        let retransmission = self.sender.table.next_retransmission();
        let state = self.lifecycle.state();
        let new = self.sender.has_new_data && state.may_send() && self.may_send_new();
        if retransmission.is_none() && !new {
            self.pacing.pause();
            return None;
        }
        let precedes = new && retransmission.is_some() && self.may_precede(now, upper);
        let unpaced = retransmission.is_some() && !precedes && self.retransmits_unpaced();
        if !unpaced && !self.pacing.is_ready(now) {
            return None;
        }
        // A POLL is sent with a BGN that is due: its STAT is the first RTT sample.
        let poll_due = self.poll_at() <= now;
        let wants_poll = self.lifecycle.handshake.is_begin_due() || poll_due;
        let timestamp = self.lifecycle.timestamp(now);
        let opening = self.opening(poll_due, true);
        let mut parts = SegmentParts::new(Seq24::ZERO, timestamp, opening);
        let urgent = if precedes { self.stage(now, None, &parts, upper, out) } else { None };
        self.sender.has_preceded = urgent.is_some();
        let retransmission = retransmission.filter(|_| urgent.is_none());
        let staged = urgent.or_else(|| self.stage(now, retransmission, &parts, upper, out));
        let staged = match staged {
            Some(staged) => staged,
            None if parts.has_begin() && (!wants_poll || self.control_not_before() > now) => {
                // The packet does not fit beside BGN, which is not sent alone now: it is never
                // shortened, or was sent before the MTU decreased.
                parts.opening = None;
                self.stage(now, retransmission, &parts, upper, out)?
            }
            None => return None,
        };
        match retransmission {
            Some(packet) => self.exclude_from_repair(packet.seq),
            None => self.protect(now, &out[staged.at..staged.at + staged.len], staged.is_padding),
        }
        parts.data = Some(staged.number);
        parts.next = self.sender.table.next_number();
        let octets = self.octets_sent();
        let needs_poll = if staged.is_padding {
            self.congestion.on_padding(now, octets)
        } else {
            self.congestion.on_data(now, octets)
        };
        if needs_poll {
            self.polling.request_immediate();
        }
        self.sender.has_new_data = upper.has_new_data() || self.padding(upper).is_some();
        self.request_poll_after(now);
        let begins = parts.has_begin();
        let waits = self.config.xstp.poll_ends_burst && self.burst_continues(unpaced);
        let early = self.config.stp.poll_piggyback_early;
        let poll = begins && wants_poll || (!waits && self.poll_due() <= now + early);
        let is_first_begin = begins && self.lifecycle.handshake.retry_at().is_none();
        let len = self.piggyback_control(now, parts, poll, &staged, upper, out)?;
        self.charge(now, len, !unpaced);
        if is_first_begin && self.pacing.control.is_enabled() {
            let timeout = self.handshake_timeout();
            self.lifecycle.handshake.on_departure(self.pacing.next_send(), timeout);
        }
        Some(len)
    }

    /// Whether new data may precede the retransmissions that are queued (XSTP-7.2.2).
    fn may_precede(&self, now: Instant, upper: &impl UpperLayer) -> bool {
        let begins = self.lifecycle.handshake.is_begin_due();
        // A retransmission may be sent without the pacer.
        self.pacing.is_ready(now) && !self.sender.has_preceded && !begins && upper.has_urgent_data()
    }

    /// Requests a POLL if the packet that was just staged calls for one (XSTP-10.3).
    fn request_poll_after(&mut self, now: Instant) {
        let stp = &self.config.stp;
        if stp.poll_after_bytes.is_some_and(|limit| self.polling.bytes_since_poll() >= limit) {
            self.polling.request();
        }
        if self.sender.has_retransmissions() {
            return;
        }
        if self.sender.take_poll_after_retransmission() {
            self.polling.request();
        }
        let app_limited = !self.sender.has_new_data;
        if !app_limited && self.may_send_new() {
            return;
        }
        // This is the last SD of a burst.
        let fills_window = stp.poll_when_window_full && self.sender.table.free_numbers() == 0;
        if self.is_small_window() || fills_window {
            self.polling.request();
        } else if app_limited && stp.poll_when_app_limited {
            self.polling.request_when_app_limited(now, self.rtt.smoothed());
        }
    }

    /// Adds due control to a staged packet, as far as it fits, and writes the segment.
    fn piggyback_control(
        &mut self,
        now: Instant,
        mut parts: SegmentParts<'_>,
        poll: bool,
        staged: &StagedPacket,
        upper: &mut impl UpperLayer,
        out: &mut [u8],
    ) -> Option<usize> {
        let profile = self.config.profile;
        let total =
            out.len().min(self.sender.max_segment()).max(staged.at + staged.len).min(out.len());
        if poll {
            let with_poll = SegmentParts {
                poll: Some(self.next_poll(now, parts.next)),
                timestamp: self.poll_timestamp(now),
                ..parts
            };
            if with_poll.overhead(&profile) + staged.len <= total {
                parts = with_poll;
                self.commit_poll(now, true);
            }
        }
        let mut note_buffer = [0; NOTE_ROOM];
        let room = total.saturating_sub(parts.overhead(&profile) + staged.len);
        let begins = parts.has_begin();
        let report = if begins || room < REPORT_ROOM { Report::None } else { self.report(now) };
        let mut parts = parts;
        match report {
            Report::None => {}
            Report::Stat => parts.stat = self.receiver.take_stat(&profile, room),
            Report::Ustat => parts.ustat = self.receiver.take_ustat(now, &profile, room),
        }
        if !begins {
            parts.note = take_note(&profile, &parts, total - staged.len, upper, &mut note_buffer);
        }
        let at = parts.overhead(&profile);
        if at != staged.at {
            out.copy_within(staged.at..staged.at + staged.len, at);
        }
        let sent = Committed::of(&parts);
        let len = parts.segment()?.encode_in_place(&profile, out, staged.len).ok()?;
        self.commit(now, &sent);
        Some(len)
    }

    /// Writes BGN, BGNAK, POLL, STAT, USTAT and NOTE without data.
    fn transmit_control(
        &mut self,
        now: Instant,
        upper: &mut impl UpperLayer,
        out: &mut [u8],
    ) -> Option<usize> {
        let profile = self.config.profile;
        let allowed = self.control_not_before() <= now;
        let mut poll = (allowed && self.poll_at() <= now)
            || self.liveness_poll_at().is_some_and(|at| at <= now);
        let opening = self.opening(poll, false);
        let begins = matches!(opening, Some(Control::Begin(_)));
        poll |= begins;
        let report = if begins || !allowed { Report::None } else { self.report(now) };
        let next = self.sender.table.next_number();
        let timestamp = if poll { self.poll_timestamp(now) } else { self.lifecycle.timestamp(now) };
        let planned = poll.then(|| self.next_poll(now, next));
        let mut note_buffer = [0; NOTE_ROOM];
        let mut parts =
            SegmentParts { poll: planned, ..SegmentParts::new(next, timestamp, opening) };
        let total = out.len().min(self.sender.max_segment());
        let room = total.saturating_sub(parts.overhead(&profile).max(16));
        match report {
            Report::None => {}
            Report::Stat => parts.stat = self.receiver.take_stat(&profile, room),
            Report::Ustat => parts.ustat = self.receiver.take_ustat(now, &profile, room),
        }
        if parts.is_empty() {
            return None;
        }
        if !begins {
            parts.note = take_note(&profile, &parts, total, upper, &mut note_buffer);
        }
        let sent = Committed::of(&parts);
        let len = parts.segment()?.encode_in_place(&profile, out, 0).ok()?;
        if poll {
            self.commit_poll(now, false);
        }
        self.commit(now, &sent);
        self.charge(now, len, false);
        let rate = self.control_rate(now);
        self.pacing.control.charge(now, len + self.config.packet_overhead, rate);
        Some(len)
    }

    /// The report that is due. A STAT contains the complete receiver state, so it precedes USTATs.
    fn report(&self, now: Instant) -> Report {
        if self.stat_at().is_some_and(|at| at <= now) {
            Report::Stat
        } else if self.receiver.ustat_due(now) {
            Report::Ustat
        } else {
            Report::None
        }
    }

    fn next_poll(&self, now: Instant, next: Seq24) -> Poll {
        Poll { seq: self.polling.next_seq(self.lifecycle.poll_seq_clock(now)), next }
    }

    /// Timestamp of a segment with POLL: as published, the POLL sequence number.
    fn poll_timestamp(&self, now: Instant) -> u32 {
        match self.config.profile {
            Profile::Published(_) => self.polling.next_seq(self.lifecycle.poll_seq_clock(now)),
            Profile::Sealed => self.lifecycle.timestamp(now),
        }
    }

    /// A POLL is part of the segment that is written.
    fn commit_poll(&mut self, now: Instant, is_piggybacked: bool) {
        let timeout = self.rtt.smoothed() + self.config.tick * 2;
        let overdue = !self.is_probing()
            && self.polling.stat_missing_since().is_some_and(|since| now.since(since) >= timeout);
        let (clock, octets) = (self.lifecycle.poll_seq_clock(now), self.octets_sent());
        let seq = self.polling.on_sent(now, clock, octets, overdue);
        self.poll_to_report = Some(seq);
        self.hold_off_polls(now, overdue);
        self.probing.on_poll_sent(seq, &mut self.statistics.probing);
        self.liveness.on_request_sent(now);
        self.statistics.polls_sent += 1;
        if !is_piggybacked {
            self.statistics.polls_sent_standalone += 1;
        }
    }

    /// Reports a sent POLL to the controller. Its octet counter includes the segment of the POLL,
    /// as the receiver's does.
    fn report_poll_sent(&mut self, now: Instant) {
        let Some(seq) = self.poll_to_report.take() else { return };
        let octets = self.octets_sent();
        self.arrivals.on_poll_sent(seq, octets);
        self.congestion.on_poll(&PollSent { now, seq, octets });
    }

    /// Octets sent, headers below included.
    pub(super) fn octets_sent(&self) -> u64 {
        let below = self.config.packet_overhead as u64 * self.statistics.segments_sent;
        self.statistics.octets_sent + below
    }

    /// Updates the state for the parts of a segment that was written.
    fn commit(&mut self, now: Instant, sent: &Committed) {
        match sent.opening {
            Some(Control::Begin(_)) => {
                let timeout = self.handshake_timeout();
                self.lifecycle.handshake.on_begin_sent(now, sent.timestamp, timeout);
            }
            Some(Control::BeginAck(_)) => self.lifecycle.handshake.on_begin_ack_sent(),
            Some(Control::End(_) | Control::EndAck(_) | Control::Reset(_)) | None => {}
        }
        if sent.stat {
            self.statistics.stats_sent += 1;
            self.receiver.on_stat_sent(now);
        }
        self.statistics.ustats_sent += u64::from(sent.ustat);
    }

    /// Whether END can be sent: the upper layer has ended, and all data is acknowledged.
    pub(super) fn is_drained(&self) -> bool {
        let sender = &self.sender;
        self.lifecycle.end_requested() && sender.table.is_empty() && !sender.has_new_data
    }

    /// Whether END is due now.
    pub(super) fn is_end_due(&self) -> bool {
        let state = self.lifecycle.state();
        matches!(state, State::Established | State::HalfClosedRemote) && self.is_drained()
    }
}

/// Parts of a written segment that change the state of the session.
struct Committed {
    opening: Option<Control>,
    timestamp: u32,
    stat: bool,
    ustat: bool,
}

impl Committed {
    fn of(parts: &SegmentParts<'_>) -> Self {
        Self {
            opening: parts.opening,
            timestamp: parts.timestamp,
            stat: parts.stat.is_some(),
            ustat: parts.ustat.is_some(),
        }
    }
}
