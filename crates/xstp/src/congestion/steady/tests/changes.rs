//! Corruption and changes of the link at the start, and recovery after a fade.

use super::*;

/// XSTP-14.2.2
#[test]
fn one_lost_packet_of_a_train_does_not_lower_the_estimate() {
    for lost in [2, 3, 5, 6, 8, 9] {
        let mut rig = Rig::auto(|_| USUAL);
        rig.lost_packet = Some(lost);
        rig.run(1_000);
        assert_eq!(rig.steady.mode(Instant::ZERO), "ramp");
        let half = rig.steady.pace(rig.now).unwrap().as_bps();
        assert!(half > 4_900_000, "{half} without packet {lost}");
    }
}

/// XSTP-14.2.2
#[test]
fn a_train_is_estimated_from_all_of_its_polls() {
    let mut rig = Rig::auto(|_| USUAL);
    rig.late = Some((2, Span::from_micros(1_500)));
    rig.run(1_000);
    assert_eq!(rig.steady.mode(Instant::ZERO), "ramp");
    let half = rig.steady.pace(rig.now).unwrap().as_bps();
    assert!(half > 4_900_000, "{half} with one late POLL");
}

/// XSTP-14.2.3
#[test]
fn a_low_estimate_is_corrected_by_the_first_probe() {
    for late in [400, 700, 900] {
        let mut rig = Rig::auto(|_| USUAL);
        rig.late = Some((4, Span::from_micros(late)));
        rig.run(1_000);
        let half = rig.steady.pace(rig.now).unwrap().as_bps();
        assert!(half < 4_900_000, "{half}");
        rig.run(1_600);
        let more = rig.steady.pace(rig.now).unwrap().as_bps();
        assert!(more > 9_700_000, "{more} after {late} µs, {}", rig.steady.mode(Instant::ZERO));
        let kbps = rig.run(4_000);
        assert!(kbps > 9_200, "{kbps} after {late} µs");
        assert!(rig.longest_queue < Span::from_millis(300), "{:?}", rig.longest_queue);
    }
}

/// XSTP-14.3.3 XSTP-14.4.6 XSTP-14.4.7
#[test]
fn the_end_of_a_fade_is_found_by_a_probe_and_a_train() {
    let mut rig = Rig::auto(|now| {
        let faded = now > at(10_000) && now < at(45_000);
        Link { bps: if faded { 3 * MBPS } else { 10 * MBPS }, ..USUAL }
    });
    rig.run(19_000);
    rig.longest_queue = Span::ZERO;
    rig.run(45_000);
    let longest = rig.longest_queue;
    assert!(longest < Span::from_millis(280), "queue after the fade began: {longest:?}");
    let faded = rig.steady.base_rate_bps;
    assert!((2_800_000..3_200_000).contains(&faded), "{faded}");
    rig.run(52_000);
    assert!((9..=10).contains(&rig.mbps()), "{} {}", rig.mbps(), rig.steady.mode(Instant::ZERO));
    assert!(rig.longest_queue < Span::from_millis(700), "{:?}", rig.longest_queue);
    let mut probes = 0;
    for millis in 0..600 {
        rig.run(52_000 + millis * 100);
        probes += u32::from(rig.steady.mode(Instant::ZERO) == "train");
    }
    assert_eq!(probes, 0, "no trains without capacity");
}

/// XSTP-14.4.7
#[test]
fn a_train_without_a_higher_estimate_has_no_effect() {
    let mut rig = Rig::auto(|_| USUAL);
    rig.run(9_000);
    let before = rig.steady.base_rate_bps;
    rig.steady.recover_with_train();
    rig.run(10_200);
    assert_eq!((rig.steady.base_rate_bps, rig.steady.mode(Instant::ZERO)), (before, "cruise"));
    // Nor has a train that is lost completely, after which a standalone POLL is answered.
    rig.steady.recover_with_train();
    for packet in 0..10 {
        rig.lost_packet = Some(rig.packets + 1);
        rig.run(10_201 + packet);
    }
    rig.run(13_000);
    assert!(rig.steady.base_rate_bps >= before / 2, "{}", rig.steady.base_rate_bps);
}

/// XSTP-14.4.7
#[test]
fn a_rate_drop_is_not_recovered_with_cross_traffic() {
    let mut rig = Rig::auto(|_| USUAL);
    rig.run(9_000);
    rig.steady.note_rate_drop(rig.now, 3 * MBPS);
    rig.steady.base_rate_bps = 3 * MBPS;
    assert!(rig.steady.dropped_recently(rig.now));
    let mut curve = CubicCurve::new(CrossTraffic::DelayBased, 3 * MBPS);
    curve.on_event(3 * MBPS, ONE_WAY * 2, Span::ZERO);
    curve.begin(rig.now);
    rig.steady.state = State::Sharing(curve);
    // At the next standing queue the bottleneck rate differs.
    rig.run(28_000);
    rig.steady.base_rate_bps = 3 * MBPS;
    assert!(!rig.steady.dropped_recently(rig.now), "{}", rig.steady.mode(Instant::ZERO));
}

/// XSTP-14.4.2
#[test]
fn capacity_after_sharing_is_probed_by_the_cubic_curve() {
    let mut rig = Rig::auto(|_| USUAL);
    rig.run(9_000);
    rig.steady.sharing_until = at(60_000);
    rig.steady.base_rate_bps = 5 * MBPS;
    rig.steady.state = State::Cruise;
    rig.steady.probes.reset(rig.now, ONE_WAY * 2);
    rig.run(18_000);
    let rate = rig.steady.pace(rig.now).unwrap().as_bps();
    assert_eq!(rig.steady.mode(Instant::ZERO), "sharing", "{rate}");
    assert!((5 * MBPS..7 * MBPS).contains(&rate), "{rate}: growth by the curve, not by probes");
    rig.run(60_000);
    assert!(rig.run(75_000) > 9_000, "{}", rig.steady.mode(Instant::ZERO));
}

/// Time at which a process runs that is not scheduled for the last `late` of each `every`.
fn stalled(at: Instant, every: Span, late: Span) -> Instant {
    let period = at.since(Instant::ZERO).as_nanos() / every.as_nanos();
    let next = Instant::ZERO + every * (period + 1);
    if at + late > next { next } else { at }
}

/// As [`stalled`], for a pseudo-random 1 ms to 3 ms of each 5 ms.
fn busy(at: Instant, salt: u64) -> Instant {
    const EVERY: Span = Span::from_millis(5);
    let period = at.since(Instant::ZERO).as_nanos() / EVERY.as_nanos();
    let chance = (period + salt).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    stalled(at, EVERY, Span::from_micros(1_000 + chance % 2_000))
}

/// XSTP-14.3.10: a path with a short RTT between hosts that are not scheduled at times.
#[test]
fn scheduling_stalls_are_no_queue() {
    const SHORT: Span = Span::from_millis(5);
    let rig = |bps: u64, link| {
        let max_rate = Some(BitRate::from_bps(bps));
        let config = SessionConfig { max_rate, ..SessionConfig::gateway_auto() };
        Rig { back: SHORT, ..Rig::new(&config, link) }
    };
    let link = |_| Link { bps: 50 * MBPS, delay: SHORT, room: Span::from_millis(20), lost: 0 };
    let stalls: [fn(Instant) -> Instant; 3] = [
        |at| stalled(at, Span::from_millis(170), Span::from_millis(10)),
        |at| stalled(at, Span::from_millis(170), Span::from_millis(40)),
        |at| stalled(at, Span::from_millis(170), Span::from_millis(70)),
    ];
    for (which, late) in stalls.into_iter().enumerate() {
        let mut rig = Rig { scheduled: [late, |at| at], ..rig(50 * MBPS, link) };
        rig.run(5_000);
        let kbps = rig.run(60_000);
        assert!(kbps > 45_000, "{kbps} of 50,000 with stalls {which}");
    }
    let link = |_| Link { bps: 150 * MBPS, delay: SHORT, room: Span::from_millis(20), lost: 0 };
    let scheduled: [fn(Instant) -> Instant; 2] = [|at| busy(at, 1), |at| busy(at, 7)];
    let mut rig = Rig { scheduled, ..rig(150 * MBPS, link) };
    rig.run(5_000);
    let kbps = rig.run(60_000);
    assert!(kbps > 135_000, "{kbps} of 150,000");
}

/// XSTP-14.5.1
#[test]
fn sharing_on_a_short_path_returns_to_a_gigabit_within_two_seconds() {
    let config = SessionConfig {
        max_rate: Some(BitRate::from_mbps(1_310)),
        ..SessionConfig::gateway_auto()
    };
    let link = |now| {
        let shared = now > at(3_000) && now < at(4_000);
        Link {
            bps: if shared { 300 * MBPS } else { 1_000 * MBPS },
            delay: Span::from_micros(500),
            room: Span::from_secs(2),
            ..USUAL
        }
    };
    let mut rig = Rig { back: Span::from_micros(500), ..Rig::new(&config, link) };
    rig.run(4_000);
    // The queue is drained at the rate at which it was filled.
    while rig.steady.mode(Instant::ZERO) != "sharing" && rig.now < at(6_000) {
        let next = rig.now.as_nanos() / 1_000_000 + 5;
        rig.run(next);
    }
    assert_eq!((rig.steady.mode(Instant::ZERO), rig.mbps() < 400), ("sharing", true));
    let ended = rig.now.as_nanos() / 1_000_000;
    rig.run(ended + 2_000);
    let kbps = rig.run(ended + 3_000);
    assert!(kbps > 950_000, "{kbps}");
}

/// XSTP-14.5.1
#[test]
fn stats_that_are_farther_apart_than_the_rtt_do_not_stop_the_growth() {
    let link = |_| Link {
        bps: 100 * MBPS,
        delay: Span::from_micros(500),
        room: Span::from_secs(2),
        ..USUAL
    };
    let mut rig = Rig { back: Span::from_micros(500), ..Rig::auto(link) };
    rig.run(5_000);
    let curve = CubicCurve::after_queue(30 * MBPS, Span::from_millis(1));
    rig.steady.resume_sharing(rig.now, curve);
    assert!(rig.mbps() < 30, "{}", rig.mbps());
    rig.run(6_000);
    let kbps = rig.run(7_000);
    assert!(kbps > 95_000, "{kbps}");
}
