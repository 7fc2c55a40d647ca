//! Reverse paths with a low rate, on which STATs are rare.

use super::*;

/// XSTP-14.8.1
#[test]
fn a_low_rate_reverse_path_gets_fewer_polls() {
    let reverse_rate = Some(BitRate::from_kbps(1));
    let config = SessionConfig { reverse_rate, ..SessionConfig::gateway(BitRate::from_mbps(9)) };
    let steady = Steady::new(&SessionConfig { controller: Controller::Steady, ..config });
    assert_eq!(steady.poll_range().start, Span::from_millis(1_280));
    let config = SessionConfig { reverse_rate, ..SessionConfig::gateway_auto() };
    let train = Steady::new(&config).poll_range().start;
    // A STAT of 128 octets with headers, and four times that until the next one.
    let stat_interval = BitRate::from_kbps(1).time_for(128 * (1 + 4));
    assert!(train > stat_interval, "{train:?}, but one STAT per {stat_interval:?}");
}

/// XSTP-14.4.2
#[test]
fn a_probe_without_a_stat_is_measured_by_the_samples_around_it() {
    for (stat_spacing, mbps) in [(1_500, 10), (2_500, 10), (2_500, 7)] {
        let config = SessionConfig {
            reverse_rate: Some(BitRate::from_kbps(1)),
            initial_rate: Some(BitRate::from_bps(6_700_000)),
            ..SessionConfig::gateway_auto()
        };
        let ten: fn(Instant) -> Link = |_| USUAL;
        let link = if mbps == 10 { ten } else { |_| Link { bps: 7 * MBPS, ..USUAL } };
        let mut rig = Rig::new(&config, link);
        rig.back = Span::from_millis(900);
        rig.stat_spacing = Span::from_millis(stat_spacing);
        rig.run(180_000);
        let base = rig.steady.base_rate_bps;
        let range = mbps * MBPS / 20 * 19..=mbps * MBPS;
        assert!(range.contains(&base), "{base} with one STAT per {stat_spacing} ms");
        let longest = rig.longest_queue;
        assert!(longest < Span::from_millis(600), "{longest:?}");
    }
}
