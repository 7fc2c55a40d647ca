//! Limits that a hub announces to terminals.

use super::Hub;
use crate::Limits;

impl Hub {
    /// Sets the limits that are announced to the terminal `name` from its next association on.
    pub fn set_limits(&mut self, name: &str, limits: Limits) {
        self.limits.insert(name.to_owned(), limits);
    }

    /// Sets the rate that this side's link receives from each terminal, in bits/s, announced from
    /// its next association on; 0 if unknown.
    pub fn set_receive_rate(&mut self, bps: u64) {
        self.config.limits.receive_rate_bps = bps;
        self.limits.values_mut().for_each(|limits| limits.receive_rate_bps = bps);
    }
}
