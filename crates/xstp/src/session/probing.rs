//! XSTP-probing: what a loss was, found out before anything is done about it.
//!
//! ```text
//!   loss noticed ──▶ data stops, POLLs become probes ──▶ two neighbouring answers ──▶ verdict
//!     no STAT between two POLLs     one each round trip,    or a STAT without gaps:
//!     STAT or USTAT with a loss     without back-off        nothing was lost
//! ```
//!
//! Elaasar and others 2003, section 4, which settles the sender alone: to the receiver a probe
//! is a POLL like any other. The verdict compares the round trips of the answers with the one
//! before the loss. Longer ones mean congestion, and the window is made smaller; others mean an
//! error on the link, and sending goes on as before. What the paper leaves open is a setting
//! here, with the reading that this project takes as the default (section 13 of
//! `docs/spec/xstp.md`).

mod map;

use super::polling::Answer;
use super::sender::{Asked, Outcome};
use super::{Session, State};
use crate::config::{Halve, LossRoundTrip};
use crate::wire::Stat;
use map::ProbeMap;
use units::{Instant, Span};

/// What probing has done since the session began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProbingStatistics {
    /// Cycles begun by an early timeout.
    pub early_timeouts: u64,
    /// Cycles begun by a STAT.
    pub begun_by_stat: u64,
    /// Cycles begun by a USTAT.
    pub begun_by_ustat: u64,
    /// POLLs sent as probes.
    pub probes_sent: u64,
    /// USTATs that came during a cycle.
    pub ustats_ignored: u64,
    /// Answers without a slot.
    pub answers_ignored: u64,
    /// Cycles that a STAT without gaps ended.
    pub premature: u64,
    /// Cycles that found an error on the link.
    pub recovered: u64,
    /// Cycles that found congestion and made the window smaller.
    pub congested: u64,
    /// Cycles that found congestion after so long that slow start followed.
    pub slow_starts: u64,
    /// The time that all cycles took together.
    pub time: Span,
}

/// The probing of one session.
#[derive(Clone, Debug)]
pub(super) struct Probing {
    cycle: Option<Cycle>,
    /// Count of the POLL whose answer ended the last cycle: further parts of that STAT's list
    /// are sent again and begin no cycle.
    ended_by: Option<u32>,
    /// When the last cycle ended, and regular POLLs began anew.
    ended_at: Instant,
}

impl Default for Probing {
    fn default() -> Self {
        Self { cycle: None, ended_by: None, ended_at: Instant::ZERO }
    }
}

/// A cycle that is running.
#[derive(Clone, Debug)]
struct Cycle {
    /// "loss.TS".
    began: Instant,
    /// Count of the last POLL before.
    last_count: u32,
    /// "loss.RTT".
    round_trip: Span,
    /// The window and its threshold then.
    window: Option<(u64, Option<u64>)>,
    map: ProbeMap,
    /// How often the distance of probes was doubled.
    doublings: u32,
}

/// How often it is at most.
const DOUBLINGS: u32 = 6;

/// What makes a cycle begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trigger {
    EarlyTimeout,
    Stat,
    Ustat,
}

/// How a cycle ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// Nothing is missing.
    Premature,
    LinkError,
    Congestion,
}

impl Session {
    /// Whether a probing cycle is running: no data leaves.
    pub fn is_probing(&self) -> bool {
        self.probing.cycle.is_some()
    }

    /// Slots of the probing map, oldest first: the count of each probe and its round trip once
    /// it is answered; `None` for the reserved slot while that is empty.
    #[cfg(test)]
    pub(super) fn probing_map(&self) -> alloc::vec::Vec<Option<(u32, Option<Span>)>> {
        let slots = self.probing.cycle.iter().flat_map(|cycle| cycle.map.slots());
        slots.map(|slot| slot.map(|probe| (probe.count, probe.round_trip))).collect()
    }

    /// Begins a cycle if a POLL is due now by the timer, the answer to an earlier one is due
    /// too, and none has come since the last POLL (XSTP-13.1.1).
    pub(super) fn watch_interleave(&mut self, now: Instant) {
        let watches = self.config.xstp.probing.is_some_and(|config| config.early_timeout);
        if !watches || !self.may_probe() || self.is_probing() {
            return;
        }
        let Some(round_trip) = self.round_trip.measured() else { return };
        let oldest = self.polling.oldest_unanswered(self.probing.ended_at);
        let overdue = oldest.is_some_and(|at| now.since(at) >= round_trip);
        let due = self.polls_by_timer() && !self.polling.is_wanted() && self.poll_at() <= now;
        if due && overdue && !self.polling.answered_since_last() {
            self.begin_probing(now, Trigger::EarlyTimeout);
        }
    }

    /// How many times as far as a round trip probes are apart (XSTP-13.2.6).
    pub(super) fn probe_spacing(&self) -> u64 {
        self.probing.cycle.as_ref().map_or(1, |cycle| 1 << cycle.doublings)
    }

    /// Whether what a STAT or USTAT tells as missing is held back at first.
    pub(super) fn holds_losses(&self, answers: Option<u32>) -> bool {
        let part_of_last = answers.is_some() && answers == self.probing.ended_by;
        self.may_probe() && (self.is_probing() || !part_of_last)
    }

    /// A STAT came while losses are held back; it found `outcome`.
    pub(super) fn probe_by_stat(
        &mut self,
        now: Instant,
        stat: &Stat<'_>,
        answer: Answer,
        asked: Asked,
        outcome: Outcome,
    ) {
        let valid = outcome.lost > 0;
        self.on_outcome(now, Outcome { lost: 0, lost_again: 0, ..outcome });
        if !self.is_probing() {
            if valid {
                self.begin_probing(now, Trigger::Stat);
            }
            return;
        }
        let is_empty = !stat.runs().any(|run| run.missing);
        let verdict = if is_empty {
            Some(Verdict::Premature)
        } else if valid && answer.first {
            self.record(now, asked.poll, answer.sent_at)
        } else {
            None
        };
        if let Some(verdict) = verdict {
            self.end_probing(now, stat, asked, verdict);
        }
    }

    /// A USTAT came while losses are held back; it found `outcome`.
    pub(super) fn probe_by_ustat(&mut self, now: Instant, outcome: Outcome) {
        let valid = outcome.lost > 0;
        self.on_outcome(now, Outcome { lost: 0, lost_again: 0, ..outcome });
        if valid {
            self.begin_probing(now, Trigger::Ustat);
        }
    }

    /// A POLL counted `count` was sent.
    pub(super) fn note_probe(&mut self, count: u32) {
        if let Some(cycle) = &mut self.probing.cycle {
            cycle.map.on_sent(count);
            self.statistics.probing.probes_sent += 1;
        }
    }

    /// The session is over, and with it the cycle.
    pub(super) fn stop_probing(&mut self) {
        self.probing.cycle = None;
    }

    /// A cycle needs a round trip to compare with, and data that it can hold back.
    fn may_probe(&self) -> bool {
        let may_send = self.state.may_send() && self.state != State::Beginning;
        self.config.xstp.probing.is_some() && may_send && self.round_trip.measured().is_some()
    }

    fn begin_probing(&mut self, now: Instant, trigger: Trigger) {
        let Some(config) = self.config.xstp.probing else { return };
        let round_trip = match config.loss_round_trip {
            LossRoundTrip::Smoothed => self.round_trip.smoothed(),
            LossRoundTrip::Last => self.round_trip.last(),
        };
        self.probing.cycle = Some(Cycle {
            began: now,
            last_count: self.polling.count(),
            round_trip,
            window: self.congestion.window().map(|window| (window, self.congestion.threshold())),
            map: ProbeMap::new(config.max_probes, config.before_loss),
            doublings: 0,
        });
        // What waits to be sent again is told again by the STAT that ends the cycle.
        self.sender.clear_queue();
        self.ask_when_resent = false;
        self.pacer.idle();
        self.polling.want();
        let statistics = &mut self.statistics.probing;
        match trigger {
            Trigger::EarlyTimeout => statistics.early_timeouts += 1,
            Trigger::Stat => statistics.begun_by_stat += 1,
            Trigger::Ustat => statistics.begun_by_ustat += 1,
        }
    }

    /// Enters a valid answer to the POLL counted `count`; the verdict, if that was enough.
    fn record(&mut self, now: Instant, count: u32, sent_at: Option<Instant>) -> Option<Verdict> {
        let (config, cycle) = (self.config.xstp.probing?, self.probing.cycle.as_mut()?);
        let is_probe = (count.wrapping_sub(cycle.last_count) as i32) > 0;
        if self.config.gateway.low_rate.is_some() && is_probe && cycle.map.skips(count) {
            cycle.doublings = (cycle.doublings + 1).min(DOUBLINGS);
        }
        let round_trip = sent_at.map(|at| now.since(at));
        let recorded = round_trip.is_some_and(|round_trip| match is_probe {
            true => cycle.map.on_answer(count, round_trip),
            false => cycle.map.on_earlier(count, round_trip),
        });
        if !recorded {
            self.statistics.probing.answers_ignored += 1;
            return None;
        }
        let longest = cycle.map.longest_of(config.required_probes)?;
        let tolerated = 1_000_000 + u64::from(config.tolerance_millionths);
        let is_longer = longest > cycle.round_trip.mul_ratio(tolerated, 1_000_000);
        let slows = is_longer || !config.immediate_recovery;
        Some(if slows { Verdict::Congestion } else { Verdict::LinkError })
    }

    fn end_probing(&mut self, now: Instant, stat: &Stat<'_>, asked: Asked, verdict: Verdict) {
        let (Some(config), Some(cycle)) = (self.config.xstp.probing, self.probing.cycle.take())
        else {
            return;
        };
        self.probing.ended_by = Some(asked.poll);
        self.probing.ended_at = now;
        self.polling.restart_timer();
        let took = now.since(cycle.began);
        let statistics = &mut self.statistics.probing;
        statistics.time += took;
        match verdict {
            Verdict::Premature => statistics.premature += 1,
            Verdict::LinkError => statistics.recovered += 1,
            Verdict::Congestion if took >= config.idle_threshold => {
                statistics.slow_starts += 1;
                self.congestion.slow_start();
            }
            Verdict::Congestion => {
                statistics.congested += 1;
                let flight = match config.halve {
                    Halve::Window => None,
                    Halve::Flight => Some(self.sender.unreleased_bytes()),
                };
                self.congestion.halve(self.sender.next(), flight);
            }
        }
        if verdict != Verdict::Congestion
            && config.restore_window
            && let Some((window, threshold)) = cycle.window
        {
            self.congestion.restore(window, threshold);
        }
        let outcome = self.sender.queue_held(stat.received_below, stat.runs(), asked);
        self.note_losses(outcome);
        self.replan(now);
    }
}

#[cfg(test)]
mod tests;
