//! Manual pages and shell completions, for those who make packages.

use crate::{Outcome, values};
use clap::Command;
use std::path::PathBuf;

/// Write manual pages, one for each command
#[derive(clap::Args)]
pub struct Manual {
    /// The folder that they go to
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Print what a shell needs to complete arguments
#[derive(clap::Args)]
pub struct Completions {
    /// The shell
    shell: clap_complete::Shell,
}

/// Writes the manual pages of `program`.
///
/// # Errors
/// When a page cannot be written.
pub fn manual(program: Command, arguments: &Manual) -> Outcome {
    let folder = &arguments.folder;
    clap_mangen::generate_to(program, folder)
        .map_err(|error| format!("{}: {error}", folder.display()))
}

/// Prints the completions of `program`.
///
/// # Errors
/// When standard output cannot be written to.
pub fn completions(mut program: Command, arguments: &Completions) -> Outcome {
    let name = program.get_name().to_owned();
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut program, name, &mut text);
    values::print(&String::from_utf8_lossy(&text))
}
