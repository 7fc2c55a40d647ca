//! The points to run.

use super::super::{Draw, Point, Setting};
use super::{bench, latency, live, networks, pages, simulators, web};

/// The study of table I's analysis.
pub(super) const ANALYSIS: &str = "analysis";

/// The study of file transfers.
pub(super) const FILES: &str = "files";
/// The study of requests and replies.
pub(super) const WEB: &str = "web";
/// The study of whole pages.
pub(super) const PAGES: &str = "pages";
/// The study of commercial networks.
pub(super) const NETWORKS: &str = "networks";

/// The study of the networks' unstated parameters, combined.
pub(super) const CHANNELS: &str = "channels";

pub(super) fn plan(setting: &Setting) -> Vec<Point> {
    let models = std::iter::once(latency::TAKEN).chain(latency::OTHERS);
    let reckon = |model: latency::Model| {
        Point::new(ANALYSIS, model.name, 1, move |_: &Draw| Ok(model.table()))
    };
    let mut points: Vec<Point> = models.map(reckon).collect();
    for (trial, most) in bench::trials() {
        let simulate = move |draw: &Draw| Ok(trial.run(draw));
        points.push(Point::new(FILES, trial.key(), setting.at_most(most), simulate));
    }
    points.extend(live::twins());
    points.extend(simulators::plan(setting));
    for web in web::all() {
        let simulate = move |draw: &Draw| web.run(draw);
        points.push(Point::new(WEB, web.key(), setting.replications, simulate));
    }
    for page in pages::all() {
        let simulate = move |draw: &Draw| page.run(draw);
        let often = if page.is_judged() { 6 } else { 1 };
        points.push(Point::new(PAGES, page.key(), setting.at_most(10) * often, simulate));
    }
    for channel in networks::all() {
        for (name, carriage) in networks::WAYS {
            let simulate = move |draw: &Draw| Ok(channel.run(carriage, draw));
            points.push(Point::new(NETWORKS, channel.key(name), setting.replications, simulate));
        }
    }
    for channel in networks::grid_of_direcpc().into_iter().chain(networks::grid_of_ricochet()) {
        for (name, carriage) in networks::WAYS {
            let simulate = move |draw: &Draw| Ok(channel.run(carriage, draw));
            points.push(Point::new(CHANNELS, channel.key(name), setting.at_most(10), simulate));
        }
    }
    points
}
