//! Test of one size: rounds of a probe with a control probe, until random loss is ruled out.
//!
//! A lost probe alone shows nothing: any packet may be lost in either direction, and in an outage
//! all are. So each probe but the first is followed by a small *control probe* (witness). A round
//! counts against the size only if the control probe was acknowledged and the probe was not. The
//! number of such rounds depends on the measured loss of control probes.

use units::{Instant, Span};

/// Error probability at which a size counts as too large.
const MAX_ERROR: f64 = 0.002;
/// Error probability if the kernel also reports a smaller path MTU.
const MAX_ERROR_WITH_HINT: f64 = 0.35;
/// Maximum pause between rounds while nothing is acknowledged.
const MAX_PAUSE: Span = Span::from_secs(30);

/// Acknowledged fraction of control probes, with exponential decay.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossEstimate {
    sent: f64,
    answered: f64,
}

impl LossEstimate {
    fn add(&mut self, answered: bool) {
        if self.sent >= 32.0 {
            self.sent /= 2.0;
            self.answered /= 2.0;
        }
        self.sent += 1.0;
        self.answered += f64::from(u8::from(answered));
    }

    /// Returns the probability that `failures` rounds fail although the size passes.
    fn chance_of(&self, failures: u32) -> f64 {
        // One acknowledged and one lost control probe are assumed in advance, so that the estimate
        // is never zero or one.
        let lost = 1.0 - (self.answered + 1.0) / (self.sent + 2.0);
        (0..failures).fold(1.0, |chance, _| chance * lost)
    }
}

/// An outstanding probe with its control probe.
#[derive(Clone, Copy, Debug)]
struct Round {
    probe: u32,
    witness: Option<u32>,
    witnessed: bool,
    due: Instant,
    sent: Instant,
}

/// Test of one size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trial {
    pub(super) size: usize,
    round: Option<Round>,
    /// Number of rounds that count against it.
    failures: u32,
    /// Number of rounds.
    rounds: u32,
    /// Number of consecutive rounds in which nothing was acknowledged.
    silent: u32,
    /// Earliest start of the next round.
    pub(super) next: Instant,
}

/// Result of a completed round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TrialResult {
    /// Not decided yet.
    Open,
    /// The size does not pass.
    TooLarge,
}

impl Trial {
    pub(super) fn new(size: usize, next: Instant) -> Self {
        Self { size, round: None, failures: 0, rounds: 0, silent: 0, next }
    }

    /// Creates a test of a size that may no longer pass: the first probe has a control probe
    /// already.
    pub(super) fn revalidate(size: usize, next: Instant) -> Self {
        Self { rounds: 1, ..Self::new(size, next) }
    }

    /// Returns whether the next round has a control probe: all but the first, which mostly
    /// succeeds.
    pub(super) fn needs_witness(&self) -> bool {
        self.rounds > 0
    }

    /// Starts a round, which ends after `wait`; the next one starts not before `next`.
    pub(super) fn begin(
        &mut self,
        now: Instant,
        probe: u32,
        witness: Option<u32>,
        wait: Span,
        next: Instant,
    ) {
        // In an outage rounds become rare.
        let pause = (wait * (1 << self.silent.min(6))).min(MAX_PAUSE.max(wait));
        self.round = Some(Round { probe, witness, witnessed: false, due: now + wait, sent: now });
        self.next = next.max(now + if self.silent > 0 { pause } else { Span::ZERO });
        self.rounds += 1;
    }

    /// Returns when a round ends or the next one may start.
    pub(super) fn due(&self) -> Instant {
        self.round.map_or(self.next, |round| round.due)
    }

    /// Returns whether a round is outstanding.
    pub(super) fn is_waiting(&self) -> bool {
        self.round.is_some()
    }

    /// Handles a ProbeAck; returns whether it belongs to this test, so that the size passes.
    pub(super) fn answered(&mut self, now: Instant, number: u32) -> bool {
        let Some(round) = &mut self.round else { return false };
        if round.probe == number {
            return true;
        }
        if round.witness == Some(number) && !round.witnessed {
            round.witnessed = true;
            // The probe left before its control probe, so its ProbeAck can be late only by
            // reordering.
            let grace = (now.since(round.sent) / 8).max(Span::from_millis(20));
            round.due = round.due.min(now + grace);
        }
        false
    }

    /// Evaluates a round that has ended. `hinted`: the kernel also reports a smaller path MTU.
    pub(super) fn evaluate(
        &mut self,
        now: Instant,
        luck: &mut LossEstimate,
        hinted: bool,
    ) -> TrialResult {
        let Some(round) = self.round.filter(|round| round.due <= now) else {
            return TrialResult::Open;
        };
        self.round = None;
        if round.witness.is_none() {
            return TrialResult::Open;
        }
        luck.add(round.witnessed);
        if !round.witnessed {
            self.silent += 1;
            return TrialResult::Open;
        }
        self.silent = 0;
        self.failures += 1;
        let max_error = if hinted { MAX_ERROR_WITH_HINT } else { MAX_ERROR };
        if luck.chance_of(self.failures) <= max_error {
            TrialResult::TooLarge
        } else {
            TrialResult::Open
        }
    }
}
