//! What all proofs need: how they are run, pauses, and errors of the machine.

use crate::LabError;
use rt::Clock;
use units::Span;

/// How proofs are run.
#[derive(Clone, Copy, Debug)]
pub struct ProofConfig {
    /// The short form, for a first look and for machines that build.
    pub quick: bool,
    /// Connections of the soak, instead of the usual number.
    pub connections: Option<u64>,
    /// The seed of everything random.
    pub seed: u64,
}

/// Waits.
pub(super) fn pause(length: Span) {
    let clock = Clock::new();
    clock.sleep_until(clock.now() + length);
}

pub(super) fn pause_ms(milliseconds: u64) {
    pause(Span::from_millis(milliseconds));
}

/// What went wrong with the machine, in words.
pub(super) fn failed(what: &str) -> impl Fn(std::io::Error) -> LabError + '_ {
    move |error| LabError::Proof(format!("{what}: {error}"))
}
