//! The paper of STP: Henderson and Katz 1999.
//!
//! ```text
//!   latency    table I's reckoning
//!   bench      files over the bench of figure 2: figures 3, 4, 7 and 9
//!   web        requests and replies: table I's measured column, table II
//!   networks   table III
//!   live       figure 3's file with a kernel and gateways of today
//!   judge      what the paper states, and what becomes of it
//! ```

mod bench;
mod judge;
mod latency;
mod live;
mod networks;
#[cfg(test)]
mod tests;
mod web;

use super::{Draw, Entry, Point, Setting};

/// Its sections V to VII.
pub(super) static ENTRY: Entry = Entry {
    id: "henderson-katz-1999",
    title: "Transport protocols for Internet-compatible satellite networks (STP)",
    source: "T. R. Henderson, R. H. Katz: Transport Protocols for Internet-Compatible Satellite \
             Networks, IEEE Journal on Selected Areas in Communications 17(2), 1999",
    about: "How well TCP does over GEO and LEO satellites, for files and for the web, alone and \
            beside others; what splitting the connection gains, and what STP does.",
    replications: 20,
    live: Some(&live::LIVE),
    parameters: &[],
    plan,
    judge: judge::judge,
};

/// The study of table I's reckoning.
const ANALYSIS: &str = "analysis";

/// The study of files over the bench.
const FILES: &str = "files";
/// The study of requests and replies.
const WEB: &str = "web";
/// The study of commercial networks.
const NETWORKS: &str = "networks";

fn plan(setting: &Setting) -> Vec<Point> {
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
    for web in web::all() {
        let simulate = move |draw: &Draw| web.run(draw);
        points.push(Point::new(WEB, web.key(), setting.replications, simulate));
    }
    for channel in networks::all() {
        for (name, carriage) in networks::WAYS {
            let simulate = move |draw: &Draw| Ok(channel.run(carriage, draw));
            points.push(Point::new(NETWORKS, channel.key(name), setting.replications, simulate));
        }
    }
    points
}
