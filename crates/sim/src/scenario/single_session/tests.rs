//! Guaranteed figures of the controller `steady`, on shorter transfers.

use super::*;
use units::BitRate;

fn link(words: &str) -> LinkConfig {
    let mut link = satlink::profiles::by_name("geo").expect("a profile");
    satlink::words::apply_link(&mut link, words).expect("right words");
    link
}

fn session_on(words: &str, config: &SessionConfig, bytes: u64) -> SingleSession {
    let back = SessionConfig::gateway(BitRate::from_mbps(1));
    SingleSession::new(&link(words), 1, config, &back, bytes)
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Span::from_millis(millis)
}

#[test]
fn rate_of_a_fast_link_is_found_in_two_round_trips() {
    const BYTES: u64 = 25_000_000;
    let fast = "forward rate 250mbit limit 1bdp return rate 3mbit";
    // Transmission takes 0.84 s, the request and the last packet 0.6 s, the start 0.9 s.
    let took = |config: &SessionConfig| {
        let took = session_on(fast, config, BYTES).time_for(BYTES, Span::from_secs(20));
        took.expect("all of it").as_secs_f64()
    };
    let cold = took(&SessionConfig::gateway_auto());
    assert!(cold < 2.55, "{cold}");
    let initial_rate = Some(BitRate::from_mbps(250));
    let remembered = took(&SessionConfig { initial_rate, ..SessionConfig::gateway_auto() });
    assert!(remembered < 1.6, "{remembered}");
}

#[test]
fn utilization_over_20_s_is_high_at_all_loss_rates() {
    for (words, utilization) in [("", 0.93), ("both loss 1%", 0.90), ("both limit 0.25bdp", 0.93)] {
        let mut path = session_on(words, &SessionConfig::gateway_auto(), 1 << 40);
        let moments = path.series(at(20_600), Span::from_millis(200));
        let seen = path.utilization(at(600), at(20_600));
        assert!(seen > utilization, "{words}: {seen}");
        assert!(moments.iter().all(|moment| moment.queue < Span::from_millis(80)), "{words}");
        assert!(path.return_bps(at(600), at(20_600)) < 8_500.0, "{words}");
    }
}

#[test]
fn rate_is_restored_within_a_round_trip_after_a_blackout_without_a_queue() {
    let mut path = session_on("outage at 8s for 5s", &SessionConfig::gateway_auto(), 1 << 40);
    path.path.run_until(at(13_000));
    let dark = path.path.offered(Direction::Forward).between(at(10_000), at(13_000)).bytes;
    assert!(dark < 20_000, "nothing but POLLs: {dark}");
    let moments = path.series(at(16_000), Span::from_millis(100));
    let light = path.path.offered(Direction::Forward).between(at(13_700), at(14_700)).bytes;
    assert!(light > 1_180_000, "{light}");
    assert!(moments.iter().all(|moment| moment.queue < Span::from_millis(50)));
}

#[test]
fn queue_drains_soon_after_the_rate_drops_to_a_tenth() {
    let initial_rate = Some(BitRate::from_mbps(10));
    let config = SessionConfig { initial_rate, ..SessionConfig::gateway_auto() };
    let mut path = session_on("forward rate 1mbit limit 1bdp", &config, 1 << 40);
    let moments = path.series(at(3_500), Span::from_millis(100));
    // Data starts at 300 ms.
    let late = moments.iter().filter(|moment| moment.at >= at(1_800));
    assert!(late.clone().all(|moment| moment.queue < Span::from_millis(60)), "{:?}", late.count());
}

/// XSTP-14.3.6
#[test]
fn sudden_corruption_loss_reduces_the_rate_only_briefly() {
    let mut path = session_on("", &SessionConfig::gateway_auto(), 1 << 40);
    path.change_at(at(10_000), link("forward loss 30%"));
    let moments = path.series(at(30_000), Span::from_millis(500));
    let sent = path.path.offered(Direction::Forward).between(at(13_000), at(30_000)).bytes;
    assert!(sent * 8 / 17 > 9_400_000, "{sent} octets in 17 s");
    assert!(moments.iter().all(|moment| moment.queue < Span::from_millis(120)));
}

/// XSTP-14.3.7
#[test]
fn fade_is_followed_while_delay_changes_are_not_taken_for_a_queue() {
    // Three handovers, after which delay does not count as a queue for sixteen round trips, and a
    // fade.
    let mut path = session_on("", &SessionConfig::gateway_auto(), 1 << 40);
    for (millis, words) in [
        (8_000, "both delay 400ms"),
        (14_000, "both delay 500ms"),
        (20_000, "both delay 600ms"),
        (28_000, "both delay 600ms forward rate 3mbit"),
    ] {
        path.change_at(at(millis), link(words));
    }
    let moments = path.series(at(40_000), Span::from_millis(500));
    let fast = |moment: &&Sample| {
        (at(32_500)..at(38_000)).contains(&moment.at)
            && moment.sender.rate.expect("a rate") > BitRate::from_bps(3_300_000)
    };
    assert_eq!(moments.iter().filter(fast).count(), 0, "{:?}", moments.last());
}

/// XSTP-14.3.8, XSTP-14.3.9
#[test]
fn rate_recovers_immediately_after_a_deep_fade() {
    // A fade to 200 kbit/s, in which POLLs are lost in the full queue as well, and its end.
    let mut path = session_on("", &SessionConfig::gateway_auto(), 1 << 40);
    path.change_at(at(10_000), link("forward rate 200kbit limit 20"));
    path.change_at(at(40_000), link(""));
    let moments = path.series(at(60_000), Span::from_millis(500));
    let faded = moments.iter().rfind(|moment| moment.at < at(40_000));
    let faded = faded.and_then(|moment| moment.sender.rate).expect("a rate");
    assert!(faded < BitRate::from_kbps(300), "{faded:?}");
    let late = path.path.offered(Direction::Forward).between(at(52_000), at(60_000)).bytes;
    assert!(late * 8 / 8 > 9_000_000, "{late} octets in 8 s");
}
