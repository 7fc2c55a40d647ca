//! Random combinations of streams and faults: every octet arrives once and in order, and no state
//! remains.

mod rig;

use proptest::prelude::*;
use relay::{RelayConfig, ResetReason};
use rig::{App, Faults, Rig, Side};
use units::{BitRate, Span};

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn every_byte_arrives_whatever_the_pipe_does(
        seed: u64,
        delay in prop_oneof![Just(50u64), 50u64..20_000, Just(300_000)],
        loss in 0.0f64..0.2,
        duplicate in 0.0f64..0.1,
        reorder in 0.0f64..0.2,
        corrupt in 0.0f64..0.05,
        streams in prop::collection::vec((0u8..5, 0u64..120_000, 0u64..3_000), 1..30),
        mtus in prop::collection::vec(576usize..1500, 0..3),
    ) {
        let (down, up) = (Some(BitRate::from_mbps(5)), Some(BitRate::from_mbps(2)));
        let repair_percent = (seed & 1 == 1).then_some(50);
        let [terminal, hub] = [("boat", up, down), ("hub", down, up)].map(|(name, send, receive)| {
            RelayConfig { repair_percent, ..RelayConfig::new(name).with_rates(send, receive) }
        });
        let mut rig = Rig::with(seed, terminal, hub);
        rig.delay = Span::from_micros(delay);
        rig.faults = Faults { loss, duplicate, reorder, corrupt };
        let mut opened = Vec::new();
        for (kind, bytes, wait) in streams {
            let server = match kind {
                0 => "sink".into(),
                1 => format!("source-{bytes}"),
                2 => "refuse".into(),
                _ => "echo".to_string(),
            };
            let app = if kind == 1 { App { end: true, ..App::default() } } else { App::writer(bytes) };
            opened.push((kind, bytes, rig.open(&server, app)));
            rig.run(Span::from_millis(wait), |_| false);
        }
        for mtu in mtus {
            let now = rig.now;
            for side in [Side::Terminal, Side::Hub] {
                if let Some(relay) = rig.relay(side) {
                    relay.set_mtu(now, mtu);
                }
            }
            rig.run(Span::from_millis(700), |_| false);
        }
        let reset = (seed % 3 == 0).then(|| opened.remove(0));
        if let Some((_, _, stream)) = reset {
            let _ = rig.terminal.reset(stream, ResetReason::Aborted);
            rig.apps.remove(&(Side::Terminal, stream));
        }
        prop_assert!(rig.run(Span::from_secs(120), |rig| rig.all_over(Side::Terminal)), "stalled");
        for (kind, bytes, stream) in opened {
            let app = rig.app(Side::Terminal, stream);
            prop_assert_eq!(app.refused.is_some(), kind == 2);
            prop_assert_eq!(app.read, if kind == 0 || kind == 2 { 0 } else { bytes });
            if kind != 2 {
                prop_assert!(app.released && app.ended && app.reset.is_none());
            }
        }
        rig.faults = Faults::default();
        prop_assert!(rig.run(Span::from_secs(30), |rig| rig.all_over(Side::Hub)), "hub stalled");
        rig.run(Span::from_secs(10), |_| false);
        rig.assert_clean();
        for side in [Side::Terminal, Side::Hub] {
            let statistics = rig.relay(side).expect("relay").statistics();
            prop_assert_eq!(statistics.bad_frames, 0);
            prop_assert_eq!(statistics.credit_violations, 0);
        }
        prop_assert!(rig.disconnected.is_empty());
    }
}
