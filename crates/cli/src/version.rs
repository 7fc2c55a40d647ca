//! `bentpipe version`.

use crate::{Outcome, values};

/// Print the version
#[derive(clap::Args)]
pub(crate) struct Arguments {}

pub(crate) fn run(_: &Arguments) -> Outcome {
    values::print(concat!("bentpipe ", env!("CARGO_PKG_VERSION"), "\n"))
}
