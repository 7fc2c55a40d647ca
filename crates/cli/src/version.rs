//! `bentpipe version`.

use crate::Outcome;

/// Print the version
#[derive(clap::Args)]
pub(crate) struct Arguments {}

pub(crate) fn run(_: &Arguments) -> Outcome {
    println!("bentpipe {}", env!("CARGO_PKG_VERSION"));
    Ok(())
}
