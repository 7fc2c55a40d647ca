//! Burst losses in packets: the Gilbert-Elliott model with netem's parameters.

use units::RngStream;

/// netem's `loss gemodel P R 1-H 1-K`: a two-state Markov chain with one step per packet.
///
/// For losses that vary in *time*, as on a satellite channel, use
/// [`TwoStateMarkov`](crate::TwoStateMarkov).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GilbertElliott {
    /// `p`: transition probability from good to bad, per packet.
    pub to_bad: f64,
    /// `r`: transition probability from bad to good, per packet.
    pub to_good: f64,
    /// `1 - h`: loss probability in the bad state.
    pub loss_in_bad: f64,
    /// `1 - k`: loss probability in the good state.
    pub loss_in_good: f64,
}

/// The state of the chain; good initially.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GilbertState {
    bad: bool,
}

impl GilbertState {
    /// Decides whether a packet is lost in the current state, then steps.
    pub(crate) fn strike(&mut self, model: &GilbertElliott, rng: &mut RngStream) -> bool {
        let (loss, leave) = if self.bad {
            (model.loss_in_bad, model.to_good)
        } else {
            (model.loss_in_good, model.to_bad)
        };
        let lost = rng.chance(loss);
        if rng.chance(leave) {
            self.bad = !self.bad;
        }
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loss_and_burst_length_are_the_chains() {
        // Simple Gilbert: fraction of bad p/(p+r) = 0.01/0.26; bursts have mean length 1/r = 4.
        let model =
            GilbertElliott { to_bad: 0.01, to_good: 0.25, loss_in_bad: 1.0, loss_in_good: 0.0 };
        let mut rng = RngStream::new(1, 0, "gilbert");
        let mut state = GilbertState::default();
        let (mut lost, mut bursts, mut before) = (0u32, 0u32, false);
        let packets = 1_000_000u32;
        for _ in 0..packets {
            let hit = state.strike(&model, &mut rng);
            lost += u32::from(hit);
            bursts += u32::from(hit && !before);
            before = hit;
        }
        // About 9,600 bursts: the standard error is near 0.7 % for the fraction and 0.9 % for the
        // length; five of each.
        let share = f64::from(lost) / f64::from(packets);
        assert!((share / (0.01 / 0.26) - 1.0).abs() < 0.05, "share {share}");
        let length = f64::from(lost) / f64::from(bursts);
        assert!((length / 4.0 - 1.0).abs() < 0.045, "length {length}");
    }
}
