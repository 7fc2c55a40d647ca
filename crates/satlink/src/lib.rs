//! Model of a satellite channel: what the link does to a packet, without I/O and without a clock.
//!
//! ```text
//!            ┌───────┐   ┌──────────────┐   ┌─────────────┐   ┌──────────────┐
//!  offer ──▶ │ queue │──▶│ transmitter: │──▶│ errors,     │──▶│ propagation: │──▶ poll_delivery
//!            │ limit │   │ rate, framing│   │ outages,    │   │ delay,       │
//!            └───────┘   └──────────────┘   │ fading ◀────┼─┐ │ jitter,      │
//!                                           └─────────────┘ │ │ reordering   │
//!  the opposite direction likewise                          │ └──────────────┘
//!                                                           └── shared by both directions
//! ```
//!
//! The simulator drives a [`Link`] in virtual time, the emulator in real time. Effects are
//! computed from scheduled times, so a late call changes nothing. Each component draws from a
//! random stream derived from `(seed, run)`. Packets are conserved at all times:
//! `offered + duplicated = delivered + dropped + held` ([`Counters`]).
//!
//! ```
//! use satlink::{profiles, Admission, Direction, Link};
//! use units::{Instant, Span};
//!
//! let config = profiles::by_name("geo").expect("the geostationary profile");
//! let mut link: Link<Vec<u8>> = Link::new(&config, 1, 0)?;
//! let admission = link.offer(Instant::ZERO, Direction::Forward, vec![0; 1500]);
//! assert!(matches!(admission, Admission::Queued));
//! let due = link.poll_timeout().expect("a packet in flight");
//! let delivery = link.poll_delivery(due).expect("its delivery");
//! // 1500 octets at 10 Mbit/s, then 300 ms.
//! assert_eq!(delivery.at, Instant::ZERO + Span::from_micros(301_200));
//! # Ok::<(), satlink::ConfigError>(())
//! ```
//!
//! A [`LinkConfig`] is built from its fields, from a profile ([`profiles`]), or from a description
//! in the syntax of tc-netem(8) ([`words`]).
#![forbid(unsafe_code)]
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod compression;
mod config;
mod counters;
mod errors;
mod frame;
mod framing;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod link;
pub mod mac;
mod pipeline;
pub mod profiles;
mod propagation;
mod queue;
pub mod reference;
pub mod tnc;
pub mod trace;
pub mod words;

pub use config::{ConfigError, DirectionConfig, Jitter, LinkConfig, Reorder};
pub use counters::{Counters, Tally};
pub use errors::{GilbertElliott, MarkovState, Outage, TwoStateMarkov};
pub use frame::{Admission, Delivery, Direction, DropCause, Frame};
pub use framing::Framing;
pub use link::Link;
pub use queue::{CoDel, Discipline, DualPi2, Limit, QueueConfig, Red};
pub use trace::Trace;
