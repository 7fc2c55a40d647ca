//! Padding while there is no data.

use super::*;

fn idle(link: fn(Instant) -> Link) -> Rig {
    let mut rig = Rig::auto(link);
    rig.idle_until = at(5_000);
    rig.run(4_999);
    rig
}

/// XSTP-14.2.7 XSTP-14.2.8
#[test]
fn padding_finds_the_rate_before_there_is_data() {
    for link in [(|_| USUAL) as fn(Instant) -> Link, |_| Link { bps: 250 * MBPS, ..USUAL }] {
        let mut rig = idle(link);
        let mbps = link(at(0)).bps / MBPS;
        assert_eq!(rig.steady.mode(rig.now), "ramp");
        assert!(rig.mbps().abs_diff(mbps) <= mbps / 50, "{} of {mbps}", rig.mbps());
        assert!(rig.packets <= 4 + 10 + 2 * 64, "{} packets", rig.packets);
        assert!(rig.sent <= 4 * 144 + 3 * 64 * DATA, "{} octets", rig.sent);
        rig.run(5_300);
        assert!(rig.run(6_500) >= mbps * 975, "at the full rate from the first packet on");
        assert!(rig.longest_queue < Span::from_millis(15), "{}", rig.longest_queue);
        assert_eq!(rig.steady.mode(rig.now), "cruise");
        assert!(rig.steady.confirmed_rate().is_some(), "confirmed by the data");
    }
}

/// XSTP-14.2.7
#[test]
fn padding_does_not_fill_a_low_rate_path() {
    let mut rig = idle(|_| Link { bps: 64_000, ..USUAL });
    assert_eq!((rig.packets, rig.steady.mode(rig.now)), (4, "train"), "only the check");
    assert!(rig.sent < 600, "{} octets", rig.sent);
    rig.run(20_000);
    assert!(rig.run(30_000) >= 57, "the train of the data has found the rate");
}

/// XSTP-14.2.7: the limit is 20 ms for each STAT.
#[test]
fn padding_does_not_fill_a_slow_reverse_path() {
    for (stat_millis, is_padded) in [(20, true), (30, false)] {
        let mut rig = Rig::auto(|_| USUAL);
        rig.stat_time = Span::from_millis(stat_millis);
        rig.idle_until = at(5_000);
        rig.run(4_999);
        assert_eq!(rig.packets > 4, is_padded, "{} packets", rig.packets);
    }
}

/// XSTP-14.2.7
#[test]
fn a_session_with_a_cached_rate_sends_no_padding() {
    let initial_rate = Some(BitRate::from_mbps(10));
    let config = SessionConfig { initial_rate, ..SessionConfig::gateway_auto() };
    let mut rig = Rig::new(&config, |_| USUAL);
    rig.idle_until = at(5_000);
    rig.run(4_999);
    assert_eq!(rig.packets, 0);
    rig.steady.restart_with_train(rig.now);
    assert_eq!(rig.steady.padding(), None, "nor in a later train");
}

/// XSTP-14.2.7: the POLLs of a check are lost with the packets that carry them.
#[test]
fn a_check_without_a_result_is_repeated() {
    let mut rig = Rig::auto(|now| Link { lost: u64::from(now < at(100)), ..USUAL });
    rig.idle_until = at(5_000);
    rig.run(300);
    assert_eq!(rig.packets, 4);
    assert!(rig.steady.padding().is_none(), "the check is in flight");
    // The session sends POLLs while packets are not acknowledged.
    rig.send(80, true);
    rig.run(1_000);
    rig.send(80, true);
    rig.run(4_999);
    assert_eq!((rig.steady.mode(rig.now), rig.mbps()), ("ramp", 10));
}

/// XSTP-14.2.8: each train finds another rate.
#[test]
fn estimates_that_differ_are_validated_at_half_of_their_median() {
    let mut rig = idle(|now| {
        let mbps = match now.since(Instant::ZERO).as_millis() {
            0..900 => 8,
            900..1_500 => 20,
            1_500..2_100 => 12,
            2_100..2_700 => 30,
            2_700..3_300 => 18,
            3_300..3_900 => 45,
            _ => 30,
        };
        Link { bps: mbps * MBPS, ..USUAL }
    });
    assert_eq!((rig.steady.mode(rig.now), rig.mbps()), ("ramp", 15), "of the last three");
    rig.run(6_500);
    let kbps = rig.run(12_000);
    assert!(kbps >= 28_700, "{kbps} kbit/s: the ramp and its probe correct it");
}

/// XSTP-14.2.9
#[test]
fn data_does_not_wait_for_a_train_of_padding() {
    let mut rig = Rig::auto(|_| USUAL);
    rig.idle_until = at(1_400);
    rig.run(1_400);
    assert_eq!(rig.steady.mode(rig.now), "train", "the second train is in flight");
    rig.run(1_500);
    assert_eq!((rig.steady.mode(rig.now), rig.mbps()), ("ramp", 5), "half of the first estimate");
    rig.run(4_000);
    assert!(rig.run(8_000) >= 9_600);
}

/// XSTP-14.2.9: the first train has no estimate yet.
#[test]
fn data_behind_the_first_train_of_padding_is_a_train() {
    let mut rig = Rig::auto(|_| USUAL);
    rig.idle_until = at(900);
    rig.run(900);
    let padding = rig.sent;
    assert_eq!((rig.packets, rig.steady.may_send()), (4 + 10, true));
    rig.run(1_000);
    assert_eq!(((rig.sent - padding) / DATA, rig.steady.may_send()), (10, false));
    rig.run(4_000);
    assert!(rig.run(8_000) >= 9_600);
    assert_eq!(rig.steady.padding(), None);
}

/// XSTP-14.2.9: the retransmissions are empty.
#[test]
fn lost_padding_does_not_end_padding() {
    let mut rig = Rig::auto(|_| Link { lost: 20, ..USUAL });
    rig.idle_until = at(5_000);
    rig.run(1_400);
    assert_eq!((rig.packets, rig.steady.mode(rig.now)), (24, "train"), "the second train");
    rig.steady.on_padding(rig.now, rig.sent);
    assert_eq!(rig.steady.mode(rig.now), "train");
    rig.run(4_999);
    assert_eq!((rig.steady.mode(rig.now), rig.mbps()), ("ramp", 10));
}
