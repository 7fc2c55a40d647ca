//! Traces of whole connections, computed from the RFCs.

mod berkeley;
mod faults;
mod laws;
mod opening;
mod windows;
mod wire;
