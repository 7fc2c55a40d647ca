//! The window of Vegas (Brakmo & Peterson, IEEE JSAC 13(8), 1995, sections III.B and III.C).
//!
//! ```text
//!   each round trip   Diff = (Expected - Actual) BaseRTT,  Expected = cwnd / BaseRTT
//!                     Actual = data delivered in the round trip / its length
//!   slow start        doubles in every other round; Diff > gamma: ends, cwnd less 1/8
//!   avoidance         Diff < alpha: one segment more; Diff > beta: one less
//!   loss              halved, as in Reno                    (the paper does not name an amount)
//! ```
//!
//! alpha and beta are 2 and 4 segments, gamma 1 (section III.B, and its note on Vegas-2,4).

use super::{Acked, Levels, Reno, Sample};
use units::{Instant, Span};

const ALPHA: f64 = 2.0;
const BETA: f64 = 4.0;
const GAMMA: f64 = 1.0;

/// Vegas' state.
#[derive(Clone, Debug)]
pub(crate) struct Vegas {
    reno: Reno,
    /// BaseRTT: the minimum measured.
    base: Option<Span>,
    /// The current round: it ends when this number is acknowledged.
    round_end: u64,
    round_began: Instant,
    /// Octets delivered at its start.
    delivered: u64,
    /// Whether the window may grow in this round of slow start.
    grows: bool,
}

impl Vegas {
    pub(crate) fn new(levels: Levels) -> Self {
        Self {
            reno: Reno::new(levels),
            base: None,
            round_end: 0,
            round_began: Instant::ZERO,
            delivered: 0,
            grows: true,
        }
    }

    pub(crate) fn levels(&self) -> &Levels {
        self.reno.levels()
    }

    pub(crate) fn levels_mut(&mut self) -> &mut Levels {
        self.reno.levels_mut()
    }

    pub(crate) fn on_ack(&mut self, acked: &Acked) {
        // Avoidance updates once per round.
        if self.levels().in_slow_start() && self.grows {
            self.reno.on_ack(acked);
        }
    }

    pub(crate) fn on_sample(&mut self, sample: &Sample) {
        if let Some(round_trip) = sample.round_trip {
            self.base = Some(self.base.map_or(round_trip, |old| old.min(round_trip)));
        }
        if sample.up_to < self.round_end {
            return;
        }
        if self.round_end > 0 && !sample.repairing {
            self.on_round(sample);
        }
        self.round_end = sample.next;
        self.round_began = sample.now;
        self.delivered = sample.delivered;
    }

    fn on_round(&mut self, sample: &Sample) {
        let took = sample.now.since(self.round_began).as_secs_f64();
        let (Some(base), true) = (self.base, took > 0.0) else { return };
        let base = base.as_secs_f64();
        let segment = self.levels().segment() as f64;
        let window = self.levels().window() as f64;
        let actual = (sample.delivered - self.delivered) as f64 / took;
        // A window that was not used gives no information.
        if !sample.held {
            return;
        }
        let extra = (window / base - actual) * base / segment;
        let levels = self.reno.levels_mut();
        let step = levels.segment();
        if levels.in_slow_start() {
            if extra > GAMMA {
                levels.set_window((levels.window() - levels.window() / 8).max(2 * step));
                levels.set_threshold(levels.window());
            }
            self.grows = !self.grows;
        } else if extra < ALPHA {
            levels.set_window(levels.window() + step);
        } else if extra > BETA {
            levels.set_window((levels.window() - step.min(levels.window())).max(2 * step));
            // It stays in avoidance.
            let window = levels.window();
            levels.set_threshold(levels.threshold().min(window));
        }
    }

    pub(crate) fn on_loss(&mut self, flight: u64) {
        self.reno.on_loss(flight);
    }

    pub(crate) fn on_timeout(&mut self, flight: u64, first: bool) {
        self.reno.on_timeout(flight, first);
        self.grows = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_000;

    /// A round of `millis` in which `segments` are delivered.
    fn round(vegas: &mut Vegas, at: &mut u64, millis: u64, segments: u64) {
        *at += millis;
        let delivered = vegas.delivered + segments * MSS;
        vegas.on_sample(&Sample {
            now: Instant::ZERO + Span::from_millis(*at),
            delivered,
            round_trip: Some(Span::from_millis(millis)),
            up_to: delivered,
            next: delivered + segments * MSS,
            held: true,
            ..Sample::default()
        });
    }

    #[test]
    fn avoidance_keeps_two_to_four_segments_in_the_queue() {
        let mut vegas = Vegas::new(Levels::new(MSS, 20 * MSS, None));
        vegas.levels_mut().set_threshold(2 * MSS);
        let mut at = 0;
        // The first sets BaseRTT = 100 ms. 20 in 100 ms: Diff 0, so one more.
        round(&mut vegas, &mut at, 100, 20);
        round(&mut vegas, &mut at, 100, 20);
        assert_eq!(vegas.levels().window(), 21 * MSS);
        // 21 in 117 ms: Actual × BaseRTT = 17.9, Diff 3.1: unchanged.
        round(&mut vegas, &mut at, 117, 21);
        assert_eq!(vegas.levels().window(), 21 * MSS);
        // 21 in 131 ms: 16.0, Diff 5: one less.
        round(&mut vegas, &mut at, 131, 21);
        assert_eq!(vegas.levels().window(), 20 * MSS);
    }

    #[test]
    fn slow_start_doubles_every_other_round_and_ends_when_a_segment_waits() {
        let mut vegas = Vegas::new(Levels::new(MSS, 16 * MSS, None));
        let mut at = 0;
        round(&mut vegas, &mut at, 100, 8);
        round(&mut vegas, &mut at, 100, 16);
        let ack = Acked {
            now: Instant::ZERO,
            bytes: 4 * MSS,
            up_to: 0,
            next: 0,
            limited: true,
            sample: None,
            round_trip: None,
            fine: None,
        };
        vegas.on_ack(&ack);
        assert_eq!(vegas.levels().window(), 16 * MSS, "a round in which it is only looked at");
        round(&mut vegas, &mut at, 100, 16);
        vegas.on_ack(&ack);
        assert_eq!(vegas.levels().window(), 20 * MSS);
        // 18 in 100 ms of 20: two are queued. 20 less 1/8.
        round(&mut vegas, &mut at, 100, 18);
        assert_eq!(vegas.levels().window(), 17_500);
        assert!(!vegas.levels().in_slow_start());
    }
}
