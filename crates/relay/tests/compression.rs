//! Compressed streams over a pair of relays; the rig compares every octet.

mod rig;

use relay::{Capabilities, Coder, CodingStatistics, RelayConfig};
use rig::{App, Faults, Rig, Side};
use units::{BitRate, Span};

fn rig(seed: u64, change: impl Fn(&mut RelayConfig)) -> Rig {
    let rate = Some(BitRate::from_mbps(1));
    let config = |name| {
        let mut config = RelayConfig::new(name).with_rates(rate, rate);
        config.compress = true;
        config.coder = Coder::default();
        config
    };
    let (mut terminal, hub) = (config("boat"), config("hub"));
    change(&mut terminal);
    let mut rig = Rig::with(seed, terminal, hub);
    assert!(rig.run(Span::from_secs(10), |rig| rig.connected.len() == 2), "no session");
    rig
}

fn statistics(rig: &mut Rig, side: Side) -> CodingStatistics {
    rig.relay(side).expect("a relay").statistics().coding
}

fn finish(rig: &mut Rig) {
    let over = |rig: &Rig| rig.all_over(Side::Terminal) && rig.all_over(Side::Hub);
    assert!(rig.run(Span::from_secs(300), over), "streams that do not end");
    rig.assert_clean();
}

/// RLY-13.2
#[test]
fn both_halves_are_compressed_over_a_link_with_faults() {
    for seed in 0..6 {
        let mut rig = rig(seed, |_| {});
        rig.faults = Faults { loss: 0.03, duplicate: 0.02, reorder: 0.05, corrupt: 0.01 };
        for size in [0, 1, 700, 40_000, 400_000] {
            rig.open("echo", App::writer(size));
        }
        finish(&mut rig);
        for side in [Side::Terminal, Side::Hub] {
            let counted = statistics(&mut rig, side);
            assert_eq!((counted.compressed, counted.damaged), (4, 0), "{counted:?}");
            assert_eq!(counted.plain_sent, 440_701, "{counted:?}");
            assert_eq!(counted.plain_received, 440_701, "{counted:?}");
            assert!(counted.coded_sent < counted.plain_sent / 2, "{counted:?}");
        }
    }
}

/// RLY-13.1
#[test]
fn nothing_is_compressed_for_a_peer_without_the_capability() {
    let old = |config: &mut RelayConfig| {
        config.capabilities = Capabilities::ALL.without(Capabilities::COMPRESSION);
    };
    let mut rig = rig(1, old);
    rig.open("echo", App::writer(100_000));
    finish(&mut rig);
    for side in [Side::Terminal, Side::Hub] {
        assert_eq!(statistics(&mut rig, side), CodingStatistics::default());
    }
}

/// RLY-13.6
#[test]
fn streams_beyond_the_bound_are_not_compressed() {
    let mut rig = rig(2, |_| {});
    for _ in 0..80 {
        rig.open("echo", App::writer(3_000));
    }
    finish(&mut rig);
    let counted = statistics(&mut rig, Side::Terminal);
    assert_eq!((counted.compressed, counted.refused), (64, 16), "{counted:?}");
    rig.open("echo", App::writer(3_000));
    finish(&mut rig);
    assert_eq!(statistics(&mut rig, Side::Terminal).compressed, 65);
}
