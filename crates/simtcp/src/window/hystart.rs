//! Exit from slow start before the queue overflows: HyStart++ (RFC 9406, section 4.2), and HyStart
//! as in Linux (Ha & Rhee, Computer Networks 55(9), 2011).
//!
//! ```text
//!   each round   the minimum of its round trips, with 8 samples or more
//!   slow start   round trip >= last round's + clamp(last / 8, 4 ms, 16 ms): conservative slow start
//!   conservative 1/4 of the growth; round trip below the one at its start: slow start again;
//!                after 5 rounds: congestion avoidance
//!
//!   Linux        from 16 segments on: congestion avoidance as soon as 8 samples of a round exceed
//!                min_rtt + clamp(min_rtt / 8, 4 ms, 16 ms), or a train of acknowledgements within
//!                2 ms of each other lasts for min_rtt / 2
//! ```
//!
//! Linux's second condition uses min_rtt plus 1 ms where segments are paced.

use super::Acked;
use units::{Instant, Span};

const MIN_THRESHOLD: Span = Span::from_millis(4);
const MAX_THRESHOLD: Span = Span::from_millis(16);
const MIN_ROUND_TRIP_DIVISOR: u64 = 8;
const SAMPLES: u32 = 8;
const GROWTH_DIVISOR: u64 = 4;
const CAREFUL_ROUNDS: u32 = 5;

/// Minimum window in segments for Linux's HyStart.
const LINUX_LEAST: u64 = 16;
/// Maximum interval between acknowledgements of a train.
const TRAIN_GAP: Span = Span::from_millis(2);

/// Linux's HyStart.
#[derive(Clone, Debug)]
pub(crate) struct LinuxHyStart {
    round_end: u64,
    round_began: Instant,
    last: Instant,
    /// Minimum round trip of this round, and of all.
    current: Span,
    least: Span,
    samples: u32,
    /// It has ended a slow start, and is inactive.
    found: bool,
}

impl LinuxHyStart {
    pub(crate) fn new() -> Self {
        Self {
            round_end: 0,
            round_began: Instant::ZERO,
            last: Instant::ZERO,
            current: Span::MAX,
            least: Span::MAX,
            samples: 0,
            found: false,
        }
    }

    /// Handles an acknowledgement; returns whether slow start ends.
    pub(crate) fn on_ack(&mut self, acked: &Acked, window: u64, segment: u64) -> bool {
        let ends = !self.found && self.ends(acked, window, segment);
        self.found |= ends;
        ends
    }

    fn ends(&mut self, acked: &Acked, window: u64, segment: u64) -> bool {
        if acked.up_to > self.round_end {
            self.round_end = acked.next;
            (self.round_began, self.last) = (acked.now, acked.now);
            (self.current, self.samples) = (Span::MAX, 0);
        }
        let Some(sample) = acked.fine.or(acked.sample) else { return false };
        self.least = self.least.min(sample);
        if window < LINUX_LEAST * segment {
            return false;
        }
        if acked.now.since(self.last) <= TRAIN_GAP {
            self.last = acked.now;
            if acked.now.since(self.round_began) > self.least / 2 {
                return true;
            }
        }
        self.current = self.current.min(sample);
        if self.samples < SAMPLES {
            self.samples += 1;
            return false;
        }
        let threshold = (self.least / MIN_ROUND_TRIP_DIVISOR).max(MIN_THRESHOLD);
        self.current > self.least + threshold.min(MAX_THRESHOLD)
    }
}

/// HyStart++'s state.
#[derive(Clone, Debug)]
pub(crate) struct HyStart {
    /// The number whose acknowledgement ends the round.
    round_end: u64,
    last: Span,
    current: Span,
    samples: u32,
    careful: Option<Careful>,
}

/// Conservative slow start.
#[derive(Clone, Copy, Debug)]
struct Careful {
    baseline: Span,
    rounds: u32,
}

impl HyStart {
    pub(crate) fn new() -> Self {
        Self { round_end: 0, last: Span::MAX, current: Span::MAX, samples: 0, careful: None }
    }

    /// Ends slow start.
    pub(crate) fn is_over(&self) -> bool {
        self.careful.is_some_and(|careful| careful.rounds >= CAREFUL_ROUNDS)
    }

    /// Handles an acknowledgement; returns the divisor of the window growth.
    pub(crate) fn on_ack(&mut self, acked: &Acked) -> u64 {
        if acked.up_to >= self.round_end {
            self.round_end = acked.next;
            self.last = self.current;
            self.current = Span::MAX;
            self.samples = 0;
            if let Some(careful) = &mut self.careful {
                careful.rounds += 1;
            }
        }
        if let Some(sample) = acked.sample {
            self.current = self.current.min(sample);
            self.samples += 1;
        }
        if self.samples >= SAMPLES && self.current < Span::MAX {
            match self.careful {
                None if self.last < Span::MAX => {
                    let threshold = self.last / MIN_ROUND_TRIP_DIVISOR;
                    let threshold = threshold.max(MIN_THRESHOLD).min(MAX_THRESHOLD);
                    if self.current >= self.last + threshold {
                        self.careful = Some(Careful { baseline: self.current, rounds: 0 });
                    }
                }
                // The delay was no queue.
                Some(careful) if self.current < careful.baseline => self.careful = None,
                None | Some(_) => {}
            }
        }
        if self.careful.is_some() { GROWTH_DIVISOR } else { 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A round of ten acknowledgements with the round trip `millis`; returns the last divisor.
    fn round(hystart: &mut HyStart, number: u64, millis: u64) -> u64 {
        let mut divisor = 0;
        for step in 1..=10 {
            divisor = hystart.on_ack(&Acked {
                now: Instant::ZERO,
                bytes: 1,
                up_to: number * 10 + step,
                next: number * 10 + step + 10,
                limited: true,
                sample: Some(Span::from_millis(millis)),
                round_trip: None,
                fine: None,
            });
        }
        divisor
    }

    #[test]
    fn growing_round_trip_causes_conservative_slow_start_and_then_its_end() {
        let mut hystart = HyStart::new();
        assert_eq!(round(&mut hystart, 0, 600), 1);
        // 600 / 8 is above 16 ms, the maximum of the threshold.
        assert_eq!(round(&mut hystart, 1, 615), 1);
        assert_eq!(round(&mut hystart, 2, 631), 4);
        for number in 3..7 {
            assert_eq!(round(&mut hystart, number, 640), 4);
            assert!(!hystart.is_over(), "round {number}");
        }
        round(&mut hystart, 7, 640);
        assert!(hystart.is_over());
    }

    #[test]
    fn linux_ends_when_eight_samples_are_above_the_least() {
        let mut linux = LinuxHyStart::new();
        let mut look = |number: u64, millis: u64, gap: u64| {
            let mut over = false;
            for step in 1..=10 {
                over |= linux.on_ack(
                    &Acked {
                        now: Instant::ZERO + Span::from_millis(number * 600 + gap * step),
                        bytes: 1,
                        up_to: number * 10 + step,
                        next: number * 10 + step + 9,
                        limited: true,
                        sample: Some(Span::from_millis(millis)),
                        round_trip: None,
                        fine: None,
                    },
                    20_000,
                    1_000,
                );
            }
            over
        };
        assert!(!look(0, 600, 5));
        assert!(!look(1, 616, 5), "16 ms at most (600 / 8 is more), and that is not above it");
        assert!(look(2, 617, 5));
        // A train: acknowledgements 2 ms apart for more than 300 ms.
        let mut train = LinuxHyStart::new();
        let ack = |millis| Acked {
            now: Instant::ZERO + Span::from_millis(millis),
            bytes: 1,
            up_to: 1,
            next: 1_000,
            limited: true,
            sample: Some(Span::from_millis(600)),
            round_trip: None,
            fine: None,
        };
        let ends = (0..400).find(|&step| train.on_ack(&ack(2 * step), 20_000, 1_000));
        assert_eq!(ends, Some(151));
    }

    #[test]
    fn falling_round_trip_resumes_slow_start() {
        let mut hystart = HyStart::new();
        round(&mut hystart, 0, 600);
        assert_eq!(round(&mut hystart, 1, 620), 4);
        assert_eq!(round(&mut hystart, 2, 610), 1);
    }
}
