//! Operation of a hub's relay on a shared link: queued data and turns.

use super::Relay;
use crate::Families;
use crate::plan::Ready;
use units::{BitRate, Instant};
use xstp::session::Session;

impl Relay {
    /// Sends a terminal a grant of this rate.
    pub(crate) fn grant(&mut self, number: usize, rate: BitRate) {
        self.streams.set_path(number, self.paths[number].is_answered());
        self.streams.grant(rate);
        if let Some(session) = &mut self.paths[number].session {
            // STATs return at the granted rate.
            session.set_reverse_rate(Some(rate));
        }
        self.wake();
    }

    /// Revokes a terminal's grant.
    pub(crate) fn release_grant(&mut self, number: usize) {
        self.streams.set_path(number, self.paths[number].is_answered());
        self.streams.grant(BitRate::from_bps(u64::MAX));
        if let Some(session) = &mut self.paths[number].session {
            session.set_reverse_rate(None);
        }
        self.wake();
    }

    /// Announces to a terminal the address families that this hub reaches.
    pub(crate) fn announce_families(&mut self, families: Families) {
        self.families = families;
        self.streams.announce_families(families);
        self.wake();
    }

    /// Returns the bytes of the terminal's last buffer status since the previous call.
    pub(crate) fn take_need(&mut self, number: usize) -> Option<u64> {
        self.streams.set_path(number, self.paths[number].is_answered());
        self.streams.take_need()
    }

    /// Returns the configured rates.
    pub(crate) fn rates(&self, number: usize) -> (Option<BitRate>, Option<BitRate>) {
        let config = &self.paths[number].config;
        (config.send_rate, config.receive_rate)
    }

    /// Holds data until its turn on the shared link, or ends this.
    pub(crate) fn hold_data(&mut self, number: usize, held: bool) {
        self.paths[number].is_held = held;
        if let Some(session) = &mut self.paths[number].session {
            session.block_data(held);
        }
    }

    /// Returns when data would be sent if it were not held.
    pub(crate) fn data_due(&self, number: usize) -> Option<Instant> {
        self.paths[number].session.as_ref().and_then(Session::data_due)
    }

    /// Returns whether due data is urgent.
    pub(crate) fn readiness(&self) -> Ready {
        if self.streams.is_urgent() { Ready::Urgent } else { Ready::Yes }
    }
}
