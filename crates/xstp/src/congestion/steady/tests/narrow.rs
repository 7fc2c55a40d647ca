//! Ways back on which answers are rare.

use super::*;

/// XSTP-14.8.1
#[test]
fn a_narrow_way_back_is_asked_less() {
    let narrow = Some(BitRate::from_kbps(1));
    let config =
        SessionConfig { reverse_rate: narrow, ..SessionConfig::gateway(BitRate::from_mbps(9)) };
    let steady = Steady::new(&SessionConfig { controller: Controller::Steady, ..config });
    assert_eq!(steady.poll_range().start, Span::from_millis(1_280));
    let config = SessionConfig { reverse_rate: narrow, ..SessionConfig::gateway_auto() };
    let train = Steady::new(&config).poll_range().start;
    // 128 octets with what is below XSTP; then four times that.
    let answers = BitRate::from_kbps(1).time_for(128 * (1 + 4));
    assert!(train > answers, "{train:?}, where answers are {answers:?} apart");
}

/// XSTP-14.4.2
#[test]
fn a_probe_that_no_answer_falls_into_is_seen_by_those_around_it() {
    for (apart, mbps) in [(1_500, 10), (2_500, 10), (2_500, 7)] {
        let config = SessionConfig {
            reverse_rate: Some(BitRate::from_kbps(1)),
            initial_rate: Some(BitRate::from_bps(6_700_000)),
            ..SessionConfig::gateway_auto()
        };
        let ten: fn(Instant) -> Link = |_| GOOD;
        let link = if mbps == 10 { ten } else { |_| Link { bps: 7 * MBPS, ..GOOD } };
        let mut rig = Rig::new(&config, link);
        rig.back = Span::from_millis(900);
        rig.apart = Span::from_millis(apart);
        rig.run(180_000);
        let base = rig.steady.base_rate_bps;
        let range = mbps * MBPS / 20 * 19..=mbps * MBPS;
        assert!(range.contains(&base), "{base} with answers {apart} ms apart");
        let longest = rig.longest_queue;
        assert!(longest < Span::from_millis(600), "{longest:?}");
    }
}
