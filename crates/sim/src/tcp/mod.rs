//! TCP in a network: hosts with many connections each, for bulk flows.
//!
//! Payload is not copied: segments name their octets, and the sink verifies that each flow's octets
//! arrive in order and once. This makes hundreds of flows cheap.

mod hosts;
mod sink;
mod source;

pub use sink::{Flow, TcpSink};
pub use source::{FlowPlan, TcpSource};

use crate::network::Address;

/// The pattern of a connection from `client`.
fn content_of(client: Address) -> u64 {
    (client.node.index() as u64) << 16 | u64::from(client.port)
}

#[cfg(test)]
mod tests;
