//! Further paths of terminals: associations that are joined to the relay of another one (RLY-12).

use super::{CONNECT_TIME, Hub};
use crate::PeerId;
use crate::relay::Path;
use association::Limits;
use std::net::SocketAddr;
use units::Instant;

/// A path of the relay of another association.
#[derive(Debug)]
pub(super) struct Joined {
    /// The association that has the relay.
    pub(super) of: PeerId,
    /// The number of the path in the relay.
    pub(super) number: usize,
    /// The path is removed at this time if it has no session.
    pub(super) session_by: Instant,
    /// The source address of the last datagram.
    pub(super) address: Option<SocketAddr>,
}

impl Hub {
    /// Returns the association that has the relay of this one, and the number of its path there.
    pub(super) fn seat(&self, id: PeerId) -> Option<(PeerId, usize)> {
        if self.peers.get(&id).is_some_and(|peer| peer.name.is_none()) {
            return Some((id, 0));
        }
        self.joined.get(&id).map(|joined| (joined.of, joined.number))
    }

    /// Returns the relay of an association, and the number of its path there.
    pub fn path(&mut self, id: PeerId) -> Option<(&mut crate::Relay, usize)> {
        // The caller may change it.
        if let Some((of, _)) = self.seat(id) {
            self.touch(of);
        }
        self.relay_of(id)
    }

    /// As [`path`](Self::path), for calls after which nothing is due.
    pub(super) fn relay_of(&mut self, id: PeerId) -> Option<(&mut crate::Relay, usize)> {
        let (of, number) = self.seat(id)?;
        self.peers.get_mut(&of).map(|peer| (&mut peer.relay, number))
    }

    /// Returns the associations with a path: those of the [relays](Self::peers), except for those
    /// that have ended while their relay continues on another path, and those that are joined to
    /// them.
    pub fn paths(&self) -> Vec<PeerId> {
        let own = self.peers.iter().filter(|(_, peer)| peer.name.is_none()).map(|(&id, _)| id);
        own.chain(self.joined.keys().copied()).collect()
    }

    /// Records a change of a relay, which may be for any of its paths.
    pub(super) fn touch(&mut self, of: PeerId) {
        self.due.touch(of);
        for &id in self.peers.get(&of).map_or(&[][..], |peer| &peer.joined) {
            self.due.touch(id);
        }
    }

    /// Adds the path of a new association, which announced `limits`, to the relay of `sibling`;
    /// returns false if that has no session.
    pub(super) fn join_path(
        &mut self,
        now: Instant,
        id: PeerId,
        (sibling, limits): (PeerId, Limits),
    ) -> bool {
        let Some((of, _)) = self.seat(sibling) else { return false };
        let config = self.config_for(id);
        let cached = self.association.name(id).and_then(|name| self.path_cache.get(name));
        let handshake_rtt = self.association.welcomed_at(id).map(|welcomed| now.since(welcomed));
        let address = self.association.address(id);
        let Some(peer) = self.peers.get_mut(&of).filter(|peer| peer.relay.is_connected()) else {
            return false;
        };
        let number = peer
            .relay
            .join(|number| Path::listening(number, &config, limits, cached, handshake_rtt));
        peer.joined.push(id);
        let session_by = now + CONNECT_TIME;
        self.joined.insert(id, Joined { of, number, session_by, address });
        self.join(id);
        true
    }

    /// Returns whether the path of an association has a session.
    pub(super) fn is_connected(&self, id: PeerId) -> bool {
        let seat = self.seat(id).and_then(|(of, number)| Some((self.peers.get(&of)?, number)));
        seat.is_some_and(|(peer, number)| peer.relay.connected_since_on(number).is_some())
    }
}
