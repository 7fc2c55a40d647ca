//! The address families that a hub reaches, announced to every terminal (RLY-9).

use super::Hub;
use crate::Families;

impl Hub {
    /// Announces to all terminals, in current and later sessions, that this hub reaches `families`.
    pub fn set_families(&mut self, families: Families) {
        self.families = families;
        for (&id, peer) in &mut self.peers {
            peer.relay.announce_families(families);
            self.due.touch(id);
        }
    }
}
