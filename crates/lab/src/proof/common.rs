//! Options of system tests, pauses, and errors of the operating system.

use crate::LabError;
use crate::threads::sleep;
use association::{Keys, Known, PresharedKey, PrivateKey, PublicKey, Security};
use std::sync::Arc;
use units::Span;

/// Options of system tests.
#[derive(Clone, Copy, Debug)]
pub struct ProofConfig {
    /// Shorter tests, for continuous integration.
    pub quick: bool,
    /// Connections of the soak test; `None` for the default.
    pub connections: Option<u64>,
    /// Seed of all random streams.
    pub seed: u64,
}

pub(super) fn sleep_ms(milliseconds: u64) {
    sleep(Span::from_millis(milliseconds));
}

/// What went wrong with the machine, in words.
pub(super) fn failed(what: &str) -> impl Fn(std::io::Error) -> LabError + '_ {
    move |error| LabError::Proof(format!("{what}: {error}"))
}

/// Returns the noise suite of a side with the key `own` and one peer.
pub(super) fn noise(own: PrivateKey, name: &str, public: PublicKey) -> Result<Security, LabError> {
    let known = Known { name: name.into(), public, preshared: PresharedKey::NONE };
    let keys = Keys::new(own, vec![known]);
    let keys = keys.map_err(|error| LabError::Proof(error.to_string()))?;
    Ok(Security::Noise(Arc::new(keys)))
}
