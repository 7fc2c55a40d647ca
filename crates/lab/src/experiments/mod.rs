//! Experiments: published results, reproduced and evaluated.
//!
//! ```text
//!   Entry ── plan ──▶ points × replications = jobs ──▶ store ── judge ──▶ cells, figures, text
//!                                 all cores, shards      resumed            JSON, CSV, HTML
//! ```
//!
//! An [`Entry`] declares the points of an experiment. A job is a pure function of the seed and the
//! replication number, so that jobs can run in any order, on several machines, and after an
//! interruption. Published values, criteria and tolerances are in data files (`publication`).

mod cell;
pub(crate) mod controllers;
pub(crate) mod elaasar_2003;
mod figure;
mod henderson_katz_1999;
mod itu_s1711;
mod itu_s1711_star;
mod judged;
mod marchese_2001;
mod mhatre_rosenberg;
mod network;
mod options;
mod outcome;
mod output;
mod plan;
mod publication;
mod request;
mod runner;
mod setting;
pub mod statistics;
mod store;
mod sweep;

pub use cell::{Cell, Compared, Evidence, Kind, Measured, Side, Verdict};
pub(crate) use cell::{TOLERANCE, is_near};
pub use figure::{Axis, Figure, Series};
pub use judged::Judged;
pub use options::{Options, Stop};
pub use outcome::{CrossTraffic, Outcome, Picture, Section, SetUp, Table};
pub use plan::{Draw, Entry, Live, Point, Results, Values};
pub use request::Request;
pub(crate) use runner::run_points;
pub use runner::{Ran, merge, report, run};
pub use setting::{Parameter, Setting};
pub use statistics::Summary;
pub(crate) use store::scenario_code;

/// All entries, in the order of the report.
pub static ALL: &[&Entry] = &[
    &elaasar_2003::ENTRY,
    &henderson_katz_1999::ENTRY,
    &marchese_2001::ENTRY,
    &mhatre_rosenberg::ENTRY,
    &itu_s1711::ENTRY,
    &itu_s1711_star::ENTRY,
    &controllers::ENTRY,
];

/// Returns the entries named in `names`; `all` selects every entry.
///
/// # Errors
/// If no entry has such a name.
pub fn choose(names: &[String]) -> Result<Vec<&'static Entry>, crate::LabError> {
    let known = || ALL.iter().map(|entry| entry.id).collect::<Vec<_>>().join(", ");
    let find = |name: &String| {
        ALL.iter().copied().find(|entry| entry.id == name).ok_or_else(|| {
            let known = known();
            crate::LabError::Request(format!("experiment: found {name:?}, expected {known} or all"))
        })
    };
    let all = |name: &&String| *name == "all";
    let found = names.iter().filter(|name| !all(name)).map(find).collect::<Result<Vec<_>, _>>()?;
    Ok(if names.iter().any(|name| all(&name)) { ALL.to_vec() } else { found })
}

#[cfg(test)]
mod tests;
