use super::bench::{FLOWS, MEDIUM, SECONDS, SMALL, TAKEN, TODAY, test, tests};
use super::{LATER, TESTS, later, live::LIVE, taken};
use crate::experiments::{Draw, Measured, Options, Results, Values};

#[test]
fn throughput_is_the_window_per_round_trip() {
    let draw = Draw { seed: 1, run: 0 };
    // 32 KB hold 22 segments of 1,448 bytes: 31,856 bytes in each 0.506 s; and the start.
    let file = test(MEDIUM, 6, 64);
    let seconds = TAKEN.run(file, &draw).get("seconds");
    let full = TAKEN.bytes(file) as f64 / 31_856.0 * 0.506;
    assert!((full..full + 3.0).contains(&seconds), "{seconds} for {full}");
}

#[test]
fn larger_initial_windows_shorten_small_files() {
    let draw = Draw { seed: 1, run: 0 };
    let seconds = [1, 4, 10].map(|window| TAKEN.run(test(SMALL, window, 64), &draw).get("seconds"));
    assert!(seconds[0] > seconds[1] + 0.5 && seconds[1] > seconds[2] + 0.3, "{seconds:?}");
}

#[test]
fn delayed_acknowledgements_grow_windows_by_half() {
    let draw = Draw { seed: 1, run: 0 };
    // Table III in round trips: eight, seven and five, including the serialization time.
    let trips = [1, 2, 6].map(|window| {
        (TAKEN.run(test(SMALL, window, 64), &draw).get("seconds") / 0.506).floor() as u32
    });
    assert_eq!(trips, [8, 7, 5]);
}

#[test]
fn live_results_are_compared_with_the_model_of_the_same_kernel() {
    let values = |seconds: f64| {
        Values::new()
            .with("seconds", seconds)
            .with_series("kbytes_per_s", vec![10.0 * seconds; SECONDS.len()])
            .with("overflowed", 0.0)
            .with("kbps", 1_000.0 * seconds)
    };
    let [mut simulated, mut live] = [Results::default(), Results::partial()];
    for test in tests() {
        // Live is 5 % faster with small files, and 20 % with others.
        let factor = if test.bytes == SMALL { 0.95 } else { 0.8 };
        simulated.insert(TESTS, &TODAY.key(test), vec![values(1.0)]);
        live.insert(TESTS, &taken(test), vec![values(factor)]);
    }
    for flows in FLOWS {
        let key = later(TODAY.name, flows);
        simulated.insert(LATER, &key, vec![values(1.0)]);
        live.insert(LATER, &key, vec![values(1.0)]);
    }
    let setting = Options::new("out").setting(&super::ENTRY).unwrap();
    let beside = (LIVE.judge)(&setting, &simulated, &live);
    let agrees = |name: &str| {
        let found = beside.cells.iter().find(|(_, live)| live.name == name);
        let (simulated, live) = found.unwrap_or_else(|| panic!("no cell {name}"));
        Measured::new(simulated, live).agrees
    };
    assert!(agrees("table III: window 1, 64 kbytes: time"));
    assert!(!agrees("table IV: window 1, 64 kbytes: time"));
    assert!(!agrees("after 5 s, window 1, 64 kbytes"));
    assert_eq!(beside.sections.len(), 1);
}
