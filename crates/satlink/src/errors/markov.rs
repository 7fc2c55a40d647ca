//! Fading in continuous time: the two-state process of XDELDROP.

use alloc::collections::VecDeque;
use units::{Instant, RngStream, Span};

/// A two-state Markov process in continuous time, shared by both directions (Elaasar et al. 2003,
/// section 5). It starts in the first state at the link's epoch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwoStateMarkov {
    /// The alternating states; conventionally the good one first.
    pub states: [MarkovState; 2],
}

/// One state of a [`TwoStateMarkov`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MarkovState {
    /// Mean of the exponentially distributed sojourn time, at least 1 ms.
    pub mean_stay: Span,
    /// Loss probability of a packet that is entirely inside the state. A packet that overlaps
    /// several sojourns survives with the product of `(1 - drop)^(its fraction of the time)`.
    pub drop: f64,
    /// One of these, drawn at each entry, is added to the propagation delay of packets sent during
    /// the sojourn.
    pub delays: [Span; 2],
    /// Probability of the second delay, 0 to 1; 0.5 draws both equally often.
    pub second_delay: f64,
}

impl TwoStateMarkov {
    /// Mean time between two entries of a state, in seconds.
    fn mean_cycle(&self) -> f64 {
        self.states.iter().map(|state| state.mean_stay.as_secs_f64()).sum()
    }

    /// Fraction of the time in the first state.
    fn share_of_first(&self) -> f64 {
        self.states[0].mean_stay.as_secs_f64() / self.mean_cycle()
    }
}

/// Maximum cycles that are drawn individually. After a longer interval without a query, or for a
/// frame that is on air for longer, the sojourns between are not drawn: the state is then
/// independent of the earlier one within floating-point precision, and the fractions of time are
/// those of the means within 1 to 2 %.
const DRAWN_CYCLES: f64 = 8_192.0;

/// A sojourn in a state: `[from, until)`.
#[derive(Clone, Copy, Debug)]
struct Stay {
    from: Instant,
    until: Instant,
    /// The state, or `None` for an interval whose sojourns were not drawn.
    state: Option<usize>,
    delay: usize,
}

impl Stay {
    /// Whether another sojourn follows until `now`. None does at the end of representable time.
    fn is_over(&self, now: Instant) -> bool {
        self.until <= now && self.until < Instant::FAR_FUTURE
    }

    /// Survival probability for `share` of a packet's time.
    fn survival(&self, model: &TwoStateMarkov, share: f64) -> f64 {
        let in_state = |state: usize, share| libm::pow(1.0 - model.states[state].drop, share);
        match self.state {
            Some(state) => in_state(state, share),
            None => {
                let first = model.share_of_first();
                in_state(0, share * first) * in_state(1, share * (1.0 - first))
            }
        }
    }
}

/// The running process. Sojourns are drawn in order of time, so that neither the number of packets
/// nor the delay of a call changes them (unless it exceeds [`DRAWN_CYCLES`]).
#[derive(Debug)]
pub(crate) struct Chain {
    rng: RngStream,
    stays: VecDeque<Stay>,
}

impl Chain {
    pub(crate) fn new(model: &TwoStateMarkov, start: Instant, mut rng: RngStream) -> Self {
        let first = draw(model, 0, start, &mut rng);
        Self { rng, stays: VecDeque::from([first]) }
    }

    /// Discards sojourns that ended by `before`.
    pub(crate) fn forget(&mut self, model: &TwoStateMarkov, before: Instant) {
        while self.stays[0].is_over(before) {
            if self.stays.len() < 2 {
                self.draw_next(model, before);
            }
            self.stays.pop_front();
        }
    }

    /// Survival probability from `from` to `to`, and the delay of packets sent at `to`.
    pub(crate) fn passage(
        &mut self,
        model: &TwoStateMarkov,
        from: Instant,
        to: Instant,
    ) -> (f64, Span) {
        while self.last().is_over(to) {
            self.draw_next(model, to);
        }
        let whole = to.since(from).as_secs_f64();
        let mut survival = 1.0;
        let mut delay = Span::ZERO;
        let first = self.stays.partition_point(|stay| stay.until <= from);
        for stay in self.stays.range(first..).take_while(|stay| stay.from <= to) {
            let inside = to.min(stay.until).since(from.max(stay.from)).as_secs_f64();
            let share = if whole > 0.0 { inside / whole } else { 1.0 };
            survival *= stay.survival(model, share);
            delay = model.states[stay.state.unwrap_or(0)].delays[stay.delay];
        }
        (survival, delay)
    }

    /// Draws the sojourn after the last one, towards `wanted`.
    fn draw_next(&mut self, model: &TwoStateMarkov, wanted: Instant) {
        let last = *self.last();
        let missing = wanted.since(last.until).as_secs_f64();
        if let (Some(state), true) = (last.state, missing <= DRAWN_CYCLES * model.mean_cycle()) {
            self.stays.push_back(draw(model, 1 - state, last.until, &mut self.rng));
            return;
        }
        let between = Stay { from: last.until, until: wanted, state: None, delay: 0 };
        let state = usize::from(self.rng.uniform() >= model.share_of_first());
        // The remainder of an exponential sojourn has the distribution of a whole one.
        let first = draw(model, state, wanted, &mut self.rng);
        self.stays.extend([between, first]);
    }

    fn last(&self) -> &Stay {
        &self.stays[self.stays.len() - 1]
    }
}

fn draw(model: &TwoStateMarkov, state: usize, from: Instant, rng: &mut RngStream) -> Stay {
    let length = rng.exponential_span(model.states[state].mean_stay);
    let delay = usize::from(rng.uniform() >= 1.0 - model.states[state].second_delay);
    // A sojourn of zero length would make the discarding loop endless.
    let until = from + length.max(Span::from_nanos(1));
    Stay { from, until, state: Some(state), delay }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn model() -> TwoStateMarkov {
        let delays = [Span::from_millis(100), Span::from_millis(150)];
        TwoStateMarkov {
            states: [
                MarkovState {
                    mean_stay: Span::from_secs(10),
                    drop: 0.0,
                    delays,
                    second_delay: 0.5,
                },
                MarkovState { mean_stay: Span::from_secs(1), drop: 1.0, delays, second_delay: 0.5 },
            ],
        }
    }

    #[test]
    fn stays_have_the_means_of_their_states_and_even_delays() {
        let model = model();
        let mut chain = Chain::new(&model, Instant::ZERO, RngStream::new(11, 0, "satlink/shared"));
        let mut sums = [0.0, 0.0];
        let mut long = 0u32;
        let count = 40_000;
        for _ in 0..count {
            let stay = chain.stays[0];
            sums[stay.state.expect("drawn")] += stay.until.since(stay.from).as_secs_f64();
            long += u32::from(stay.delay == 1);
            chain.forget(&model, stay.until);
        }
        // The standard deviation of an exponential is its mean: standard error 1/sqrt(20,000) = 0.7
        // %; four of it.
        let half = f64::from(count) / 2.0;
        assert!((sums[0] / half / 10.0 - 1.0).abs() < 0.028, "{}", sums[0] / half);
        assert!((sums[1] / half - 1.0).abs() < 0.028, "{}", sums[1] / half);
        assert!((f64::from(long) / f64::from(count) - 0.5).abs() < 0.01);
    }

    #[test]
    fn second_delay_has_its_probability() {
        for chance in [0.0, 0.2, 1.0] {
            let mut model = model();
            model.states[1].second_delay = chance;
            let mut rng = RngStream::new(2, 0, "c");
            let count = 20_000;
            let long = (0..count).filter(|_| draw(&model, 1, Instant::ZERO, &mut rng).delay == 1);
            // Four standard errors of a fraction of 0.2.
            let share = long.count() as f64 / f64::from(count);
            assert!((share - chance).abs() < 0.0114, "{share} for {chance}");
        }
    }

    #[test]
    fn a_share_of_the_time_gives_a_share_of_the_exponent() {
        let mut model = model();
        model.states[1].drop = 0.75;
        let mut chain = Chain::new(&model, Instant::ZERO, RngStream::new(3, 0, "c"));
        let until = chain.stays[0].until;
        let half = Span::from_nanos(500);
        let (survival, _) = chain.passage(&model, until - half, until + half);
        assert!((survival - 0.5).abs() < 1e-9, "(1/4)^(1/2), found {survival}");
        let (survival, _) = chain.passage(&model, until - half, until - Span::from_nanos(1));
        assert!((survival - 1.0).abs() < 1e-12);
        let (survival, _) = chain.passage(&model, until, until);
        assert!((survival - 0.25).abs() < 1e-12);
    }

    /// Found by a fuzzer: drawing the sojourns of centuries took too long.
    #[test]
    fn long_intervals_without_a_query_are_skipped_with_the_same_state_fractions() {
        let mut model = model();
        model.states = model.states.map(|state| MarkovState {
            mean_stay: Span::from_nanos(state.mean_stay.as_nanos() / 1_000),
            ..state
        });
        let mut chain = Chain::new(&model, Instant::ZERO, RngStream::new(6, 0, "chain"));
        let count = 20_000;
        let mut bad = 0;
        for year in 1..=count {
            let now = Instant::ZERO + Span::from_secs(year * 900_000);
            chain.forget(&model, now);
            assert!(chain.stays[0].from <= now && now < chain.stays[0].until);
            bad += u32::from(chain.stays[0].state == Some(1));
        }
        // 1/11; four standard errors of 20,000 draws.
        let share = f64::from(bad) / count as f64;
        assert!((share - 1.0 / 11.0).abs() < 0.0082, "{share}");
        chain.forget(&model, Instant::FAR_FUTURE);
        assert!(chain.stays.len() <= 2);
    }

    #[test]
    fn frame_on_air_for_a_long_time_has_both_state_fractions() {
        let mut model = model();
        model.states[1].drop = 0.5;
        let mut chain = Chain::new(&model, Instant::ZERO, RngStream::new(7, 0, "chain"));
        let age = Span::from_secs(1_000_000_000);
        let (survival, _) = chain.passage(&model, Instant::ZERO, Instant::ZERO + age);
        assert!((survival - libm::pow(0.5, 1.0 / 11.0)).abs() < 1e-3, "{survival}");
        assert!(chain.stays.len() <= 3, "{} stays", chain.stays.len());
        // A frame that was on air in the middle of it.
        let (half, _) = chain.passage(&model, Instant::ZERO + age / 4, Instant::ZERO + age / 2);
        assert!((half - survival).abs() < 1e-3, "{half}");
    }

    #[test]
    fn query_times_do_not_change_the_sojourns() {
        let model = model();
        let stream = || RngStream::new(5, 0, "chain");
        let mut often = Chain::new(&model, Instant::ZERO, stream());
        let mut seldom = Chain::new(&model, Instant::ZERO, stream());
        let at = |n: u64| Instant::ZERO + Span::from_millis(700 * n);
        let seen: Vec<_> = (0..1_000)
            .map(|n| {
                often.forget(&model, at(n));
                often.passage(&model, at(n), at(n))
            })
            .collect();
        assert!(often.stays.len() < 4, "what is past is forgotten");
        seldom.passage(&model, at(999), at(999));
        let again: Vec<_> = (0..1_000).map(|n| seldom.passage(&model, at(n), at(n))).collect();
        assert_eq!(seen, again);
        assert!(seen.iter().any(|(survival, _)| *survival == 0.0));
    }
}
