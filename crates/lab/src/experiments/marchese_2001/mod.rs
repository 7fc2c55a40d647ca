//! Marchese 2001: TCP's initial window and buffers over a satellite.
//!
//! ```text
//!   bench   the two hosts, what is between them, and what the paper leaves open about it
//!   judge   what the paper states, and what becomes of it
//!   live    the same with the kernel's TCP over the emulator
//! ```

mod bench;
mod judge;
mod live;
#[cfg(test)]
mod tests;

use super::{Draw, Entry, Point, Setting};
use bench::{Bench, Test};

/// Its sections II to V.
pub(super) static ENTRY: Entry = Entry {
    id: "marchese-2001",
    title: "TCP modifications and tuning over satellite links",
    source: "M. Marchese: Study and Performance Evaluation of TCP Modifications and Tuning over \
             Satellite Links, 2001",
    about: "A file over 2,048 kbit/s and a geostationary satellite, by Linux's TCP of 1999, with \
            larger initial windows and larger buffers.",
    replications: 5,
    live: Some(&live::LIVE),
    parameters: &[],
    plan,
    judge: judge::judge,
};

/// The study of the paper's own tests.
const TESTS: &str = "tests";
/// The study of what its section V leaves for later.
const LATER: &str = "later";

fn plan(setting: &Setting) -> Vec<Point> {
    let mut points = Vec::new();
    for bench in std::iter::once(bench::TAKEN).chain(bench::OTHERS) {
        for test in bench::tests() {
            // There is no chance in them.
            let simulate = move |draw: &Draw| Ok(bench.run(test, draw));
            points.push(Point::new(TESTS, bench.key(test), 1, simulate));
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

fn later(recovery: &str, flows: u32) -> String {
    format!("{recovery}/{flows}")
}

/// The name of a point with the bench that is taken.
fn taken(test: Test) -> String {
    bench::TAKEN.key(test)
}
