//! End of paths and of relays at a hub.

use super::{Hub, Peer};
use crate::{DisconnectReason, Event, PeerId};
use units::{Instant, Span};

impl Hub {
    /// Ends all sessions in order, and accepts no association any more; see [`Relay::drain`](crate::Relay::drain).
    pub fn drain(&mut self) {
        self.association.drain();
        for (&id, peer) in &mut self.peers {
            peer.relay.drain();
            self.due.touch(id);
        }
    }

    /// Leaves new streams to another process of this hub, and accepts no association any more. Ends
    /// the sessions in order: those with terminals that continue in another association
    /// immediately, and each of the others when it has no streams; the caller repeats this.
    pub fn hand_over(&mut self) {
        self.association.drain();
        for (&id, peer) in &mut self.peers {
            let may_end = peer.relay.can_overlap() || peer.relay.statistics().streams == 0;
            if may_end && !peer.relay.is_draining() {
                peer.relay.drain();
                self.due.touch(id);
            }
        }
    }

    /// Returns whether new associations are rejected.
    pub fn is_draining(&self) -> bool {
        self.association.is_draining()
    }

    /// Sets whether other processes of this hub have associations too: see
    /// [`association::Hub::set_shared`].
    pub fn set_shared(&mut self, is_shared: bool) {
        self.association.set_shared(is_shared);
    }

    /// Resets all sessions, so that the terminals detect the stop immediately. The caller polls for
    /// the final datagrams.
    pub fn close(&mut self, now: Instant) {
        for (&id, peer) in &mut self.peers {
            peer.relay.close(now);
            self.due.touch(id);
        }
    }

    /// Removes a relay whose session has ended, unless its association remains, in which the
    /// terminal may start another session. A removed terminal makes a new association.
    pub(super) fn part_if_lost(&mut self, now: Instant, id: PeerId) {
        let Some((of, number)) = self.seat(id) else { return };
        let Some(peer) = self.peers.get_mut(&of) else { return };
        if let Some(reason) = peer.relay.take_disconnected() {
            if let Some(time) = peer.relay.association_time(reason) {
                peer.session_by = now + time;
                self.keep_joined(now, of, time);
                self.keep(now, of);
                self.grants.forget(of);
                self.final_events.push_back((of, Event::Disconnected { reason }));
                return;
            }
            self.past.add(&peer.relay.totals());
            self.keep(now, of);
            self.take_out(of);
            self.association.remove(of);
            self.final_events.push_back((of, Event::Disconnected { reason }));
        } else if peer.relay.has_left(number) {
            self.keep(now, id);
            self.end_path(id);
            self.association.remove(id);
        }
    }

    /// Ends the path of an association. The relay ends with its last path that has a session, and
    /// is returned then, with its identifier.
    pub(super) fn end_path(&mut self, id: PeerId) -> Option<(PeerId, Peer)> {
        let (of, number) = self.seat(id)?;
        let peer = self.peers.get_mut(&of)?;
        if !peer.relay.remove_path(number) {
            return self.take_out(of).map(|peer| (of, peer));
        }
        if of == id {
            peer.name = Some(self.association.name(id).unwrap_or_default().to_owned());
        }
        peer.joined.retain(|&other| other != id);
        self.joined.remove(&id);
        self.forget(id);
        self.touch(of);
        None
    }

    /// Keeps the associations that are joined to this one for `time`, after the end of all sessions.
    pub(super) fn keep_joined(&mut self, now: Instant, of: PeerId, time: Span) {
        for id in self.peers.get(&of).map_or(&[][..], |peer| &peer.joined) {
            if let Some(joined) = self.joined.get_mut(id) {
                joined.session_by = now + time;
            }
            self.grants.forget(*id);
        }
    }

    /// Returns when the path of an association is removed, while it has no session.
    pub(super) fn session_by(&self, id: PeerId) -> Option<Instant> {
        let (of, number) = self.seat(id)?;
        let peer = self.peers.get(&of)?;
        let by = self.joined.get(&id).map_or(peer.session_by, |joined| joined.session_by);
        peer.relay.connected_since_on(number).is_none().then_some(by)
    }

    /// Ends the path of an association that another one of the same terminal has replaced.
    pub(super) fn replace_path(&mut self, id: PeerId) {
        if let Some((of, peer)) = self.end_path(id) {
            self.past.add(&peer.relay.totals());
            let reason = DisconnectReason::PeerRestarted;
            self.final_events.push_back((of, Event::Disconnected { reason }));
        }
    }

    /// Removes the state of an association's path.
    pub(super) fn forget(&mut self, id: PeerId) {
        self.due.forget(id);
        self.grants.forget(id);
        if let Some(shaper) = &mut self.shaper {
            shaper.leave(id);
        }
    }

    /// Removes a relay with its state, and ends the associations that are joined to it.
    pub(super) fn take_out(&mut self, id: PeerId) -> Option<Peer> {
        self.forget(id);
        let peer = self.peers.remove(&id)?;
        for &other in &peer.joined {
            self.joined.remove(&other);
            self.forget(other);
            self.association.remove(other);
        }
        Some(peer)
    }
}
