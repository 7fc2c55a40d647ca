//! Time: when the session wants to be called, and what has happened when it is.

use super::polling::Pace;
use super::state::{State, Stimulus};
use super::{Event, Session};
use crate::config::Controller;
use crate::config::Spread;
use units::{Instant, Span};

impl Session {
    /// When the session wants to be called again, whatever arrives: first
    /// [`handle_timeout`](Session::handle_timeout), then
    /// [`poll_transmit`](Session::poll_transmit) until there is nothing more. An instant in the
    /// past means now. `None`: not before something arrives or the layer above
    /// [wakes](Session::wake) the session.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let due_now = self.handshake.is_due().then_some(Instant::ZERO);
        let own = [
            due_now,
            self.handshake.retry_at(),
            self.no_response_at(),
            self.outage_at(),
            self.drained_at(),
        ];
        let sending =
            if self.state.is_connected() { [self.control_at(), self.data_at()] } else { [None; 2] };
        let never = Instant::FAR_FUTURE;
        own.into_iter().chain(sending).flatten().min().filter(|&at| at != never)
    }

    /// Time has passed: what was waited for has not come.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.handshake.retry_at().is_some_and(|at| now >= at) {
            let exhausted = self.handshake.on_expired(self.config.handshake_tries);
            self.apply(now, if exhausted { Stimulus::GiveUp } else { Stimulus::Retry });
        }
        if self.no_response_at().is_some_and(|at| now >= at) {
            self.apply(now, Stimulus::NoResponse);
        }
        if self.outage_at().is_some_and(|at| now >= at) {
            self.review_slowness(now);
        }
        if self.outage_at().is_some_and(|at| now >= at)
            && let Some(since) = self.polling.silent_since()
        {
            self.outage_since = Some(since);
            self.congestion.on_outage(now);
            self.statistics.outages += 1;
            self.emit(Event::OutageBegan { silence: now.since(since) });
        }
    }

    /// A BGN or END was not answered.
    pub(super) fn repeat_handshake(&mut self) {
        if self.state == State::Beginning {
            // Without BGN the peer has dropped everything: the first packet goes along.
            self.sender.repeat_first();
            self.handshake.begin();
            self.polling.want();
        } else {
            self.handshake.end();
        }
    }

    /// How long an answer to BGN or END is waited for, at least.
    pub(super) fn handshake_timeout(&self) -> Span {
        let round_trips = self.round_trip.measured().map_or(Span::ZERO, |measured| measured * 2);
        self.config.handshake_timeout.max(round_trips)
    }

    /// A POLL is answered: the outage is over, if there was one. POLLs from within it measure
    /// the outage and not the round trip.
    pub(super) fn end_outage(&mut self, now: Instant) {
        if let Some(since) = self.outage_since.take() {
            self.samples_from = now;
            self.emit(Event::OutageEnded { silence: now.since(since) });
        }
    }

    fn no_response_at(&self) -> Option<Instant> {
        let limit = self.config.no_response?;
        self.state.is_connected().then_some(self.unanswered_since? + limit)
    }

    fn outage_at(&self) -> Option<Instant> {
        if self.outage_since.is_some() || !self.state.is_connected() {
            return None;
        }
        Some(self.polling.silent_since()? + self.round_trip.patience() + self.slowness())
    }

    /// Whether END can go out: then it is due at once.
    fn drained_at(&self) -> Option<Instant> {
        let may_end = matches!(self.state, State::Established | State::PeerEnded);
        let drained = self.end_wanted && self.sender.is_empty() && !self.fresh_waiting;
        (may_end && drained).then_some(Instant::ZERO)
    }

    /// Which clock the POLL timer runs by; `None` when nothing needs an answer.
    fn pace(&self) -> Option<Pace> {
        if self.is_probing() {
            return Some(Pace::Probe);
        }
        let regular = if self.is_small_window() { Pace::Fallback } else { Pace::Timer };
        if self.state == State::Beginning || !self.sender.is_empty() {
            return Some(regular);
        }
        if !self.credit {
            return Some(Pace::Persist);
        }
        // A keep-alive that was not answered is not left at that.
        self.polling.is_outstanding().then_some(Pace::Fallback)
    }

    /// Whether POLLs come by the timer now, and not with bursts or to persist.
    pub(super) fn polls_by_timer(&self) -> bool {
        self.pace() == Some(Pace::Timer)
    }

    /// When the next POLL is due, by whatever reason.
    pub(super) fn poll_due(&self) -> Instant {
        let pace = self.pace();
        let round_trip = self.round_trip.smoothed();
        let due = self.polling.due(pace, self.armed_at, round_trip * self.probe_spacing());
        if pace == Some(Pace::Timer) {
            let mut range = self.congestion.poll_range();
            range.end = range.end.max(round_trip / 10);
            range.start = range.start.max(self.guess_spacing());
            let due = self.polling.within(due, self.armed_at, range);
            let asked = self.polling.is_wanted() || due == Instant::ZERO;
            return if asked { due } else { due.max(self.asked_until()) };
        }
        if pace.is_some() {
            return due;
        }
        // Only a session that hears nothing polls: the peer's keep-alive serves both.
        let quiet = self.polling.last_sent().map_or(self.last_heard, |at| at.max(self.last_heard));
        due.min(quiet + self.config.keep_alive)
    }

    /// Before the first answer a way may be as slow as it likes, and POLLs must not fill it: a few
    /// go as if the round trip were what is assumed, then each waits twice as long.
    fn guess_spacing(&self) -> Span {
        const FEW: u64 = 4;
        const DOUBLINGS: u64 = 5;
        if self.config.gateway.low_rate.is_none() || self.round_trip.measured().is_some() {
            return Span::ZERO;
        }
        let more = self.statistics.polls_sent.saturating_sub(FEW).min(DOUBLINGS);
        let usual = self.round_trip.smoothed() / u64::from(self.config.polls_per_round_trip);
        if more == 0 { Span::ZERO } else { usual * (1 << more) }
    }

    /// When the next POLL goes out: as it is due, or with an SD that goes out shortly after.
    pub(super) fn poll_at(&self) -> Instant {
        let due = self.poll_due();
        if self.held {
            // Data that waits for its turn may take it along.
            let waits = self
                .wanted_data_at()
                .is_some_and(|at| at <= due + self.config.stp.poll_piggyback_wait);
            return if waits { due + self.config.stp.poll_piggyback_wait } else { due };
        }
        match self.data_at() {
            Some(data) if data > due && data <= due + self.config.stp.poll_piggyback_wait => data,
            Some(_) | None => due,
        }
    }

    /// When POLLs and reports go out without data.
    fn control_at(&self) -> Option<Instant> {
        let reports = [self.stat_at(), self.receiver.poll_timeout()];
        let due = reports.into_iter().flatten().fold(self.poll_at(), Instant::min);
        let due = due.max(self.control_from());
        Some(self.word_at().map_or(due, |word| due.min(word)))
    }

    /// When a STAT goes out, if one is due.
    pub(super) fn stat_at(&self) -> Option<Instant> {
        if !self.receiver.stat_due() {
            return None;
        }
        match self.last_stat_sent {
            Some(last) if !self.in_list => {
                Some(last + self.config.control_spacing * self.list_parts)
            }
            Some(_) | None => Some(Instant::ZERO),
        }
    }

    /// When data goes out, if any may.
    pub(super) fn data_at(&self) -> Option<Instant> {
        if self.held { None } else { self.wanted_data_at() }
    }

    /// When data would go out if the layer below had room.
    pub(super) fn wanted_data_at(&self) -> Option<Instant> {
        if !self.state.may_send() || self.congestion.is_quiet() || self.is_probing() {
            return None;
        }
        if self.sender.queued() > 0 {
            let at_once = self.retransmits_at_once();
            return Some(if at_once { Instant::ZERO } else { self.pacer.next_send() });
        }
        (self.fresh_waiting && self.may_send_fresh()).then_some(self.pacer.next_send())
    }

    /// Without a hard bound on the rate, what is missing is sent again as soon as that is known.
    pub(super) fn retransmits_at_once(&self) -> bool {
        self.config.controller == Controller::NewReno
            && self.config.max_rate.is_none()
            && self.again_at_once > 0
    }

    /// Whether the packet just loaded leaves with others right behind it.
    pub(super) fn burst_goes_on(&self, at_once: bool) -> bool {
        if at_once && self.sender.queued() > 0 && self.again_at_once > 0 {
            return true;
        }
        let octets = self.max_segment + self.config.packet_overhead;
        let unpaced =
            self.congestion.window().is_some() && self.bounded(self.interval, octets).is_zero();
        let more = self.sender.queued() > 0 || (self.fresh_waiting && self.may_send_fresh());
        more && (unpaced || at_once)
    }

    /// Whether the windows allow a new number.
    pub(super) fn may_send_fresh(&self) -> bool {
        self.congestion.may_send()
            && self.sender.free_numbers() > 0
            && self.window_segments().is_none_or(|window| self.sender.unreleased() < window)
    }

    /// The congestion window in segments, to the nearest; at least one. (A first segment that
    /// is a little shorter for its BGN does not cost a whole one in the next window.)
    pub(super) fn window_segments(&self) -> Option<u64> {
        let segment = self.config.payload_size().max(1) as u64;
        self.congestion.window().map(|window| ((window + segment / 2) / segment).max(1))
    }

    /// Whether bursts carry their POLLs.
    pub(super) fn is_small_window(&self) -> bool {
        let small = u64::from(self.config.stp.small_window);
        self.window_segments().is_some_and(|window| window < small)
    }

    /// A window controller's schedule after a STAT or USTAT, or after a pause (XSTP-8.2).
    pub(super) fn replan(&mut self, now: Instant) {
        let Some(window) = self.window_segments() else { return };
        let mut enabled = window.saturating_sub(self.sender.unreleased());
        enabled = enabled.min(self.sender.free_numbers());
        let at_once = if self.retransmits_at_once() { u64::from(self.again_at_once) } else { 0 };
        enabled += (self.sender.queued() as u64).saturating_sub(at_once);
        let spread_over = match self.config.stp.spread {
            Spread::Enabled => enabled,
            Spread::Window => window,
        };
        let burst = enabled < u64::from(self.config.xstp.burst_threshold);
        self.interval = match self.round_trip.measured() {
            Some(round_trip) if !burst => round_trip / spread_over.max(1),
            Some(_) | None => Span::ZERO,
        };
        let full = self.max_segment + self.config.packet_overhead;
        let interval = self.bounded(self.interval, full);
        self.pacer.bring_forward(now, interval);
    }

    /// `interval` within what the rates allow for a segment of `octets` on the link.
    fn bounded(&self, interval: Span, octets: usize) -> Span {
        let octets = octets as u64;
        let longest = self.config.min_rate.map_or(Span::MAX, |rate| rate.time_for(octets));
        let shortest = self.config.paced_rate().map_or(Span::ZERO, |rate| rate.time_for(octets));
        interval.min(longest).max(shortest)
    }

    /// Charges a segment of `len` bytes to the pacer.
    pub(super) fn charge(&mut self, now: Instant, len: usize, paced: bool) {
        let octets = len + self.config.packet_overhead;
        let ceiling = self.config.paced_rate().map(|rate| rate.time_for(octets as u64));
        match (self.congestion.pace(now), ceiling) {
            (Some(rate), _) => self.pacer.charge_bytes(now, octets as u64, rate),
            (None, ceiling) if paced => {
                let interval = self.bounded(self.interval, octets);
                self.pacer.charge_span(now, interval, ceiling.unwrap_or(Span::ZERO));
            }
            (None, Some(ceiling)) => self.pacer.charge_span(now, ceiling, ceiling),
            (None, None) => {}
        }
    }
}
