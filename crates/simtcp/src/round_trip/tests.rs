use super::*;

fn seen(expected: u64) -> AckSample {
    AckSample { expected, oldest: 0, next: 0 }
}

fn rfc() -> RoundTrip {
    RoundTrip::new(RtoConfig {
        initial: Span::from_secs(1),
        min: Span::from_secs(1),
        max: Span::from_secs(60),
        granularity: Span::from_millis(1),
        ticks: false,
        estimator: Estimator::Rfc6298,
    })
}

#[test]
fn clock_with_500_ms_ticks_counts_and_expires_on_ticks() {
    let mut bsd = RoundTrip::new(RtoConfig {
        initial: Span::from_secs(6),
        min: Span::from_secs(1),
        max: Span::from_secs(64),
        granularity: Span::from_millis(500),
        ticks: true,
        estimator: Estimator::Rfc6298,
    });
    let at = |millis| Instant::ZERO + Span::from_millis(millis);
    // 600 ms contain one tick or two.
    assert_eq!(bsd.between(at(100), at(700)), Span::from_millis(500));
    assert_eq!(bsd.between(at(450), at(1_050)), Span::from_millis(1_000));
    assert_eq!(bsd.between(at(100), at(120)), Span::ZERO);
    // SRTT 500, RTTVAR 250: RTO 1.5 s, three ticks from the last one.
    bsd.sample(Span::from_millis(500), seen(1));
    assert_eq!(bsd.timeout(), Span::from_millis(1_500));
    assert_eq!(bsd.deadline(at(1_499)), at(2_500));
    assert_eq!(bsd.deadline(at(1_500)), at(3_000));
    // A round trip below one tick has the minimum RTO of 1 s: SRTT + G = 500 ms is below it.
    let mut short = bsd.clone();
    short.smoothed = None;
    short.sample(Span::ZERO, seen(1));
    assert_eq!(short.timeout(), Span::from_secs(1));
}

#[test]
fn samples_give_the_timer_of_rfc_6298() {
    let mut round_trip = rfc();
    assert_eq!(round_trip.timeout(), Span::from_secs(1));
    // Rule 2.2: 600 + 4 × 300 = 1800.
    round_trip.sample(Span::from_millis(600), seen(1));
    assert_eq!(round_trip.timeout(), Span::from_millis(1_800));
    // Rule 2.3: RTTVAR = 3/4 × 300 + 1/4 × 200 = 275, SRTT = 7/8 × 600 + 1/8 × 800 = 625.
    round_trip.sample(Span::from_millis(800), seen(1));
    assert_eq!(round_trip.smoothed(), Some(Span::from_millis(625)));
    assert_eq!(round_trip.timeout(), Span::from_millis(625 + 4 * 275));
    // Rule 2.4: a short round trip still has a timeout of 1 s.
    let mut short = rfc();
    short.sample(Span::from_millis(20), seen(1));
    assert_eq!(short.timeout(), Span::from_secs(1));
}

#[test]
fn timeouts_double_the_rto_up_to_its_maximum_until_a_sample() {
    let mut round_trip = rfc();
    round_trip.sample(Span::from_millis(600), seen(1));
    let mut waits = std::vec::Vec::new();
    for _ in 0..7 {
        waits.push(round_trip.timeout().as_millis());
        round_trip.back_off();
    }
    assert_eq!(waits, [1_800, 3_600, 7_200, 14_400, 28_800, 57_600, 60_000]);
    round_trip.sample(Span::from_millis(600), seen(1));
    // RTTVAR = 3/4 × 300 = 225.
    assert_eq!(round_trip.timeout(), Span::from_millis(600 + 900));
}

#[test]
fn many_samples_a_round_trip_count_as_one() {
    let (mut one, mut many) = (rfc(), rfc());
    for round_trip in [&mut one, &mut many] {
        round_trip.sample(Span::from_millis(600), seen(1));
    }
    one.sample(Span::from_millis(800), seen(1));
    for _ in 0..100 {
        many.sample(Span::from_millis(800), seen(100));
    }
    // (1 - 1/800)^100 = 0.882 where one sample has 0.875.
    let (a, b) = (one.smoothed().unwrap(), many.smoothed().unwrap());
    assert!(a - b < Span::from_millis(2) && b - a < Span::from_millis(2), "{a:?} {b:?}");
}

#[test]
fn initial_rto_is_three_seconds_after_a_lost_syn() {
    let mut round_trip = rfc();
    round_trip.back_off();
    round_trip.syn_was_lost();
    assert_eq!(round_trip.timeout(), Span::from_secs(3));
}

#[test]
fn linux_keeps_the_largest_deviation_of_a_round_trip() {
    let granularity = Span::from_millis(200);
    let config =
        RtoConfig { min: granularity, granularity, estimator: Estimator::Linux, ..rfc().config };
    let mut linux = RoundTrip::new(config);
    let millis = Span::from_millis;
    let at = |oldest, next| AckSample { expected: 100, oldest, next };
    // 600: mdev 300, RTTVAR 300, RTO 600 + 4 × 300. The round trip ends beyond 100.
    linux.sample(millis(600), at(1, 100));
    assert_eq!(linux.timeout(), millis(1_800));
    // Fifty more within it: mdev falls toward 0, RTTVAR is unchanged.
    (0..50).for_each(|_| linux.sample(millis(600), at(100, 200)));
    assert_eq!(linux.timeout(), millis(1_800));
    // Its maximum was the first one's, 300. Then a round trip whose maximum is the minimum, 50: 300
    // - (300 - 50) / 4 = 237.5.
    linux.sample(millis(600), at(101, 200));
    assert_eq!(linux.timeout(), millis(1_800));
    linux.sample(millis(600), at(201, 300));
    assert_eq!(linux.timeout(), millis(600 + 950));
    // 1,000 ms: mdev is 1/4 of 400, which is above the minimum and below RTTVAR.
    linux.sample(millis(1_000), at(250, 300));
    assert_eq!(linux.smoothed(), Some(millis(650)));
    assert_eq!(linux.timeout(), millis(650 + 950));
    // A round trip without variation ends at SRTT + 200 ms, and not below.
    (0..60).for_each(|n| linux.sample(millis(600), at(400 + 100 * n, 450 + 100 * n)));
    let least = linux.timeout();
    assert!(least >= millis(800) && least < millis(805), "{least:?}");
}

#[test]
fn linux_gives_falling_round_trips_little_weight() {
    let granularity = Span::from_millis(200);
    let config = RtoConfig { granularity, estimator: Estimator::Linux, ..rfc().config };
    let (mut falls, mut rises) = (RoundTrip::new(config), RoundTrip::new(config));
    for round_trip in [&mut falls, &mut rises] {
        round_trip.sample(Span::from_millis(600), seen(1));
        (0..40).for_each(|_| round_trip.sample(Span::from_millis(600), seen(1)));
    }
    // An error of 400 ms: 1/4 of it upward, 1/32 downward.
    rises.sample(Span::from_millis(1_000), seen(1));
    falls.sample(Span::from_millis(200), seen(1));
    let about = |round_trip: &RoundTrip| round_trip.peak.deviation.as_millis();
    assert_eq!((about(&rises), about(&falls)), (100, 12));
}
