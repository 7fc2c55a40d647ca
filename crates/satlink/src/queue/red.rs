//! Random early detection: Floyd and Jacobson 1993, optionally with the later "gentle" slope.
//!
//! ```text
//!   average <- (1 - weight) average + weight backlog          at each arrival
//!   average <- (1 - weight)^m average, m = idle time / frame  after an idle time
//!   p       =  largest_probability (average - lower) / (upper - lower)
//!   drop with p / (1 - count p), count = arrivals passed since the last drop
//!   above upper all are dropped; gently, between upper and twice upper p rises from
//!   largest_probability to 1, and above that all are dropped
//! ```

use super::Limit;
use units::{Instant, RngStream, Span};

/// RED's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Red {
    /// Below this average nothing is dropped. In the unit of the queue's limit.
    pub lower: Limit,
    /// At this average frames are dropped with the largest probability. In the same unit.
    pub upper: Limit,
    /// The drop probability at the upper threshold.
    pub largest_probability: f64,
    /// The weight of the newest sample in the average; the authors used 0.002.
    pub weight: f64,
    /// Mark ECN-capable frames instead of dropping them.
    pub mark: bool,
    /// Above the upper threshold the probability rises further, up to twice the threshold; as
    /// published everything is dropped there.
    pub gentle: bool,
}

/// Decision on an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Pass,
    /// Drop or mark.
    Early,
    /// Drop, ECN-capable or not.
    Forced,
}

#[derive(Debug)]
pub(super) struct RedState {
    average: f64,
    /// Arrivals accepted since the last early drop, while above the lower threshold.
    count: u64,
    idle_since: Option<Instant>,
}

impl Default for RedState {
    fn default() -> Self {
        Self { average: 0.0, count: 0, idle_since: Some(Instant::ZERO) }
    }
}

impl RedState {
    /// The transmitter becomes idle.
    pub(super) fn idle(&mut self, now: Instant) {
        self.idle_since.get_or_insert(now);
    }

    pub(super) fn decide(
        &mut self,
        red: &Red,
        now: Instant,
        backlog: u64,
        typical: Span,
        rng: &mut RngStream,
    ) -> Verdict {
        self.observe(red, now, backlog, typical);
        let (lower, upper) = (amount(red.lower), amount(red.upper));
        let draw = rng.uniform();
        if self.average < lower {
            self.count = 0;
            return Verdict::Pass;
        }
        let end = if red.gentle { 2.0 * upper } else { upper };
        if self.average >= end {
            self.count = 0;
            return Verdict::Forced;
        }
        let probability = if self.average < upper {
            red.largest_probability * (self.average - lower) / (upper - lower)
        } else {
            red.largest_probability
                + (1.0 - red.largest_probability) * (self.average - upper) / upper
        };
        let spread = 1.0 - self.count as f64 * probability;
        // Spreading makes the gaps between drops uniform instead of geometric.
        if spread <= 0.0 || draw < probability / spread {
            self.count = 0;
            return Verdict::Early;
        }
        self.count += 1;
        Verdict::Pass
    }

    fn observe(&mut self, red: &Red, now: Instant, backlog: u64, typical: Span) {
        if let Some(since) = self.idle_since.take() {
            let frames = now.since(since).as_secs_f64() / typical.as_secs_f64().max(1e-9);
            self.average *= libm::pow(1.0 - red.weight, frames);
        }
        self.average += red.weight * (backlog as f64 - self.average);
    }
}

fn amount(limit: Limit) -> f64 {
    match limit {
        Limit::Packets(packets) => packets as f64,
        Limit::Bytes(bytes) => bytes as f64,
        Limit::BandwidthDelay(products) => products,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: Span = Span::from_millis(1);

    fn red() -> Red {
        Red {
            lower: Limit::Packets(5),
            upper: Limit::Packets(15),
            largest_probability: 0.1,
            weight: 0.002,
            mark: false,
            gentle: true,
        }
    }

    /// Early drops among `arrivals` at a constant average, and the longest run without one.
    fn drops(average: f64, arrivals: u32) -> (u32, u32) {
        drops_of(red(), average, arrivals)
    }

    fn drops_of(red: Red, average: f64, arrivals: u32) -> (u32, u32) {
        let mut state = RedState { average, ..RedState::default() };
        state.idle_since = None;
        let mut rng = RngStream::new(2, 0, "red");
        let (mut dropped, mut run, mut longest) = (0, 0, 0);
        for _ in 0..arrivals {
            state.average = average;
            let red = Red { weight: 0.0, ..red };
            match state.decide(&red, Instant::ZERO, 0, FRAME, &mut rng) {
                Verdict::Pass => run += 1,
                Verdict::Early | Verdict::Forced => {
                    dropped += 1;
                    run = 0;
                }
            }
            longest = longest.max(run);
        }
        (dropped, longest)
    }

    #[test]
    fn mean_gap_between_drops_matches_the_paper() {
        // At average 10: p = 0.05. Gaps are uniform on 1..1/p (the paper's section 6, method 2),
        // mean (1/p + 1)/2 = 10.5; so 200,000 arrivals give 19,048 drops, and never more than
        // 1/p - 1 = 19 pass in a row.
        let (dropped, longest) = drops(10.0, 200_000);
        assert!((f64::from(dropped) / 19_048.0 - 1.0).abs() < 0.03, "{dropped}");
        assert!(longest <= 19, "{longest}");
    }

    #[test]
    fn below_the_lower_threshold_nothing_and_above_twice_the_upper_everything() {
        assert_eq!(drops(4.99, 10_000).0, 0);
        assert_eq!(drops(30.0, 10_000).0, 10_000);
        // Half way up the gentle slope p = 0.1 + 0.9 / 2 = 0.55: 1/p < 2, so at most every second
        // is accepted.
        assert!(drops(22.5, 10_000).0 >= 5_000);
        // As published everything is dropped from the upper threshold on, and nothing changes below
        // it.
        let steep = Red { gentle: false, ..red() };
        assert_eq!(drops_of(steep, 15.0, 10_000).0, 10_000);
        assert_eq!(drops_of(steep, 14.9, 10_000), drops(14.9, 10_000));
    }

    #[test]
    fn the_average_follows_its_weight_and_forgets_while_idle() {
        let mut state = RedState { average: 0.0, count: 0, idle_since: None };
        for _ in 0..1_000 {
            state.observe(&red(), Instant::ZERO, 10, FRAME);
        }
        // 10 (1 - 0.998^1000) = 8.649.
        assert!((state.average - 8.649).abs() < 0.001, "{}", state.average);
        state.idle(Instant::ZERO);
        state.observe(&Red { weight: 0.002, ..red() }, Instant::ZERO + FRAME * 500, 0, FRAME);
        // times 0.998^501.
        assert!((state.average - 8.649 * 0.36677).abs() < 0.001, "{}", state.average);
    }
}
