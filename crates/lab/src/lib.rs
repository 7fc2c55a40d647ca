//! Experiments, the demo and the benchmarks.
//!
//! ```text
//!   experiments  published results, run again and judged: `bentpipe lab`
//!   live         one network with an emulated satellite link, one way of carrying TCP over it
//!   bench        what each way reaches, against what it must reach, as JSON
//!   demo         four ways side by side, for people
//!   watch        one simulated run, captured and sampled
//!   fuzz         storms, one for each seed
//!   proof        gateways to which something is done, and what was lost
//! ```

pub mod bench;
pub mod demo;
mod error;
pub mod experiments;
mod files;
pub mod fuzz;
pub mod live;
pub mod plot;
pub mod proof;
pub mod watch;

pub use error::LabError;
