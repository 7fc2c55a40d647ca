//! Errors of frames, decided over the time on air.

mod air;
mod gilbert;
mod markov;
mod outage;

pub use gilbert::GilbertElliott;
pub use markov::{MarkovState, TwoStateMarkov};
pub use outage::Outage;

pub(crate) use air::{Air, Passage};

use crate::{DirectionConfig, DropCause};
use alloc::format;
use gilbert::GilbertState;
use units::RngStream;

/// The independent errors of one direction. Each kind has its own random stream and draws for every
/// frame while it is configured, so that changing one does not affect the others.
#[derive(Debug)]
pub(crate) struct Errors {
    loss: RngStream,
    bits: RngStream,
    gilbert: RngStream,
    shared: RngStream,
    gilbert_state: GilbertState,
}

impl Errors {
    pub(crate) fn new(seed: u64, run: u64, name: &str) -> Self {
        let stream = |part: &str| RngStream::new(seed, run, &format!("satlink/{name}/{part}"));
        Self {
            loss: stream("loss"),
            bits: stream("bits"),
            gilbert: stream("gilbert"),
            shared: stream("shared"),
            gilbert_state: GilbertState::default(),
        }
    }

    /// The drop cause of a frame of `on_air` octets under the conditions `passage`, if it is lost.
    pub(crate) fn strike(
        &mut self,
        config: &DirectionConfig,
        passage: &Passage,
        on_air: u64,
    ) -> Option<DropCause> {
        let faded = passage.survival.is_some_and(|survival| !self.shared.chance(survival));
        let burst = config
            .gilbert
            .as_ref()
            .is_some_and(|model| self.gilbert_state.strike(model, &mut self.gilbert));
        let flipped = config.bit_error_ratio > 0.0
            && self.bits.chance(packet_error(config.bit_error_ratio, on_air * 8));
        let lost = config.loss > 0.0 && self.loss.chance(config.loss);
        [
            (passage.outage, DropCause::Outage),
            (faded, DropCause::Fade),
            (burst, DropCause::Burst),
            (flipped, DropCause::BitError),
            (lost, DropCause::Loss),
        ]
        .into_iter()
        .find_map(|(hit, cause)| hit.then_some(cause))
    }
}

/// The probability of at least one error in `bits` bits: `1 - (1 - ratio)^bits`.
pub(crate) fn packet_error(ratio: f64, bits: u64) -> f64 {
    // Logarithms, because 1 - 1e-12 leaves few significant digits.
    -libm::expm1(bits as f64 * libm::log1p(-ratio))
}

#[cfg(test)]
mod tests {
    use super::packet_error;

    #[test]
    fn packet_loss_follows_from_bit_errors_and_length() {
        // 1 - (1 - 1e-5)^12000 = 0.11308 (1 - e^-0.12 = 0.113080).
        assert!((packet_error(1e-5, 12_000) - 0.113_080).abs() < 1e-6);
        assert!((packet_error(1e-12, 12_000) - 1.2e-8).abs() < 1e-15);
        assert!((packet_error(0.5, 1) - 0.5).abs() < 1e-12);
        assert!((packet_error(1.0, 8) - 1.0).abs() < 1e-12);
        assert!(packet_error(0.0, 12_000).abs() < 1e-300);
    }
}
