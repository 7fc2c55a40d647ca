//! The address families that a hub reaches, between the engine and its relays.

use super::{Carrier, Side};
use relay::Families;

impl Carrier {
    /// At a hub: announces `families` to all terminals.
    pub(crate) fn set_families(&mut self, families: Families) {
        match &mut self.side {
            Side::Hub(hub) => hub.set_families(families),
            Side::Terminal(_) => {}
        }
    }

    /// At a terminal: whether there is a session by the path that a new connection would take
    /// first, and what its hub has announced in it.
    pub(crate) fn families(&self) -> (bool, Option<Families>) {
        match &self.side {
            Side::Terminal(paths) => match paths.all.get(paths.first()) {
                Some(path) => (path.relay.is_connected(), path.relay.families()),
                None => (false, None),
            },
            Side::Hub(_) => (false, None),
        }
    }
}
