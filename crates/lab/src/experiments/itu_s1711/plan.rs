//! The points to run.

use super::super::{Draw, Point, Setting};
use super::{atm, bench, enhancements, live, pages, shaping, traces, varied};

/// Default number of replications per point.
pub(super) const REPLICATIONS: u32 = 30;
/// The study of transfers with and without gateways.
pub(super) const SENT: &str = "sent";
/// The study of OC-3.
pub(super) const ATM: &str = "atm";
/// The study of web pages.
pub(super) const PAGES: &str = "pages";
/// The study of enhancements.
pub(super) const MATRIX: &str = "matrix";
/// The study of shaping.
pub(super) const SHAPING: &str = "shaping";
/// The study of single connections over time.
pub(super) const TRACES: &str = "traces";

pub(super) fn plan(setting: &Setting) -> Vec<Point> {
    let point = |(trial, most): (bench::Trial, u32)| {
        let simulate = move |draw: &Draw| Ok(trial.run(draw));
        Point::new(SENT, trial.key(), setting.at_most(most), simulate)
    };
    let mut points: Vec<Point> = bench::trials().into_iter().map(point).collect();
    points.extend(live::twins());
    for trial in atm::trials() {
        let simulate = move |draw: &Draw| Ok(trial.run(draw));
        // They are deterministic.
        points.push(Point::new(ATM, trial.key(), 1, simulate));
    }
    for trial in shaping::trials() {
        points.push(Point::new(SHAPING, trial.key(), 1, move |draw: &Draw| Ok(trial.run(draw))));
    }
    for trace in traces::Trace::ALL {
        points.push(Point::new(TRACES, trace.key(), 1, move |draw: &Draw| Ok(trace.run(draw))));
    }
    for fetch in pages::all() {
        let often = fetch.often().min(pages::DRAWS * setting.replications / REPLICATIONS);
        let often = often.max(1);
        points.push(Point::new(PAGES, fetch.key(), often, move |draw: &Draw| fetch.run(draw)));
    }
    points.extend(matrix(setting));
    points
}

pub(super) fn matrix(setting: &Setting) -> Vec<Point> {
    let mut points = Vec::new();
    let often = setting.at_most(enhancements::OFTEN);
    for one in varied::all() {
        let (impairment, keys) = (one.impairment, [true, false].map(|side| one.key(side)));
        for (case, key) in [one.with, one.without].into_iter().zip(keys) {
            let simulate = move |draw: &Draw| case.run(impairment, draw);
            points.push(Point::new(MATRIX, key, often, simulate));
        }
    }
    for enhancements::Enhancement { name, with, without } in enhancements::all() {
        for (side, case) in [(true, with), (false, without)] {
            for impairment in enhancements::Impairment::ALL {
                let case = case.clone();
                let key = enhancements::key(name, side, impairment);
                let simulate = move |draw: &Draw| case.run(impairment, draw);
                points.push(Point::new(MATRIX, key, often, simulate));
            }
        }
    }
    points
}
