//! STATs and USTATs: acknowledgements, losses, RTT samples, and the response of the controller.
//!
//! ```text
//!   STAT ──▶ polling ──▶ RTT sample, end of an outage ──▶ controller (PollAnswered)
//!     │
//!     └────▶ packet table ──▶ Outcome ──▶ controller (AckEvent), new schedule
//!                               └──▶ probing: losses are held until the verdict
//! ```

use super::lifecycle::State;
use super::loss::{Baseline, Correction, Trigger, Verdict};
use super::polling::{PollMatch, PollTimer};
use super::sender::{InvalidReport, Outcome, RetransmitFilter};
use super::upper::UpperLayer;
use super::{Event, Session};
use crate::config::{Halve, RetransmitRule};
use crate::congestion::{AckEvent, PollAnswered};
use crate::wire::{Profile, Stat, Ustat};
use units::Instant;

impl Session {
    pub(super) fn on_stat(&mut self, now: Instant, stat: &Stat<'_>, upper: &mut impl UpperLayer) {
        let backoff = self.polling.backoff();
        let Some(matched) = self.polling.on_stat(now, stat.echo.seq) else {
            self.statistics.stat_poll_errors += 1;
            return;
        };
        self.statistics.stats_received += 1;
        self.pacing.control.reset_response_allowance();
        self.take_rtt_sample(now, matched);
        if matched.first && stat.arrival.is_some() {
            self.report_poll_answered(now, stat);
        }
        let filter = self.retransmit_filter(now, stat.echo.seq, backoff);
        let (below, window) = (stat.received_below, stat.window);
        match self.sender.table.on_stat(below, window, stat.runs(), filter, upper) {
            Ok(outcome) if filter.hold => self.probe_by_stat(now, stat, matched, filter, outcome),
            Ok(outcome) => self.on_outcome(now, outcome),
            Err(InvalidReport::ReceivedBelow | InvalidReport::List) => {
                self.statistics.stat_list_errors += 1;
            }
        }
        if matched.first && stat.arrival.is_none() && self.config.profile == Profile::Sealed {
            // The estimate takes into account what this STAT reports missing.
            self.report_poll_answered(now, stat);
        }
    }

    pub(super) fn on_ustat(
        &mut self,
        now: Instant,
        ustat: &Ustat<'_>,
        upper: &mut impl UpperLayer,
    ) {
        if self.is_probing() {
            self.statistics.probing.ustats_ignored += 1;
            return;
        }
        let hold = self.holds_losses(None);
        match self.sender.table.on_ustat(ustat.received_below(), ustat.gaps(), hold, upper) {
            Ok(outcome) => {
                self.statistics.ustats_received += 1;
                if hold {
                    self.probe_by_ustat(now, outcome);
                } else {
                    self.on_outcome(now, outcome);
                }
            }
            Err(InvalidReport::ReceivedBelow | InvalidReport::List) => {
                self.statistics.ustat_errors += 1;
            }
        }
    }

    /// A POLL is answered: ends an outage, and takes an RTT sample from the first STAT.
    fn take_rtt_sample(&mut self, now: Instant, matched: PollMatch) {
        let sent = matched.sent_at.filter(|_| matched.first);
        // Also of a POLL sent before the outage: with several of them in flight it is the first to be
        // answered, and where the RTT exceeds the timeout it ends each outage before those sent
        // during it, which alone would be samples, have their answers.
        if self.config.gateway.low_rate.is_some()
            && self.liveness.outage_since().is_some()
            && let Some(sent) = sent
        {
            self.rtt.extend_after_outage(now.since(sent));
        }
        self.end_outage(now);
        if let Some(sent) = sent
            && self.liveness.is_rtt_sample(now, sent)
        {
            self.rtt.sample(now.since(sent));
        }
    }

    /// Condition under which a packet is retransmitted that the STAT for the POLL `poll` reports
    /// missing.
    fn retransmit_filter(&self, now: Instant, poll: u32, backoff: u32) -> RetransmitFilter {
        let doublings = match self.config.xstp.retransmit_rule {
            RetransmitRule::PollOrder => None,
            RetransmitRule::RoundTrip => Some(0),
            RetransmitRule::BackedOff if self.is_probing() => Some(0),
            RetransmitRule::BackedOff => Some(backoff.min(16)),
        };
        let age = doublings.map(|doublings| (now, self.rtt.smoothed() * (1 << doublings)));
        RetransmitFilter { poll, age, hold: self.holds_losses(Some(poll)) }
    }

    /// Reports the measurements of the receiver, or estimates of them, to the controller.
    fn report_poll_answered(&mut self, now: Instant, stat: &Stat<'_>) {
        let sent = self.arrivals.sent_up_to(stat.echo.seq);
        let Some(arrival) = self.arrivals.measure(now, stat) else { return };
        if let Some(sent) = sent {
            self.measure_loss(sent, arrival.octets);
        }
        self.congestion.on_poll_answered(&PollAnswered {
            now,
            seq: stat.echo.seq,
            timestamp: stat.echo.timestamp,
            arrived_at: arrival.at,
            arrived: arrival.octets,
            min_rtt: self.rtt.min().unwrap_or(self.config.initial_rtt),
        });
    }

    /// Reports the effect of a STAT or USTAT to the controller, and starts a new schedule.
    fn on_outcome(&mut self, now: Instant, outcome: Outcome) {
        self.count_losses(outcome);
        let restarts =
            outcome.lost > 0 && self.config.xstp.outage_is_idle && self.restart_when_idle(now);
        self.congestion.on_ack(&AckEvent {
            now,
            released: outcome.released,
            lost: if restarts { 0 } else { outcome.lost },
            oldest: self.sender.table.oldest(),
            next: self.sender.table.next(),
            srtt: self.rtt.measured(),
        });
        if self.sender.detect_window_reopened() {
            self.statistics.windows_reopened += 1;
            self.emit(Event::WindowReopened);
        }
        self.schedule_window(now);
    }

    fn count_losses(&mut self, outcome: Outcome) {
        self.statistics.reported_missing += outcome.lost;
        // The table does not report sizes; the mean size is enough for an estimate.
        let mean = self.statistics.data_bytes_sent / self.statistics.data_sent.max(1);
        let below = (self.config.profile.header_len() + self.config.packet_overhead) as u64;
        self.arrivals.on_missing(outcome.lost * (mean + below));
        self.sender.on_losses(outcome, &self.config);
    }

    /// Restarts with slow start after the configured time without transmissions of data.
    fn restart_when_idle(&mut self, now: Instant) -> bool {
        self.sender.idle_time(now).is_some_and(|idle| self.congestion.on_restart(now, idle))
    }
}

/// Probing (XSTP-13).
impl Session {
    /// Whether a probing cycle is running: no data is sent.
    pub fn is_probing(&self) -> bool {
        self.probing.is_running()
    }

    /// Whether a cycle can start: there are an RTT to compare with and data to hold back.
    fn may_probe(&self) -> bool {
        let state = self.lifecycle.state();
        let may_send = state.may_send() && state != State::Opening;
        self.probing.is_enabled() && may_send && self.rtt.measured().is_some()
    }

    /// Whether losses that a report lists are held until a verdict; `stat` is the POLL that a STAT
    /// answers.
    fn holds_losses(&self, stat: Option<u32>) -> bool {
        self.may_probe() && self.probing.holds_losses(stat)
    }

    /// Starts a cycle if the timer sends a POLL now, the STAT for an earlier one is due, and none
    /// was received since the last POLL (XSTP-13.1.1).
    pub(super) fn detect_missing_stat(&mut self, now: Instant) {
        if !self.probing.detects_timeouts() || !self.may_probe() {
            return;
        }
        let Some(rtt) = self.rtt.measured() else { return };
        let oldest = self.polling.oldest_unanswered(self.probing.ended_at());
        let overdue = oldest.is_some_and(|at| now.since(at) >= rtt);
        let by_timer =
            self.poll_timer() == Some(PollTimer::Regular) && !self.polling.is_requested();
        let due = by_timer && self.poll_at() <= now;
        if due && overdue && !self.polling.answered_since_last() {
            self.begin_probing(now, Trigger::EarlyTimeout);
        }
    }

    /// A STAT was received while losses are held.
    fn probe_by_stat(
        &mut self,
        now: Instant,
        stat: &Stat<'_>,
        matched: PollMatch,
        filter: RetransmitFilter,
        outcome: Outcome,
    ) {
        let has_losses = outcome.lost > 0;
        self.on_outcome(now, Outcome { lost: 0, lost_retransmissions: 0, ..outcome });
        if !self.is_probing() {
            if has_losses {
                self.begin_probing(now, Trigger::Stat);
            }
            return;
        }
        let is_complete = !stat.runs().any(|run| run.missing);
        let verdict = if is_complete {
            Some(Verdict::Premature)
        } else if has_losses && matched.first {
            let statistics = &mut self.statistics.probing;
            self.probing.record(now, filter.poll, matched.sent_at, statistics)
        } else {
            None
        };
        if let Some(verdict) = verdict {
            self.end_probing(now, stat, filter, verdict);
        }
    }

    /// A USTAT was received while losses are held.
    fn probe_by_ustat(&mut self, now: Instant, outcome: Outcome) {
        self.on_outcome(now, Outcome { lost: 0, lost_retransmissions: 0, ..outcome });
        if outcome.lost > 0 {
            self.begin_probing(now, Trigger::Ustat);
        }
    }

    fn begin_probing(&mut self, now: Instant, trigger: Trigger) {
        let window = self.congestion.window();
        let baseline = Baseline {
            last_poll: self.polling.seq(),
            srtt: self.rtt.smoothed(),
            last_rtt: self.rtt.last(),
            window: window.map(|window| (window, self.congestion.ssthresh())),
        };
        if self.probing.begin(now, trigger, &baseline, &mut self.statistics.probing) {
            self.sender.drop_retransmissions();
            self.pacing.pause();
            self.polling.request();
        }
    }

    fn end_probing(
        &mut self,
        now: Instant,
        stat: &Stat<'_>,
        filter: RetransmitFilter,
        verdict: Verdict,
    ) {
        let statistics = &mut self.statistics.probing;
        let Some(correction) = self.probing.end(now, filter.poll, verdict, statistics) else {
            return;
        };
        self.polling.restart_timer();
        match correction {
            Correction::None => {}
            Correction::Restore { window, ssthresh } => {
                self.congestion.restore(window, ssthresh);
            }
            Correction::SlowStart => self.congestion.slow_start(),
            Correction::Halve(halve) => {
                let table = &self.sender.table;
                let flight = (halve == Halve::Flight).then(|| table.unreleased_bytes());
                self.congestion.halve(table.next(), flight);
            }
        }
        let runs = stat.runs();
        let outcome = self.sender.table.queue_held(stat.received_below, runs, filter);
        self.count_losses(outcome);
        self.schedule_window(now);
    }
}
