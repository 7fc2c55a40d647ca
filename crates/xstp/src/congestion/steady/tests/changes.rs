//! What errors and changes of the link do to the start and to the way back up.

use super::*;

/// XSTP-14.2.2
#[test]
fn one_packet_that_a_train_lost_hides_nothing_of_the_rate() {
    for lost in [2, 3, 5, 6, 8, 9] {
        let mut rig = Rig::auto(|_| GOOD);
        rig.losing = Some(lost);
        rig.run(1_000);
        assert_eq!(rig.steady.mode(Instant::ZERO), "ramp");
        let half = rig.steady.pace(rig.now).unwrap().as_bps();
        assert!(half > 4_900_000, "{half} without packet {lost}");
    }
}

/// XSTP-14.2.2
#[test]
fn a_train_is_read_by_all_of_its_polls() {
    let mut rig = Rig::auto(|_| GOOD);
    rig.late = Some((2, Span::from_micros(1_500)));
    rig.run(1_000);
    assert_eq!(rig.steady.mode(Instant::ZERO), "ramp");
    let half = rig.steady.pace(rig.now).unwrap().as_bps();
    assert!(half > 4_900_000, "{half} by one POLL that was seen late");
}

/// XSTP-14.2.3
#[test]
fn a_train_that_shows_too_little_is_made_good_at_once() {
    for late in [400, 700, 900] {
        let mut rig = Rig::auto(|_| GOOD);
        rig.late = Some((4, Span::from_micros(late)));
        rig.run(1_000);
        let half = rig.steady.pace(rig.now).unwrap().as_bps();
        assert!(half < 4_900_000, "{half}");
        rig.run(1_600);
        let more = rig.steady.pace(rig.now).unwrap().as_bps();
        assert!(more > 9_700_000, "{more} after {late} µs, {}", rig.steady.mode(Instant::ZERO));
        let arrives = rig.run(4_000);
        assert!(arrives > 9_200, "{arrives} after {late} µs");
        assert!(rig.longest_queue < Span::from_millis(300), "{:?}", rig.longest_queue);
    }
}

/// XSTP-14.3.3 XSTP-14.4.6 XSTP-14.4.7
#[test]
fn the_end_of_a_fade_is_found_at_once_and_a_train_shows_how_far_it_went() {
    let mut rig = Rig::auto(|now| {
        let faded = now > at(10_000) && now < at(45_000);
        Link { bps: if faded { 3 * MBPS } else { 10 * MBPS }, ..GOOD }
    });
    rig.run(19_000);
    rig.longest_queue = Span::ZERO;
    rig.run(45_000);
    let longest = rig.longest_queue;
    assert!(longest < Span::from_millis(280), "too fast while what is left stands: {longest:?}");
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
    assert_eq!(probes, 0, "no trains where nothing is to be had");
}

/// XSTP-14.4.7
#[test]
fn a_train_that_shows_no_more_than_the_rate_changes_nothing() {
    let mut rig = Rig::auto(|_| GOOD);
    rig.run(9_000);
    let before = rig.steady.base_rate_bps;
    rig.steady.recover_with_train();
    rig.run(10_200);
    assert_eq!((rig.steady.base_rate_bps, rig.steady.mode(Instant::ZERO)), (before, "cruise"));
    // Nor does one of which nothing arrives, whose successor is answered by a POLL alone.
    rig.steady.recover_with_train();
    for packet in 0..10 {
        rig.losing = Some(rig.packets + 1);
        rig.run(10_201 + packet);
    }
    rig.run(13_000);
    assert!(rig.steady.base_rate_bps >= before / 2, "{}", rig.steady.base_rate_bps);
}

/// XSTP-14.4.7
#[test]
fn where_others_share_the_rate_before_them_is_nothing_to_go_back_to() {
    let mut rig = Rig::auto(|_| GOOD);
    rig.run(9_000);
    rig.steady.note_rate_drop(rig.now, 3 * MBPS);
    rig.steady.base_rate_bps = 3 * MBPS;
    assert!(rig.steady.dropped_recently(rig.now));
    let mut law = CubicCurve::new(CrossTraffic::DelayBased, 3 * MBPS);
    law.on_event(3 * MBPS, BACK * 2, Span::ZERO);
    law.begin(rig.now);
    rig.steady.state = State::Sharing(law);
    // The next queue is there when the way takes something else.
    rig.run(28_000);
    rig.steady.base_rate_bps = 3 * MBPS;
    assert!(!rig.steady.dropped_recently(rig.now), "{}", rig.steady.mode(Instant::ZERO));
}

/// XSTP-14.4.2
#[test]
fn room_that_others_may_have_left_is_grown_into_as_they_do() {
    let mut rig = Rig::auto(|_| GOOD);
    rig.run(9_000);
    rig.steady.sharing_until = at(60_000);
    rig.steady.base_rate_bps = 5 * MBPS;
    rig.steady.state = State::Cruise;
    rig.steady.probes.reset(rig.now, BACK * 2);
    rig.run(18_000);
    let rate = rig.steady.pace(rig.now).unwrap().as_bps();
    assert_eq!(rig.steady.mode(Instant::ZERO), "sharing", "{rate}");
    assert!((5 * MBPS..7 * MBPS).contains(&rate), "{rate}: by time, and not by halves");
    rig.run(60_000);
    assert!(rig.run(75_000) > 9_000, "{}", rig.steady.mode(Instant::ZERO));
}

/// Where nothing happens for the last `late` of each `every`.
fn wakes(at: Instant, every: Span, late: Span) -> Instant {
    let turn = at.since(Instant::ZERO).as_nanos() / every.as_nanos();
    let next = Instant::ZERO + every * (turn + 1);
    if at + late > next { next } else { at }
}

/// One to three milliseconds of each five, as it happens.
fn busy(at: Instant, salt: u64) -> Instant {
    const EVERY: Span = Span::from_millis(5);
    let turn = at.since(Instant::ZERO).as_nanos() / EVERY.as_nanos();
    let chance = (turn + salt).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    wakes(at, EVERY, Span::from_micros(1_000 + chance % 2_000))
}

/// XSTP-14.3.10: a short way between hosts whose processors are somebody else's now and then.
#[test]
fn hosts_that_stand_still_are_no_queue() {
    const SHORT: Span = Span::from_millis(5);
    let rig = |bps: u64, link| {
        let max_rate = Some(BitRate::from_bps(bps));
        let config = SessionConfig { max_rate, ..SessionConfig::gateway_auto() };
        Rig { back: SHORT, ..Rig::new(&config, link) }
    };
    let link = |_| Link { bps: 50 * MBPS, delay: SHORT, room: Span::from_millis(20), lost: 0 };
    let often: [fn(Instant) -> Instant; 3] = [
        |at| wakes(at, Span::from_millis(170), Span::from_millis(10)),
        |at| wakes(at, Span::from_millis(170), Span::from_millis(40)),
        |at| wakes(at, Span::from_millis(170), Span::from_millis(70)),
    ];
    for (which, late) in often.into_iter().enumerate() {
        let mut rig = Rig { awake: [late, |at| at], ..rig(50 * MBPS, link) };
        rig.run(5_000);
        let arrives = rig.run(60_000);
        assert!(arrives > 45_000, "{arrives} of 50,000 with stalls {which}");
    }
    let link = |_| Link { bps: 150 * MBPS, delay: SHORT, room: Span::from_millis(20), lost: 0 };
    let awake: [fn(Instant) -> Instant; 2] = [|at| busy(at, 1), |at| busy(at, 7)];
    let mut rig = Rig { awake, ..rig(150 * MBPS, link) };
    rig.run(5_000);
    let arrives = rig.run(60_000);
    assert!(arrives > 135_000, "{arrives} of 150,000");
}
