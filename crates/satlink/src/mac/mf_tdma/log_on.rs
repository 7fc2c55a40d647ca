//! Log-on by contention.
//!
//! A terminal that is not logged on has no slots. It sends a log-on burst in one of the log-on
//! slots, which each frame has beside the traffic slots. Two bursts in one slot collide. A terminal
//! that is not in the plan a frame after its burst could have been received retries in a random
//! slot of a window of twice the size.
//!
//! Source: EN 301 790, clause 9.3 (common signalling channel) for the slots; the back-off is that
//! of [`aloha`](crate::mac::aloha).

use super::MfTdma;
use super::events::{Event, Word};
use crate::Frame;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use units::{Instant, RngStream};

/// Windows after the first collision and at most, in slots.
const SPREAD: (u64, u64) = (16, 1_024);

/// A log-on burst without a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call {
    /// Its slot, counted from the first log-on slot.
    slot: u64,
    /// The window in slots from which it was drawn.
    window: u64,
}

/// The terminals by log-on slot.
#[derive(Debug)]
pub(super) struct Calls {
    by_slot: BTreeMap<u64, Vec<u32>>,
    rng: RngStream,
}

impl Calls {
    pub(super) fn new(seed: u64, run: u64) -> Self {
        let rng = RngStream::new(seed, run, "satlink/mf-tdma/log-on");
        Self { by_slot: BTreeMap::new(), rng }
    }
}

impl<F: Frame> MfTdma<F> {
    /// Schedules a log-on burst of `terminal` in one of the next `window` slots, if there are
    /// log-on slots.
    fn call(&mut self, at: Instant, terminal: u32, window: u64) {
        let Some(each) = self.config.log_on.map(u64::from) else { return };
        // At the scheduler a burst sent now would start at this time.
        let heard = at + self.terminals[terminal as usize].way;
        let since = heard.since(Instant::ZERO + self.ahead).as_nanos();
        let period = self.config.period.as_nanos();
        let within = (since % period).div_ceil(self.config.slot().as_nanos());
        // The last slot of a frame is followed by the first of the next.
        let first = since / period * each + within.min(each);
        let slot = first + self.calls.rng.below(window);
        self.terminals[terminal as usize].call = Some(Call { slot, window });
        let callers = self.calls.by_slot.entry(slot).or_default();
        // A terminal that logged off and on again may have selected this slot before.
        if callers.contains(&terminal) {
            return;
        }
        callers.push(terminal);
        if callers.len() == 1 {
            let begins = self.config.period * (slot / each) + self.config.slot() * (slot % each);
            let on_air = self.config.rate.time_for(self.config.format.on_air());
            self.put(Instant::ZERO + self.ahead + begins + on_air, Event::Called { slot });
        }
    }

    /// Handles the end of a log-on slot with scheduled bursts.
    pub(super) fn called(&mut self, at: Instant, slot: u64) {
        let mut callers = self.calls.by_slot.remove(&slot).unwrap_or_default();
        let calls = |terminal: u32| self.terminals[terminal as usize].call;
        // Some terminals have logged off, or selected another slot.
        callers.retain(|&terminal| calls(terminal).is_some_and(|call| call.slot == slot));
        self.counters.calls += callers.len() as u64;
        match callers[..] {
            [terminal] if !self.rng.chance(self.config.burst_loss) => {
                self.terminals[terminal as usize].call = None;
                self.admit(terminal as usize);
            }
            _ => {
                self.counters.calls_lost += callers.len() as u64;
                for terminal in callers {
                    let way = self.terminals[terminal as usize].way;
                    self.put(at + self.config.period + way, Event::Unheard { terminal, slot });
                }
            }
        }
    }

    /// Handles the missing response to a log-on burst of `terminal` in `slot`.
    pub(super) fn unheard(&mut self, at: Instant, terminal: u32, slot: u64) {
        let call = self.terminals[terminal as usize].call.filter(|call| call.slot == slot);
        if let Some(Call { window, .. }) = call {
            self.call(at, terminal, (window * 2).clamp(SPREAD.0, SPREAD.1));
        }
    }

    /// Starts the log-on of `terminal`.
    pub(super) fn begin_call(&mut self, at: Instant, terminal: usize) {
        if self.config.log_on.is_none() {
            self.put(
                at + self.terminals[terminal].way,
                Event::Word { terminal: terminal as u32, word: Word::LogOn },
            );
        } else if self.terminals[terminal].call.is_none() {
            self.call(at, terminal as u32, 1);
        }
    }

    /// Handles a terminal's detection that it has lost its slots.
    pub(super) fn on_dropped(&mut self, at: Instant, terminal: u32) {
        let place = terminal as usize;
        if self.terminals[place].online && !self.terminals[place].admitted {
            self.begin_call(at, place);
        }
    }

    /// Logs a terminal on at the scheduler.
    pub(super) fn admit(&mut self, terminal: usize) {
        self.terminals[terminal].admitted = true;
        self.scheduler.log_on(terminal);
    }

    /// Restarts the log-on of terminals that are present but were dropped for silence; they detect
    /// it from the plans.
    pub(super) fn call_back(&mut self, at: Instant) {
        for place in 0..self.terminals.len() {
            let terminal = &mut self.terminals[place];
            if terminal.admitted && !self.scheduler.is_logged_on(place) {
                terminal.admitted = false;
                if terminal.online {
                    let heard = at + terminal.way;
                    self.put(heard, Event::Dropped { terminal: place as u32 });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mac::mf_tdma::{Class, MfTdmaConfig, TerminalConfig};
    use crate::mac::schedule::Free;
    use units::Span;

    fn link(terminals: usize, change: impl FnOnce(&mut MfTdmaConfig)) -> MfTdma<Vec<u8>> {
        let mut config = MfTdmaConfig::mhatre_rosenberg(terminals);
        (config.free, config.sync, config.log_on) = (Free::None, Some(2), Some(4));
        let off = |terminal: &mut TerminalConfig| terminal.logged_on = false;
        config.terminals.iter_mut().for_each(off);
        change(&mut config);
        MfTdma::new(&config, 5, 0).expect("a valid link")
    }

    fn at_ms(ms: u64) -> Instant {
        Instant::ZERO + Span::from_millis(ms)
    }

    fn on(link: &MfTdma<Vec<u8>>) -> usize {
        (0..link.terminals.len()).filter(|&place| link.scheduler.is_logged_on(place)).count()
    }

    #[test]
    fn log_on_without_contention_succeeds_and_queued_packets_are_sent() {
        let mut link = link(3, |_| {});
        link.log_on(at_ms(2_000), 1);
        link.log_on(at_ms(2_001), 1);
        link.offer(at_ms(2_002), 1, Class::Data, alloc::vec![0; 40]);
        // At most a frame until the slot, and propagation.
        assert!(link.poll_arrival(at_ms(2_000 + 250 + 270 + 5)).is_none());
        assert_eq!((on(&link), link.counters.calls, link.counters.calls_lost), (1, 1, 0));
        let arrived = link.poll_arrival(at_ms(5_000)).expect("it has slots");
        assert_eq!(arrived.terminal, 1);
        // A terminal that logs off before its response is not logged on.
        link.log_on(at_ms(6_000), 2);
        link.log_off(at_ms(6_001), 2);
        assert!(link.poll_arrival(at_ms(9_000)).is_none());
        assert_eq!((on(&link), link.counters.calls), (1, 1));
    }

    #[test]
    fn repeated_log_on_does_not_collide_with_itself() {
        let mut link = link(1, |_| {});
        link.log_on(at_ms(2_000), 0);
        link.log_off(at_ms(2_000), 0);
        link.log_on(at_ms(2_000), 0);
        assert!(link.poll_arrival(at_ms(2_000 + 250 + 270 + 5)).is_none());
        assert_eq!((on(&link), link.counters.calls, link.counters.calls_lost), (1, 1, 0));
    }

    /// Four slots per frame, 16 per second, with a throughput of slotted Aloha of at most 0.37.
    #[test]
    fn five_hundred_simultaneous_log_ons_succeed_within_minutes() {
        let mut link = link(500, |_| {});
        (0..500).for_each(|terminal| link.log_on(at_ms(1_000), terminal));
        let mut seconds = 1;
        while on(&link) < 500 {
            seconds += 1;
            assert!(link.poll_arrival(at_ms(seconds * 1_000)).is_none());
            let most = 0.37 * 16.0 * seconds as f64 + 20.0;
            assert!((on(&link) as f64) < most, "{} after {seconds} s", on(&link));
            assert!(seconds < 300, "{} of 500 are on", on(&link));
        }
        let counters = &link.counters;
        assert_eq!(counters.calls - counters.calls_lost, 500);
        assert!(counters.calls_lost > 500, "{counters:?}");
    }

    /// Two consecutive sync bursts are lost occasionally; the terminal is dropped and has to log on
    /// again.
    #[test]
    fn dropped_terminal_logs_on_again() {
        for log_on in [None, Some(1)] {
            let mut link = link(2, |config| {
                (config.burst_loss, config.silence, config.log_on) = (0.3, Some(5), log_on);
                config.terminals[0].logged_on = true;
            });
            let seen = (1..600).filter(|second| {
                while link.poll_arrival(at_ms(second * 1_000)).is_some() {}
                link.scheduler.is_logged_on(0)
            });
            let seen = seen.count();
            assert!(link.scheduler.dropped() > 10, "{}", link.scheduler.dropped());
            assert!(seen > 400, "{log_on:?}: on in {seen} of 600 s");
        }
    }
}
