//! Checks that hold the architecture.
fn main() {}
