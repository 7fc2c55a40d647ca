//! Experiments, the demo and the benchmarks.
