//! Timing: when the session is called next, when each kind of segment is due, and the timeouts.

use super::lifecycle::StateInput;
use super::pacing::{ControlBudget, RateBounds, WindowSchedule};
use super::polling::PollTimer;
use super::{Event, Session};
use crate::config::{Controller, Spread};
use units::{BitRate, Instant, Span};

impl Session {
    /// Time at which the session is called next, unless a segment is received earlier: first
    /// [`handle_timeout`](Session::handle_timeout), then
    /// [`poll_transmit`](Session::poll_transmit) until it returns `None`. A time in the past means
    /// now. `None`: not before a segment is received or the upper layer
    /// [wakes](Session::wake) the session.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let handshake = &self.lifecycle.handshake;
        let due_now = (handshake.is_due() || self.is_end_due()).then_some(Instant::ZERO);
        let own = [due_now, handshake.retry_at(), self.no_response_at(), self.outage_at()];
        let is_connected = self.lifecycle.is_connected();
        let sending = if is_connected {
            [self.control_at(), self.data_at(), self.repair_at()]
        } else {
            [None; 3]
        };
        let never = Instant::FAR_FUTURE;
        own.into_iter().chain(sending).flatten().min().filter(|&at| at != never)
    }

    /// Processes the timers that have expired at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.lifecycle.handshake.retry_at().is_some_and(|at| now >= at) {
            let exhausted = self.lifecycle.handshake.on_expired(self.config.handshake_tries);
            self.apply(now, if exhausted { StateInput::GiveUp } else { StateInput::Retry });
        }
        if self.no_response_at().is_some_and(|at| now >= at) {
            self.apply(now, StateInput::NoResponse);
        }
        if self.outage_at().is_some_and(|at| now >= at) {
            let rates = (self.known_rate(now), self.config.reverse_rate);
            let flight = (self.polling.octets_before_unanswered(), self.rtt.smoothed());
            self.pacing.control.update_response_allowance(rates, flight, self.full_packet());
        }
        if self.outage_at().is_some_and(|at| now >= at) {
            self.begin_outage(now);
        }
    }

    /// POLLs have been unanswered for the outage timeout, or for that time since data was resumed
    /// in an outage.
    fn begin_outage(&mut self, now: Instant) {
        if self.liveness.resumed_at().is_some() {
            self.liveness.fail_resumption();
        } else if let Some(since) = self.polling.stat_missing_since() {
            self.liveness.begin_outage(since);
            self.statistics.outages += 1;
            self.emit(Event::OutageBegan { duration: now.since(since) });
        }
        self.congestion.on_outage(now);
    }

    /// Ends an outage, if there is one.
    pub(super) fn end_outage(&mut self, now: Instant) {
        if let Some(duration) = self.liveness.end_outage(now) {
            self.emit(Event::OutageEnded { duration });
        }
    }

    /// Minimum retransmission timeout of BGN and END.
    pub(super) fn handshake_timeout(&self) -> Span {
        let two_rtts = self.rtt.measured().map_or(Span::ZERO, |measured| measured * 2);
        self.config.handshake_timeout.max(two_rtts)
    }

    fn no_response_at(&self) -> Option<Instant> {
        let limit = self.config.no_response.filter(|_| self.lifecycle.is_connected())?;
        self.liveness.no_response_at(limit)
    }

    fn outage_at(&self) -> Option<Instant> {
        if !self.lifecycle.is_connected() {
            return None;
        }
        let since = match self.liveness.outage_since() {
            Some(_) => self.liveness.resumed_at()?,
            None => self.polling.stat_missing_since()?,
        };
        let timeout = self.rtt.outage_timeout() + self.pacing.control.response_allowance();
        Some(since + timeout)
    }
}

/// POLLs and reports.
impl Session {
    /// Mode of the POLL timer; `None` if no STAT is needed.
    pub(super) fn poll_timer(&self) -> Option<PollTimer> {
        if self.is_probing() {
            return Some(PollTimer::Probe);
        }
        if self.lifecycle.is_opening() || !self.sender.table.is_empty() {
            let is_small = self.is_small_window();
            return Some(if is_small { PollTimer::Fallback } else { PollTimer::Regular });
        }
        if !self.sender.peer_window_open {
            return Some(PollTimer::Persist);
        }
        // A keep-alive POLL that was not answered is repeated.
        self.polling.is_outstanding().then_some(PollTimer::Fallback)
    }

    /// Time at which the next POLL is due, for any reason.
    pub(super) fn poll_due(&self) -> Instant {
        let timer = self.poll_timer();
        let rtt = self.rtt.smoothed();
        let due = self.polling.due(timer, rtt * self.probing.spacing());
        if timer == Some(PollTimer::Regular) {
            let mut range = self.congestion.poll_range();
            range.end = range.end.max(rtt / 10);
            range.start = range.start.max(self.unmeasured_interval());
            let due = self.polling.within(due, range);
            let requested = self.polling.is_requested() || due == Instant::ZERO;
            return if requested { due } else { due.max(self.poll_holdoff_until()) };
        }
        if timer.is_some() {
            return due;
        }
        // A session that receives POLLs sends none: the keep-alive of the peer serves both.
        let received = self.liveness.last_received();
        let quiet = self.polling.last_sent().map_or(received, |at| at.max(received));
        due.min(quiet + self.config.keep_alive)
    }

    /// Minimum POLL interval before the first RTT sample, with the rules for low-rate paths.
    fn unmeasured_interval(&self) -> Span {
        if !self.pacing.control.is_enabled() || self.rtt.measured().is_some() {
            return Span::ZERO;
        }
        self.polling.unmeasured_interval(self.rtt.smoothed())
    }

    /// Earliest time of the next timer POLL on a low-rate path. The last POLL covers all
    /// outstanding packets, and its STAT may still be in flight.
    fn poll_holdoff_until(&self) -> Instant {
        let covers_all = self.polling.bytes_since_poll() == 0 && !self.sender.has_retransmissions();
        let waits = self.polling.is_outstanding() && covers_all;
        if waits { self.pacing.control.poll_holdoff_until() } else { Instant::ZERO }
    }

    /// A POLL was sent: the next one waits for its STAT if the path has a low rate.
    pub(super) fn hold_off_polls(&mut self, now: Instant, overdue: bool) {
        let rates = [self.known_rate(now), self.config.reverse_rate, self.pacing.granted()];
        let interval = self.polling.interval(PollTimer::Regular, self.rtt.smoothed());
        let response = self.rtt.response_timeout();
        self.pacing.control.on_poll_sent(now, rates, interval, overdue, response);
    }

    /// Time at which the next POLL is sent: when it is due, or with an SD shortly after.
    pub(super) fn poll_at(&self) -> Instant {
        let due = self.poll_due();
        let latest = due + self.config.stp.poll_piggyback_wait;
        if self.sender.is_blocked {
            // An SD that waits for its turn on the link may carry it.
            let waits = self.unblocked_data_at().is_some_and(|at| at <= latest);
            return if waits { latest } else { due };
        }
        match self.data_at() {
            Some(data) if data > due && data <= latest => data,
            Some(_) | None => due,
        }
    }

    /// Time at which POLLs and reports are sent without data.
    fn control_at(&self) -> Option<Instant> {
        let reports = [self.stat_at(), self.receiver.poll_timeout()];
        let due = reports.into_iter().flatten().fold(self.poll_at(), Instant::min);
        let due = due.max(self.control_not_before());
        Some(self.liveness_poll_at().map_or(due, |at| due.min(at)))
    }

    /// Time before which no POLL or report is sent without data. A list that has begun is
    /// completed. The first STAT does not wait for the budget that the handshake took: together
    /// with the next one the peer derives the rate of a packet train from it.
    pub(super) fn control_not_before(&self) -> Instant {
        let is_first = self.receiver.last_stat_at().is_none() && self.receiver.stat_due();
        let exempt = self.receiver.is_stat_incomplete() || is_first;
        if exempt { Instant::ZERO } else { self.pacing.control.not_before() }
    }

    /// Time at which a STAT is sent, if one is pending.
    pub(super) fn stat_at(&self) -> Option<Instant> {
        self.receiver.stat_at(self.config.control_spacing)
    }

    /// Time at which a POLL is sent regardless of pacing and of the control budget: data is
    /// waiting, and for a while no segment was sent or received.
    pub(super) fn liveness_poll_at(&self) -> Option<Instant> {
        let is_waiting = self.sender.has_data() && !self.lifecycle.is_opening();
        if !self.pacing.control.is_enabled() || !is_waiting {
            return None;
        }
        let sent =
            [self.sender.last_data_at(), self.receiver.last_stat_at(), self.polling.last_sent()];
        let last = sent.into_iter().flatten().fold(self.liveness.last_received(), Instant::max);
        // The STAT takes as much of the reverse path, and must not delay the one for a train.
        let rates = [self.config.paced_rate(), self.pacing.granted(), self.config.reverse_rate];
        let rate = rates.into_iter().flatten().min();
        Some(last + ControlBudget::liveness_interval(rate))
    }

    /// Rate of which control takes a fraction: the send rate if it is known, else the rate cap;
    /// at most the granted rate.
    pub(super) fn control_rate(&self, now: Instant) -> Option<BitRate> {
        [self.known_rate(now), self.pacing.granted()].into_iter().flatten().min()
    }

    /// The send rate if it is more than an assumption, else the rate cap.
    fn known_rate(&self, now: Instant) -> Option<BitRate> {
        self.congestion.estimated_pace(now).or(self.config.paced_rate())
    }
}

/// Data.
impl Session {
    /// Time at which data is sent, if any may be.
    fn data_at(&self) -> Option<Instant> {
        if self.sender.is_blocked { None } else { self.unblocked_data_at() }
    }

    /// Time at which data would be sent if the link scheduler had room.
    pub(super) fn unblocked_data_at(&self) -> Option<Instant> {
        let may_send = self.lifecycle.state().may_send() && !self.is_probing();
        if !may_send || self.congestion.is_poll_only() {
            return None;
        }
        if self.sender.has_retransmissions() {
            let unpaced = self.retransmits_unpaced();
            return Some(if unpaced { Instant::ZERO } else { self.pacing.next_send() });
        }
        let may_send_new = self.sender.has_new_data && self.may_send_new();
        may_send_new.then_some(self.pacing.next_send())
    }

    /// Whether the next retransmission is not paced: there is no rate cap.
    pub(super) fn retransmits_unpaced(&self) -> bool {
        self.config.controller == Controller::NewReno
            && self.config.max_rate.is_none()
            && self.sender.retransmit_burst_left() > 0
    }

    /// Whether the packet that was just staged is followed by others back to back.
    pub(super) fn burst_continues(&self, unpaced: bool) -> bool {
        let retransmissions = self.sender.has_retransmissions();
        if unpaced && retransmissions && self.sender.retransmit_burst_left() > 0 {
            return true;
        }
        let has_window = self.congestion.window().is_some();
        let bounds = RateBounds::of(&self.config);
        let back_to_back = has_window && self.pacing.is_back_to_back(self.full_packet(), bounds);
        let more = retransmissions || (self.sender.has_new_data && self.may_send_new());
        more && (back_to_back || unpaced)
    }

    /// Whether the controller and the windows allow a new packet.
    pub(super) fn may_send_new(&self) -> bool {
        self.congestion.may_send() && self.sender.may_send_new(self.window_segments())
    }

    /// Congestion window in segments, rounded, at least one. (A first segment that is a little
    /// shorter for its BGN does not cost a whole one of the next window.)
    fn window_segments(&self) -> Option<u64> {
        let segment = self.config.payload_size().max(1) as u64;
        self.congestion.window().map(|window| ((window + segment / 2) / segment).max(1))
    }

    /// Whether bursts carry their POLLs.
    pub(super) fn is_small_window(&self) -> bool {
        let small = u64::from(self.config.stp.small_window);
        self.window_segments().is_some_and(|window| window < small)
    }

    /// Starts the schedule of a window controller after a STAT or USTAT, or after a pause
    /// (XSTP-8.2).
    pub(super) fn schedule_window(&mut self, now: Instant) {
        let Some(window) = self.window_segments() else { return };
        let table = &self.sender.table;
        let new = window.saturating_sub(table.unreleased()).min(table.free_numbers());
        let burst_left = u64::from(self.sender.retransmit_burst_left());
        let unpaced = if self.retransmits_unpaced() { burst_left } else { 0 };
        let enabled = new + (table.queued() as u64).saturating_sub(unpaced);
        let schedule = WindowSchedule {
            segments: match self.config.stp.spread {
                Spread::Enabled => enabled,
                Spread::Window => window,
            },
            is_burst: enabled < u64::from(self.config.xstp.burst_threshold),
            rtt: self.rtt.measured(),
            packet: self.full_packet(),
        };
        self.pacing.start(now, &schedule, RateBounds::of(&self.config));
    }

    /// Octets of a full packet.
    fn full_packet(&self) -> usize {
        self.sender.max_segment() + self.config.packet_overhead
    }

    /// Accounts a segment of `len` octets to the pacer. `spread`: it is part of a window's
    /// schedule.
    pub(super) fn charge(&mut self, now: Instant, len: usize, spread: bool) {
        let octets = len + self.config.packet_overhead;
        let (rate, bounds) = (self.congestion.pace(now), RateBounds::of(&self.config));
        self.pacing.charge(now, octets, spread, rate, bounds);
    }
}
