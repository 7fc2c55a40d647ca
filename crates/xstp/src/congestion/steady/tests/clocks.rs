//! Clock skew and clock steps, which change the measured one-way delay but not the RTT.

use super::*;

type Clock = fn(Instant) -> Instant;

/// XSTP-14.1.4
#[test]
fn clock_skew_is_no_queue() {
    let clocks: [(Clock, u64); 3] = [
        (|at| at + at.since(Instant::ZERO).mul_ratio(1, 10_000), 9_900),
        (|at| at + at.since(Instant::ZERO).mul_ratio(1, 100), 9_800),
        (|at| at + at.since(Instant::ZERO).mul_ratio(3, 100), 9_600),
    ];
    for (clock, min_kbps) in clocks {
        let mut rig = Rig::auto(|_| USUAL);
        rig.clock = clock;
        rig.run(20_000);
        rig.longest_queue = Span::ZERO;
        let kbps = rig.run(320_000);
        assert!(kbps > min_kbps, "{kbps} of {min_kbps} kbit/s, {}", rig.steady.mode(Instant::ZERO));
        let longest = rig.longest_queue;
        assert!(longest < Span::from_millis(50), "{longest:?} without cross traffic");
    }
}

/// XSTP-14.1.4
#[test]
fn a_clock_step_is_no_queue() {
    let mut rig = Rig::auto(|_| USUAL);
    rig.clock = |at| if at > self::at(30_000) { at + Span::from_secs(5) } else { at };
    rig.run(30_000);
    let kbps = rig.run(36_000);
    assert!(kbps > 9_800, "{kbps}, {}", rig.steady.mode(Instant::ZERO));
}

/// XSTP-14.1.4 XSTP-14.3.1: a queue also increases the RTT.
#[test]
fn a_queue_is_detected_in_spite_of_clock_skew() {
    let mut rig = Rig::auto(|now| {
        let bps = if now > at(30_000) { 4 * MBPS } else { 10 * MBPS };
        Link { bps, ..USUAL }
    });
    rig.clock = |at| at + at.since(Instant::ZERO).mul_ratio(1, 100);
    rig.run(33_000);
    let rate = rig.steady.pace(rig.now).unwrap().as_bps();
    assert!(rate < 4_100_000, "{rate} on 4 Mbit/s");
    rig.run(40_000);
    let kbps = rig.run(60_000);
    assert!(kbps > 3_800, "{kbps}");
}
