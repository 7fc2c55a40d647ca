//! What a hub announces to terminals.

use super::Hub;
use crate::Limits;

impl Hub {
    /// Announces `limits` to the terminal called `name`, from its next association on, instead of
    /// the usual.
    pub fn set_limits(&mut self, name: &str, limits: Limits) {
        self.limits.insert(name.to_owned(), limits);
    }

    /// Announces to every terminal, from its next association on, that this side's link takes `bps`
    /// bits per second from it; 0: that this is not known.
    pub fn set_receive_rate(&mut self, bps: u64) {
        self.config.limits.receive_rate_bps = bps;
        self.limits.values_mut().for_each(|limits| limits.receive_rate_bps = bps);
    }
}
