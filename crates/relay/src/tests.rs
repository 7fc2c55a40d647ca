//! Tests that involve several modules.

mod vectors;
