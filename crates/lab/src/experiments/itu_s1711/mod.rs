//! Recommendation ITU-R S.1711: enhancements of TCP over satellite networks.
//!
//! ```text
//!   equations   annex 1's equations
//!   bench       annex 3, section 2: gateways
//!   atm         annex 3, section 3: OC-3
//!   pages       annex 3, section 5: the web
//!   judge       what the document states, and what becomes of it
//! ```

mod atm;
mod bench;
mod equations;
mod judge;
mod pages;
#[cfg(test)]
mod tests;

use super::{Draw, Entry, Point, Setting};

/// Its annexes 1 to 3, but for annex 3's section 4.
pub(super) static ENTRY: Entry = Entry {
    id: "itu-s1711",
    title: "Performance enhancements of TCP over satellite networks (ITU-R S.1711)",
    source: "Recommendation ITU-R S.1711, 2005",
    about: "What limits TCP over satellites, and what splitting connections, larger windows, \
            shaping and pipelining gain, as measured by several laboratories.",
    replications: 3,
    live: false,
    parameters: &[],
    plan,
    judge: judge::judge,
};

/// The study of what was sent.
const SENT: &str = "sent";
/// The study of OC-3.
const ATM: &str = "atm";
/// The study of web pages.
const PAGES: &str = "pages";

fn plan(setting: &Setting) -> Vec<Point> {
    let point = |(trial, most): (bench::Trial, u32)| {
        let simulate = move |draw: &Draw| Ok(trial.run(draw));
        Point::new(SENT, trial.key(), setting.at_most(most), simulate)
    };
    let mut points: Vec<Point> = bench::trials().into_iter().map(point).collect();
    for trial in atm::trials() {
        let simulate = move |draw: &Draw| Ok(trial.run(draw));
        // There is no chance in them.
        points.push(Point::new(ATM, trial.key(), 1, simulate));
    }
    for fetch in pages::all() {
        let often = if fetch.sizes == pages::Sizes::Even { 1 } else { setting.replications };
        points.push(Point::new(PAGES, fetch.key(), often, move |draw: &Draw| fetch.run(draw)));
    }
    points
}
