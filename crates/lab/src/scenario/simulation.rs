//! One run of one point of a scenario, step by step.

use super::build::Built;
use super::file::Case;
use super::{Source, read};
use crate::LabError;
use crate::experiments::{Draw, Stop};
use sim::Series;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::Path;
use std::sync::Arc;
use units::{Instant, Span};

/// Seed unless the file has one.
const SEED: u64 = 1;

/// A run under virtual time. The same seed, point and replication give the same values as
/// [`run`](super::run), whatever the steps are.
pub struct Simulation {
    case: Arc<Case>,
    built: Built,
    point: Vec<(String, String)>,
}

/// Which run of a scenario.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Which {
    /// The point, from 1 as in `runs.csv`.
    pub point: usize,
    /// The replication, from 0.
    pub replication: u32,
    /// Replaces the seed of the file.
    pub seed: Option<u64>,
    /// Interval of time series; that of the file unless given.
    pub series: Option<Span>,
}

impl Simulation {
    /// Builds the network; `set` replaces keys as `--set` does.
    ///
    /// # Errors
    /// If the scenario is invalid or has no such point.
    pub fn new(source: &Source, set: &[String], which: &Which) -> Result<Self, LabError> {
        let mut scenario = read(source, set)?;
        let points = scenario.points.len();
        if !(1..=points).contains(&which.point) {
            let message = format!("point: found {}, expected 1 to {points}", which.point);
            return Err(LabError::Request(message));
        }
        let point = scenario.points.swap_remove(which.point - 1);
        let case = point.case;
        let seed = which.seed.or(case.seed).unwrap_or(SEED);
        let mut built = case.build(&Draw { seed, run: u64::from(which.replication) });
        if let Some(every) = which.series.or(case.record.series.map(|every| every.0)) {
            if every.is_zero() {
                let message = "series: found 0, expected an interval above 0".to_owned();
                return Err(LabError::Request(message));
            }
            built.sample(every);
        }
        let point = scenario.keys.into_iter().zip(point.values).collect();
        Ok(Self { case, built, point })
    }

    /// Writes the packets of a link to a file from now on, as pcapng, at the first node of the link.
    ///
    /// # Errors
    /// If the scenario has no such link, or the file cannot be written.
    pub fn capture(&mut self, link: &str, path: &Path) -> Result<(), LabError> {
        if !self.case.links.contains_key(link) {
            let links = self.case.links.keys().cloned().collect::<Vec<_>>().join(", ");
            let message = format!("capture: found {link:?}, expected one of {links}");
            return Err(LabError::Request(message));
        }
        let failed = |source| LabError::File { path: path.to_path_buf(), source };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let file = BufWriter::new(File::create(path).map_err(failed)?);
        let (link, end) = self.built.link(link);
        self.built.net.capture(link, end, file);
        Ok(())
    }

    /// The swept keys with their values at this point.
    pub fn point(&self) -> &[(String, String)] {
        &self.point
    }

    /// The time of the simulation.
    pub fn now(&self) -> Instant {
        self.built.net.now()
    }

    /// The end of the run.
    pub fn end(&self) -> Instant {
        self.case.end()
    }

    /// Runs until `until`, and not beyond the end; writes captures to their files at the end. The run
    /// can continue after a stop.
    ///
    /// # Errors
    /// If `stop` is set, or a capture cannot be written.
    pub fn run_until(&mut self, until: Instant, stop: &Stop) -> Result<(), LabError> {
        self.built.run_until(until.min(self.end()), stop)?;
        match self.now() < self.end() {
            true => Ok(()),
            false => self.finish(),
        }
    }

    /// Ends the captures.
    ///
    /// # Errors
    /// If one cannot be written.
    pub fn finish(&mut self) -> Result<(), LabError> {
        let failed = |source| LabError::File { path: "capture".into(), source };
        self.built.net.finish_captures().map_err(failed)
    }

    /// The measures up to now with their units, those without a value as `None`.
    pub fn measures(&self) -> Vec<(String, &'static str, Option<f64>)> {
        let found = self.built.measured(&self.case);
        let value = |name: &String| found.iter().find(|(known, _)| known == name).map(|one| one.1);
        let all = self.case.measures().into_iter();
        all.map(|(name, unit)| (name.clone(), unit, value(&name))).collect()
    }

    /// The time series up to now.
    pub fn series(&self) -> impl Iterator<Item = &Series> {
        self.built.net.series()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "duration = 8\n[links]\n\
        a-hub = \"rate 100mbit\"\nhub-terminal = { profile = \"geo\", loss = \"1%\" }\n\
        terminal-b = \"rate 100mbit\"\n[gateways]\nkind = \"pair\"\n\
        [traffic.file]\nkind = \"bulk\"\nfrom = \"a\"\nto = \"b\"\n\
        [record]\nlinks = [\"hub-terminal\"]\n[sweep]\nlinks.hub-terminal.loss = [\"0%\", \"1%\"]\n";

    fn simulation(series: Option<Span>) -> Simulation {
        let source = Source::new("steps", "", TEXT).unwrap();
        let which = Which { point: 2, series, ..Which::default() };
        Simulation::new(&source, &[], &which).unwrap()
    }

    #[test]
    fn measures_do_not_depend_on_the_steps() {
        let mut whole = simulation(None);
        whole.run_until(whole.end(), &Stop::default()).unwrap();
        let mut stepped = simulation(Some(Span::from_millis(500)));
        let mut received = Vec::new();
        while stepped.now() < stepped.end() {
            let next = stepped.now() + Span::from_millis(700);
            let stop = Stop::default();
            stop.set();
            assert!(matches!(stepped.run_until(next, &stop), Err(LabError::Stopped)));
            stepped.run_until(next, &Stop::default()).unwrap();
            received.push(stepped.series().map(|series| series.samples().len()).sum::<usize>());
        }
        assert_eq!(stepped.measures(), whole.measures());
        assert!(whole.measures().iter().any(|one| one.0 == "file.goodput" && one.2 > Some(1.0)));
        assert_eq!(stepped.point(), [("links.hub-terminal.loss".to_owned(), "1%".to_owned())]);
        assert!(received.is_sorted() && received.len() == 12, "{received:?}");
    }

    #[test]
    fn wrong_points_and_links_are_named() {
        let source = Source::new("steps", "", TEXT).unwrap();
        let which = Which { point: 3, ..Which::default() };
        let error = Simulation::new(&source, &[], &which).err().unwrap().to_string();
        assert_eq!(error, "point: found 3, expected 1 to 2");
        let error = simulation(None).capture("a-b", Path::new("none")).unwrap_err().to_string();
        assert!(error.contains("\"a-b\", expected one of a-hub, "), "{error}");
        assert!(Source::new("../steps", "", TEXT).is_err());
    }
}
