//! What a link is: its two directions, and what they share.

use crate::errors::{GilbertElliott, Outage, TwoStateMarkov};
use crate::queue::{Discipline, Limit, QueueConfig, Red};
use crate::{Direction, Framing};
use alloc::vec::Vec;
use core::fmt;
use units::{BitRate, Span};

/// What framing may add to a packet or a cell, and the largest cell, bytes: beyond it sums of sizes
/// mean nothing any more.
const MOST_FRAMING: u32 = 65_535;

/// A whole link.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkConfig {
    /// From the hub to the terminal.
    pub forward: DirectionConfig,
    /// From the terminal to the hub.
    pub return_: DirectionConfig,
    /// A fading process that both directions see at the same time.
    pub shared: Option<TwoStateMarkov>,
    /// When nothing gets through.
    pub outages: Vec<Outage>,
}

/// One direction of a link. The default passes everything at once: no rate, no delay, no loss.
#[derive(Clone, Debug, PartialEq)]
pub struct DirectionConfig {
    /// Where frames wait for the line.
    pub queue: QueueConfig,
    /// Bits per second on the line, framing included; `None`: no time at all.
    pub rate: Option<BitRate>,
    /// What the link layer adds.
    pub framing: Framing,
    /// Share of the packets lost, each on its own, whatever its length.
    pub loss: f64,
    /// Share of the bits in error; a packet with one is lost, so that of `n` bits on air
    /// `1 - (1 - ratio)^n` are.
    pub bit_error_ratio: f64,
    /// Losses in bursts that are counted in packets.
    pub gilbert: Option<GilbertElliott>,
    /// From the last bit's leaving to the packet's delivery.
    pub delay: Span,
    /// What chance adds to the delay or takes from it.
    pub jitter: Jitter,
    /// Whether a packet waits for those before it when jitter would have it overtake them.
    pub keep_order: bool,
    /// Share of the packets that are offered twice; the copy waits, is sent and is lost like
    /// any other, as netem's does.
    pub duplicate: f64,
    /// Packets that skip the delay.
    pub reorder: Option<Reorder>,
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
        }
    }
}

/// The distribution of what is added to the delay. Delays below zero are zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Jitter {
    /// Nothing.
    #[default]
    None,
    /// Evenly between minus this and plus this (netem's `delay TIME JITTER`).
    Uniform(Span),
    /// Normally distributed with this standard deviation.
    Normal(Span),
}

/// netem's reordering: of each run of `gap` packets the last skips the delay, with this
/// probability. With a gap of 1 every packet may.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reorder {
    /// How likely a packet whose turn it is skips the delay.
    pub probability: f64,
    /// At least this many packets less one are delayed between two that are not; at least 1.
    pub gap: u32,
}

impl LinkConfig {
    /// Both directions alike.
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

    /// The configuration of one direction, to change.
    pub fn direction_mut(&mut self, direction: Direction) -> &mut DirectionConfig {
        match direction {
            Direction::Forward => &mut self.forward,
            Direction::Return => &mut self.return_,
        }
    }

    /// Out and back without queueing: both delays, and twice the shorter delay of the shared
    /// process's first state.
    pub fn round_trip(&self) -> Span {
        let shared = self.shared.as_ref().map_or(Span::ZERO, |chain| {
            let [first, second] = chain.states[0].delays;
            first.min(second)
        });
        self.forward.delay + self.return_.delay + shared * 2
    }

    /// The queue of this direction, its limits in packets or bytes.
    pub(crate) fn queue(&self, direction: Direction) -> QueueConfig {
        let QueueConfig { discipline, limit } = self.direction(direction).queue;
        let resolve = |limit| self.resolve(direction, limit);
        let discipline = match discipline {
            Discipline::Red(red) => {
                let (lower, upper) = (resolve(red.lower), resolve(red.upper));
                Discipline::Red(Red { lower, upper, ..red })
            }
            Discipline::DropTail | Discipline::Fair { .. } => discipline,
        };
        QueueConfig { discipline, limit: resolve(limit) }
    }

    fn resolve(&self, direction: Direction, limit: Limit) -> Limit {
        let Limit::BandwidthDelay(products) = limit else { return limit };
        let Some(rate) = self.direction(direction).rate else { return Limit::Bytes(u64::MAX) };
        let bytes = rate.bytes_in(self.round_trip()) as f64 * products;
        // Never below two full packets, or a short link would pass nothing.
        Limit::Bytes((bytes as u64).max(3_000))
    }

    /// Checks every number of the link.
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
            Discipline::Fair { quantum } if *quantum < 64 => {
                Err(ConfigError::QuantumTooSmall { direction, found: *quantum })
            }
            Discipline::Fair { .. } => Ok(()),
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

/// Why a link cannot be built.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ConfigError {
    /// A share is below 0, above 1, or not a number.
    NotAProbability {
        /// Which.
        what: &'static str,
        /// Where; `None`: shared by both.
        direction: Option<Direction>,
        /// What was given.
        found: f64,
    },
    /// The queue's limit is zero.
    NoRoom {
        /// Where.
        direction: Direction,
    },
    /// The reordering gap is zero.
    ZeroGap {
        /// Where.
        direction: Direction,
    },
    /// A mean stay is below a millisecond.
    StayTooShort {
        /// What was given.
        found: Span,
    },
    /// A periodic outage is as long as its period.
    OutageWithoutEnd,
    /// A fair queue's quantum is below 64 bytes.
    QuantumTooSmall {
        /// Where.
        direction: Direction,
        /// What was given.
        found: u32,
    },
    /// Framing adds, or its cells hold, more than 65,535 bytes.
    FramingTooLarge {
        /// Where.
        direction: Direction,
        /// What was given.
        found: u32,
    },
    /// RED's thresholds are not in the unit of its limit, or not in order.
    RedThresholds {
        /// Where.
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
