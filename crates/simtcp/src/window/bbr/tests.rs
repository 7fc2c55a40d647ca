use super::*;
use crate::log::Rate;

const MSS: u64 = 1_000;
/// 10 segments in each 10 ms.
const RATE: f64 = 1e6;

/// A path of `RATE` and 100 ms: in each call, a round, the window is acknowledged at up to the
/// path's rate.
struct Harness {
    bbr: Bbr,
    at: Instant,
    delivered: u64,
}

impl Harness {
    fn new() -> Self {
        let bbr = Bbr::new(Levels::new(MSS, 10 * MSS, None));
        Self { bbr, at: Instant::ZERO, delivered: 0 }
    }

    /// A round trip of 100 ms and the queuing delay, with ten acknowledgements.
    fn round(&mut self) {
        let window = self.bbr.levels().window();
        let paced = (self.bbr.pacing_rate() * 0.1) as u64;
        let flight = window.min(paced.max(10 * MSS));
        let took = (flight as f64 / RATE).max(0.1);
        let rate = flight as f64 / took;
        let prior_delivered = self.delivered;
        for _ in 0..10 {
            self.at += Span::from_secs_f64(took / 10.0);
            self.delivered += flight / 10;
            self.bbr.on_sample(&Sample {
                now: self.at,
                newly: flight / 10,
                delivered: self.delivered,
                rate: Some(Rate { bytes_per_second: rate, prior_delivered, limited: false }),
                round_trip: Some(Span::from_secs_f64(took)),
                smoothed: Some(Span::from_secs_f64(took)),
                prior_in_flight: flight,
                in_flight: flight,
                held: true,
                ..Sample::default()
            });
        }
    }
}

#[test]
fn startup_doubles_until_three_rounds_bring_nothing_and_drain_empties_the_queue() {
    let mut harness = Harness::new();
    let mut rates = std::vec::Vec::new();
    while harness.bbr.mode == Mode::Startup {
        harness.round();
        rates.push((harness.bbr.bandwidth.max() / 1e4) as u64);
        assert!(rates.len() < 20, "{rates:?}");
    }
    // 10 segments in 100 ms are 1/10; doubled each round up to the path's rate; then three rounds
    // more.
    assert_eq!(rates[..5], [10, 20, 40, 80, 100]);
    assert_eq!(rates.len(), 8, "{rates:?}");
    assert_eq!((harness.bbr.mode, harness.bbr.full), (Mode::Drain, true));
    // Paced at 1/2.885 of 1 MB/s less 1 %.
    assert!((harness.bbr.pacing_rate() - 343_154.0).abs() < 10.0, "{}", harness.bbr.pacing_rate());
    harness.round();
    assert_eq!(harness.bbr.mode, Mode::ProbeBandwidth);
    // Twice a bandwidth-delay product of 100 segments, three bursts of two, two more when it
    // probes; and the data acknowledged in excess of the rate: these acknowledgements are of 1/10
    // of the window.
    harness.round();
    let window = harness.bbr.levels().window() / MSS;
    assert!((206..=208 + 40).contains(&window), "{window}");
}

#[test]
fn each_phase_ends_by_its_own_rule() {
    let at = |millis| Instant::ZERO + Span::from_millis(millis);
    let round_trip = Some(Span::from_millis(100));
    let target = [106 * MSS, 133 * MSS];
    let mut cycle = Cycle::begin(at(0));
    assert!(cycle.is_probing() && cycle.gain() > 1.2, "the clock says phase 0");
    let look = |cycle: &mut Cycle, millis, in_network, lost| {
        let sample = Sample { now: at(millis), lost, ..Sample::default() };
        cycle.update(&sample, round_trip, in_network * MSS, target);
        cycle.gain()
    };
    // 1.25: ends after a round trip with more in flight, or a loss.
    assert_eq!(look(&mut cycle, 90, 140, 0), 1.25);
    assert_eq!(look(&mut cycle, 150, 120, 0), 1.25);
    assert_eq!(look(&mut cycle, 160, 133, 0), 0.75);
    // 0.75: ends after a round trip, or with less in flight.
    assert_eq!(look(&mut cycle, 170, 120, 0), 0.75);
    assert_eq!(look(&mut cycle, 200, 106, 0), 1.0);
    // Six times 1, each a round trip.
    for step in 1..=5 {
        assert_eq!(look(&mut cycle, 200 + 101 * step, 100, 0), 1.0);
    }
    assert_eq!(look(&mut cycle, 806, 100, 0), 1.25);
    assert_eq!(look(&mut cycle, 910, 90, MSS), 0.75, "a loss ends probing");
}

#[test]
fn expired_min_rtt_is_measured_again_with_four_segments() {
    let mut harness = Harness::new();
    while harness.bbr.mode != Mode::ProbeBandwidth {
        harness.round();
    }
    // The queue of probing hides min_rtt from then on.
    harness.bbr.round_trip = Some(Span::from_millis(99));
    let mut windows = std::vec::Vec::new();
    for _ in 0..140 {
        harness.round();
        windows.push(harness.bbr.levels().window() / MSS);
    }
    let small = windows.iter().filter(|&&window| window == 4).count();
    assert!((2..=6).contains(&small), "200 ms and a round: {small} {windows:?}");
    assert!(*windows.last().unwrap() >= 200, "and the window has recovered");
}

#[test]
fn the_handshake_measures_min_rtt() {
    let mut bbr = Bbr::new(Levels::new(MSS, 10 * MSS, None));
    let at = |millis| Instant::ZERO + Span::from_millis(millis);
    let sample = |millis, round_trip: Option<u64>| Sample {
        now: at(millis),
        newly: MSS,
        round_trip: round_trip.map(Span::from_millis),
        smoothed: Some(Span::from_millis(100)),
        in_flight: 10 * MSS,
        ..Sample::default()
    };
    bbr.on_sample(&sample(100, None));
    assert_eq!(bbr.least_round_trip(), Some(Span::from_millis(100)));
    // Segments take longer than SYNs: 10 s after the handshake the minimum is too old.
    bbr.on_sample(&sample(10_000, Some(101)));
    assert!(!bbr.drains());
    bbr.on_sample(&sample(10_101, Some(101)));
    assert!(bbr.drains());
    assert_eq!(bbr.least_round_trip(), Some(Span::from_millis(101)));
}

#[test]
fn a_loss_conserves_packets_for_a_round_and_a_timeout_begins_at_one() {
    let mut harness = Harness::new();
    while harness.bbr.mode != Mode::ProbeBandwidth {
        harness.round();
    }
    harness.round();
    let before = harness.bbr.levels().window();
    harness.bbr.on_loss();
    let sample = |harness: &Harness, in_flight, lost, repairing| Sample {
        now: harness.at,
        newly: MSS,
        delivered: harness.delivered,
        in_flight,
        prior_in_flight: in_flight,
        lost,
        repairing,
        ..Sample::default()
    };
    let first = sample(&harness, 100 * MSS, MSS, true);
    harness.bbr.on_sample(&first);
    assert_eq!(
        harness.bbr.levels().window(),
        101 * MSS,
        "what is in flight and what was delivered"
    );
    let last = sample(&harness, 90 * MSS, 0, false);
    harness.bbr.on_sample(&last);
    let restored = |harness: &Harness| harness.bbr.levels().window().abs_diff(before) <= 2 * MSS;
    assert!(restored(&harness), "but for the two segments of a phase that probes");
    harness.bbr.on_timeout();
    assert_eq!(harness.bbr.levels().window(), MSS);
    let over = sample(&harness, 2 * MSS, 0, false);
    harness.bbr.on_sample(&over);
    assert!(restored(&harness));
}
