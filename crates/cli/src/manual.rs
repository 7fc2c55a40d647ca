//! Manual pages and shell completions, for packages.

use crate::{Outcome, values};
use clap::Command;
use std::path::PathBuf;

/// Write manual pages, one for each command
#[derive(clap::Args)]
pub struct Manual {
    /// The output folder
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Print the completions of a shell
#[derive(clap::Args)]
#[command(after_help = "Example: bentpipe completions bash > /etc/bash_completion.d/bentpipe")]
pub struct Completions {
    /// The shell
    shell: clap_complete::Shell,
}

/// Writes the manual pages of `program`.
///
/// # Errors
/// If a page cannot be written.
pub fn manual(program: Command, arguments: &Manual) -> Outcome {
    let folder = &arguments.folder;
    clap_mangen::generate_to(program, folder)
        .map_err(|error| format!("{}: {error}", folder.display()))
}

/// Prints the completions of `program`.
///
/// # Errors
/// If standard output cannot be written.
pub fn completions(mut program: Command, arguments: &Completions) -> Outcome {
    let name = program.get_name().to_owned();
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut program, name, &mut text);
    values::print(&String::from_utf8_lossy(&text))
}
