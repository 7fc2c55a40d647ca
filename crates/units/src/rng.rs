//! One named random stream for each component.

use crate::Span;
use rand_core::Rng;
use rand_pcg::Pcg64Mcg;

/// A component's own randomness, derived from `(seed, run, name)`.
///
/// Each component draws from its own stream, so one more draw in one of them moves no other:
/// changing a link's loss model leaves the jitter of the same run as it was. The generator
/// (PCG XSL 128/64 MCG) and the sampling are fixed, so a seed means the same on every machine.
#[derive(Clone, Debug)]
pub struct RngStream {
    generator: Pcg64Mcg,
}

impl RngStream {
    /// The stream of the component `name` in replication `run` of an experiment with `seed`.
    pub fn new(seed: u64, run: u64, name: &str) -> Self {
        let mut state = 0x6a09_e667_f3bc_c908_u64;
        for word in [seed, run, name.len() as u64] {
            state = mix(state ^ word);
        }
        for byte in name.bytes() {
            state = mix(state ^ u64::from(byte));
        }
        let high = mix(state);
        let low = mix(high);
        Self { generator: Pcg64Mcg::new(u128::from(high) << 64 | u128::from(low)) }
    }

    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.generator.next_u64()
    }

    /// A number in `[0, 1)`, in steps of 2⁻⁵³.
    pub fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// A whole number in `[0, bound)`, without bias.
    ///
    /// # Panics
    /// When `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "no number is below zero");
        // Lemire's method: reject the few draws that would favour small results.
        let threshold = bound.wrapping_neg() % bound;
        loop {
            let wide = u128::from(self.next_u64()) * u128::from(bound);
            if wide as u64 >= threshold {
                return (wide >> 64) as u64;
            }
        }
    }

    /// True with probability `probability`; never for 0 or less, always for 1 or more.
    ///
    /// Draws exactly once, whatever the probability, so that sweeping it keeps later draws.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.uniform() < probability
    }

    /// An exponentially distributed number with the given mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        // 1 - u is in (0, 1], so the logarithm is finite.
        -mean * libm::log(1.0 - self.uniform())
    }

    /// An exponentially distributed span with the given mean.
    pub fn exponential_span(&mut self, mean: Span) -> Span {
        Span::from_secs_f64(self.exponential(mean.as_secs_f64()))
    }

    /// A normally distributed number (Box and Muller; one of the pair is thrown away, so that
    /// each call draws exactly twice).
    pub fn normal(&mut self, mean: f64, deviation: f64) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.uniform()));
        let angle = 2.0 * core::f64::consts::PI * self.uniform();
        mean + deviation * radius * libm::cos(angle)
    }
}

/// SplitMix64's output function: every bit of the input reaches every bit of the output.
fn mix(word: u64) -> u64 {
    let mut z = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    const DRAWS: usize = 200_000;

    fn draws(mut draw: impl FnMut(&mut RngStream) -> f64) -> Vec<f64> {
        let mut rng = RngStream::new(7, 0, "test");
        (0..DRAWS).map(|_| draw(&mut rng)).collect()
    }

    fn mean_and_deviation(samples: &[f64]) -> (f64, f64) {
        let mean = samples.iter().sum::<f64>() / samples.len() as f64;
        let variance =
            samples.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / samples.len() as f64;
        (mean, variance.sqrt())
    }

    #[test]
    fn seed_run_and_name_each_give_another_stream() {
        let first = |seed, run, name| RngStream::new(seed, run, name).next_u64();
        let base = first(1, 0, "loss");
        assert_eq!(base, first(1, 0, "loss"));
        assert_ne!(base, first(2, 0, "loss"));
        assert_ne!(base, first(1, 1, "loss"));
        assert_ne!(base, first(1, 0, "jitter"));
    }

    #[test]
    fn the_stream_is_the_same_on_every_machine() {
        let mut rng = RngStream::new(1, 0, "pinned");
        let seen: Vec<u64> = (0..2).map(|_| rng.next_u64()).collect();
        assert_eq!(seen, [17_151_953_898_923_863_327, 3_924_418_934_419_368_407]);
    }

    #[test]
    fn means_and_deviations_are_those_of_the_distributions() {
        // Five standard errors: a right generator fails once in two million runs, and the seed
        // is fixed.
        let bound = |deviation: f64| 5.0 * deviation / (DRAWS as f64).sqrt();
        let (mean, deviation) = mean_and_deviation(&draws(RngStream::uniform));
        assert!((mean - 0.5).abs() < bound(deviation), "uniform mean {mean}");
        assert!((deviation - (1.0f64 / 12.0).sqrt()).abs() < 0.002);
        let (mean, deviation) = mean_and_deviation(&draws(|rng| rng.exponential(3.0)));
        assert!((mean - 3.0).abs() < bound(3.0), "exponential mean {mean}");
        assert!((deviation - 3.0).abs() < 0.05, "exponential deviation {deviation}");
        let (mean, deviation) = mean_and_deviation(&draws(|rng| rng.normal(-1.0, 2.0)));
        assert!((mean + 1.0).abs() < bound(2.0), "normal mean {mean}");
        assert!((deviation - 2.0).abs() < 0.02, "normal deviation {deviation}");
    }

    #[test]
    fn whole_numbers_below_a_bound_are_even() {
        let mut counts = [0u32; 7];
        let mut rng = RngStream::new(3, 0, "below");
        for _ in 0..70_000 {
            counts[rng.below(7) as usize] += 1;
        }
        assert!(counts.iter().all(|&count| (9_500..10_500).contains(&count)), "{counts:?}");
    }

    #[test]
    fn certainty_is_certain() {
        let mut rng = RngStream::new(4, 0, "chance");
        assert!((0..1000).all(|_| rng.chance(1.0)));
        assert!((0..1000).all(|_| !rng.chance(0.0)));
    }
}
