//! Traces of whole connections, worked out by hand from the RFCs.

mod berkeley;
mod faults;
mod laws;
mod opening;
mod windows;
mod wire;
