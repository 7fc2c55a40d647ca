//! What goes out next: handshakes, data with what can ride along, and control alone.
//!
//! ```text
//!   poll_transmit
//!     1. RST, ENDAK, END          each alone
//!     2. SD, when the pacer and the windows allow: what is missing before what is new;
//!        BGN or BGNAK goes with it, POLL, STAT, USTAT and NOTE ride along if there is room
//!     3. BGN, BGNAK, POLL, STAT, USTAT that are due and found no SD to ride on
//! ```
//!
//! The layer above fills a packet before it is known what rides along, so that full packets
//! are never cut short for a STAT; what does not fit goes alone right after.

use super::Session;
use super::loading::Loaded;
use super::parts::{NOTE_ROOM, Parts, take_note};
use super::state::{State, Stimulus};
use super::upper::Upper;
use crate::Seq24;
use crate::congestion::PollSent;
use crate::wire::{Begin, BeginAck, Control, Delivery, End, Poll, Profile, Segment};
use units::Instant;

/// A STAT or USTAT rides on an SD that leaves this much room; less would cut its list.
const REPORT_ROOM: usize = 160;

impl Session {
    /// Writes the next segment that is due at `now` to the start of `out`; returns its length.
    /// `None`: nothing is due now, see [`poll_timeout`](Session::poll_timeout).
    ///
    /// `out` should hold the largest segment ([`max_segment`](Session::max_segment)).
    pub fn poll_transmit(
        &mut self,
        now: Instant,
        upper: &mut impl Upper,
        out: &mut [u8],
    ) -> Option<usize> {
        self.fresh_waiting = upper.has_fresh();
        if self.end_wanted && self.sender.is_empty() && !self.fresh_waiting {
            self.apply(now, Stimulus::Drained);
        }
        let sent = self.transmit_lone(now, out).or_else(|| {
            if !self.state.is_connected() {
                return None;
            }
            self.stamped_at = self.stamped_at.max(now);
            self.watch_interleave(now);
            self.watch_credit();
            self.transmit_data(now, upper, out).or_else(|| self.transmit_control(now, upper, out))
        });
        if let Some(len) = sent {
            self.statistics.segments_sent += 1;
            self.statistics.octets_sent += len as u64;
            self.tell_of_poll(now);
        }
        sent
    }

    /// RST, ENDAK or END, each in a segment of its own.
    fn transmit_lone(&mut self, now: Instant, out: &mut [u8]) -> Option<usize> {
        if !self.handshake.is_lone_due() {
            return None;
        }
        let segment = if let Some(incarnation) = self.handshake.take_reset() {
            Segment::reset(End { incarnation })
        } else if let Some((number, incarnation)) = self.handshake.take_end_ack() {
            Segment::end_ack(number, End { incarnation })
        } else if self.handshake.begin_ack_due().is_none()
            && self.handshake.take_end(now, self.handshake_timeout())
        {
            // An END that came before BGNAK would be for nothing.
            self.unanswered_since.get_or_insert(now);
            let incarnation = self.incarnation.unwrap_or_default();
            Segment::end(self.sender.next_number(), End { incarnation })
        } else {
            return None;
        };
        let len = segment.stamped(self.stamp(now)).encode(&self.config.profile, out).ok()?;
        self.charge(now, len, false);
        Some(len)
    }

    /// The peer's window is shut while something waits: says so once, and asks.
    fn watch_credit(&mut self) {
        let waits = self.fresh_waiting && self.state != State::Beginning && !self.is_probing();
        if self.credit && waits && self.sender.is_shut_by_peer() {
            self.credit = false;
            self.statistics.credit_lost += 1;
            if self.config.stp.poll_when_window_full || self.sender.is_empty() {
                self.polling.want();
            }
            self.emit(super::Event::CreditLost);
        }
    }

    /// BGN or BGNAK, if one is due with the next segment. BGN goes with every POLL as long as
    /// it is not answered, and with all that would not say of which incarnation it is.
    fn opening(&self, poll_due: bool, is_data: bool) -> Option<Control> {
        let begin = || Begin {
            incarnation: self.incarnation.unwrap_or_default(),
            window: self.receiver_window(),
            max_segment: u16::try_from(self.config.max_segment).unwrap_or(u16::MAX),
            delivery: self.config.delivery,
        };
        if self.state == State::Beginning {
            let published = matches!(self.config.profile, Profile::Published(_));
            let nameless = is_data && published && self.config.delivery == Delivery::InOrder;
            let due = self.handshake.is_begin_due() || poll_due || nameless;
            return due.then(|| Control::Begin(begin()));
        }
        let echo = self.handshake.begin_ack_due()?;
        Some(Control::BeginAck(BeginAck { begin: begin(), echo }))
    }

    fn receiver_window(&self) -> u32 {
        self.config.receive_window.min(self.config.profile.max_window())
    }

    /// An SD, with what can ride along.
    fn transmit_data(
        &mut self,
        now: Instant,
        upper: &mut impl Upper,
        out: &mut [u8],
    ) -> Option<usize> {
        if self.congestion.is_quiet() {
            self.pacer.idle();
            return None;
        }
        if self.is_probing() || self.held {
            return None;
        }
        let again = self.sender.again();
        let fresh = self.fresh_waiting && self.state.may_send() && self.may_send_fresh();
        if again.is_none() && !fresh {
            self.pacer.idle();
            return None;
        }
        let at_once = again.is_some() && self.retransmits_at_once();
        if !at_once && !self.pacer.ready(now) {
            return None;
        }
        // A POLL goes with a BGN that is due: its answer is the first round-trip sample.
        let poll_due = self.poll_at() <= now;
        let asks = self.handshake.is_begin_due() || poll_due;
        let mut parts = Parts::new(Seq24::ZERO, self.stamp(now), self.opening(poll_due, true));
        let begins = matches!(parts.opening, Some(Control::Begin(_)));
        let loaded = match self.load(now, again, &parts, upper, out) {
            Some(loaded) => loaded,
            None if begins && (!asks || self.control_from() > now) => {
                // No room beside BGN, which does not go alone now: packets that are never cut, or
                // were sent before the MTU shrank.
                parts.opening = None;
                self.load(now, again, &parts, upper, out)?
            }
            None => return None,
        };
        let begins = parts.opening.is_some() && begins;
        parts.data = Some(loaded.number);
        parts.next = self.sender.next_number();
        if self.congestion.on_data(now, self.octets_out()) {
            self.polling.urge();
        }
        self.ask_after(now, upper);
        let waits = self.config.xstp.poll_ends_burst && self.burst_goes_on(at_once);
        let early = self.config.stp.poll_piggyback_early;
        let poll = begins && asks || (!waits && self.poll_due() <= now + early);
        let begins_first = begins && self.handshake.retry_at().is_none();
        let len = self.ride_along(now, parts, poll, &loaded, upper, out)?;
        self.charge(now, len, !at_once);
        if begins_first && self.config.gateway.low_rate.is_some() {
            self.handshake.left_at(self.pacer.next_send(), self.handshake_timeout());
        }
        Some(len)
    }

    /// Whether the packet just loaded is one that asks for a STAT (XSTP-10.3).
    fn ask_after(&mut self, now: Instant, upper: &impl Upper) {
        let forced = self
            .config
            .stp
            .poll_after_bytes
            .is_some_and(|limit| self.polling.bytes_since_poll() >= limit);
        if forced {
            self.polling.want();
        }
        if self.sender.queued() > 0 {
            return;
        }
        if core::mem::take(&mut self.ask_when_resent) {
            self.polling.want();
        }
        let dry = !upper.has_fresh();
        if !dry && self.may_send_fresh() {
            return;
        }
        // This is the last SD of a burst.
        let shuts = self.config.stp.poll_when_window_full && self.sender.free_numbers() == 0;
        if self.is_small_window() || shuts {
            self.polling.want();
        } else if dry && self.config.stp.poll_when_app_limited {
            self.polling.want_when_dry(now, self.round_trip.smoothed());
        }
    }

    /// Puts what is due beside a loaded packet, as far as it fits, and writes the segment.
    fn ride_along(
        &mut self,
        now: Instant,
        mut parts: Parts<'_>,
        poll: bool,
        loaded: &Loaded,
        upper: &mut impl Upper,
        out: &mut [u8],
    ) -> Option<usize> {
        let profile = self.config.profile;
        let total = out.len().min(self.max_segment).max(loaded.at + loaded.len).min(out.len());
        if poll {
            let with_poll = Parts { poll: Some(self.next_poll(now, parts.next)), ..parts };
            let with_poll = Parts { stamp: self.poll_stamp(now), ..with_poll };
            if with_poll.overhead(&profile) + loaded.len <= total {
                parts = with_poll;
                self.commit_poll(now, true);
            }
        }
        let mut note_buffer = [0; NOTE_ROOM];
        let left = total.saturating_sub(parts.overhead(&profile) + loaded.len);
        let begins = matches!(parts.opening, Some(Control::Begin(_)));
        let report = if begins || left < REPORT_ROOM { Report::None } else { self.report(now) };
        let mut parts = parts;
        match report {
            Report::None => {}
            Report::Stat => parts.stat = self.receiver.take_stat(&profile, left),
            Report::Ustat => parts.ustat = self.receiver.take_ustat(now, &profile, left),
        }
        if !begins {
            parts.note = take_note(&profile, &parts, total - loaded.len, upper, &mut note_buffer);
        }
        let at = parts.overhead(&profile);
        if at != loaded.at {
            out.copy_within(loaded.at..loaded.at + loaded.len, at);
        }
        let sent = (parts.stat.is_some(), parts.ustat.is_some());
        let len = parts.segment()?.encode_in_place(&profile, out, loaded.len).ok()?;
        let (opening, stamp) = (parts.opening, parts.stamp);
        self.commit_parts(now, opening, stamp, sent);
        Some(len)
    }

    /// BGN, BGNAK, POLL, STAT, USTAT and NOTE without data.
    fn transmit_control(
        &mut self,
        now: Instant,
        upper: &mut impl Upper,
        out: &mut [u8],
    ) -> Option<usize> {
        let profile = self.config.profile;
        let may = self.control_from() <= now;
        let mut poll = (may && self.poll_at() <= now) || self.word_at().is_some_and(|at| at <= now);
        let opening = self.opening(poll, false);
        let begins = matches!(opening, Some(Control::Begin(_)));
        poll |= begins;
        let report = if begins || !may { Report::None } else { self.report(now) };
        let next = self.sender.next_number();
        let stamp = if poll { self.poll_stamp(now) } else { self.stamp(now) };
        let planned = poll.then(|| self.next_poll(now, next));
        let mut note_buffer = [0; NOTE_ROOM];
        let mut parts = Parts { poll: planned, ..Parts::new(next, stamp, opening) };
        let total = out.len().min(self.max_segment);
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
        let sent = (parts.stat.is_some(), parts.ustat.is_some());
        let len = parts.segment()?.encode_in_place(&profile, out, 0).ok()?;
        let (opening, stamp) = (parts.opening, parts.stamp);
        if poll {
            self.commit_poll(now, false);
        }
        self.commit_parts(now, opening, stamp, sent);
        self.charge(now, len, false);
        self.charge_control(now, len + self.config.packet_overhead);
        Some(len)
    }

    /// Which report is due. A STAT tells everything, so it goes first.
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
        Poll { count: self.polling.next_count(self.count_clock(now)), next }
    }

    /// The stamp of a segment with POLL: as published, its count.
    fn poll_stamp(&self, now: Instant) -> u32 {
        match self.config.profile {
            Profile::Published(_) => self.polling.next_count(self.count_clock(now)),
            Profile::Sealed => self.stamp(now),
        }
    }

    fn commit_poll(&mut self, now: Instant, rides: bool) {
        let overdue = self.round_trip.smoothed() + self.config.tick * 2;
        let late = !self.is_probing()
            && self.polling.silent_since().is_some_and(|since| now.since(since) >= overdue);
        let count = self.polling.on_sent(now, self.count_clock(now), late);
        self.poll_untold = Some(count);
        self.wait_for_answer(now, late);
        self.note_probe(count);
        self.unanswered_since.get_or_insert(now);
        self.statistics.polls_sent += 1;
        if !rides {
            self.statistics.polls_sent_alone += 1;
        }
    }

    /// Tells the controller of a POLL that has just gone: what goes with it is counted, as it is
    /// where it arrives.
    fn tell_of_poll(&mut self, now: Instant) {
        let Some(count) = self.poll_untold.take() else { return };
        self.congestion.on_poll(&PollSent { now, count, octets: self.octets_out() });
    }

    /// Octets that have left, headers below included.
    fn octets_out(&self) -> u64 {
        let below = self.config.packet_overhead as u64 * self.statistics.segments_sent;
        self.statistics.octets_sent + below
    }

    fn commit_parts(
        &mut self,
        now: Instant,
        opening: Option<Control>,
        stamp: u32,
        sent: (bool, bool),
    ) {
        match opening {
            Some(Control::Begin(_)) => {
                let timeout = self.handshake_timeout();
                self.handshake.on_begin_sent(now, stamp, timeout);
            }
            Some(Control::BeginAck(_)) => self.handshake.on_begin_ack_sent(),
            Some(Control::End(_) | Control::EndAck(_) | Control::Reset(_)) | None => {}
        }
        let (stat, ustat) = sent;
        if stat {
            self.statistics.stats_sent += 1;
            self.last_stat_sent = Some(now);
            self.list_parts = if self.in_list { self.list_parts + 1 } else { 1 };
            self.in_list = self.receiver.stat_due();
        }
        if ustat {
            self.statistics.ustats_sent += 1;
        }
    }
}

/// What the receiver has to say.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Report {
    None,
    Stat,
    Ustat,
}
