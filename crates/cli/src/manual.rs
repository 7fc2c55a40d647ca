//! `bentpipe manual` and `bentpipe completions`: for those who make packages.

use crate::{Arguments as Command, Outcome};
use clap::CommandFactory;
use std::path::PathBuf;

/// Write manual pages, one for each command
#[derive(clap::Args)]
pub(crate) struct Manual {
    /// The folder that they go to
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Print what a shell needs to complete arguments
#[derive(clap::Args)]
pub(crate) struct Completions {
    /// The shell
    shell: clap_complete::Shell,
}

pub(crate) fn manual(arguments: &Manual) -> Outcome {
    let folder = &arguments.folder;
    clap_mangen::generate_to(Command::command(), folder)
        .map_err(|error| format!("{}: {error}", folder.display()))
}

pub(crate) fn completions(arguments: &Completions) -> Outcome {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut Command::command(), "bentpipe", &mut text);
    crate::values::print(&String::from_utf8_lossy(&text))
}
