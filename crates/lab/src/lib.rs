//! Experiments, benchmarks, system tests and the demo.
//!
//! ```text
//!                 ┌─ experiments  published results, reproduced and evaluated ─▶ JSON, CSV, HTML
//!                 ├─ scenario     questions in files ─▶ CSV, figures
//!   sim ──────────┼─ fuzz         fault-injection runs, one per seed
//!                 ├─ watch        one simulated run with captures and samples
//!                 └─ passes       delays over satellites in low orbits ─▶ traces
//!
//!                 ┌─ bench        transports on emulated links, measured against bounds ─▶ JSON
//!   testbed ─ live┼─ demo         four transports side by side, in a terminal
//!                 └─ proof        guarantees of real gateways under injected faults
//! ```
//!
//! Benchmarks report a value with its bound, and the caller decides whether it fails.
//! The bound of a bulk transfer is the link rate without the losses and headers:
//!
//! ```
//! use lab::bench::bound;
//! use units::BitRate;
//!
//! // 10 Mbit/s with 1 % packet loss and no bit errors; 1440 of 1500 octets are payload.
//! let bps = bound(BitRate::from_mbps(10), 0.01, 0.0);
//! assert_eq!(bps.round(), 9_504_000.0);
//! ```

pub mod bench;
mod csv;
pub mod demo;
mod document;
mod error;
pub mod experiments;
mod files;
pub mod fuzz;
pub mod live;
pub mod passes;
pub mod plot;
pub mod proof;
pub mod scenario;
mod schema;
pub mod threads;
pub mod watch;

pub use error::LabError;
