//! Two paths under virtual time, with faults of every kind: new streams use a working path, and
//! their data arrives.

mod rig;

use proptest::prelude::*;
use relay::health::{HealthCriteria, HealthState, PathSelector};
use rig::{App, Faults, Rig, Side};
use units::{BitRate, Span};

const STEP: Span = Span::from_millis(100);
/// Time after which an outage is detected: a POLL each second, and the timeout of its STAT.
const NOTICED: Span = Span::from_secs(8);

/// Two rigs side by side, on one clock.
struct Pair {
    rigs: [Rig; 2],
    selector: PathSelector,
    dark_since: [Option<units::Instant>; 2],
}

impl Pair {
    fn new(seed: u64, faults: Faults) -> Self {
        let config = |name: &str| {
            let rate = Some(BitRate::from_mbps(4));
            let mut config = relay::RelayConfig::new(name).with_rates(rate, rate);
            config.keep_alive = Span::from_secs(1);
            config.no_response = Span::from_secs(600);
            config
        };
        let rigs = [0, 1].map(|number| {
            let mut rig = Rig::with(seed + number, config("boat"), config("hub"));
            rig.faults = faults;
            rig
        });
        let mut selector = PathSelector::default();
        for priority in [1, 2] {
            selector.add(priority, 1, HealthCriteria::default());
        }
        Self { rigs, selector, dark_since: [None; 2] }
    }

    fn step(&mut self) {
        for (number, rig) in self.rigs.iter_mut().enumerate() {
            rig.run(STEP, |_| false);
            let now = rig.now;
            self.dark_since[number] =
                (rig.dark_until > now).then(|| self.dark_since[number].unwrap_or(now));
            self.selector.update(now, number, rig.terminal.path(0).expect("one").sample());
        }
    }

    /// Duration of a path's outage so far.
    fn dark(&self, number: usize) -> Span {
        self.dark_since[number].map_or(Span::ZERO, |since| self.rigs[number].now.since(since))
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn new_streams_use_a_working_path_and_all_data_arrives(
        seed: u64,
        loss in 0.0f64..0.1,
        duplicate in 0.0f64..0.05,
        reorder in 0.0f64..0.1,
        corrupt in 0.0f64..0.02,
        outages in prop::collection::vec((0usize..2, 1u64..40_000, 0u64..30_000), 1..6),
    ) {
        let mut pair = Pair::new(seed % (1 << 40), Faults { loss, duplicate, reorder, corrupt });
        let mut opened = Vec::new();
        for _ in 0..50 {
            pair.step();
        }
        for (number, length, pause) in outages {
            let rig = &mut pair.rigs[number];
            rig.dark_until = rig.now + Span::from_millis(length);
            for step in 0..(length + pause) / 100 {
                pair.step();
                if step % 10 != 9 {
                    continue;
                }
                // Only an outage that is not detected yet may be chosen while another path works.
                let chosen = pair.selector.choose();
                let lit = |number: usize| pair.selector.health(number).state() == HealthState::Up;
                if let Some(chosen) = chosen {
                    prop_assert!(pair.dark(chosen) < NOTICED, "{chosen} is dark");
                    prop_assert!(lit(chosen) || !lit(1 - chosen));
                }
                let by = chosen.or(pair.selector.first()).expect("two selector");
                opened.push((by, pair.rigs[by].open("echo", App::writer(3_000))));
            }
        }
        for rig in &mut pair.rigs {
            rig.faults = Faults::default();
        }
        for _ in 0..600 {
            pair.step();
        }
        // All paths work again, so the first one is chosen.
        prop_assert_eq!(pair.selector.choose(), Some(0));
        for (by, stream) in opened {
            let app = pair.rigs[by].app(Side::Terminal, stream);
            prop_assert!(app.ended && app.read == 3_000, "{stream} by {by}: {} bytes", app.read);
        }
        prop_assert!(pair.rigs.iter().all(|rig| rig.disconnected.is_empty()));
    }
}
