//! Time series and captures of the first replication of each point.

use super::Scenario;
use crate::LabError;
use crate::experiments::{Axis, Draw, Figure, Options, Series};
use crate::files;
use crate::schema::{Field, Kind, Resource};
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::Path;

/// Maximum number of lines in a figure.
const LINES: usize = 7;

/// Runs the first replication of each point again and writes what is to be recorded, in folders
/// `series/POINT` and `capture/POINT`, and a figure of the octets received by each traffic; returns the
/// schemas of the time series.
pub(super) fn write(
    scenario: &Scenario,
    options: &Options,
    folder: &Path,
) -> Result<Vec<Resource>, LabError> {
    let mut resources = Vec::new();
    let mut received: Vec<(String, Vec<Series>)> = Vec::new();
    for (place, point) in scenario.points.iter().enumerate() {
        let record = &point.case.record;
        if record.series.is_none() && record.capture.is_empty() {
            continue;
        }
        let number = (place + 1).to_string();
        let mut built = point.case.build(&Draw { seed: options.seed, run: 0 });
        let captures = folder.join("capture").join(&number);
        for name in &record.capture {
            let path = captures.join(format!("{name}.pcapng"));
            let failed = |source| LabError::File { path: path.clone(), source };
            fs::create_dir_all(&captures).map_err(failed)?;
            let file = File::create(&path).map_err(failed)?;
            let (link, end) = built.link(name);
            built.net.capture(link, end, BufWriter::new(file));
        }
        if let Some(every) = record.series {
            built.sample(every.0);
        }
        built.run_until(point.case.end(), &options.stop)?;
        let failed = |source| LabError::File { path: captures.clone(), source };
        built.net.finish_captures().map_err(failed)?;
        for series in built.net.series().filter(|series| !series.samples().is_empty()) {
            let file = format!("series/{number}/{}.csv", series.name().replace(' ', "-"));
            let path = folder.join(&file);
            let mut csv = Vec::new();
            let failed = |source| LabError::File { path: path.clone(), source };
            series.write_csv(&mut csv).map_err(failed)?;
            files::write_whole(&path, &csv)?;
            let head = String::from_utf8_lossy(&csv);
            let head = head.lines().next().unwrap_or_default().split(',');
            let fields = head.map(|name| Field::new(name, Kind::Number, "")).collect();
            resources.push(Resource::csv(&file, fields));
            if let Some(traffic) = series.name().strip_suffix(" received") {
                let label = scenario.label(place);
                let label = if label.is_empty() { traffic.to_owned() } else { label };
                let samples = series.samples().iter();
                let line = samples.map(|(at, bytes)| (at.as_secs_f64(), bytes / 1e6));
                let known = received.iter().position(|(name, _)| name == traffic);
                let known = known.unwrap_or_else(|| {
                    received.push((traffic.to_owned(), Vec::new()));
                    received.len() - 1
                });
                received[known].1.push(Series::line(label, line));
            }
        }
    }
    for (traffic, mut series) in received {
        let rest = series.len().saturating_sub(LINES);
        series.truncate(LINES);
        let note =
            if rest > 0 { format!("{rest} more points are not shown") } else { String::new() };
        let figure = Figure {
            id: format!("received-{traffic}"),
            title: format!("{traffic}: received, first replication"),
            x: Axis::linear("time (s)"),
            y: Axis::linear("received (MB)"),
            series,
            note,
        };
        super::figures::draw(&figure, folder)?;
    }
    Ok(resources)
}
