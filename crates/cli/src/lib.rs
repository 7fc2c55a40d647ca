//! The commands of `bentpipe`: argument parsing and nothing else.
//!
//! ```text
//!   bentpipe      gateway, key, status, top, capture, emulate        this crate
//!   bentpipe-lab  demo, bench, experiments, proofs                   `lab-cli`, which uses this one
//! ```
//!
//! A machine that runs a gateway needs `bentpipe` alone: no plotter and no experiment is in it.

pub mod capture;
pub mod emulate;
pub mod gateway;
pub mod key;
pub mod lab;
pub mod manual;
pub mod status;
pub mod top;
pub mod values;

use std::process::ExitCode;

/// The result of a command; the message goes to standard error.
pub type Outcome = Result<(), String>;

/// Returns the exit code of a command of `program`: 0 for success and 1 for a failure, whose
/// message is written to standard error. (Arguments that cannot be parsed end with 2.)
pub fn exit_code(program: &str, outcome: Outcome) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            values::write_briefly(std::io::stderr(), format!("{program}: {message}\n"));
            ExitCode::FAILURE
        }
    }
}
