//! XSTP probing: determines the cause of a loss before the window is reduced.
//!
//! ```text
//!   loss detected ──▶ data stops, POLLs become probes ──▶ consecutive responses ──▶ verdict
//!     no STAT between two POLLs     one per RTT,            or a STAT without gaps:
//!     STAT or USTAT with a loss     without back-off        no packet was lost
//! ```
//!
//! Elaasar and others 2003, section 4. Only the sender is involved: for the receiver a probe is a
//! POLL. The verdict compares the RTTs of the responses with the one before the loss. Longer ones
//! mean congestion, and the window is reduced; otherwise the loss is due to corruption, and
//! sending continues. The paper leaves details open; each of them is a setting
//! ([`ProbingConfig`]) whose default is this project's reading (section 13 of
//! `docs/spec/profiles.md`).

mod map;

use crate::config::{Halve, LossRoundTrip, ProbingConfig};
use map::ProbeMap;
use units::{Instant, Span};

/// Maximum number of doublings of the interval between probes.
const DOUBLINGS: u32 = 6;

/// Counters of probing since the start of the session.
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
    /// USTATs received during a cycle.
    pub ustats_ignored: u64,
    /// Responses without a slot in the map.
    pub responses_ignored: u64,
    /// Cycles that a STAT without gaps ended.
    pub premature: u64,
    /// Cycles that found a corruption loss.
    pub recovered: u64,
    /// Cycles that found congestion and reduced the window.
    pub congested: u64,
    /// Cycles that found congestion and, because of their duration, ended in slow start.
    pub slow_starts: u64,
    /// Total duration of all cycles.
    pub time: Span,
}

/// Probing of one session.
#[derive(Clone, Debug)]
pub(in crate::session) struct Probing {
    config: Option<ProbingConfig>,
    /// Whether unanswered probes double the interval: the peer's control traffic is bounded.
    backs_off: bool,
    cycle: Option<Cycle>,
    /// POLL whose STAT ended the last cycle: further segments of that STAT's list cause
    /// retransmissions and start no cycle.
    ended_by: Option<u32>,
    /// Time at which the last cycle ended, and regular POLLs restarted.
    ended_at: Instant,
}

/// State of the session when a cycle starts.
#[derive(Clone, Copy, Debug)]
pub(in crate::session) struct Baseline {
    /// Sequence number of the last POLL.
    pub(in crate::session) last_poll: u32,
    pub(in crate::session) srtt: Span,
    pub(in crate::session) last_rtt: Span,
    /// Congestion window and slow-start threshold.
    pub(in crate::session) window: Option<(u64, Option<u64>)>,
}

/// A running cycle.
#[derive(Clone, Debug)]
struct Cycle {
    /// "loss.TS".
    began: Instant,
    last_poll: u32,
    /// "loss.RTT".
    rtt: Span,
    window: Option<(u64, Option<u64>)>,
    map: ProbeMap,
    /// Doublings of the interval between probes.
    doublings: u32,
}

/// Start of a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) enum Trigger {
    EarlyTimeout,
    Stat,
    Ustat,
}

/// Result of a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) enum Verdict {
    /// No packet is missing.
    Premature,
    /// The loss was due to corruption.
    Corruption,
    Congestion,
}

/// Effect of a verdict on the congestion window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) enum Correction {
    None,
    /// Set the window and the threshold to their values before the cycle.
    Restore {
        window: u64,
        ssthresh: Option<u64>,
    },
    Halve(Halve),
    SlowStart,
}

impl Probing {
    pub(in crate::session) fn new(config: Option<ProbingConfig>, backs_off: bool) -> Self {
        Self { config, backs_off, cycle: None, ended_by: None, ended_at: Instant::ZERO }
    }

    /// Whether a cycle is running: no data is sent.
    pub(in crate::session) fn is_running(&self) -> bool {
        self.cycle.is_some()
    }

    pub(in crate::session) fn is_enabled(&self) -> bool {
        self.config.is_some()
    }

    /// Whether a missing STAT can start a cycle now (XSTP-13.1.1).
    pub(in crate::session) fn detects_timeouts(&self) -> bool {
        self.config.is_some_and(|config| config.early_timeout) && !self.is_running()
    }

    pub(in crate::session) fn ended_at(&self) -> Instant {
        self.ended_at
    }

    /// Factor of the RTT between two probes (XSTP-13.2.6).
    pub(in crate::session) fn spacing(&self) -> u64 {
        self.cycle.as_ref().map_or(1, |cycle| 1 << cycle.doublings)
    }

    /// Whether losses that a report lists are held until the verdict; `stat` is the POLL that a
    /// STAT answers, `None` for a USTAT.
    pub(in crate::session) fn holds_losses(&self, stat: Option<u32>) -> bool {
        let continues_last = stat.is_some() && stat == self.ended_by;
        self.is_running() || !continues_last
    }

    /// Starts a cycle; returns whether probing is enabled.
    pub(in crate::session) fn begin(
        &mut self,
        now: Instant,
        trigger: Trigger,
        baseline: &Baseline,
        statistics: &mut ProbingStatistics,
    ) -> bool {
        let Some(config) = self.config else { return false };
        self.cycle = Some(Cycle {
            began: now,
            last_poll: baseline.last_poll,
            rtt: match config.loss_round_trip {
                LossRoundTrip::Smoothed => baseline.srtt,
                LossRoundTrip::Last => baseline.last_rtt,
            },
            window: baseline.window,
            map: ProbeMap::new(config.max_probes, config.before_loss),
            doublings: 0,
        });
        match trigger {
            Trigger::EarlyTimeout => statistics.early_timeouts += 1,
            Trigger::Stat => statistics.begun_by_stat += 1,
            Trigger::Ustat => statistics.begun_by_ustat += 1,
        }
        true
    }

    /// The POLL `seq` was sent.
    pub(in crate::session) fn on_poll_sent(
        &mut self,
        seq: u32,
        statistics: &mut ProbingStatistics,
    ) {
        if let Some(cycle) = &mut self.cycle {
            cycle.map.on_sent(seq);
            statistics.probes_sent += 1;
        }
    }

    /// Ends a cycle without a verdict: the session is over.
    pub(in crate::session) fn stop(&mut self) {
        self.cycle = None;
    }

    /// Enters the response to the POLL `seq`, sent at `sent_at`, that reports a loss; returns the
    /// verdict if there are enough of them.
    pub(in crate::session) fn record(
        &mut self,
        now: Instant,
        seq: u32,
        sent_at: Option<Instant>,
        statistics: &mut ProbingStatistics,
    ) -> Option<Verdict> {
        let (config, cycle) = (self.config?, self.cycle.as_mut()?);
        let is_probe = (seq.wrapping_sub(cycle.last_poll) as i32) > 0;
        if self.backs_off && is_probe && cycle.map.skips(seq) {
            cycle.doublings = (cycle.doublings + 1).min(DOUBLINGS);
        }
        let rtt = sent_at.map(|at| now.since(at));
        let recorded = rtt.is_some_and(|rtt| match is_probe {
            true => cycle.map.on_response(seq, rtt),
            false => cycle.map.on_earlier(seq, rtt),
        });
        if !recorded {
            statistics.responses_ignored += 1;
            return None;
        }
        let longest = cycle.map.longest_of(config.required_probes)?;
        let tolerated = 1_000_000 + u64::from(config.tolerance_millionths);
        let is_longer = longest > cycle.rtt.mul_ratio(tolerated, 1_000_000);
        let slows = is_longer || !config.immediate_recovery;
        Some(if slows { Verdict::Congestion } else { Verdict::Corruption })
    }

    /// Ends the cycle with `verdict`, by the STAT for the POLL `poll`; returns the effect on the
    /// window, or `None` if no cycle is running.
    pub(in crate::session) fn end(
        &mut self,
        now: Instant,
        poll: u32,
        verdict: Verdict,
        statistics: &mut ProbingStatistics,
    ) -> Option<Correction> {
        let (config, cycle) = (self.config?, self.cycle.take()?);
        self.ended_by = Some(poll);
        self.ended_at = now;
        let took = now.since(cycle.began);
        statistics.time += took;
        match verdict {
            Verdict::Premature => statistics.premature += 1,
            Verdict::Corruption => statistics.recovered += 1,
            Verdict::Congestion if took >= config.idle_threshold => {
                statistics.slow_starts += 1;
                return Some(Correction::SlowStart);
            }
            Verdict::Congestion => {
                statistics.congested += 1;
                return Some(Correction::Halve(config.halve));
            }
        }
        Some(match cycle.window.filter(|_| config.restore_window) {
            Some((window, ssthresh)) => Correction::Restore { window, ssthresh },
            None => Correction::None,
        })
    }

    /// Slots of the probing map, oldest first: the sequence number of each probe and the RTT of
    /// its response; `None` for the first slot while it is empty.
    #[cfg(test)]
    pub(in crate::session) fn map(&self) -> alloc::vec::Vec<Option<(u32, Option<Span>)>> {
        let slots = self.cycle.iter().flat_map(|cycle| cycle.map.slots());
        slots.map(|slot| slot.map(|probe| (probe.seq, probe.rtt))).collect()
    }
}

#[cfg(test)]
mod tests;
