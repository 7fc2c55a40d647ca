//! Time, rate and randomness, as every other crate counts them.
//!
//! ```text
//!   Instant ── nanoseconds since an epoch that the driver chose
//!   Span    ── a length of time, nanoseconds
//!   BitRate ── bits per second; turns bytes into spans without losing a remainder
//!   RngStream ── one component's randomness, from (seed, run, name)
//! ```
//!
//! Nothing here can reach a clock or a global generator: time is handed in by the driver
//! (virtual in `sim`, real in `rt`), and every random stream is derived from a seed that
//! somebody chose.
//!
//! ```
//! use units::{BitRate, Instant, RngStream, Span};
//!
//! let rate = BitRate::from_mbps(10);
//! let start = Instant::ZERO;
//! assert_eq!(start + rate.time_for(1500), Instant::from_nanos(1_200_000));
//!
//! let mut loss = RngStream::new(1, 0, "forward/loss");
//! let again = RngStream::new(1, 0, "forward/loss").next_u64();
//! assert_eq!(loss.next_u64(), again);
//! assert!(Span::from_millis(250) < Span::from_secs(1));
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
