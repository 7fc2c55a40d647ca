//! What must hold at the end of a storm. What must hold at each byte and at each end of a stream is
//! checked while it is read, in [`task`](super::task).

pub(super) mod outcome;
pub(super) mod shares;

use super::world::World;
use crate::engine::Held;
use units::Span;

/// How long gateways may hold on to something after the last connection, besides the time for what
/// they have to send: a terminal finds a vanished client, and a hub a stream whose terminal is gone,
/// by timers of this order.
const LINGER: Span = Span::from_secs(300);
/// Descriptors that a gateway has besides those of connections: the one in reserve, and a UDP
/// socket for each of at most two paths.
const OWN_DESCRIPTORS: usize = 3;

/// Waits until everything that was held for connections is given back.
///
/// # Errors
/// What is not.
pub(super) fn all_given_back(world: &mut World) -> Result<(), String> {
    let buffered: u64 = world.held().iter().map(|held| held.buffered).sum();
    // Twice, because of retransmissions and headers.
    let limit = world.now() + LINGER + world.slowest_link().time_for(2 * buffered);
    // A server whose client has gone at once may still be connected to.
    let is_idle = |world: &mut World| {
        let over = world.tasks.iter().all(|task| task.is_over());
        over && world.is_whole() && world.held().iter().all(|held| *held == Held::default())
    };
    if !world.run(limit, is_idle)? {
        return Err(format!("not given back: {:?}", world.held()));
    }
    let net = world.net.net();
    for (number, node) in net.nodes.iter().enumerate() {
        if node.open > OWN_DESCRIPTORS || !node.lookups.is_empty() {
            return Err(format!(
                "gateway {number} has {} descriptors and {} lookups in the end",
                node.open,
                node.lookups.len()
            ));
        }
    }
    Ok(())
}
