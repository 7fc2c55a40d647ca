//! A link with both directions.

use crate::errors::Air;
use crate::pipeline::Pipeline;
use crate::{Admission, ConfigError, Counters, Delivery, Direction, Frame, LinkConfig, Tally};
use units::{Instant, RngStream};

/// A satellite link: two directions, and the channel that they share.
///
/// All events are computed from scheduled times. The time and number of calls do not affect which
/// frames are delivered or lost, nor their times; only offers and changes take effect when they are
/// made. If time runs backwards it counts as unchanged.
#[derive(Debug)]
pub struct Link<F> {
    forward: Pipeline<F>,
    return_: Pipeline<F>,
    air: Air,
    now: Instant,
}

impl<F: Frame> Link<F> {
    /// A link whose random numbers derive from `seed` and `run`, and whose epoch (for outages and
    /// the shared process) is [`Instant::ZERO`].
    pub fn new(config: &LinkConfig, seed: u64, run: u64) -> Result<Self, ConfigError> {
        Self::starting_at(config, seed, run, Instant::ZERO)
    }

    /// As [`Link::new`], with `epoch` as the time to which outages are relative.
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

    /// Offers a frame at `now`. A dropped frame is returned.
    pub fn offer(&mut self, now: Instant, direction: Direction, frame: F) -> Admission<F> {
        self.advance(now);
        let now = self.now;
        match direction {
            Direction::Forward => self.forward.offer(now, frame, &mut self.air),
            Direction::Return => self.return_.offer(now, frame, &mut self.air),
        }
    }

    /// The next frame that has arrived by `now`, in order of time; of two at the same time the
    /// forward one first.
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

    /// Returns when to call [`Link::poll_delivery`] next; `None`: the link is empty. That call may
    /// find nothing and a later time be returned.
    pub fn poll_timeout(&self) -> Option<Instant> {
        match (self.forward.next_event(), self.return_.next_event()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (only, None) | (None, only) => only,
        }
    }

    /// Advances to `now`. Every other call does this as well.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
    }

    /// Changes the configuration from `now` on, with the same random streams. Frames in
    /// transmission and in propagation keep their times; queued ones keep their place.
    pub fn reconfigure(&mut self, now: Instant, config: &LinkConfig) -> Result<(), ConfigError> {
        config.validate()?;
        self.advance(now);
        let now = self.now;
        self.air.reconfigure(config, now);
        self.forward.reconfigure(config, now, &mut self.air);
        self.return_.reconfigure(config, now, &mut self.air);
        Ok(())
    }

    /// Counters of one direction.
    pub fn counters(&self, direction: Direction) -> &Counters {
        self.pipeline(direction).counters()
    }

    /// Frames queued or in transmission, with octets on air.
    pub fn backlog(&self, direction: Direction) -> Tally {
        let backlog = self.pipeline(direction).backlog();
        Tally { packets: backlog.packets, bytes: backlog.bytes }
    }

    /// Recounts the frames of each direction; returns whether packet conservation holds. Slow: for
    /// tests and invariant checks.
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
