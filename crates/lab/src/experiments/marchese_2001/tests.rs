use super::bench::{MEDIUM, OTHERS, SMALL, TAKEN, test};
use crate::experiments::Draw;

#[test]
fn a_window_over_a_round_trip_is_the_rate() {
    let draw = Draw { seed: 1, run: 0 };
    // 32 KB hold 22 segments of 1,448 bytes: 31,856 bytes in each 0.506 s; and the start.
    let seconds = TAKEN.run(test(MEDIUM, 6, 64), &draw).get("seconds");
    let full = MEDIUM as f64 / 31_856.0 * 0.506;
    assert!((full..full + 3.0).contains(&seconds), "{seconds} for {full}");
}

#[test]
fn larger_initial_windows_shorten_short_files() {
    let draw = Draw { seed: 1, run: 0 };
    let seconds = [1, 4, 10].map(|window| TAKEN.run(test(SMALL, window, 64), &draw).get("seconds"));
    assert!(seconds[0] > seconds[1] + 0.5 && seconds[1] > seconds[2] + 0.3, "{seconds:?}");
}

#[test]
fn benches_have_names_of_their_own() {
    let mut names: Vec<&str> = OTHERS.iter().map(|bench| bench.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), OTHERS.len());
}
