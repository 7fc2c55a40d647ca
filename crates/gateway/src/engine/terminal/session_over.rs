//! What becomes of a terminal's connections when a session with a hub has ended.

use super::Terminal;
use crate::engine::accept::stage::{TerminalCore, TerminalStage};
use crate::engine::peers::peer::Peer;
use crate::proxy::RefuseReason;
use relay::DisconnectReason;
use units::Instant;

impl Terminal {
    /// Resets the connections of a session with a hub that has ended.
    pub(super) fn session_over(
        &mut self,
        core: &mut TerminalCore,
        now: Instant,
        peer: Peer,
        reason: DisconnectReason,
    ) {
        if reason == DisconnectReason::Closed {
            tracing::info!("session closed by the hub");
        } else {
            tracing::warn!(?reason, "hub session lost, connections reset");
        }
        for index in core.connections_to(peer) {
            core.counters.lost_with_peer += 1;
            core.set_close_cause(index, "hub session lost");
            core.detach(index);
            let reason = match core.connections[index].stage {
                TerminalStage::SynHeld(_) => RefuseReason::NetworkUnreachable,
                _ => RefuseReason::Other,
            };
            self.stream_gone(core, now, index, reason, "hub session lost");
        }
    }
}
