use super::*;
use satlink::{profiles, words};

fn geo(words: &str) -> LinkConfig {
    let mut link = profiles::by_name("geo").unwrap();
    words::apply_link(&mut link, words).unwrap();
    link
}

fn at(secs: u64) -> Instant {
    Instant::ZERO + Span::from_secs(secs)
}

#[test]
fn jains_index_of_known_shares() {
    assert_eq!(jain(&[1.0, 1.0, 1.0]), 1.0);
    assert_eq!(jain(&[3.0, 0.0, 0.0]), 1.0 / 3.0);
    // (1 + 2)^2 / (2 × 5)
    assert_eq!(jain(&[1.0, 2.0]), 0.9);
}

#[test]
fn cubic_flows_fill_the_bottleneck_and_share_it() {
    let flows = [SharedFlow::tcp(&TcpConfig::linux()), SharedFlow::tcp(&TcpConfig::linux())];
    let mut shared = Shared::new(&geo(""), 1, 0, &flows);
    shared.run_until(at(120));
    let shares = shared.shares(at(30), at(120));
    assert!(shares.used > 0.9 && shares.used < 1.01, "{shares:?}");
    assert!(shares.jain > 0.8, "{shares:?}");
    assert!(shared.queue() > Span::from_millis(50), "they keep a queue");
    assert!(shared.connection(0).is_some() && shared.session(0).is_none());
}

#[test]
fn reno_flow_with_longer_round_trip_gets_less() {
    let reno = SharedFlow::tcp(&TcpConfig::sack());
    let flows = [reno.clone(), reno.extra_delay(Span::from_millis(600))];
    let mut shared = Shared::new(&geo("forward rate 5mbit"), 1, 0, &flows);
    shared.run_until(at(200));
    let shares = shared.shares(at(50), at(200));
    assert!(shares.goodput_bps[0] > 1.2 * shares.goodput_bps[1], "{shares:?}");
}

#[test]
fn sessions_start_at_the_configured_time() {
    let fixed = SessionConfig::gateway(units::BitRate::from_mbps(5));
    let flows = [SharedFlow::xstp(&fixed), SharedFlow::xstp(&fixed).at(Span::from_secs(10))];
    let mut shared = Shared::new(&geo(""), 1, 0, &flows);
    shared.run_until(at(20));
    assert_eq!(shared.bytes(1, at(0), at(10)), 0);
    let shares = shared.shares(at(12), at(20));
    assert!(shares.jain > 0.999 && shares.used > 0.97, "{shares:?}");
    assert!(shared.session(0).is_some() && shared.connection(0).is_none());
}

#[test]
fn flows_can_be_sampled_and_captured() {
    let fixed = SessionConfig::gateway(units::BitRate::from_mbps(5));
    let flows = [SharedFlow::xstp(&fixed), SharedFlow::tcp(&TcpConfig::linux())];
    let mut shared = Shared::new(&geo(""), 1, 0, &flows);
    shared.sample(Span::from_millis(500), &["one".to_owned(), "two".to_owned()]);
    shared.run_until(at(20));
    let last = |name: &str| {
        let found = shared.net.series().find(|series| series.name() == name);
        found.and_then(|series| series.samples().last().copied()).map(|(_, value)| value)
    };
    assert_eq!(last("one rate"), Some(4_990_000.0));
    for name in ["one arrived", "two arrived", "two congestion window", "bottleneck queue"] {
        assert!(last(name).is_some_and(|value| value >= 1_000.0), "{name}: {:?}", last(name));
    }
    assert!(last("two round trip").is_some_and(|value| value > 0.6));
}

/// XSTP-14.5.2: two equal congestion events in a row may be random; a sender that kept its rate on
/// them would keep more than its share. These two starts had Jain's indices of 0.937 and 0.930 for
/// that reason.
#[test]
fn steady_flows_share_evenly_although_the_bottleneck_rate_is_not_known_exactly() {
    for (words, start) in [("delay 300ms 0.2ms", 3), ("loss 1%", 20)] {
        let steady = SharedFlow::xstp(&SessionConfig::gateway_auto());
        let flows = [steady.clone(), steady.at(Span::from_secs(start))];
        let mut shared = Shared::new(&geo(words), 1, 0, &flows);
        shared.run_until(at(360));
        let shares = shared.shares(at(60), at(360));
        assert!(shares.jain >= 0.95 && shares.used > 0.95, "{words}: {shares:?}");
    }
}
