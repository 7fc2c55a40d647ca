//! Time, rate and randomness in the units that every crate of the workspace uses.
//!
//! ```text
//!   Instant ──── nanoseconds since an epoch that the driver chooses ─┐
//!      ▲ +                                                           │ u64, no clock
//!   Span ─────── duration in nanoseconds ────────────────────────────┘
//!      ▲ time_for(octets)
//!   BitRate ──── bits per second; Serializer carries the remainders of its divisions
//!
//!   RngStream ── random numbers of one component, derived from (seed, run, name)
//! ```
//!
//! This crate has no access to a clock or to a global random generator. The driver passes the
//! time: virtual in `sim`, real in `rt`. Each component draws from a stream of its own, so that
//! the draws of one never change those of another.
//!
//! ```
//! use units::{BitRate, Instant, RngStream, Span};
//!
//! let rate = BitRate::from_mbps(10);
//! assert_eq!(Instant::ZERO + rate.time_for(1500), Instant::from_nanos(1_200_000));
//! assert!(Span::from_millis(250) < Span::from_secs(1));
//!
//! let mut loss = RngStream::new(1, 0, "forward/loss");
//! let mut same = RngStream::new(1, 0, "forward/loss");
//! assert_eq!(loss.next_u64(), same.next_u64());
//! ```
#![forbid(unsafe_code)]
#![no_std]

#[cfg(test)]
extern crate std;

mod rate;
mod rng;
mod time;

pub use rate::{BitRate, Serializer};
pub use rng::RngStream;
pub use time::{Instant, Span};
