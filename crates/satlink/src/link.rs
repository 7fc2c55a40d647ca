//! The two directions together.

use crate::errors::Air;
use crate::pipeline::Pipeline;
use crate::{Admission, ConfigError, Counters, Delivery, Direction, Frame, LinkConfig, Tally};
use units::{Instant, RngStream};

/// A satellite link: two directions, and the channel that they share.
///
/// Everything that happens is computed from scheduled times. A driver that calls late, or more
/// often than it need, sees the same frames delivered with the same times, and the same ones
/// lost: only offers and changes happen when they are made. Time that runs backwards counts as
/// standing still.
#[derive(Debug)]
pub struct Link<F> {
    forward: Pipeline<F>,
    return_: Pipeline<F>,
    air: Air,
    now: Instant,
}

impl<F: Frame> Link<F> {
    /// A link whose randomness comes from `seed` and `run`, and whose epoch (for outages and
    /// the shared process) is [`Instant::ZERO`].
    pub fn new(config: &LinkConfig, seed: u64, run: u64) -> Result<Self, ConfigError> {
        Self::starting_at(config, seed, run, Instant::ZERO)
    }

    /// As [`Link::new`], with `epoch` as the time from which outages count.
    pub fn starting_at(
        config: &LinkConfig,
        seed: u64,
        run: u64,
        epoch: Instant,
    ) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(Self {
            forward: Pipeline::new(config, Direction::Forward, seed, run),
            return_: Pipeline::new(config, Direction::Return, seed, run),
            air: Air::new(config, epoch, RngStream::new(seed, run, "satlink/shared")),
            now: epoch,
        })
    }

    /// Hands in a frame at `now`. A dropped one is given back.
    pub fn offer(&mut self, now: Instant, direction: Direction, frame: F) -> Admission<F> {
        self.advance(now);
        let now = self.now;
        match direction {
            Direction::Forward => self.forward.offer(now, frame, &mut self.air),
            Direction::Return => self.return_.offer(now, frame, &mut self.air),
        }
    }

    /// The next frame that has arrived by `now`, in the order of their times; of two at the same
    /// time the forward one first.
    pub fn poll_delivery(&mut self, now: Instant) -> Option<Delivery<F>> {
        self.advance(now);
        let forward = self.forward.next_delivery().filter(|&at| at <= self.now);
        let back = self.return_.next_delivery().filter(|&at| at <= self.now);
        let direction = match (forward, back) {
            (None, None) => return None,
            (Some(_), None) => Direction::Forward,
            (None, Some(_)) => Direction::Return,
            (Some(forward), Some(back)) if forward <= back => Direction::Forward,
            (Some(_), Some(_)) => Direction::Return,
        };
        let flight = self.pipeline_mut(direction).deliver(now)?;
        Some(Delivery {
            at: flight.at,
            direction,
            frame: flight.frame,
            offered_at: flight.offered_at,
            sent_at: flight.sent_at,
        })
    }

    /// When to call [`Link::poll_delivery`] next; `None`: nothing is in the link. It may find
    /// nothing then, and name a later time.
    pub fn poll_timeout(&self) -> Option<Instant> {
        match (self.forward.next_event(), self.return_.next_event()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (only, None) | (None, only) => only,
        }
    }

    /// Lets time pass until `now`. Every other call does so too.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
    }

    /// Changes anything from `now` on, without new seeds: what is on the line keeps its end,
    /// what is under way its arrival, what waits its place.
    pub fn reconfigure(&mut self, now: Instant, config: &LinkConfig) -> Result<(), ConfigError> {
        config.validate()?;
        self.advance(now);
        let now = self.now;
        self.air.reconfigure(config, now);
        self.forward.reconfigure(config, now, &mut self.air);
        self.return_.reconfigure(config, now, &mut self.air);
        Ok(())
    }

    /// The accounts of one direction.
    pub fn counters(&self, direction: Direction) -> &Counters {
        self.pipeline(direction).counters()
    }

    /// What waits for the line or is on it, in packets and in bytes on air.
    pub fn backlog(&self, direction: Direction) -> Tally {
        let backlog = self.pipeline(direction).backlog();
        Tally { packets: backlog.packets, bytes: backlog.bytes }
    }

    /// Counts anew what each direction holds, and says whether all accounts balance. Slow: for
    /// tests and invariant checkers.
    pub fn audit(&self) -> bool {
        Direction::BOTH.into_iter().all(|direction| {
            let pipeline = self.pipeline(direction);
            let (packets, bytes) = pipeline.audit();
            let counters = pipeline.counters();
            counters.balances() && counters.held == Tally { packets, bytes }
        })
    }

    fn advance(&mut self, now: Instant) {
        self.now = self.now.max(now);
        let now = self.now;
        let needed = self.forward.on_air_since(now).min(self.return_.on_air_since(now));
        self.air.forget(needed);
        self.forward.advance(now, &mut self.air);
        self.return_.advance(now, &mut self.air);
    }

    fn pipeline(&self, direction: Direction) -> &Pipeline<F> {
        match direction {
            Direction::Forward => &self.forward,
            Direction::Return => &self.return_,
        }
    }

    fn pipeline_mut(&mut self, direction: Direction) -> &mut Pipeline<F> {
        match direction {
            Direction::Forward => &mut self.forward,
            Direction::Return => &mut self.return_,
        }
    }
}

#[cfg(test)]
mod tests;
