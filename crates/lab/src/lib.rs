//! Experiments, the demo and the benchmarks.

pub mod plot;
