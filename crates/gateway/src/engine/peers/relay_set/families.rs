//! Announcements of the address families that a hub reaches.

use super::{RelaySet, Side};
use relay::Families;

impl RelaySet {
    /// Announces `families` to all terminals of a hub.
    pub(crate) fn set_families(&mut self, families: Families) {
        match &mut self.side {
            Side::Hub(hub) => hub.set_families(families),
            Side::Terminal(_) => {}
        }
    }

    /// Returns whether a terminal has a session on the path that a new connection would use, and
    /// what its hub has announced in it.
    pub(crate) fn families(&self) -> (bool, Option<Families>) {
        match &self.side {
            Side::Terminal(paths) => match paths.present.get(paths.first()) {
                Some(relay) => (relay.is_connected(), relay.families()),
                None => (false, None),
            },
            Side::Hub(_) => (false, None),
        }
    }
}
