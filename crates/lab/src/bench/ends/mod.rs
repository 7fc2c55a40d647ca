//! Programs at the ends of a benchmark: the server of the load, and systems to compare with.
//!
//! Each is a separate process (`bentpipe-lab bench end`) with its own processor time and
//! descriptors.

mod load;
mod poll;
#[cfg(feature = "quinn")]
mod quinn;
mod serve;
mod splice;

use crate::LabError;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::process::Command;

pub(super) use load::{Bulk, Direction, Paced, exchange};
pub(super) use poll::{Poll, is_pause};
#[cfg(feature = "quinn")]
pub use quinn::{quinn_receive, quinn_serve};
pub use serve::serve;
pub(super) use serve::{HEADER, Request, received};
pub use splice::splice;

/// Raises this process's limit of descriptors, and that of the programs it starts, as far as
/// permitted.
///
/// # Errors
/// If fewer than `needed` are permitted.
pub(super) fn raise_descriptors(needed: usize) -> Result<(), LabError> {
    let failed = |error: nix::errno::Errno| LabError::Request(format!("descriptors: {error}"));
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(failed)?;
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).map_err(failed)?;
    if hard < needed as u64 {
        return Err(LabError::Request(format!(
            "{needed} descriptors are needed, {hard} are permitted: raise `ulimit -Hn`"
        )));
    }
    Ok(())
}

/// Returns the command that starts an end as a separate process: this program with other arguments.
pub(super) fn command(arguments: &[&str]) -> Result<Command, LabError> {
    let own = std::env::current_exe()
        .map_err(|source| LabError::File { path: "/proc/self/exe".into(), source })?;
    let mut command = Command::new(own);
    command.args(["bench", "end"]).args(arguments);
    Ok(command)
}
