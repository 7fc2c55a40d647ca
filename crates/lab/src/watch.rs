//! `bentpipe lab watch`: one simulated run to look into, with a capture and time series.

use crate::LabError;
use crate::files;
use satlink::LinkConfig;
use serde::Serialize;
use sim::Series;
use sim::scenario::controllers::Way;
use sim::scenario::shared::{Shared, SharedFlow};
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use units::{BitRate, Instant, Span};

/// What to run.
#[derive(Clone, Debug)]
pub struct WatchConfig {
    /// The flows, which share the link, and how much later than the one before each begins.
    pub ways: Vec<Way>,
    /// The time between two flows' beginnings.
    pub stagger: Span,
    /// The link.
    pub link: LinkConfig,
    /// How long.
    pub length: Span,
    /// The source of all chance.
    pub seed: u64,
    /// Where a capture of the link's forward end goes.
    pub capture: Option<PathBuf>,
    /// Where time series go.
    pub series: Option<PathBuf>,
    /// The distance of samples.
    pub every: Span,
}

/// What one flow had.
#[derive(Clone, Debug, Serialize)]
pub struct Watched {
    /// Its name.
    pub flow: String,
    /// Bits per second in order, from its beginning to the end.
    pub goodput_bits_per_second: f64,
    /// The same as a multiple of an equal share of the bound.
    pub of_fair: f64,
}

/// The way of this name.
///
/// # Errors
/// When there is none.
pub fn way(name: &str) -> Result<Way, LabError> {
    Way::ALL.into_iter().find(|way| way.name() == name).ok_or_else(|| {
        let known: Vec<&str> = Way::ALL.into_iter().map(Way::name).collect();
        LabError::Request(format!("flow: found {name:?}, expected one of {}", known.join(", ")))
    })
}

/// Runs it; what each flow had.
///
/// # Errors
/// When the link has no rate or a file cannot be written; files are whole or not there.
pub fn watch(config: &WatchConfig) -> Result<Vec<Watched>, LabError> {
    let rate = |rate: Option<BitRate>, direction| {
        rate.ok_or_else(|| {
            LabError::Request(format!("link: found no {direction} rate, expected one"))
        })
    };
    let forward = rate(config.link.forward.rate, "forward")?;
    let back = rate(config.link.return_.rate, "return")?;
    config.link.validate().map_err(|error| LabError::Request(format!("link: {error}")))?;
    let last = config.stagger * (config.ways.len() as u64).saturating_sub(1);
    if last >= config.length {
        return Err(LabError::Request(format!(
            "stagger: found {}, with which the last flow begins after {last}; expected all to \
             begin within {}",
            config.stagger, config.length
        )));
    }
    let flows: Vec<SharedFlow> = (config.ways.iter().zip(0..))
        .map(|(way, number)| way.flow(forward, back).at(config.stagger * number))
        .collect();
    let names: Vec<String> = (config.ways.iter().zip(1..))
        .map(|(way, number)| format!("{number} {}", way.name()))
        .collect();
    let mut shared = Shared::new(&config.link, config.seed, 0, &flows);
    let capture = config.capture.as_deref().map(|folder| begin_capture(&mut shared, folder));
    let capture = capture.transpose()?;
    if config.series.is_some() {
        shared.sample(config.every, &names);
    }
    let end = Instant::ZERO + config.length;
    shared.run_until(end);
    if let Some((part, path)) = capture {
        let failed = |source| LabError::File { path: path.clone(), source };
        shared.net.finish_captures().map_err(failed)?;
        fs::rename(part, &path).map_err(failed)?;
    }
    if let Some(folder) = &config.series {
        for series in shared.net.series() {
            write_series(folder, series)?;
        }
    }
    let began = |index: usize| Instant::ZERO + flows[index].start;
    let watched = names.into_iter().enumerate().map(|(index, flow)| {
        let shares = shared.shares(began(index), end);
        Watched {
            flow,
            goodput_bits_per_second: shares.goodput_bps[index],
            of_fair: shares.of_fair[index],
        }
    });
    Ok(watched.collect())
}

/// The capture is written beside its place until it is whole.
fn begin_capture(shared: &mut Shared, folder: &Path) -> Result<(PathBuf, PathBuf), LabError> {
    let path = folder.join("link.pcapng");
    let part = folder.join("link.pcapng.part");
    let failed = |source| LabError::File { path: part.clone(), source };
    fs::create_dir_all(folder).map_err(failed)?;
    let file = BufWriter::new(File::create(&part).map_err(failed)?);
    shared.capture(file);
    Ok((part, path))
}

fn write_series(folder: &Path, series: &Series) -> Result<(), LabError> {
    let name: String = (series.name().chars())
        .map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' })
        .collect();
    let mut csv = Vec::new();
    let path = folder.join(format!("{name}.csv"));
    series.write_csv(&mut csv).map_err(|source| LabError::File { path: path.clone(), source })?;
    files::write_whole(&path, &csv)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(folder: &Path) -> WatchConfig {
        WatchConfig {
            ways: vec![Way::Steady, Way::Cubic],
            stagger: Span::from_secs(1),
            link: satlink::words::parse_link("profile geo rate 2mbit").expect("right words"),
            length: Span::from_secs(10),
            seed: 1,
            capture: Some(folder.join("capture")),
            series: Some(folder.join("series")),
            every: Span::from_millis(100),
        }
    }

    #[test]
    fn a_run_leaves_a_capture_and_series() {
        let folder = std::env::temp_dir().join(format!("bentpipe-watch-{}", std::process::id()));
        let seen = watch(&config(&folder)).expect("a valid run");
        assert_eq!(seen.len(), 2);
        assert!(seen.iter().all(|flow| flow.goodput_bits_per_second > 1e5), "{seen:?}");
        let size = fs::metadata(folder.join("capture/link.pcapng")).expect("a capture").len();
        assert!(size > 1_000_000, "{size}");
        let rate = fs::read_to_string(folder.join("series/1-steady-rate.csv")).expect("a series");
        assert!(rate.starts_with("seconds,1 steady rate (bit/s)\n"), "{rate}");
        assert!(rate.lines().count() > 50);
        assert!(folder.join("series/2-cubic-congestion-window.csv").exists());
        assert!(!folder.join("capture/link.pcapng.part").exists());
        fs::remove_dir_all(folder).expect("it was there");
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        assert!(way("quick").unwrap_err().to_string().contains("\"quick\", expected one of fixed"));
        let mut wrong = config(Path::new("/nowhere"));
        wrong.link.return_.rate = None;
        assert!(watch(&wrong).unwrap_err().to_string().contains("no return rate"));
        let mut late = config(Path::new("/nowhere"));
        late.stagger = late.length;
        assert!(watch(&late).unwrap_err().to_string().starts_with("stagger: found 10"));
    }
}
