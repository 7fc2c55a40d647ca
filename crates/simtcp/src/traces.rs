//! Traces of whole connections, worked out by hand from the RFCs.

mod faults;
mod windows;
mod wire;
