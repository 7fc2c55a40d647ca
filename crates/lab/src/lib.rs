//! Experiments, the demo and the benchmarks.

pub mod bench {
    //! The benchmarks.
    pub mod emulator;
}
pub mod plot;
