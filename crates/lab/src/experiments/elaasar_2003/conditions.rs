//! The paper's six tests: which error condition, at which points.

use satlink::{LinkConfig, profiles};
use units::Span;

/// An error condition of section 6, with the mean sojourn time that names the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    /// States of equal mean length; the bad state drops a fraction of the packets.
    Corruption(Span),
    /// Blackouts of this mean length.
    Handoff(Span),
    /// Connected for this long on average.
    Connectivity(Span),
}

const SECOND: Span = Span::from_secs(1);

/// Bit corruption with mean sojourn times of 10 s and 1 s.
pub(super) const CORRUPTION_10: Condition = Condition::Corruption(Span::from_secs(10));
pub(super) const CORRUPTION_1: Condition = Condition::Corruption(SECOND);
/// Hand-off with blackouts of 0.5 s and 1 s.
pub(super) const HANDOFF_HALF: Condition = Condition::Handoff(Span::from_millis(500));
pub(super) const HANDOFF_1: Condition = Condition::Handoff(SECOND);
/// Connected for 5 s and 10 s at a time.
pub(super) const CONNECTED_5: Condition = Condition::Connectivity(Span::from_secs(5));
pub(super) const CONNECTED_10: Condition = Condition::Connectivity(Span::from_secs(10));

pub(super) const ALL: [Condition; 6] =
    [CORRUPTION_10, CORRUPTION_1, HANDOFF_HALF, HANDOFF_1, CONNECTED_5, CONNECTED_10];

impl Condition {
    /// Returns the name in keys and file names.
    pub(super) fn name(self) -> String {
        let (kind, length) = match self {
            Self::Corruption(length) => ("corruption", length),
            Self::Handoff(length) => ("handoff", length),
            Self::Connectivity(length) => ("connectivity", length),
        };
        format!("{kind}-{}s", length.as_secs_f64())
    }

    /// Returns the points of the horizontal axes of its figures, in percent. The text states their
    /// ends and the points 5, 20 and 50 % of corruption.
    pub(super) fn points(self, quick: bool) -> &'static [u32] {
        match (self, quick) {
            (Self::Corruption(_), false) => &[0, 5, 10, 20, 30, 40, 50],
            (Self::Handoff(_), false) => &[1, 3, 5, 7, 10, 12, 15],
            (Self::Connectivity(_), false) => &[1, 5, 10, 15, 20, 25, 30],
            (Self::Corruption(_), true) => &[0, 5, 20, 50],
            (Self::Handoff(_), true) => &[1, 5, 15],
            (Self::Connectivity(_), true) => &[1, 10, 30],
        }
    }

    pub(super) fn lossy_points(self, quick: bool) -> Vec<u32> {
        self.points(quick).iter().copied().filter(|&percent| percent > 0).collect()
    }

    /// Returns the link at a point.
    pub(super) fn link(self, percent: u32) -> LinkConfig {
        let percent = f64::from(percent);
        match self {
            Self::Corruption(stay) => profiles::elaasar_corruption(stay, percent / 100.0),
            Self::Handoff(rendezvous) => profiles::elaasar_handoff(rendezvous, percent),
            Self::Connectivity(rendezvous) => profiles::elaasar_connectivity(rendezvous, percent),
        }
    }

    /// Returns the mean time between the starts of two bad states, in seconds.
    pub(super) fn period(self, percent: u32) -> f64 {
        let share = f64::from(percent.max(1)) / 100.0;
        match self {
            Self::Corruption(stay) => 2.0 * stay.as_secs_f64(),
            // The named sojourn time is this fraction of the time.
            Self::Handoff(stay) | Self::Connectivity(stay) => stay.as_secs_f64() / share,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_match_the_links() {
        for condition in ALL {
            for &percent in condition.points(false) {
                let states = condition.link(percent).shared.expect("a process").states;
                let period: f64 = states.iter().map(|state| state.mean_stay.as_secs_f64()).sum();
                let expected = condition.period(percent);
                assert!((period - expected).abs() < 1e-6, "{} {percent} %", condition.name());
            }
        }
    }
}
