//! XSTP, the eXtended Satellite Transport Protocol, without I/O and without a clock.
#![forbid(unsafe_code)]
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod congestion;
mod connection;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod seq;
pub mod session;
pub mod wire;

pub use connection::{Connection, WriteError};
pub use seq::Seq24;
