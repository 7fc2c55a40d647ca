//! Link configuration: two directions, and what they share.

use crate::errors::{GilbertElliott, Outage, TwoStateMarkov};
use crate::queue::{Discipline, Limit, QueueConfig, Red};
use crate::trace::Trace;
use crate::{Direction, Framing};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use units::{BitRate, Span};

/// Maximum framing overhead of a packet or a cell, and maximum cell size, in octets; larger values
/// could overflow sums.
const MOST_FRAMING: u32 = 65_535;

/// A link.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkConfig {
    /// From the hub to the terminal.
    pub forward: DirectionConfig,
    /// From the terminal to the hub.
    pub return_: DirectionConfig,
    /// A fading process shared by both directions.
    pub shared: Option<TwoStateMarkov>,
    /// Outages.
    pub outages: Vec<Outage>,
}

/// One direction of a link. The default has no rate limit, no delay and no loss.
#[derive(Clone, Debug, PartialEq)]
pub struct DirectionConfig {
    /// The transmit queue.
    pub queue: QueueConfig,
    /// Rate of the link transmitter in bit/s, framing included; `None`: no serialization delay.
    pub rate: Option<BitRate>,
    /// The link layer's overhead.
    pub framing: Framing,
    /// Probability that a packet is lost, independently and regardless of its length.
    pub loss: f64,
    /// Bit error ratio; a packet with an error is lost. The loss probability of `n` bits on air is
    /// `1 - (1 - ratio)^n`.
    pub bit_error_ratio: f64,
    /// Burst losses, in packets.
    pub gilbert: Option<GilbertElliott>,
    /// Propagation delay: from the end of transmission to the delivery.
    pub delay: Span,
    /// Random variation of the delay.
    pub jitter: Jitter,
    /// Whether jitter preserves the order: a packet then waits for those before it.
    pub keep_order: bool,
    /// Probability of duplication; the copy is queued, sent and lost like any packet, as in netem.
    pub duplicate: f64,
    /// Reordering: packets that skip the delay.
    pub reorder: Option<Reorder>,
    /// The course of rate, delay and loss over time, in place of the values above.
    pub trace: Option<Arc<Trace>>,
}

impl Default for DirectionConfig {
    fn default() -> Self {
        Self {
            queue: QueueConfig::default(),
            rate: None,
            framing: Framing::Plain,
            loss: 0.0,
            bit_error_ratio: 0.0,
            gilbert: None,
            delay: Span::ZERO,
            jitter: Jitter::None,
            keep_order: true,
            duplicate: 0.0,
            reorder: None,
            trace: None,
        }
    }
}

/// Distribution of the delay variation. Negative delays are set to zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Jitter {
    /// No variation.
    #[default]
    None,
    /// Uniform between minus and plus this value (netem's `delay TIME JITTER`).
    Uniform(Span),
    /// Normal with this standard deviation.
    Normal(Span),
}

/// netem's reordering: of each `gap` packets the last skips the delay with this probability. With a
/// gap of 1 every packet may.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reorder {
    /// Probability that an eligible packet skips the delay.
    pub probability: f64,
    /// Minimum distance between two packets that skip the delay; at least 1.
    pub gap: u32,
}

impl LinkConfig {
    /// A link with two equal directions.
    pub fn symmetric(direction: DirectionConfig) -> Self {
        Self { forward: direction.clone(), return_: direction, shared: None, outages: Vec::new() }
    }

    /// The configuration of one direction.
    pub fn direction(&self, direction: Direction) -> &DirectionConfig {
        match direction {
            Direction::Forward => &self.forward,
            Direction::Return => &self.return_,
        }
    }

    /// The configuration of one direction, mutable.
    pub fn direction_mut(&mut self, direction: Direction) -> &mut DirectionConfig {
        match direction {
            Direction::Forward => &mut self.forward,
            Direction::Return => &mut self.return_,
        }
    }

    /// Round-trip time without queuing: both delays, and twice the shorter delay of the first state
    /// of the shared process.
    pub fn round_trip(&self) -> Span {
        let shared = self.shared.as_ref().map_or(Span::ZERO, |chain| {
            let [first, second] = chain.states[0].delays;
            first.min(second)
        });
        self.forward.delay + self.return_.delay + shared * 2
    }

    /// The queue of this direction, with its limits in packets or octets.
    pub(crate) fn queue(&self, direction: Direction) -> QueueConfig {
        let QueueConfig { discipline, limit } = self.direction(direction).queue;
        let resolve = |limit| self.resolve(direction, limit);
        let discipline = match discipline {
            Discipline::Red(red) => {
                let (lower, upper) = (resolve(red.lower), resolve(red.upper));
                Discipline::Red(Red { lower, upper, ..red })
            }
            Discipline::DropTail
            | Discipline::Fair { .. }
            | Discipline::CoDel(_)
            | Discipline::FairCoDel { .. }
            | Discipline::DualPi2(_) => discipline,
        };
        QueueConfig { discipline, limit: resolve(limit) }
    }

    fn resolve(&self, direction: Direction, limit: Limit) -> Limit {
        let Limit::BandwidthDelay(products) = limit else { return limit };
        let Some(rate) = self.direction(direction).rate else { return Limit::Bytes(u64::MAX) };
        let bytes = rate.bytes_in(self.round_trip()) as f64 * products;
        // At least two full packets, because a short link would carry nothing otherwise.
        Limit::Bytes((bytes as u64).max(3_000))
    }

    /// Checks all values.
    pub fn validate(&self) -> Result<(), ConfigError> {
        for direction in Direction::BOTH {
            self.direction(direction).validate(direction)?;
            self.validate_red(direction)?;
        }
        if let Some(chain) = &self.shared {
            for state in &chain.states {
                probability("shared drop rate", None, state.drop)?;
                probability("chance of the second delay", None, state.second_delay)?;
                if state.mean_stay < Span::from_millis(1) {
                    return Err(ConfigError::StayTooShort { found: state.mean_stay });
                }
            }
        }
        for outage in &self.outages {
            if outage.every.is_some_and(|period| period <= outage.length) {
                return Err(ConfigError::OutageWithoutEnd);
            }
        }
        Ok(())
    }

    fn validate_red(&self, direction: Direction) -> Result<(), ConfigError> {
        let queue = self.queue(direction);
        let Discipline::Red(red) = queue.discipline else { return Ok(()) };
        match (queue.limit, red.lower, red.upper) {
            (Limit::Packets(_), Limit::Packets(lower), Limit::Packets(upper))
            | (Limit::Bytes(_), Limit::Bytes(lower), Limit::Bytes(upper))
                if lower < upper =>
            {
                Ok(())
            }
            (..) => Err(ConfigError::RedThresholds { direction }),
        }
    }
}

impl DirectionConfig {
    fn validate(&self, direction: Direction) -> Result<(), ConfigError> {
        let at = Some(direction);
        probability("loss", at, self.loss)?;
        probability("bit error ratio", at, self.bit_error_ratio)?;
        probability("duplication", at, self.duplicate)?;
        if let Some(model) = &self.gilbert {
            for part in [model.to_bad, model.to_good, model.loss_in_bad, model.loss_in_good] {
                probability("Gilbert-Elliott parameter", at, part)?;
            }
        }
        if let Some(reorder) = &self.reorder {
            probability("reordering", at, reorder.probability)?;
            if reorder.gap == 0 {
                return Err(ConfigError::ZeroGap { direction });
            }
        }
        if let Framing::Cells { overhead, cell_size, cell_overhead } = self.framing {
            let found = overhead.max(cell_size).max(cell_overhead);
            if found > MOST_FRAMING {
                return Err(ConfigError::FramingTooLarge { direction, found });
            }
        }
        match self.queue.limit {
            Limit::Packets(0) | Limit::Bytes(0) => return Err(ConfigError::NoRoom { direction }),
            Limit::BandwidthDelay(products) if !(products > 0.0 && products.is_finite()) => {
                return Err(ConfigError::NoRoom { direction });
            }
            Limit::Packets(_) | Limit::Bytes(_) | Limit::BandwidthDelay(_) => {}
        }
        match &self.queue.discipline {
            Discipline::DropTail => Ok(()),
            Discipline::Red(red) => {
                probability("RED's largest probability", at, red.largest_probability)?;
                probability("RED's weight", at, red.weight)
            }
            Discipline::Fair { quantum } | Discipline::FairCoDel { quantum, .. }
                if *quantum < 64 =>
            {
                Err(ConfigError::QuantumTooSmall { direction, found: *quantum })
            }
            Discipline::CoDel(codel) | Discipline::FairCoDel { codel, .. }
                if codel.target.is_zero() || codel.interval <= codel.target =>
            {
                Err(ConfigError::CoDelTimes { direction })
            }
            Discipline::DualPi2(dual)
                if dual.target < Span::from_millis(1) || dual.max_round_trip < dual.target =>
            {
                Err(ConfigError::DualPi2Times { direction })
            }
            Discipline::Fair { .. }
            | Discipline::CoDel(_)
            | Discipline::FairCoDel { .. }
            | Discipline::DualPi2(_) => Ok(()),
        }
    }
}

fn probability(
    what: &'static str,
    direction: Option<Direction>,
    found: f64,
) -> Result<(), ConfigError> {
    if (0.0..=1.0).contains(&found) {
        Ok(())
    } else {
        Err(ConfigError::NotAProbability { what, direction, found })
    }
}

/// Why a configuration is invalid.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ConfigError {
    /// A probability is below 0, above 1, or not a number.
    NotAProbability {
        /// The setting.
        what: &'static str,
        /// The direction; `None`: shared by both.
        direction: Option<Direction>,
        /// The value.
        found: f64,
    },
    /// The queue's limit is zero.
    NoRoom {
        /// The direction.
        direction: Direction,
    },
    /// The reordering gap is zero.
    ZeroGap {
        /// The direction.
        direction: Direction,
    },
    /// A mean sojourn time is below 1 ms.
    StayTooShort {
        /// The value.
        found: Span,
    },
    /// A periodic outage is as long as its period.
    OutageWithoutEnd,
    /// A fair queue's quantum is below 64 octets.
    QuantumTooSmall {
        /// The direction.
        direction: Direction,
        /// The value.
        found: u32,
    },
    /// CoDel's target is zero, or not below its interval.
    CoDelTimes {
        /// The direction.
        direction: Direction,
    },
    /// DualPI2's target is below 1 ms, or above its maximum round trip.
    DualPi2Times {
        /// The direction.
        direction: Direction,
    },
    /// Framing overhead or cell size exceeds 65,535 octets.
    FramingTooLarge {
        /// The direction.
        direction: Direction,
        /// The value.
        found: u32,
    },
    /// RED's thresholds do not have the unit of its limit, or are not in order.
    RedThresholds {
        /// The direction.
        direction: Direction,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAProbability { what, direction: Some(direction), found } => {
                write!(f, "{direction} {what}: found {found}, expected a share from 0 to 1")
            }
            Self::NotAProbability { what, direction: None, found } => {
                write!(f, "{what}: found {found}, expected a share from 0 to 1")
            }
            Self::NoRoom { direction } => {
                write!(f, "{direction} queue: found a limit of 0, expected at least one packet")
            }
            Self::ZeroGap { direction } => {
                write!(f, "{direction} reordering: found a gap of 0, expected at least 1")
            }
            Self::StayTooShort { found } => {
                write!(f, "mean stay: found {found}, expected at least 1 ms")
            }
            Self::OutageWithoutEnd => {
                f.write_str("outage: found one as long as its period, expected a shorter one")
            }
            Self::QuantumTooSmall { direction, found } => {
                write!(
                    f,
                    "{direction} fair queue: found a quantum of {found}, expected at least 64"
                )
            }
            Self::CoDelTimes { direction } => {
                write!(f, "{direction} codel: expected 0 < target < interval")
            }
            Self::DualPi2Times { direction } => {
                write!(f, "{direction} dualpi2: expected 1 ms <= target <= maximum round trip")
            }
            Self::FramingTooLarge { direction, found } => {
                write!(f, "{direction} framing: found {found} bytes, expected at most 65535")
            }
            Self::RedThresholds { direction } => write!(
                f,
                "{direction} RED: found thresholds out of order or in another unit than the \
                 limit, expected lower < upper, both in packets or both in bytes"
            ),
        }
    }
}

impl core::error::Error for ConfigError {}
