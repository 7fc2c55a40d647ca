//! `bentpipe lab watch`: one simulated run with a capture and time series.

use crate::LabError;
use crate::files;
use satlink::{Direction, LinkConfig};
use serde::Serialize;
use sim::scenario::controllers::RateControl;
use sim::scenario::shared::{Shared, SharedFlow};
use sim::scenario::{Rig, START, Setting};
use sim::traffic::ConnectionPlan;
use sim::{End, Series};
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::PathBuf;
use units::{BitRate, Instant, Span};

/// Options of a run.
#[derive(Clone, Debug)]
pub struct WatchConfig {
    /// Controllers of the flows that share the link.
    pub ways: Vec<RateControl>,
    /// Interval between starts of flows.
    pub stagger: Span,
    /// The link.
    pub link: LinkConfig,
    /// Duration.
    pub length: Span,
    /// Seed of all random streams.
    pub seed: u64,
    /// Folder for a capture of the link's forward end.
    pub capture: Option<PathBuf>,
    /// Folder for time series.
    pub series: Option<PathBuf>,
    /// Sampling interval.
    pub every: Span,
}

/// Result of one flow.
#[derive(Clone, Debug, Serialize)]
pub struct Watched {
    /// Name of the flow.
    pub flow: String,
    /// In-order goodput from its start to the end, in bits/s.
    pub goodput_bits_per_second: f64,
    /// Goodput relative to an equal share of the bound.
    pub of_fair: f64,
}

/// Returns the controller of this name.
///
/// # Errors
/// If there is none.
pub fn way(name: &str) -> Result<RateControl, LabError> {
    RateControl::ALL.into_iter().find(|way| way.name() == name).ok_or_else(|| {
        let known: Vec<&str> = RateControl::ALL.into_iter().map(RateControl::name).collect();
        let known = known.join(", ");
        LabError::Request(format!(
            "flow: found {name:?}, expected one of {known}, or {GATEWAYS} alone"
        ))
    })
}

/// Simulates the flows and returns their results.
///
/// # Errors
/// If the link has no rate, or a file cannot be written. Files are written completely or not at
/// all.
pub fn watch(config: &WatchConfig) -> Result<Vec<Watched>, LabError> {
    let [forward, back] = rates(&config.link)?;
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
    let capture = Capturing::begin(config)?;
    if let Some(capture) = &capture {
        shared.capture(capture.file()?);
    }
    if config.series.is_some() {
        shared.sample(config.every, &names);
    }
    let end = Instant::ZERO + config.length;
    shared.run_until(end);
    if let Some(capture) = capture {
        capture.finish(shared.net.finish_captures())?;
    }
    write_series(config, shared.net.series())?;
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

/// Simulates a download through two gateways without a configured rate. The capture is of the hub's
/// end of the link; times are relative to the request, 5 s after the start.
///
/// # Errors
/// If the link has no rate, or a file cannot be written. Files are written completely or not at
/// all.
pub fn watch_gateways(config: &WatchConfig) -> Result<Watched, LabError> {
    const ENDLESS: u64 = 1 << 40;
    let rates = rates(&config.link)?;
    let setting = Setting::on(config.link.clone(), rates).auto().with_seed(config.seed);
    let mut rig = setting.rig(vec![ConnectionPlan::download(START, ENDLESS)]);
    let capture = Capturing::begin(config)?;
    if let Some(capture) = &capture {
        rig.capture(End::Hub, capture.file()?);
    }
    if config.series.is_some() {
        sample(&mut rig, config.every);
    }
    let end = START + config.length;
    rig.run_until(end);
    if let Some(capture) = capture {
        capture.finish(rig.finish_captures())?;
    }
    write_series(config, rig.series())?;
    let bits = 8.0 * rig.terminal.client.received().between(START, end).bytes as f64;
    let goodput_bits_per_second = bits / config.length.as_secs_f64();
    let bound = rates[0].as_bps() as f64 * (1.0 - config.link.forward.loss) * 1_440.0 / 1_500.0;
    let of_fair = goodput_bits_per_second / bound;
    Ok(Watched { flow: GATEWAYS.to_owned(), goodput_bits_per_second, of_fair })
}

/// Name of the gateways among the flows.
pub const GATEWAYS: &str = "gateways";

fn sample(rig: &mut Rig, every: Span) {
    rig.sample_session(every, "hub", |rig| rig.hub.hub.snapshot(rig.hub.peer?, rig.now()));
    rig.sample(every, "arrived", "bytes", |rig| {
        Some(rig.terminal.client.received().between(Instant::ZERO, rig.now()).bytes as f64)
    });
    rig.sample(every, "bottleneck queue", "bytes", |rig| {
        Some(rig.link().backlog(Direction::Forward).bytes as f64)
    });
    rig.sample(every, "return channel", "bytes", |rig| {
        Some(rig.offered(Direction::Return).between(Instant::ZERO, rig.now()).bytes as f64)
    });
}

/// Validates the link; returns its forward and return rates.
fn rates(link: &LinkConfig) -> Result<[BitRate; 2], LabError> {
    let rate = |rate: Option<BitRate>, direction| {
        rate.ok_or_else(|| {
            LabError::Request(format!("link: found no {direction} rate, expected one"))
        })
    };
    link.validate().map_err(|error| LabError::Request(format!("link: {error}")))?;
    Ok([rate(link.forward.rate, "forward")?, rate(link.return_.rate, "return")?])
}

/// A capture that is renamed when it is complete.
struct Capturing {
    part: PathBuf,
    path: PathBuf,
}

impl Capturing {
    /// Returns `None` if no capture is requested.
    fn begin(config: &WatchConfig) -> Result<Option<Self>, LabError> {
        let Some(folder) = &config.capture else { return Ok(None) };
        fs::create_dir_all(folder)
            .map_err(|source| LabError::File { path: folder.clone(), source })?;
        let place = |name| folder.join(name);
        Ok(Some(Self { part: place("link.pcapng.part"), path: place("link.pcapng") }))
    }

    fn file(&self) -> Result<BufWriter<File>, LabError> {
        let failed = |source| LabError::File { path: self.part.clone(), source };
        File::create(&self.part).map(BufWriter::new).map_err(failed)
    }

    fn finish(self, written: io::Result<()>) -> Result<(), LabError> {
        let failed = |source| LabError::File { path: self.path.clone(), source };
        written.map_err(failed)?;
        fs::rename(&self.part, &self.path).map_err(failed)
    }
}

fn write_series<'a>(
    config: &WatchConfig,
    all: impl Iterator<Item = &'a Series>,
) -> Result<(), LabError> {
    let Some(folder) = &config.series else { return Ok(()) };
    for series in all {
        let name: String = (series.name().chars())
            .map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' })
            .collect();
        let mut csv = Vec::new();
        let path = folder.join(format!("{name}.csv"));
        let failed = |source| LabError::File { path: path.clone(), source };
        series.write_csv(&mut csv).map_err(failed)?;
        files::write_whole(&path, &csv)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn config(folder: &Path) -> WatchConfig {
        WatchConfig {
            ways: vec![RateControl::Steady, RateControl::Cubic],
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
    fn a_run_writes_a_capture_and_series() {
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
    fn gateways_write_a_capture_and_series() {
        let folder = std::env::temp_dir().join(format!("bentpipe-gateways-{}", std::process::id()));
        let seen = watch_gateways(&config(&folder)).expect("a valid run");
        assert!(seen.of_fair > 0.3, "{seen:?}");
        let size = fs::metadata(folder.join("capture/link.pcapng")).expect("a capture").len();
        assert!(size > 1_000_000, "{size}");
        let rate = fs::read_to_string(folder.join("series/hub-rate.csv")).expect("a series");
        assert!(rate.starts_with("seconds,hub rate (bit/s)\n"), "{rate}");
        assert!(rate.lines().count() > 50);
        assert!(folder.join("series/bottleneck-queue.csv").exists());
        fs::remove_dir_all(folder).expect("it was there");
    }

    #[test]
    fn invalid_options_are_reported() {
        assert!(way("quick").unwrap_err().to_string().contains("\"quick\", expected one of fixed"));
        let mut wrong = config(Path::new("/nowhere"));
        wrong.link.return_.rate = None;
        assert!(watch(&wrong).unwrap_err().to_string().contains("no return rate"));
        let mut late = config(Path::new("/nowhere"));
        late.stagger = late.length;
        assert!(watch(&late).unwrap_err().to_string().starts_with("stagger: found 10"));
    }
}
