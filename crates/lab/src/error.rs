//! Why an experiment could not be run.

use std::io;
use std::path::PathBuf;

/// Why an experiment could not be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// The hosts or the network between them could not be made.
    #[error(transparent)]
    Testbed(#[from] testbed::TestbedError),
    /// The emulator could not start, or stopped by itself.
    #[error("the emulator: {0}")]
    Emulator(String),
    /// A gateway could not start, or stopped by itself.
    #[error("the gateway of the {role}: {reason}")]
    Gateway {
        /// `terminal` or `hub`.
        role: &'static str,
        /// What it said.
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
    /// What was asked for makes no sense.
    #[error("{0}")]
    Request(String),
    /// A proof could not be set up, or something vital to it did not happen.
    #[error("{0}")]
    Proof(String),
    /// A file could not be read or written.
    #[error("{path}: {source}", path = .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A plot could not be drawn.
    #[error("the plot: {0}")]
    Plot(String),
}
