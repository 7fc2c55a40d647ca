//! TCP in a network: hosts with many connections each, for bulk flows.
//!
//! Nothing is copied: segments say which bytes they carry, and the sink checks that each flow's
//! come in order, once, and are its own. So hundreds of flows cost little.

mod hosts;
mod sink;
mod source;

pub use sink::{Flow, TcpSink};
pub use source::{FlowPlan, TcpSource};

use crate::network::Address;

/// The number of the bytes that a connection from `client` carries.
fn content_of(client: Address) -> u64 {
    (client.node.index() as u64) << 16 | u64::from(client.port)
}

#[cfg(test)]
mod tests;
