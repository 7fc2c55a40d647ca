//! What both directions meet on their way: the shared fading process and the outages.

use super::markov::Chain;
use super::{Outage, TwoStateMarkov};
use crate::{Direction, LinkConfig};
use alloc::vec::Vec;
use units::{Instant, RngStream, Span};

/// The channel that the two directions share.
#[derive(Debug)]
pub(crate) struct Air {
    epoch: Instant,
    model: Option<TwoStateMarkov>,
    /// Kept while it is switched off, so that nothing is ever drawn twice.
    chain: Option<Chain>,
    /// For the chain that is not there yet.
    rng: RngStream,
    outages: Vec<Outage>,
}

/// What a frame met while it was on air.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passage {
    /// Whether an outage touched it.
    pub(crate) outage: bool,
    /// The shared process's chance for it to survive, where there is one.
    pub(crate) survival: Option<f64>,
    /// What the shared process adds to its delay.
    pub(crate) delay: Span,
}

impl Air {
    pub(crate) fn new(config: &LinkConfig, epoch: Instant, rng: RngStream) -> Self {
        let chain = config.shared.map(|model| Chain::new(&model, epoch, rng.clone()));
        Self { epoch, model: config.shared, chain, rng, outages: config.outages.clone() }
    }

    /// Takes new settings at `now`. A process that is already running goes on in its state and
    /// stay; drop rates and delays change at once, the mean stays with the next stay.
    pub(crate) fn reconfigure(&mut self, config: &LinkConfig, now: Instant) {
        self.outages.clone_from(&config.outages);
        self.model = config.shared;
        if let (None, Some(model)) = (&self.chain, &self.model) {
            self.chain = Some(Chain::new(model, now, self.rng.clone()));
        }
    }

    /// Forgets what is past: nobody will ask about a time earlier than `before`.
    pub(crate) fn forget(&mut self, before: Instant) {
        if let (Some(model), Some(chain)) = (&self.model, &mut self.chain) {
            chain.forget(model, before);
        }
    }

    /// What a frame meets that is on air from `from` to `to`.
    pub(crate) fn passage(&mut self, direction: Direction, from: Instant, to: Instant) -> Passage {
        let (start, end) = (from.since(self.epoch), to.since(self.epoch));
        let outage = self.outages.iter().any(|outage| outage.touches(direction, start, end));
        let (survival, delay) = match (&self.model, &mut self.chain) {
            (Some(model), Some(chain)) => {
                let (survival, delay) = chain.passage(model, from, to);
                (Some(survival), delay)
            }
            (None, _) | (_, None) => (None, Span::ZERO),
        };
        Passage { outage, survival, delay }
    }
}
