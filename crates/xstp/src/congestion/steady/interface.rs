//! The controller as the session sees it.

use super::Steady;
use crate::congestion::{CongestionController, PollAnswered, PollSent};
use core::ops::Range;
use units::{BitRate, Instant, Span};

impl CongestionController for Steady {
    fn mode(&self, _: Instant) -> &'static str {
        self.mode()
    }
    fn pace(&self, now: Instant) -> Option<BitRate> {
        Some(self.pace(now))
    }
    fn estimated_pace(&self, now: Instant) -> Option<BitRate> {
        self.known(now)
    }
    fn confirmed_rate(&self) -> Option<BitRate> {
        self.learnt()
    }
    fn queuing_delay(&self) -> Option<Span> {
        self.queue()
    }
    fn may_send(&self) -> bool {
        self.may_send()
    }
    fn is_poll_only(&self) -> bool {
        self.is_quiet()
    }
    fn reserves_poll_space(&self) -> bool {
        self.keeps_room()
    }
    fn poll_range(&self) -> Range<Span> {
        self.poll_range()
    }
    fn set_max_rate(&mut self, rate: Option<BitRate>) {
        self.set_most(rate);
    }
    fn apply_grant(&mut self, rate: Option<BitRate>) {
        self.grant(rate);
    }
    fn on_poll(&mut self, poll: &PollSent) {
        self.on_poll(poll);
    }
    fn on_poll_answered(&mut self, answered: &PollAnswered) {
        self.on_answer(answered);
    }
    fn on_data(&mut self, now: Instant, octets: u64) -> bool {
        self.on_data(now, octets);
        self.take_ask()
    }
    fn on_outage(&mut self, now: Instant) {
        self.on_outage(now);
    }
    fn on_peer_activity(&mut self, now: Instant) {
        self.on_heard(now);
    }
    fn on_mtu_black_hole(&mut self, now: Instant) {
        self.on_resized(now);
    }
    #[cfg(test)]
    fn start_recovery_train(&mut self) {
        self.begin_regaining();
    }
}
