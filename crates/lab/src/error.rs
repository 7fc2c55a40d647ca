//! Errors of experiments, benchmarks, system tests and the demo.

use std::io;
use std::path::PathBuf;

/// The reason why an experiment, benchmark, system test or demo could not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// The network namespaces or the link between them could not be created.
    #[error(transparent)]
    Testbed(#[from] testbed::TestbedError),
    /// The emulator failed to start or stopped on its own.
    #[error("the emulator: {0}")]
    Emulator(String),
    /// A gateway failed to start or stopped on its own.
    #[error("the gateway of the {role}: {reason}")]
    Gateway {
        /// `terminal` or `hub`.
        role: &'static str,
        /// The error that it reported.
        reason: String,
    },
    /// A system of a command file could not start, or failed.
    #[error("the system {name}: {reason}")]
    System {
        /// Its name.
        name: String,
        /// What it wrote to its standard error.
        reason: String,
    },
    /// The request is invalid.
    #[error("{0}")]
    Request(String),
    /// A scenario or experiment file is wrong.
    #[error("{file}:{line}: {key}{}{message}", if .key.is_empty() { "" } else { ": " })]
    Input {
        /// Name of the file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The key: names joined by dots; empty if the text is not TOML.
        key: String,
        /// What was found and what was expected.
        message: String,
    },
    /// The run was stopped by [`Stop`](crate::experiments::Stop); results of finished jobs are stored.
    #[error("stopped; the results of finished jobs are stored")]
    Stopped,
    /// A system test could not be set up, or one of its preconditions was not met.
    #[error("{0}")]
    Proof(String),
    /// A file could not be read or written.
    #[error("{path}: {source}", path = .path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A plot could not be drawn.
    #[error("the plot: {0}")]
    Plot(String),
}
