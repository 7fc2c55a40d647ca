//! X25519 with a cache of results.
//!
//! Scripts differ in the network's behaviour, and rarely in keys: the same few key agreements are
//! repeated and dominate the run time. Only fuzzing builds have this module.

use snow::params::DHChoice;
use snow::resolvers::{CryptoResolver, DefaultResolver};
use snow::types::{Dh, Random};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Maximum number of cached agreements, after which the cache is cleared. Corrupted keys are new
/// each time.
const REMEMBERED: usize = 4096;

/// A private and a public key; the curve's base point if there is none.
type Met = ([u8; 32], Option<[u8; 32]>);

thread_local! {
    static KNOWN: RefCell<BTreeMap<Met, Option<[u8; 32]>>> = RefCell::default();
}

/// Returns the curve of `choice` as snow implements it, except for the run time.
pub(crate) fn remembering(choice: &DHChoice) -> Option<Box<dyn Dh>> {
    matches!(choice, DHChoice::Curve25519)
        .then(|| -> Box<dyn Dh> { Box::new(Remembering { private: [0; 32], public: [0; 32] }) })
}

struct Remembering {
    private: [u8; 32],
    public: [u8; 32],
}

impl Remembering {
    /// Returns the agreement of the private key and `public`, or `None` if the curve rejects it.
    fn agree(&self, public: Option<[u8; 32]>) -> Option<[u8; 32]> {
        let compute = || {
            let mut real = DefaultResolver.resolve_dh(&DHChoice::Curve25519)?;
            real.set(&self.private);
            let Some(public) = public else { return real.pubkey().try_into().ok() };
            let mut shared = [0; 32];
            real.dh(&public, &mut shared).ok().map(|()| shared)
        };
        KNOWN.with_borrow_mut(|known| {
            if known.len() >= REMEMBERED {
                known.clear();
            }
            *known.entry((self.private, public)).or_insert_with(compute)
        })
    }
}

impl Dh for Remembering {
    fn name(&self) -> &'static str {
        "25519"
    }

    fn pub_len(&self) -> usize {
        32
    }

    fn priv_len(&self) -> usize {
        32
    }

    fn set(&mut self, private: &[u8]) {
        self.private.copy_from_slice(private);
        self.public = self.agree(None).expect("every private key has a public one");
    }

    fn generate(&mut self, rng: &mut dyn Random) -> Result<(), snow::Error> {
        let mut private = [0; 32];
        rng.try_fill_bytes(&mut private)?;
        self.set(&private);
        Ok(())
    }

    fn pubkey(&self) -> &[u8] {
        &self.public
    }

    fn privkey(&self) -> &[u8] {
        &self.private
    }

    fn dh(&self, public: &[u8], out: &mut [u8]) -> Result<(), snow::Error> {
        let public = public[..32].try_into().map_err(|_| snow::Error::Dh)?;
        let shared = self.agree(Some(public)).ok_or(snow::Error::Dh)?;
        out[..32].copy_from_slice(&shared);
        Ok(())
    }
}
