//! Whether one size passes: rounds of a probe with a witness, until chance is no explanation.
//!
//! A probe that is not answered proves nothing: any packet may be lost, either way, and in an
//! outage all are. So each probe but the first has a *witness* behind it, a small one. A round
//! counts against the size only when the witness was answered and the probe was not, and as
//! many such rounds are asked for as it takes to rule out bad luck, judged by how often witnesses
//! are answered.

use units::{Instant, Span};

/// Probability of an error at which a size counts as too large.
const SURE: f64 = 0.002;
/// The same when the kernel says so as well.
const SURE_WITH_HINT: f64 = 0.35;
/// Longest pause between rounds while nothing at all is answered.
const LONGEST_PAUSE: Span = Span::from_secs(30);

/// How often witnesses are answered; the past is forgotten by halves.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Luck {
    sent: f64,
    answered: f64,
}

impl Luck {
    fn add(&mut self, answered: bool) {
        if self.sent >= 32.0 {
            self.sent /= 2.0;
            self.answered /= 2.0;
        }
        self.sent += 1.0;
        self.answered += f64::from(u8::from(answered));
    }

    /// The chance that `failures` rounds fail although the size passes.
    fn chance_of(&self, failures: u32) -> f64 {
        // One answered and one lost are assumed beforehand: certainty is never had.
        let lost = 1.0 - (self.answered + 1.0) / (self.sent + 2.0);
        (0..failures).fold(1.0, |chance, _| chance * lost)
    }
}

/// A probe on its way, with its witness.
#[derive(Clone, Copy, Debug)]
struct Round {
    probe: u32,
    witness: Option<u32>,
    witnessed: bool,
    due: Instant,
    sent: Instant,
}

/// One size being tried.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trial {
    pub(super) size: usize,
    round: Option<Round>,
    /// Rounds that count against it.
    failures: u32,
    /// Rounds so far.
    rounds: u32,
    /// Rounds in a row in which nothing was answered.
    silent: u32,
    /// When the next round may begin.
    pub(super) next: Instant,
}

/// What a round that is over means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing yet.
    Open,
    /// The size does not pass.
    TooLarge,
}

impl Trial {
    pub(super) fn new(size: usize, next: Instant) -> Self {
        Self { size, round: None, failures: 0, rounds: 0, silent: 0, next }
    }

    /// A trial of what may not pass any more: a witness goes with the first probe already.
    pub(super) fn suspicious(size: usize, next: Instant) -> Self {
        Self { rounds: 1, ..Self::new(size, next) }
    }

    /// Whether the next round needs a witness: all but the first, which mostly succeeds.
    pub(super) fn wants_witness(&self) -> bool {
        self.rounds > 0
    }

    /// A round begins, which is over after `wait`; the next one not before `next`.
    pub(super) fn begin(
        &mut self,
        now: Instant,
        probe: u32,
        witness: Option<u32>,
        wait: Span,
        next: Instant,
    ) {
        // In an outage rounds become rare.
        let pause = (wait * (1 << self.silent.min(6))).min(LONGEST_PAUSE.max(wait));
        self.round = Some(Round { probe, witness, witnessed: false, due: now + wait, sent: now });
        self.next = next.max(now + if self.silent > 0 { pause } else { Span::ZERO });
        self.rounds += 1;
    }

    /// When something is to be done: a round is over, or the next may begin.
    pub(super) fn due(&self) -> Instant {
        self.round.map_or(self.next, |round| round.due)
    }

    /// Whether a round is under way.
    pub(super) fn is_waiting(&self) -> bool {
        self.round.is_some()
    }

    /// An answer to a probe. True when it is this trial's own: the size passes.
    pub(super) fn answered(&mut self, now: Instant, number: u32) -> bool {
        let Some(round) = &mut self.round else { return false };
        if round.probe == number {
            return true;
        }
        if round.witness == Some(number) && !round.witnessed {
            round.witnessed = true;
            // The probe left before its witness: its answer is no more than reordering away.
            let grace = (now.since(round.sent) / 8).max(Span::from_millis(20));
            round.due = round.due.min(now + grace);
        }
        false
    }

    /// Judges a round whose time is over. `doubted`: the kernel says as well that it is too large.
    pub(super) fn judge(&mut self, now: Instant, luck: &mut Luck, doubted: bool) -> Verdict {
        let Some(round) = self.round.filter(|round| round.due <= now) else { return Verdict::Open };
        self.round = None;
        if round.witness.is_none() {
            return Verdict::Open;
        }
        luck.add(round.witnessed);
        if !round.witnessed {
            self.silent += 1;
            return Verdict::Open;
        }
        self.silent = 0;
        self.failures += 1;
        let sure = if doubted { SURE_WITH_HINT } else { SURE };
        if luck.chance_of(self.failures) <= sure { Verdict::TooLarge } else { Verdict::Open }
    }
}
