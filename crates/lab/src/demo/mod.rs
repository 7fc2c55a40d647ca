//! The demo: four transports over the same satellite link, side by side.
//!
//! Each transport has its own network and link, and all run in parallel without affecting each
//! other. The demo takes as long as the slowest, or [`TIME_LIMIT`].

mod loopback;
mod measure;
mod report;
mod table;
mod view;

pub use report::{Checksum, DemoRun, Interval, Report};
pub use table::table;

use crate::bench::bound;
use crate::live::Way;
use crate::plot::{self, DownloadPlot, Series};
use crate::threads::joined;
use crate::{LabError, live};
use measure::Watched;
use satlink::{LinkConfig, profiles, words};
use std::path::{Path, PathBuf};
use std::thread;
use testbed::TestbedError;
use units::Span;
use view::View;

/// Time limit of a download from its first octet.
pub const TIME_LIMIT: Span = Span::from_secs(70);
/// Duration of a download at the link's bound, from which the default file size is computed.
const LENGTH: Span = Span::from_secs(40);

/// Options of the demo.
#[derive(Clone, Debug)]
pub struct DemoConfig {
    /// Name of a profile, or of a file with a link description in netem syntax.
    pub link: String,
    /// File size in octets; `None` for a download of 40 s at the link's bound.
    pub size: Option<u64>,
    /// Seed of the links' random processes.
    pub seed: u64,
}

/// Returns the link of a profile or of a file.
///
/// # Errors
/// If there is neither, or the file is invalid.
pub fn read_link(name: &str) -> Result<LinkConfig, LabError> {
    if let Some(link) = profiles::by_name(name) {
        return Ok(link);
    }
    let text = std::fs::read_to_string(name).map_err(|error| {
        let known: Vec<&str> = profiles::ALL.iter().map(|profile| profile.name).collect();
        LabError::Request(format!(
            "link: found {name:?}, expected a file ({error}) or one of {}",
            known.join(", ")
        ))
    })?;
    words::parse_file(&text).map_err(|error| LabError::Request(format!("{name}: {error}")))
}

/// Parameters of the demo, derived from the link.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) link: LinkConfig,
    pub(crate) size: u64,
    /// Maximum goodput in bits/s.
    pub(crate) bound: f64,
    pub(crate) seed: u64,
}

impl Plan {
    fn new(config: &DemoConfig) -> Result<Self, LabError> {
        let link = read_link(&config.link)?;
        // The gateways need rates, and so does the comparison.
        let rate = live::GatewayRates::of(&link)?.forward;
        let forward = &link.forward;
        let bound = bound(rate, forward.loss, forward.bit_error_ratio);
        let size = config.size.unwrap_or((bound / 8.0 * LENGTH.as_secs_f64()) as u64);
        if size == 0 {
            return Err(LabError::Request("size: found 0, expected at least one byte".to_owned()));
        }
        Ok(Self { link, size, bound, seed: config.seed })
    }
}

/// Whether network namespaces can be created.
#[derive(Debug)]
pub enum Rights {
    /// [`testbed::permission::acquire`] has obtained the permission.
    Granted,
    /// It has not, for this reason.
    Refused(TestbedError),
    /// The user has disabled them.
    NotWanted,
}

/// Runs the demo. Progress is written to standard error, as bars or lines.
///
/// # Errors
/// If the link is invalid, or nothing could be measured.
pub fn run(config: &DemoConfig, rights: Rights) -> Result<Report, LabError> {
    let plan = Plan::new(config)?;
    match rights {
        Rights::Granted => {}
        Rights::Refused(refusal) => {
            eprintln!("{refusal}");
            return loopback::run(&plan, config);
        }
        Rights::NotWanted => return loopback::run(&plan, config),
    }
    let watched: Vec<Watched> = Way::ALL.into_iter().map(Watched::new).collect();
    let view = View::new(&watched, &plan);
    let results: Vec<Result<DemoRun, LabError>> = thread::scope(|scope| {
        let tasks: Vec<_> =
            watched.iter().map(|watched| scope.spawn(|| measure::way(&plan, watched))).collect();
        view.show_until(|| tasks.iter().all(|task| task.is_finished()));
        tasks.into_iter().map(|task| joined(task.join())).collect()
    });
    view.close();
    let mut runs = Vec::new();
    for (way, result) in Way::ALL.into_iter().zip(results) {
        runs.push(result.unwrap_or_else(|error| DemoRun::failed(way, &error)));
    }
    Ok(Report::new(config, &plan, runs))
}

/// Returns the points of the plot: seconds since the request, and megabytes received until then.
fn received(intervals: &[Interval]) -> Vec<(f64, f64)> {
    let mut bytes = 0;
    let points = intervals.iter().map(|at| {
        bytes += at.bytes;
        (at.end, bytes as f64 / 1e6)
    });
    std::iter::once((0.0, 0.0)).chain(points).collect()
}

/// Draws the plot of the report; returns the paths of SVG and PNG.
///
/// # Errors
/// If nothing was measured, or a file cannot be written.
pub fn draw(report: &Report, at: &Path) -> Result<(PathBuf, PathBuf), LabError> {
    let series = report
        .runs
        .iter()
        .filter(|run| !run.intervals.is_empty())
        .map(|run| Series { name: run.name.to_string(), points: received(&run.intervals) })
        .collect();
    let plot = DownloadPlot {
        title: format!(
            "Download of {:.1} MB over {}",
            report.start.size_bytes as f64 / 1e6,
            report.start.link
        ),
        series,
        bound_mbps: Some(report.start.bound_bits_per_second / 1e6),
    };
    let with = |ending: &str| {
        let mut path = at.as_os_str().to_owned();
        path.push(ending);
        PathBuf::from(path)
    };
    let (svg, png) = (with(".svg"), with(".png"));
    plot::download(&plot, &svg, &png).map_err(|error| LabError::Plot(error.to_string()))?;
    Ok((svg, png))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plot_shows_the_octets_received_until_each_second() {
        let interval = |second: u64, bytes| Interval {
            start: second as f64,
            end: second as f64 + 1.0,
            bytes,
            bits_per_second: bytes as f64 * 8.0,
        };
        let points = received(&[interval(0, 0), interval(1, 500_000), interval(2, 1_000_000)]);
        assert_eq!(points, [(0.0, 0.0), (1.0, 0.0), (2.0, 0.5), (3.0, 1.5)]);
    }

    #[test]
    fn a_link_is_a_profile_or_a_file() {
        assert!(read_link("geo").is_ok());
        let error = read_link("/nonexistent/link").unwrap_err().to_string();
        assert!(error.contains("geo-lossy"), "{error}");
    }
}
