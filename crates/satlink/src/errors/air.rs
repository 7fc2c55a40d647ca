//! The part of the channel that both directions share: fading process and outages.

use super::markov::Chain;
use super::{Outage, TwoStateMarkov};
use crate::{Direction, LinkConfig};
use alloc::vec::Vec;
use units::{Instant, RngStream, Span};

/// The shared part of the channel.
#[derive(Debug)]
pub(crate) struct Air {
    epoch: Instant,
    model: Option<TwoStateMarkov>,
    /// Kept while the process is disabled, so that its random numbers are not drawn twice.
    chain: Option<Chain>,
    /// For the process, until it is created.
    rng: RngStream,
    outages: Vec<Outage>,
}

/// Channel conditions of a frame while it was on air.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passage {
    /// Whether an outage overlapped.
    pub(crate) outage: bool,
    /// Survival probability under the shared process, if there is one.
    pub(crate) survival: Option<f64>,
    /// Delay added by the shared process.
    pub(crate) delay: Span,
}

impl Air {
    pub(crate) fn new(config: &LinkConfig, epoch: Instant, rng: RngStream) -> Self {
        let chain = config.shared.map(|model| Chain::new(&model, epoch, rng.clone()));
        Self { epoch, model: config.shared, chain, rng, outages: config.outages.clone() }
    }

    /// The time to which outages and traces are relative.
    pub(crate) fn epoch(&self) -> Instant {
        self.epoch
    }

    /// Applies new settings at `now`. A running process stays in its state and sojourn; loss rates
    /// and delays change immediately, mean sojourn times with the next sojourn.
    pub(crate) fn reconfigure(&mut self, config: &LinkConfig, now: Instant) {
        self.outages.clone_from(&config.outages);
        self.model = config.shared;
        if let (None, Some(model)) = (&self.chain, &self.model) {
            self.chain = Some(Chain::new(model, now, self.rng.clone()));
        }
    }

    /// Discards history before `before`, which is not queried any more.
    pub(crate) fn forget(&mut self, before: Instant) {
        if let (Some(model), Some(chain)) = (&self.model, &mut self.chain) {
            chain.forget(model, before);
        }
    }

    /// The conditions of a frame that is on air from `from` to `to`.
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
