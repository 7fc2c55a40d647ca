//! Recommendation ITU-R S.1711: enhancements of TCP over satellite networks.
//!
//! ```text
//!   equations     annex 1's equations
//!   enhancements  annex 2, table 3; varied: what its differing entries hang on
//!   bench         annex 3, section 2: gateways
//!   atm, shaping  annex 3, section 3: OC-3
//!   pages         annex 3, section 5: the web
//!   traces        figures that show one connection over time
//!   judge         what the document states, and what becomes of it
//! ```

mod atm;
mod bench;
mod enhancements;
mod equations;
mod judge;
mod live;
mod pages;
mod shaping;
#[cfg(test)]
mod tests;
mod traces;
mod varied;

use super::{Draw, Entry, Point, Setting};

/// Its annexes 1 to 3, but for annex 3's section 4.
pub(super) static ENTRY: Entry = Entry {
    id: "itu-s1711",
    title: "Performance enhancements of TCP over satellite networks (ITU-R S.1711)",
    source: "Recommendation ITU-R S.1711, 2005",
    about: "What limits TCP over satellites, and what splitting connections, larger windows, \
            shaping and pipelining gain, as measured by several laboratories.",
    replications: 30,
    live: Some(&live::LIVE),
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
/// The study of enhancements.
const MATRIX: &str = "matrix";
/// The study of shaping.
const SHAPING: &str = "shaping";
/// The study of single connections over time.
const TRACES: &str = "traces";

fn plan(setting: &Setting) -> Vec<Point> {
    let point = |(trial, most): (bench::Trial, u32)| {
        let simulate = move |draw: &Draw| Ok(trial.run(draw));
        Point::new(SENT, trial.key(), setting.at_most(most), simulate)
    };
    let mut points: Vec<Point> = bench::trials().into_iter().map(point).collect();
    points.extend(live::twins());
    for trial in atm::trials() {
        let simulate = move |draw: &Draw| Ok(trial.run(draw));
        // There is no chance in them.
        points.push(Point::new(ATM, trial.key(), 1, simulate));
    }
    for trial in shaping::trials() {
        points.push(Point::new(SHAPING, trial.key(), 1, move |draw: &Draw| Ok(trial.run(draw))));
    }
    for trace in traces::Trace::ALL {
        points.push(Point::new(TRACES, trace.key(), 1, move |draw: &Draw| Ok(trace.run(draw))));
    }
    for fetch in pages::all() {
        let often = fetch.often().min(pages::DRAWS * setting.replications / ENTRY.replications);
        let often = often.max(1);
        points.push(Point::new(PAGES, fetch.key(), often, move |draw: &Draw| fetch.run(draw)));
    }
    points.extend(matrix(setting));
    points
}

fn matrix(setting: &Setting) -> Vec<Point> {
    let mut points = Vec::new();
    for one in varied::all() {
        let (impairment, keys) = (one.impairment, [true, false].map(|side| one.key(side)));
        for (case, key) in [one.with, one.without].into_iter().zip(keys) {
            let often = setting.at_most(impairment.often());
            let simulate = move |draw: &Draw| case.run(impairment, draw);
            points.push(Point::new(MATRIX, key, often, simulate));
        }
    }
    for enhancements::Enhancement { name, with, without } in enhancements::all() {
        for (side, case) in [(true, with), (false, without)] {
            for impairment in enhancements::Impairment::ALL {
                let case = case.clone();
                let key = enhancements::key(name, side, impairment);
                let often = setting.at_most(impairment.often());
                let simulate = move |draw: &Draw| case.run(impairment, draw);
                points.push(Point::new(MATRIX, key, often, simulate));
            }
        }
    }
    points
}
