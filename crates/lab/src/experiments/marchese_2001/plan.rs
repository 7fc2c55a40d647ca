//! The points to run.

use super::super::{Draw, Point, Setting};
use super::bench;
use super::bench::{Bench, Test};

/// The study of the paper's own tests.
pub(super) const TESTS: &str = "tests";
/// The study that the paper's section V proposes.
pub(super) const LATER: &str = "later";

pub(super) fn plan(setting: &Setting) -> Vec<Point> {
    let mut points = Vec::new();
    for bench in std::iter::once(bench::TAKEN).chain(bench::OTHERS) {
        for test in bench::tests() {
            // They are deterministic.
            let simulate = move |draw: &Draw| Ok(bench.run(test, draw));
            points.push(Point::new(TESTS, bench.key(test), 1, simulate));
        }
    }
    for bench in bench::grid() {
        for test in bench::tests() {
            let key = combined(&bench.combination().join(", "), test);
            points.push(Point::new(TESTS, key, 1, move |draw: &Draw| Ok(bench.run(test, draw))));
        }
    }
    for flows in bench::FLOWS {
        let bench = Bench { flows, ..bench::TODAY };
        let simulate = move |draw: &Draw| Ok(bench.several(draw));
        points.push(Point::new(LATER, later(bench.name, flows), setting.replications, simulate));
    }
    for recovery in bench::RECOVERIES {
        for flows in bench::FLOWS {
            let bench = Bench { flows, recovery, ..bench::TAKEN };
            let simulate = move |draw: &Draw| Ok(bench.several(draw));
            let key = later(recovery.0, flows);
            points.push(Point::new(LATER, key, setting.replications, simulate));
        }
    }
    points
}

pub(super) fn later(recovery: &str, flows: u32) -> String {
    format!("{recovery}/{flows}")
}

/// Returns the key of a point under a combination of the grid.
pub(super) fn combined(combination: &str, test: Test) -> String {
    format!("{combination}/{}/{}/{}", test.bytes, test.window, test.buffer)
}

/// Returns the key of a point with the parameters used here.
pub(super) fn taken(test: Test) -> String {
    bench::TAKEN.key(test)
}
