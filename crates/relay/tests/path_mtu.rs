//! Path MTU discovery of relays during transfers.

mod rig;

use relay::RelayConfig;
use rig::{App, Faults, Rig, Side};
use units::{BitRate, Span};

fn probing(down: BitRate, up: BitRate) -> Rig {
    let config = |name, send, receive| RelayConfig {
        probe_mtu: true,
        ..RelayConfig::new(name).with_rates(Some(send), Some(receive))
    };
    Rig::with(1, config("boat", up, down), config("hub", down, up))
}

fn sizes(rig: &mut Rig) -> (usize, usize) {
    let mut of = |side| rig.relay(side).expect("a relay").mtu();
    (of(Side::Terminal), of(Side::Hub))
}

fn mbps(rate: u64) -> BitRate {
    BitRate::from_mbps(rate)
}

/// RLY-5.2, RLY-5.3
#[test]
fn both_path_mtus_are_found_before_data_is_sent() {
    let mut rig = probing(mbps(10), mbps(1));
    rig.run(Span::from_millis(1_300), |rig| rig.connected.len() == 2);
    assert_eq!(sizes(&mut rig).0, 1200);
    rig.run(Span::from_secs(2), |_| false);
    assert_eq!(sizes(&mut rig), (1500, 1500));
    assert_eq!(rig.relay(Side::Hub).expect("hub").statistics().bad_frames, 0);
}

/// RLY-5.5, XSTP-14.7.3: a path MTU that decreases, increases and decreases again without a message
/// loses no data of a transfer, and delays it by seconds.
#[test]
fn path_mtu_changes_during_a_transfer_lose_no_data() {
    let mut rig = probing(mbps(10), mbps(1));
    rig.faults = Faults { loss: 0.01, ..Faults::default() };
    let stream = rig.open("source-40000000", App { end: true, ..App::default() });
    rig.run(Span::from_secs(5), |_| false);
    let mut worst = Span::ZERO;
    for takes in [1400, 1500, 1280, 700] {
        rig.path_mtu = takes;
        let (start, before) = (rig.now, rig.app(Side::Terminal, stream).read);
        assert!(rig.run(Span::from_secs(30), |rig| {
            rig.app(Side::Terminal, stream).read > before + 2_000_000
        }));
        worst = worst.max(rig.now.since(start));
        rig.run(Span::from_secs(3), |_| false);
    }
    assert!(worst < Span::from_secs(20), "{worst}");
    assert!(rig.run(Span::from_secs(120), |rig| rig.app(Side::Terminal, stream).ended));
    assert_eq!(rig.app(Side::Terminal, stream).read, 40_000_000);
    rig.run(Span::from_secs(5), |_| false);
    rig.assert_clean();
    let found = sizes(&mut rig).1;
    assert!((693..=700).contains(&found), "{found}");
    assert!(rig.disconnected.is_empty());
}

/// RLY-5.4
#[test]
fn loss_and_an_outage_do_not_reduce_the_path_mtu() {
    let mut rig = probing(mbps(10), mbps(1));
    rig.run(Span::from_secs(4), |_| false);
    rig.faults = Faults { loss: 0.2, ..Faults::default() };
    let stream = rig.open("source-20000000", App { end: true, ..App::default() });
    rig.run(Span::from_secs(5), |_| false);
    rig.dark_until = rig.now + Span::from_secs(30);
    let mut smallest = 1500;
    for _ in 0..120 {
        rig.run(Span::from_secs(1), |_| false);
        smallest = smallest.min(sizes(&mut rig).1);
    }
    assert_eq!(rig.app(Side::Terminal, stream).read, 20_000_000);
    assert_eq!(smallest, 1500);
}

/// RLY-5.8
#[test]
fn a_return_channel_of_one_kbit_carries_a_request() {
    let kbps = BitRate::from_kbps;
    let mut rig = probing(mbps(1), kbps(1));
    rig.path_mtu = 1400;
    rig.run(Span::from_secs(60), |_| false);
    let stream = rig.open("source-20000", App { end: true, ..App::writer(60) });
    let start = rig.now;
    assert!(rig.run(Span::from_secs(30), |rig| rig.app(Side::Terminal, stream).ended));
    assert!(rig.now.since(start) < Span::from_secs(5), "{}", rig.now.since(start));
    rig.run(Span::from_secs(600), |_| false);
    assert_eq!(sizes(&mut rig).1, 1400, "found, in its own time");
}
