//! A hub's relay on a line that its terminals share: when it has something to send, and when it
//! may.

use super::Relay;
use crate::Families;
use crate::plan::Ready;
use units::{BitRate, Instant};
use xstp::session::Session;

impl Relay {
    /// Tells a terminal what it may send at most from now on.
    pub(crate) fn grant(&mut self, rate: BitRate) {
        self.streams.grant(rate);
        if let Some(session) = &mut self.session {
            // Answers come back by what was granted.
            session.set_reverse_rate(Some(rate));
        }
        self.wake();
    }

    /// Tells a terminal that was told what it may send that nothing of that holds any more.
    pub(crate) fn release_grant(&mut self) {
        self.streams.grant(BitRate::from_bps(u64::MAX));
        if let Some(session) = &mut self.session {
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

    /// What the terminal has newly said that waits at it, bytes.
    pub(crate) fn take_need(&mut self) -> Option<u64> {
        self.streams.take_need()
    }

    /// The rates that were set last.
    pub(crate) fn rates(&self) -> (Option<BitRate>, Option<BitRate>) {
        (self.config.send_rate, self.config.receive_rate)
    }

    /// Keeps data back until it has its turn on a line that others use too, or no longer.
    pub(crate) fn hold_data(&mut self, held: bool) {
        self.is_held = held;
        if let Some(session) = &mut self.session {
            session.block_data(held);
        }
    }

    /// From when on data would go out, were it not held.
    pub(crate) fn data_due(&self) -> Option<Instant> {
        self.session.as_ref().and_then(Session::data_due)
    }

    /// Of data that is due: whether others should make way for it.
    pub(crate) fn readiness(&self) -> Ready {
        if self.streams.is_urgent() { Ready::Urgent } else { Ready::Yes }
    }
}
