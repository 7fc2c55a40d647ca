//! Command line of `bentpipe`: parses arguments and calls the crates that do the work.
//!
//! ```text
//!   bentpipe      gateway, enroll, doctor, measure, site, key, status, top,         this crate
//!                 upgrade, capture, emulate, send, receive, connect
//!   bentpipe-lab  demo, bench, lab                              `lab-cli`, which uses this crate
//! ```
//!
//! A machine that runs a gateway needs `bentpipe` alone, which contains no plotter and no
//! experiment.
//!
//! ```
//! assert_eq!(cli::values::size("48MB"), Ok(48_000_000));
//! assert_eq!(cli::values::seconds("2.5s"), Ok(units::Span::from_millis(2_500)));
//! ```

pub mod capture;
pub mod connect;
pub mod doctor;
pub mod emulate;
pub mod enroll;
pub mod gateway;
pub mod key;
pub mod lab;
pub mod manual;
pub mod measure;
pub mod site;
pub mod status;
pub mod top;
pub mod transfer;
pub mod upgrade;
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
