//! The Python module `bentpipe`: scenarios are run by the crate `lab`.
//!
//! ```text
//!   bentpipe/__init__.py, results.py, ...  data frames, plots, dask     (Python)
//!   bentpipe._bentpipe                     run, merge, Simulation       (this crate)
//! ```
//!
//! Errors are exceptions of `bentpipe.errors`, panics included. Runs and steps work on threads of
//! their own: the caller waits without the interpreter's lock and ends them at an interrupt.

#![allow(clippy::needless_pass_by_value, reason = "arguments of Python arrive by value")]

use lab::LabError;
use lab::experiments::{self, Options, Stop};
use lab::scenario::{self, Report, Source, Which};
use lab::threads::Apart;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;
use units::{Instant, Span};

/// Interval at which a wait looks for an interrupt.
const SIGNALS: Duration = Duration::from_millis(50);

/// Where the text of a scenario is: a file; or a name, the folder of its traces, and the text.
#[derive(FromPyObject)]
enum Place {
    Made((String, PathBuf, String)),
    File(PathBuf),
}

/// Options of a run.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Settings {
    out: PathBuf,
    set: Vec<String>,
    seed: Option<u64>,
    replications: Option<u32>,
    quick: bool,
    shard: Option<(u32, u32)>,
    jobs: Option<usize>,
}

/// Which run of a scenario is simulated.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Chosen {
    set: Vec<String>,
    point: usize,
    replication: u32,
    seed: Option<u64>,
    series: Option<f64>,
}

impl Place {
    fn source(self) -> Result<Source, LabError> {
        match self {
            Self::File(path) => Source::read(&path),
            Self::Made((name, folder, text)) => Source::new(&name, folder, text),
        }
    }
}

/// The exception for an error.
fn raised(error: LabError) -> PyErr {
    let exception = |py: Python<'_>| -> PyResult<PyErr> {
        let errors = py.import("bentpipe.errors")?;
        let text = error.to_string();
        let value = match &error {
            LabError::Input { file, line, key, message } => {
                let class = errors.getattr("ScenarioError")?;
                class.call1((text, file.as_str(), *line, key.as_str(), message.as_str()))?
            }
            _ => errors.getattr("LabError")?.call1((text,))?,
        };
        Ok(PyErr::from_value(value))
    };
    Python::attach(|py| exception(py).unwrap_or_else(|failed| failed))
}

/// Does a job on the thread of `apart`, without the interpreter's lock. A signal's exception, such as
/// `KeyboardInterrupt`, stops the job and is raised at its end.
fn wait<T: 'static, R: Send + 'static>(
    py: Python<'_>,
    apart: &Apart<T>,
    job: impl FnOnce(&mut T, &Stop) -> Result<R, LabError> + Send + 'static,
) -> PyResult<R> {
    let stop = Stop::default();
    let theirs = stop.clone();
    let done = apart.start(move |value| job(value, &theirs));
    // The closure takes `done`, which threads cannot share.
    let (result, interrupt) = py.detach(move || {
        let mut interrupt = None;
        let result = loop {
            match done.recv_timeout(SIGNALS) {
                Ok(Ok(result)) => break result,
                Ok(Err(panic)) => break Err(LabError::Proof(format!("it panicked: {panic}"))),
                Err(RecvTimeoutError::Disconnected) => {
                    break Err(LabError::Proof("it has panicked before".to_owned()));
                }
                Err(RecvTimeoutError::Timeout) => {
                    if let Err(signal) = Python::attach(|py| py.check_signals()) {
                        stop.set();
                        interrupt = Some(signal);
                    }
                }
            }
        };
        (result, interrupt)
    });
    interrupt.map_or_else(|| result.map_err(raised), Err)
}

/// Runs a scenario: the folder of the results, and whether all criteria are met; nothing if jobs of
/// other shards are missing.
#[pyfunction]
fn run(py: Python<'_>, place: Place, settings: Settings) -> PyResult<Option<(PathBuf, bool)>> {
    wait(py, &Apart::<()>::default(), move |(), stop| {
        let Settings { out, set, seed, replications, quick, shard, jobs } = settings;
        let stop = stop.clone();
        let options = Options { set, replications, quick, shard, jobs, stop, ..Options::new(out) };
        match scenario::run(&place.source()?, &options, seed)? {
            Report::Whole { folder, met, .. } => Ok(Some((folder, met))),
            Report::Part { .. } => Ok(None),
        }
    })
}

/// Merges the stores of other output folders into `out`; returns the number of new results.
#[pyfunction]
fn merge(py: Python<'_>, from: Vec<PathBuf>, out: PathBuf) -> PyResult<usize> {
    wait(py, &Apart::<()>::default(), move |(), _| experiments::merge(&from, &out))
}

/// Panics in a job, for the test of what becomes of it.
#[cfg(debug_assertions)]
#[pyfunction]
fn panic(py: Python<'_>) -> PyResult<()> {
    wait(py, &Apart::<()>::default(), |(), _| panic!("on purpose"))
}

/// A scenario in JSON as TOML.
#[pyfunction]
fn toml_of(json: &str) -> PyResult<String> {
    let wrong = |text: String| raised(LabError::Request(format!("scenario: {text}")));
    let table: toml::Table =
        serde_json::from_str(json).map_err(|error| wrong(error.to_string()))?;
    toml::to_string(&table).map_err(|error| wrong(error.to_string()))
}

/// Name, unit, times and values of a time series.
type Series = (String, &'static str, Vec<f64>, Vec<f64>);

/// One run of one point of a scenario, step by step.
#[pyclass(frozen)]
struct Simulation {
    /// It is set from the first job on.
    apart: Apart<Option<scenario::Simulation>>,
    /// The swept keys with their values.
    #[pyo3(get)]
    point: Vec<(String, String)>,
    /// The end of the run, s.
    #[pyo3(get)]
    end: f64,
}

impl Simulation {
    fn ask<R: Send + 'static>(
        &self,
        py: Python<'_>,
        job: impl FnOnce(&mut scenario::Simulation, &Stop) -> Result<R, LabError> + Send + 'static,
    ) -> PyResult<R> {
        wait(py, &self.apart, |simulation, stop| {
            job(simulation.as_mut().expect("the first job has made it"), stop)
        })
    }
}

#[pymethods]
impl Simulation {
    #[new]
    fn new(py: Python<'_>, place: Place, chosen: Chosen) -> PyResult<Self> {
        let apart = Apart::<Option<scenario::Simulation>>::default();
        let (point, end) = wait(py, &apart, move |slot, _| {
            let Chosen { set, point, replication, seed, series } = chosen;
            let series = series.map(Span::from_secs_f64);
            let which = Which { point, replication, seed, series };
            let made = scenario::Simulation::new(&place.source()?, &set, &which)?;
            let made = slot.insert(made);
            Ok((made.point().to_vec(), made.end().as_secs_f64()))
        })?;
        Ok(Self { apart, point, end })
    }

    fn capture(&self, py: Python<'_>, link: String, path: PathBuf) -> PyResult<()> {
        self.ask(py, move |simulation, _| simulation.capture(&link, &path))
    }

    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        self.ask(py, |simulation, _| simulation.finish())
    }

    #[getter]
    fn now(&self, py: Python<'_>) -> PyResult<f64> {
        self.ask(py, |simulation, _| Ok(simulation.now().as_secs_f64()))
    }

    fn run_until(&self, py: Python<'_>, seconds: f64) -> PyResult<()> {
        let until = Instant::ZERO + Span::from_secs_f64(seconds);
        self.ask(py, move |simulation, stop| simulation.run_until(until, stop))
    }

    fn measures(&self, py: Python<'_>) -> PyResult<Vec<(String, &'static str, Option<f64>)>> {
        self.ask(py, |simulation, _| Ok(simulation.measures()))
    }

    fn series(&self, py: Python<'_>) -> PyResult<Vec<Series>> {
        let one = |series: &scenario::Series| {
            let samples = series.samples().iter();
            let (times, values) = samples.map(|(at, value)| (at.as_secs_f64(), *value)).unzip();
            (series.name().to_owned(), series.unit(), times, values)
        };
        self.ask(py, move |simulation, _| Ok(simulation.series().map(one).collect()))
    }
}

#[pymodule]
fn _bentpipe(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(run, module)?)?;
    module.add_function(wrap_pyfunction!(merge, module)?)?;
    module.add_function(wrap_pyfunction!(toml_of, module)?)?;
    #[cfg(debug_assertions)]
    module.add_function(wrap_pyfunction!(panic, module)?)?;
    module.add_class::<Simulation>()
}
