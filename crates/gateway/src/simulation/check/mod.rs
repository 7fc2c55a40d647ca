//! Checks at the end of a run. Each byte and each end of a stream is checked when it is read, in
//! [`task`](super::task).

pub(super) mod outcome;
pub(super) mod shares;

use super::world::World;
use crate::engine::Held;
use crate::simulation::net::tcp::Conn;
use units::Span;

/// Time for which gateways may hold resources after the last connection, besides the time for what
/// they have to send: a terminal detects a vanished client, and a hub a stream of a vanished
/// terminal, by timers of this order.
const LINGER: Span = Span::from_secs(300);
/// Descriptors of a gateway other than those of connections: the reserved one, and a UDP socket for
/// each of at most two paths and for DNS.
const OWN_DESCRIPTORS: usize = 4;

/// Waits until all resources of connections are released.
///
/// # Errors
/// Returns the resources that are not.
pub(super) fn all_released(world: &mut World) -> Result<(), String> {
    let in_sockets: u64 = world.net.net().conns.iter().map(Conn::unread).sum();
    let buffered: u64 = in_sockets + world.held().iter().map(|held| held.buffered).sum::<u64>();
    // Twice, because of retransmissions and headers.
    let limit = world.now() + LINGER + world.slowest_link().time_for(2 * buffered);
    // A hub may still be connecting to a server whose client has closed.
    let is_idle = |world: &mut World| {
        let over = world.tasks.iter().all(|task| task.is_over());
        over && world.is_whole() && world.held().iter().all(|held| *held == Held::default())
    };
    if !world.run(limit, is_idle)? {
        return Err(format!("resources not released: {:?}", world.held()));
    }
    let net = world.net.net();
    let names = &net.name_service;
    if names.replies > names.queries {
        return Err(format!("{} DNS queries have {} replies", names.queries, names.replies));
    }
    for (number, node) in net.nodes.iter().enumerate() {
        if node.open > OWN_DESCRIPTORS || !node.lookups.is_empty() {
            return Err(format!(
                "gateway {number} has {} descriptors and {} lookups at the end",
                node.open,
                node.lookups.len()
            ));
        }
    }
    Ok(())
}
