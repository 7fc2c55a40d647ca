//! The gains of ProbeBW (section 4.3.4 of the draft).

use crate::window::Sample;
use units::{Instant, Span};

const GAINS: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];

/// The phase of the cycle.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cycle {
    phase: usize,
    since: Instant,
}

impl Cycle {
    /// Starts in a random phase other than the draining one, selected by the time.
    pub(super) fn begin(now: Instant) -> Self {
        let phase = (8 - (now.as_nanos() / 1_000 % 7) as usize) % 8;
        Self { phase, since: now }
    }

    pub(super) fn gain(&self) -> f64 {
        GAINS[self.phase]
    }

    /// More is sent than is delivered.
    pub(super) fn is_probing(&self) -> bool {
        self.phase == 0
    }

    /// Advances when the phase has ended: `in_network` octets have to reach `target`, for the gains
    /// 1 and that of this phase.
    pub(super) fn update(
        &mut self,
        sample: &Sample,
        round_trip: Option<Span>,
        in_network: u64,
        target: [u64; 2],
    ) {
        let whole = round_trip.is_some_and(|round_trip| sample.now.since(self.since) > round_trip);
        let over = match self.phase {
            0 => whole && (sample.lost > 0 || in_network >= target[1]),
            1 => whole || in_network <= target[0],
            2.. => whole,
        };
        if over {
            *self = Self { phase: (self.phase + 1) % GAINS.len(), since: sample.now };
        }
    }
}
