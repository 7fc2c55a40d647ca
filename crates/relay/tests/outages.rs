//! Outages longer than all other timers.

mod rig;

use relay::{DisconnectReason, Keys, Known, PresharedKey, PrivateKey, RelayConfig, Security};
use rig::{App, Rig, Side};
use units::{BitRate, RngStream, Span};

/// Returns a relay of each kind with the other's key and this outage timeout.
fn acquainted(patience: Span) -> [RelayConfig; 2] {
    let mut rng = RngStream::new(7, 0, "keys");
    let private = [(); 2].map(|()| PrivateKey::generate(&mut rng));
    [("boat", 0, 1), ("hub", 1, 0)].map(|(name, own, other): (&str, usize, usize)| {
        let known = Known {
            name: ["boat", "hub"][other].into(),
            public: private[other].public(),
            preshared: PresharedKey::NONE,
        };
        let keys = Keys::new(private[own].clone(), vec![known]).expect("one key that is known");
        let rate = Some(BitRate::from_mbps(1));
        let mut config = RelayConfig::new(name).with_rates(rate, rate);
        config.security = Security::Noise(keys.into());
        config.no_response = patience;
        config
    })
}

#[test]
fn an_outage_longer_than_key_lifetimes_resets_no_stream() {
    let [terminal, hub] = acquainted(Span::from_secs(3_600));
    let mut rig = Rig::with(1, terminal, hub);
    let stream = rig.open("source-1000000", App { end: true, ..App::default() });
    assert!(rig.run(Span::from_secs(5), |rig| rig.app(Side::Terminal, stream).read > 0));
    rig.dark_until = rig.now + Span::from_secs(1_200);
    rig.run(Span::from_secs(1_200), |_| false);
    // A Hello within five seconds, two round trips, and the remaining data.
    assert!(rig.run(Span::from_secs(20), |rig| rig.app(Side::Terminal, stream).ended));
    assert_eq!(rig.app(Side::Terminal, stream).read, 1_000_000);
    assert!(rig.disconnected.is_empty());
}

#[test]
fn an_outage_beyond_the_limit_resets_streams_at_both_ends() {
    let [terminal, hub] = acquainted(Span::from_secs(30));
    let mut rig = Rig::with(1, terminal, hub);
    let stream = rig.open("source-10000000", App { end: true, ..App::default() });
    assert!(rig.run(Span::from_secs(5), |rig| rig.app(Side::Terminal, stream).read > 0));
    rig.dark_until = rig.now + Span::from_secs(40);
    rig.run(Span::from_secs(60), |_| false);
    let lost = |side| (side, DisconnectReason::NoResponse);
    rig.disconnected.sort_by_key(|(side, _)| *side == Side::Hub);
    assert_eq!(rig.disconnected, [lost(Side::Terminal), lost(Side::Hub)]);
    assert!(
        !rig.apps.contains_key(&(Side::Terminal, stream)) || !rig.app(Side::Terminal, stream).ended
    );
    // New streams work afterwards.
    let stream = rig.open("echo", App::writer(1_000));
    assert!(rig.run(Span::from_secs(10), |rig| rig.app(Side::Terminal, stream).ended));
}

/// RLY-3.2, XSTP-7.2.2
#[test]
fn a_short_exchange_does_not_wait_for_the_retransmissions_of_bulk_data() {
    let [terminal, hub] = acquainted(Span::from_secs(30));
    let mut rig = Rig::with(1, terminal, hub);
    let bulk = rig.open("source-1000000", App { end: true, ..App::default() });
    assert!(rig.run(Span::from_secs(10), |rig| rig.app(Side::Terminal, bulk).read > 300_000));
    rig.dark_until = rig.now + Span::from_secs(3);
    rig.run(Span::from_secs(3), |_| false);
    let before = rig.hub.totals().retransmitted;
    let short = rig.open("echo", App::writer(100));
    assert!(rig.run(Span::from_secs(10), |rig| rig.app(Side::Terminal, short).ended));
    let by_then = rig.hub.totals().retransmitted - before;
    assert!(rig.run(Span::from_secs(30), |rig| rig.app(Side::Terminal, bulk).ended));
    let all = rig.hub.totals().retransmitted - before;
    assert!(by_then > 0 && by_then < all * 3 / 4, "{by_then} of {all} retransmissions before");
}

#[test]
fn a_session_whose_bgn_is_lost_in_an_outage_waits_as_long() {
    let mut rig = Rig::new(1, BitRate::from_mbps(10), BitRate::from_mbps(1));
    assert!(rig.run(Span::from_secs(5), |rig| rig.connected.len() == 2), "no session");
    rig.restart_terminal();
    // The outage begins after the Welcome: the BGN is lost.
    rig.run(Span::from_millis(601), |_| false);
    rig.dark_until = rig.now + Span::from_secs(60);
    let stream = rig.open("echo", App::writer(1_000));
    assert!(rig.run(Span::from_secs(90), |rig| rig.app(Side::Terminal, stream).ended));
    assert!(rig.disconnected.iter().all(|(side, _)| *side == Side::Hub), "{:?}", rig.disconnected);
}

#[test]
fn the_keep_alive_interval_can_change() {
    let mut rig = Rig::new(1, BitRate::from_mbps(10), BitRate::from_mbps(1));
    assert!(rig.run(Span::from_secs(5), |rig| rig.connected.len() == 2), "no session");
    rig.run(Span::from_secs(20), |_| false);
    let tried = |rig: &mut Rig| {
        let before = rig.terminal.totals().polls;
        rig.run(Span::from_secs(20), |_| false);
        rig.terminal.totals().polls - before
    };
    let seldom = tried(&mut rig);
    assert!(seldom <= 3, "every 10 s, not {seldom} times in 20");
    rig.terminal.set_keep_alive(Span::from_secs(1));
    let often = tried(&mut rig);
    assert!((10..=20).contains(&often), "a second after each answer, not {often} times in 20");
    // Also in a later session.
    rig.restart_hub();
    assert!(rig.run(Span::from_secs(30), |rig| rig.connected.len() >= 3), "no session");
    assert!((10..=30).contains(&tried(&mut rig)));
}
