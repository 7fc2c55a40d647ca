use super::*;
use crate::log::{Flight, Rate};
use std::vec::Vec;

const MSS: u64 = 1_000;
/// 10 segments in each 10 ms.
const RATE: f64 = 1e6;

/// A path of `rate`, 100 ms and a queue of `room` octets: in each call a round, with ten
/// acknowledgements; what exceeds the queue is lost.
struct Harness {
    bbr: Bbr3,
    at: Instant,
    delivered: u64,
    rate: f64,
    room: f64,
    /// The share of marked octets while a queue is there.
    marks: f64,
}

impl Harness {
    fn new() -> Self {
        let bbr = Bbr3::new(Levels::new(MSS, 10 * MSS, None));
        Self { bbr, at: Instant::ZERO, delivered: 0, rate: RATE, room: 1e9, marks: 0.0 }
    }

    fn round(&mut self) {
        let window = self.bbr.levels().window();
        let paced = (self.bbr.pacing_rate() * 0.1) as u64;
        let flight = window.min(paced.max(10 * MSS));
        let product = self.rate * 0.1;
        let lost = (flight as f64 - product - self.room).max(0.0) as u64;
        let kept = flight - lost;
        let took = (kept as f64 / self.rate).max(0.1);
        let prior_delivered = self.delivered;
        for part in 1..=10 {
            self.at += Span::from_secs_f64(took / 10.0);
            self.delivered += kept / 10;
            if self.marks > 0.0 && kept as f64 > product {
                let bytes = (kept as f64 / 10.0 * self.marks) as u64;
                self.bbr.on_marks(&Marks { bytes, delivered: kept / 10, up_to: 0, next: 0 });
            } else if self.marks > 0.0 {
                self.bbr.on_marks(&Marks { bytes: 0, delivered: kept / 10, up_to: 0, next: 0 });
            }
            let of_flight =
                Flight { in_flight: flight, lost, delivered: kept, len: MSS, limited: false };
            let heavy = part == 1 && lost * 50 > flight;
            self.bbr.on_sample(&Sample {
                now: self.at,
                newly: kept / 10,
                delivered: self.delivered,
                rate: Some(Rate {
                    bytes_per_second: kept as f64 / took,
                    prior_delivered,
                    limited: false,
                }),
                round_trip: Some(Span::from_secs_f64(took)),
                smoothed: Some(Span::from_secs_f64(took)),
                prior_in_flight: flight,
                in_flight: flight,
                lost: lost / 10,
                repairing: lost > 0,
                held: window <= paced,
                flight: Some(of_flight),
                heavy_loss: heavy.then_some(of_flight),
                ..Sample::default()
            });
        }
    }

    fn until(&mut self, mode: Mode) -> usize {
        (1..=200)
            .find(|_| {
                self.round();
                self.bbr.mode == mode
            })
            .expect("the mode within 200 rounds")
    }
}

#[test]
fn startup_ends_after_three_rounds_without_growth_and_drain_leads_to_probe_bw() {
    let mut harness = Harness::new();
    let mut rates = Vec::new();
    while harness.bbr.mode == Mode::Startup {
        harness.round();
        rates.push((harness.bbr.max_bandwidth() / 1e4) as u64);
        assert!(rates.len() < 20, "{rates:?}");
    }
    assert_eq!(rates[..2], [10, 20], "doubled each round");
    assert_eq!(rates.last(), Some(&100));
    assert!(harness.bbr.full && rates.len() <= 9, "{rates:?}");
    assert_eq!(harness.bbr.inflight_hi, u64::MAX, "no loss, no bound");
    harness.until(Mode::Cruise);
    // Paced at 1 MB/s less 1 %.
    assert!((harness.bbr.pacing_rate() - 0.99e6).abs() < 1.0);
}

#[test]
fn startup_ends_by_losses_and_bounds_the_volume() {
    let mut harness = Harness::new();
    harness.room = 20_000.0;
    let mut rounds = 0;
    while harness.bbr.mode == Mode::Startup {
        harness.round();
        rounds += 1;
        assert!(rounds < 20);
    }
    assert!(harness.bbr.inflight_hi < u64::MAX);
    assert!(rounds <= 7, "at the end of the round with losses: {rounds}");
}

#[test]
fn cycle_is_down_cruise_refill_up() {
    let mut harness = Harness::new();
    harness.until(Mode::Cruise);
    let start = harness.at;
    let mut modes = Vec::from([harness.bbr.mode]);
    while modes.len() < 5 {
        harness.round();
        if modes.last() != Some(&harness.bbr.mode) {
            modes.push(harness.bbr.mode);
        }
        assert!(harness.at.since(start) < Span::from_secs(8), "{modes:?}");
    }
    assert_eq!(modes, [Mode::Cruise, Mode::Refill, Mode::Up, Mode::Down, Mode::Cruise]);
    // Between probes: 2 to 3 s, or 63 rounds.
    assert!(harness.bbr.feedback.wait >= Span::from_secs(2));
    assert!(harness.bbr.feedback.wait < Span::from_secs(3));
}

#[test]
fn losses_while_cruising_reduce_the_lower_bounds_to_what_arrives() {
    let mut harness = Harness::new();
    harness.until(Mode::Cruise);
    // Half of the rate is left.
    (harness.rate, harness.room) = (RATE / 2.0, 0.0);
    let (before, window) = (harness.bbr.max_bandwidth(), harness.bbr.levels().window());
    harness.round();
    harness.round();
    assert_eq!(harness.bbr.max_bandwidth(), before, "the maximum stays");
    assert!((0.69..0.71).contains(&(harness.bbr.bw_lo / before)), "{}", harness.bbr.bw_lo);
    harness.round();
    harness.round();
    harness.round();
    let bound = harness.bbr.bw_lo;
    assert!((0.49..0.56).contains(&(bound / before)), "not below the latest rate: {bound}");
    // Three rounds of losses; what arrives, 50 segments, is less.
    let kept = harness.bbr.inflight_lo as f64 / window as f64;
    assert!((0.34..0.35).contains(&kept), "0.7³: {kept}");
    assert!(harness.bbr.levels().window() <= harness.bbr.inflight_lo);
}

#[test]
fn probe_that_loses_too_much_sets_inflight_hi() {
    let mut harness = Harness::new();
    harness.until(Mode::Cruise);
    harness.room = 5_000.0;
    harness.until(Mode::Up);
    harness.until(Mode::Down);
    // UP sends 1.25 of the product; a loss of 2 % is reached between the queue's end and that.
    let bound = harness.bbr.inflight_hi;
    assert!((70 * MSS..=130 * MSS).contains(&bound), "{bound}");
    harness.until(Mode::Cruise);
    assert!(harness.bbr.levels().window() <= harness.bbr.with_headroom(), "15 % of headroom");
}

#[test]
fn marks_end_startup_and_reduce_inflight_lo_by_a_third_of_alpha() {
    let mut harness = Harness::new();
    harness.marks = 1.0;
    let mut rounds = 0;
    while harness.bbr.mode == Mode::Startup {
        harness.round();
        rounds += 1;
        assert!(rounds < 20);
    }
    assert!(harness.bbr.inflight_hi < u64::MAX, "by marks: {rounds} rounds");
    let mut harness = Harness::new();
    harness.marks = 0.0;
    harness.until(Mode::Cruise);
    harness.bbr.alpha = 0.6;
    let window = harness.bbr.levels().window();
    harness.bbr.marks_in_round = true;
    harness.bbr.loss_round_begins = true;
    let rate = Rate { bytes_per_second: 1.0, prior_delivered: 0, limited: true };
    harness.bbr.update_bounds(&Sample { rate: Some(rate), ..Sample::default() });
    let kept = harness.bbr.inflight_lo as f64 / window as f64;
    assert!((0.799..0.801).contains(&kept), "1 - 0.6 / 3: {kept}");
    assert!(harness.bbr.bw_lo.is_infinite(), "marks bound the volume only");
}

#[test]
fn min_rtt_is_probed_every_5_s_with_half_of_a_product() {
    let mut harness = Harness::new();
    harness.until(Mode::Cruise);
    // Round trips of the queue hide min_rtt from now on.
    harness.bbr.recent_round_trip = Some(Span::from_millis(99));
    harness.bbr.round_trip = Some(Span::from_millis(99));
    harness.bbr.recent_at = harness.at;
    let start = harness.at;
    harness.until(Mode::ProbeRoundTrip);
    let first = harness.at;
    assert!(first.since(start) >= Span::from_secs(5), "{:?}", first.since(start));
    assert!(first.since(start) < Span::from_millis(5_500), "{:?}", first.since(start));
    let window = harness.bbr.levels().window() / MSS;
    assert!((48..=52).contains(&window), "half of 100 segments: {window}");
    harness.until(Mode::Cruise);
    assert!(harness.at.since(first) < Span::from_millis(600), "200 ms and a round");
    assert!(harness.bbr.levels().window() > 90 * MSS, "the window is restored");
    harness.bbr.recent_round_trip = Some(Span::from_millis(99));
    let second = harness.until(Mode::ProbeRoundTrip);
    assert!((40..=60).contains(&second), "{second} rounds");
}
