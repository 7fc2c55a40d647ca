//! `bentpipe demo`, `bentpipe bench` and `bentpipe lab`, which `bentpipe-lab` performs.

use crate::Outcome;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

const PROGRAM: &str = "bentpipe-lab";

/// Arguments that are passed on unchanged.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub struct Arguments {
    /// Arguments of bentpipe-lab
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Executes `bentpipe-lab` with `command` before the arguments: the program in the same folder, or
/// the one in `PATH`.
///
/// # Errors
/// If there is no such program, or it cannot be started.
pub fn run(command: &[&str], arguments: &Arguments) -> Outcome {
    let error = Command::new(program()).args(command).args(&arguments.arguments).exec();
    Err(match error.kind() {
        ErrorKind::NotFound => format!(
            "{PROGRAM} was found neither beside this program nor in PATH; \
             `cargo build --release` makes both"
        ),
        _ => format!("{PROGRAM}: {error}"),
    })
}

fn program() -> PathBuf {
    let beside = std::env::current_exe().map(|own| own.with_file_name(PROGRAM));
    beside.ok().filter(|path| path.is_file()).unwrap_or_else(|| PROGRAM.into())
}
