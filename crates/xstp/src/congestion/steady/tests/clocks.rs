//! Clocks that run apart, and that leap: the delays are wrong by that, the round trip is not.

use super::*;

type Clock = fn(Instant) -> Instant;

/// XSTP-14.1.4
#[test]
fn clocks_that_run_apart_make_no_queue() {
    let clocks: [(Clock, u64); 3] = [
        (|at| at + at.since(Instant::ZERO).mul_ratio(1, 10_000), 9_900),
        (|at| at + at.since(Instant::ZERO).mul_ratio(1, 100), 9_800),
        (|at| at + at.since(Instant::ZERO).mul_ratio(3, 100), 9_600),
    ];
    for (clock, least) in clocks {
        let mut rig = Rig::auto(|_| GOOD);
        rig.clock = clock;
        rig.run(20_000);
        rig.longest_queue = Span::ZERO;
        let arrives = rig.run(320_000);
        assert!(
            arrives > least,
            "{arrives} where {least} can be, {}",
            rig.steady.mode(Instant::ZERO)
        );
        let longest = rig.longest_queue;
        assert!(longest < Span::from_millis(50), "{longest:?}: nobody is there to compete with");
    }
}

/// XSTP-14.1.4
#[test]
fn a_clock_that_leaps_makes_no_queue() {
    let mut rig = Rig::auto(|_| GOOD);
    rig.clock = |at| if at > self::at(30_000) { at + Span::from_secs(5) } else { at };
    rig.run(30_000);
    let arrives = rig.run(36_000);
    assert!(arrives > 9_800, "{arrives}, {}", rig.steady.mode(Instant::ZERO));
}

/// A queue that the round trip shares is one, however the clocks run.
///
/// XSTP-14.1.4 XSTP-14.3.1
#[test]
fn a_queue_is_seen_whatever_the_clocks_show() {
    let mut rig = Rig::auto(|now| {
        let bps = if now > at(30_000) { 4 * MBPS } else { 10 * MBPS };
        Link { bps, ..GOOD }
    });
    rig.clock = |at| at + at.since(Instant::ZERO).mul_ratio(1, 100);
    rig.run(33_000);
    let rate = rig.steady.pace(rig.now).unwrap().as_bps();
    assert!(rate < 4_100_000, "{rate} on 4 Mbit/s");
    rig.run(40_000);
    let arrives = rig.run(60_000);
    assert!(arrives > 3_800, "{arrives}");
}
