//! What concerns more than one module.

mod vectors;
