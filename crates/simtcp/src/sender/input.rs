//! Processing of acknowledgements and timeouts.

use super::prr::Prr;
use super::{AckResult, Sender};
use crate::log::{Delivery, SentLog};
use crate::probing::{Cause, Finding};
use crate::recovery::{Outstanding, Report, Verdict};
use crate::round_trip::AckSample;
use crate::segment::Segment;
use crate::window::{Acked, Marks, Sample};
use units::{Instant, Span};

impl Sender {
    /// Handles the acknowledgement of `segment`; `echo` is the round trip measured by its
    /// timestamp.
    pub(crate) fn on_ack(
        &mut self,
        now: Instant,
        segment: &Segment,
        echo: Option<Span>,
    ) -> AckResult {
        let Some(acknowledged) = segment.acknowledgement else { return AckResult::Taken };
        if acknowledged > self.flow.end {
            return AckResult::Unsent;
        }
        if acknowledged < self.flow.oldest {
            return AckResult::Taken;
        }
        let same_window = !self.update_window(segment, acknowledged);
        let before = self.flow;
        let duplicate = acknowledged == before.oldest
            && segment.span() == 0
            && segment.options.probe.is_none()
            && same_window
            && before.oldest < before.end;
        let blocks = segment.options.sack.as_slice();
        self.count_duplicates(acknowledged, blocks);
        let lost_before = self.log.as_ref().map_or(0, SentLog::lost);
        let prior_in_flight = if self.log.is_some() { self.in_flight() } else { 0 };
        let delivery = match &mut self.log {
            Some(log) => log.on_ack(now, acknowledged, blocks),
            None => Delivery::default(),
        };
        if !segment.flags.syn {
            self.on_ace(segment.flags.ace(), &delivery, acknowledged, before);
        }
        self.flow.oldest = acknowledged;
        self.flow.next = self.flow.next.max(acknowledged);
        let acked = acknowledged - before.oldest;
        let flight = before.end - before.oldest;
        // The log measures more finely than a coarse clock, whose timer counts ticks.
        let logged = delivery.round_trip.filter(|_| !self.round_trip.is_coarse());
        let sample = if acked > 0 || logged.is_some() {
            self.measure(now, acked > 0, flight, logged.or(echo))
        } else {
            None
        };
        let verdict = self.recovery.on_ack(
            &self.flow,
            &Report {
                now,
                before: before.oldest,
                window: self.window.levels().window(),
                duplicate,
                sack: blocks,
                delivery: &delivery,
                // RACK's reordering window is finer than a coarse clock.
                smoothed: self.round_trip.smoothed().filter(|_| !self.round_trip.is_coarse()),
            },
            self.log.as_mut(),
        );
        self.obey(now, verdict, acked, flight, [sample, delivery.round_trip]);
        let newly_lost = self.log.as_ref().map_or(0, SentLog::lost).saturating_sub(lost_before);
        self.reduce_in_proportion(verdict, flight, acked, delivery.bytes, newly_lost);
        if self.marks.is_none()
            && segment.flags.ece
            && !segment.flags.syn
            && verdict != Verdict::Loss
        {
            self.on_mark(flight);
        }
        if self.window.needs_log() {
            let lost = newly_lost.max(if verdict == Verdict::Loss { self.flow.segment } else { 0 });
            self.show(now, &delivery, prior_in_flight, lost);
        }
        if let Some(probe) = segment.options.probe.filter(|probe| probe.answer) {
            self.on_probe_answer(now, probe);
        }
        AckResult::Taken
    }

    fn obey(
        &mut self,
        now: Instant,
        verdict: Verdict,
        acked: u64,
        flight: u64,
        sample: [Option<Span>; 2],
    ) {
        match verdict {
            Verdict::Open => {
                if acked > 0 {
                    self.grow(now, acked, sample);
                    self.restart_timer(now);
                }
            }
            Verdict::Loss => {
                self.counters.recoveries += 1;
                match &mut self.probing {
                    Some(probing) => {
                        let round_trip = self.round_trip.smoothed();
                        probing.begin(now, Cause::Duplicates, flight, round_trip);
                    }
                    None => self.window.on_loss(flight),
                }
                self.restart_timer(now);
            }
            Verdict::Repairing { restart_timer } => {
                if restart_timer {
                    self.restart_timer(now);
                }
            }
            Verdict::Repaired { deflate } => {
                let forgiven = self.probing.as_ref().is_some_and(|probing| probing.forgave());
                if !forgiven {
                    self.window.deflate(self.flow.end - self.flow.oldest, deflate);
                }
                self.restart_timer(now);
            }
        }
    }

    fn reduce_in_proportion(
        &mut self,
        verdict: Verdict,
        flight: u64,
        acked: u64,
        newly: u64,
        newly_lost: u64,
    ) {
        match verdict {
            Verdict::Loss if self.proportional => self.prr = Some(Prr::new(flight)),
            Verdict::Loss | Verdict::Repairing { .. } => {}
            Verdict::Open | Verdict::Repaired { .. } => self.prr = None,
        }
        let (pipe, segment) = (self.in_flight(), self.flow.segment);
        if let Some(prr) = &mut self.prr {
            let safe = acked > 0 && newly_lost == 0;
            prr.on_ack(newly, pipe, self.window.levels().threshold(), segment, safe);
        }
    }

    /// Handles an ECN echo: as a loss, once per window (RFC 3168, section 6.1.2).
    fn on_mark(&mut self, flight: u64) {
        if self.flow.oldest <= self.marked_point || self.recovery.is_repairing() {
            return;
        }
        self.marked_point = self.flow.end;
        self.reduced = true;
        self.counters.marks += 1;
        self.window.on_loss(flight);
    }

    /// Handles AccECN's counter (RFC 9768, section 3.2.2.5 and appendix A.2).
    fn on_ace(&mut self, ace: u8, delivery: &Delivery, up_to: u64, before: Outstanding) {
        let Some(marks) = &mut self.marks else { return };
        let newly = (up_to - before.oldest).max(delivery.bytes).div_ceil(before.segment);
        let change = (u64::from(ace) + 8 - (*marks & 7)) & 7;
        // The counter may have wrapped where so many are acknowledged: the most that is consistent.
        let count = if newly > 7 { newly - ((newly - change) & 7) } else { change };
        *marks += count;
        let flight = before.end - before.oldest;
        let reduced = self.window.on_marks(&Marks {
            bytes: (count * before.segment).min((newly * before.segment).max(before.segment)),
            delivered: newly * before.segment,
            up_to,
            next: before.end,
        });
        match reduced {
            Some(reduced) => self.counters.marks += u64::from(reduced),
            None if count > 0 => self.on_mark(flight),
            None => {}
        }
    }

    /// Counts the duplicates reported by the peer (RFC 2883, section 4).
    fn count_duplicates(&mut self, acknowledged: u64, blocks: &[(u64, u64)]) {
        let Some(&first) = blocks.first() else { return };
        let within = blocks.get(1).is_some_and(|next| next.0 <= first.0 && first.1 <= next.1);
        if first.1 <= acknowledged || within {
            self.counters.reported_duplicates += 1;
        }
    }

    /// Updates the peer's window; returns whether it changed (RFC 9293, section 3.10.7.4).
    fn update_window(&mut self, segment: &Segment, acknowledged: u64) -> bool {
        let from = (segment.sequence, acknowledged);
        if from < self.peer.from {
            return false;
        }
        let window = u64::from(segment.window) << self.peer.shift;
        let changed = acknowledged + window != self.peer.edge;
        self.peer.from = from;
        self.peer.edge = acknowledged + window;
        self.peer.largest = self.peer.largest.max(window);
        changed
    }

    fn measure(
        &mut self,
        now: Instant,
        advanced: bool,
        flight: u64,
        seen: Option<Span>,
    ) -> Option<Span> {
        let acknowledged = self.flow.oldest;
        if advanced {
            self.retries = 0;
            self.timed_out_at = None;
        }
        if self.timeout_point.is_some_and(|point| acknowledged >= point) {
            self.timeout_point = None;
        }
        if self.paced_restart.is_some_and(|from| acknowledged > from) {
            self.paced_restart = None;
        }
        let timed = self.timed.filter(|&(end, _)| acknowledged >= end);
        if timed.is_some() {
            self.timed = None;
        }
        let sample = seen.or(timed.map(|(_, at)| self.round_trip.between(at, now)))?;
        // RFC 7323, appendix G: an acknowledgement for every second segment is expected.
        let expected = match seen {
            Some(_) => flight.div_ceil(2 * self.flow.segment),
            None => 1,
        };
        let seen = AckSample { expected, oldest: acknowledged, next: self.flow.end };
        self.round_trip.sample(sample, seen);
        Some(sample)
    }

    fn grow(&mut self, now: Instant, bytes: u64, [sample, fine]: [Option<Span>; 2]) {
        self.window.on_ack(&Acked {
            now,
            bytes,
            up_to: self.flow.oldest,
            next: self.flow.end,
            limited: self.held || self.paced_enough(),
            sample,
            round_trip: self.round_trip.smoothed(),
            fine,
        });
    }

    /// With pacing the window is not full at all times. In slow start it counts as used if more
    /// than half is in flight; in congestion avoidance if it was full within the last round trip
    /// (Linux, `tcp_is_cwnd_limited`).
    fn paced_enough(&self) -> bool {
        if self.pacing_rate().is_none() {
            return false;
        }
        let levels = self.window.levels();
        if levels.in_slow_start() {
            return 2 * (self.flow.end - self.flow.oldest) > levels.window();
        }
        self.held_until.is_some_and(|end| self.flow.oldest <= end)
    }

    /// Passes the results of an acknowledgement to a window that models the path.
    fn show(&mut self, now: Instant, delivery: &Delivery, prior_in_flight: u64, lost: u64) {
        let in_flight = self.in_flight();
        let least = self.window.least_round_trip();
        let repairing = self.recovery.is_repairing() || self.timeout_point.is_some();
        let Some(log) = &mut self.log else { return };
        let rate = log.rate(delivery, least);
        let (flight, heavy_loss) = (log.flight(delivery), log.take_heavy_loss());
        self.window.on_sample(&Sample {
            now,
            flight,
            heavy_loss,
            newly: delivery.bytes,
            delivered: log.delivered(),
            rate,
            round_trip: delivery.round_trip,
            smoothed: self.round_trip.smoothed(),
            prior_in_flight,
            in_flight,
            lost,
            repairing,
            up_to: self.flow.oldest,
            next: self.flow.end,
            held: self.held,
            ahead: self.pace_next.since(now),
        });
        if self.window.drains() {
            // A low rate caused by the window itself counts as application-limited.
            log.limit();
        }
    }

    /// RFC 6298, rules 5.2 and 5.3.
    fn restart_timer(&mut self, now: Instant) {
        let runs = self.flow.oldest < self.flow.end;
        let oldest = self.log.as_ref().and_then(SentLog::oldest_sent);
        let by_oldest = self.recovery.times_the_oldest() && !self.oldest_waits();
        let from = oldest.filter(|_| by_oldest).unwrap_or(now);
        // A timer that has already expired is set to 1 ms (Linux: a jiffy).
        let soon = now + Span::from_millis(1);
        self.timer = runs.then(|| self.round_trip.deadline(from).max(soon));
    }

    /// Whether the oldest segment is known to be lost and waits for room in a window that the
    /// algorithm has made smaller than the flight. The timer then counts from the acknowledgement
    /// (RFC 6298, rule 5.3; here a selective one as well); counted from the transmission it would
    /// expire although no acknowledgement is missing.
    fn oldest_waits(&self) -> bool {
        let lost = self.log.as_ref().and_then(SentLog::first_lost);
        self.window.delays_repair() && lost.is_some_and(|(start, _)| start <= self.flow.oldest)
    }

    /// Handles the retransmission timeout (RFC 6298, rules 5.4 to 5.6): the oldest segment is
    /// retransmitted, alone.
    pub(crate) fn on_timeout(&mut self, now: Instant) {
        if let Some(probing) = self.probing.as_mut().filter(|probing| probing.is_running()) {
            // Limited to the time for which retransmissions would continue.
            if !probing.expire(now) {
                self.retries = u32::MAX;
            }
            return;
        }
        self.timer = None;
        self.round_trip.back_off();
        self.retries += 1;
        let flight = self.flow.end - self.flow.oldest;
        if flight == 0 || (self.peer.edge <= self.flow.oldest && self.flow.oldest > 0) {
            self.probe = true;
            return;
        }
        self.counters.timeouts += 1;
        if self.flow.oldest == 0 {
            return;
        }
        if let Some(probing) = &mut self.probing {
            probing.begin(now, Cause::Timeout, flight, self.round_trip.smoothed());
            return;
        }
        self.fall_back(flight);
        self.begin_again();
    }

    fn fall_back(&mut self, flight: u64) {
        let first = self.timed_out_at != Some(self.flow.oldest);
        self.timed_out_at = Some(self.flow.oldest);
        self.window.on_timeout(flight, first);
    }

    pub(super) fn begin_again(&mut self) {
        self.prr = None;
        self.timeout_point = Some(self.flow.end);
        if self.recovery.on_timeout(&self.flow, self.log.as_mut()) {
            self.flow.next = self.flow.oldest;
        }
        self.timed = None;
    }

    fn on_probe_answer(&mut self, now: Instant, probe: crate::segment::Probe) {
        let Some(probing) = &mut self.probing else { return };
        let Some((cause, flight, finding)) = probing.answer(now, probe) else { return };
        match (cause, finding) {
            (Cause::Duplicates, Finding::Congestion) => self.window.on_loss(flight),
            (Cause::Timeout, Finding::Congestion) => self.fall_back(flight),
            (Cause::Duplicates | Cause::Timeout, Finding::Clear) => {}
        }
        if cause == Cause::Timeout {
            self.begin_again();
        }
        self.retries = 0;
        self.restart_timer(now);
    }
}
