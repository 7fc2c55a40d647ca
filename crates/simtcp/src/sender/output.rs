//! Selection of the next segment.

use super::{Outgoing, Sender};
use crate::segment::Block;
use units::{Instant, Span};

/// The initial segments of a connection that are not paced, as in Linux.
const UNPACED: u64 = 10;

impl Sender {
    /// The next segment that may be sent at `now`, if any.
    pub(crate) fn next(&mut self, now: Instant) -> Option<Outgoing> {
        self.paced = None;
        if self.probing.as_ref().is_some_and(|probing| probing.is_running()) {
            return None;
        }
        if self.pace_next > now && self.pacing_rate().is_some() {
            self.paced = Some(self.pace_next);
            return None;
        }
        let window = self.window.levels().window().saturating_add_signed(self.recovery.inflation());
        let room = match &self.prr {
            Some(prr) => prr.room(),
            None => window.saturating_sub(self.in_flight()),
        };
        if let Some(block) = self.recovery.lost(&self.flow, self.log.as_ref(), room) {
            return Some(self.send_again(now, block));
        }
        if core::mem::take(&mut self.probe) {
            return self.send_probe(now);
        }
        if self.flow.next < self.flow.end {
            match self.recovery.again(&self.flow) {
                None => self.flow.next = self.flow.end,
                Some((start, end)) => {
                    let end = end.min(start + self.flow.segment);
                    if self.is_held(room < end - start) {
                        return None;
                    }
                    self.flow.next = end;
                    return Some(self.send_again(now, (start, end)));
                }
            }
        }
        self.send_new(now, room)
    }

    /// When pacing allows the next segment, if pacing is what delays it.
    pub(crate) fn paced(&self) -> Option<Instant> {
        self.paced
    }

    /// Octets estimated to be in flight.
    pub(crate) fn in_flight(&self) -> u64 {
        self.recovery.in_flight(&self.flow, self.log.as_ref())
    }

    fn send_new(&mut self, now: Instant, room: u64) -> Option<Outgoing> {
        let start = self.flow.next;
        let allowed = self.written.min(self.peer.edge).saturating_sub(start);
        let len = allowed.min(self.flow.segment);
        let last = start + len == self.written;
        let fin = last && self.closing && start + len < self.peer.edge.max(start + 1);
        // A short segment only at the end of the data, or to a peer whose window was never larger
        // (RFC 9293, section 3.8.6.2.1).
        let waits = self.nagle && self.flow.oldest < self.flow.end;
        let short = last && len > 0 && !waits;
        let whole = len == self.flow.segment || short || 2 * len > self.peer.largest;
        if !(fin || (len > 0 && whole)) {
            self.held = false;
            self.nothing_to_send(now, room);
            if self.recovery.is_repairing() && room >= self.flow.segment {
                let block = self.recovery.perhaps_lost(&self.flow)?;
                return Some(self.send_again(now, block));
            }
            return None;
        }
        if self.is_held(room < len) {
            return None;
        }
        if self.flow.oldest == self.flow.end && self.counters.data_segments > 0 {
            // Before that only a SYN was sent: the time since is not idle.
            let idle = now.since(self.last_sent);
            let timeouts = idle.as_nanos() / self.round_trip.timeout().as_nanos().max(1);
            self.restart(idle, timeouts);
        }
        self.flow.next = start + len + u64::from(fin);
        self.flow.end = self.flow.next;
        if self.timed.is_none() {
            self.timed = Some((self.flow.end, now));
        }
        self.counters.data_bytes += len;
        Some(self.sent(now, Outgoing { sequence: start, len, fin, again: false }))
    }

    /// Records whether the congestion window limits new data.
    fn is_held(&mut self, held: bool) -> bool {
        self.held = held;
        if held {
            self.held_until = Some(self.flow.end);
        }
        held
    }

    fn nothing_to_send(&mut self, now: Instant, room: u64) {
        let unsent = self.written.saturating_sub(self.flow.next);
        if unsent < self.flow.segment
            && room > 0
            && let Some(log) = &mut self.log
        {
            log.limit();
        }
        self.watch_closed_window(now);
    }

    /// With data limited by a closed window and nothing in flight, the persist timer sends probes
    /// (RFC 9293, section 3.8.6.1).
    fn watch_closed_window(&mut self, now: Instant) {
        let waits = self.written > self.flow.next && self.flow.oldest == self.flow.end;
        if waits && self.timer.is_none() && self.flow.end > 0 {
            self.timer = Some(self.round_trip.deadline(now));
        }
    }

    fn send_probe(&mut self, now: Instant) -> Option<Outgoing> {
        let start = self.flow.oldest;
        if start >= self.written {
            return None;
        }
        let again = start < self.flow.end;
        self.flow.end = self.flow.end.max(start + 1);
        self.flow.next = self.flow.next.max(start + 1);
        self.timed = None;
        Some(self.sent(now, Outgoing { sequence: start, len: 1, fin: false, again }))
    }

    fn send_again(&mut self, now: Instant, (start, end): Block) -> Outgoing {
        // Karn: retransmitted data is not timed (RFC 6298, section 3).
        self.timed = None;
        let fin = self.closing && end > self.written;
        let len = end - start - u64::from(fin);
        self.counters.retransmitted_segments += 1;
        self.counters.retransmitted_bytes += len;
        self.sent(now, Outgoing { sequence: start, len, fin, again: true })
    }

    fn sent(&mut self, now: Instant, outgoing: Outgoing) -> Outgoing {
        self.counters.data_segments += 1;
        self.last_sent = now;
        let head = outgoing.again && outgoing.sequence == self.flow.oldest;
        if self.timer.is_none() || (head && self.recovery.times_the_oldest()) {
            self.timer = Some(self.round_trip.deadline(now));
        }
        let end = outgoing.sequence + outgoing.len + u64::from(outgoing.fin);
        if let Some(prr) = &mut self.prr {
            prr.on_sent(outgoing.len);
        }
        if let Some(log) = &mut self.log {
            log.on_sent(now, (outgoing.sequence, end));
        }
        if let Some(rate) = self.pacing_rate()
            && self.counters.data_segments > UNPACED
        {
            let seconds = outgoing.len as f64 / rate.max(1.0);
            self.pace_next = self.pace_next.max(now) + Span::from_secs_f64(seconds);
        }
        outgoing
    }

    /// Pacing rate in octets per second, if segments are paced.
    pub(super) fn pacing_rate(&self) -> Option<f64> {
        if let Some(rate) = self.window.pacing_rate() {
            return Some(rate);
        }
        if !self.pacing && self.paced_restart.is_none() {
            return None;
        }
        let levels = self.window.levels();
        let round_trip = self.round_trip.smoothed()?.as_secs_f64();
        // Twice the window per round trip in slow start, which doubles it; 1.2 times it in
        // avoidance (Linux, tcp_pacing_ss_ratio and tcp_pacing_ca_ratio).
        let gain = match self.paced_restart {
            Some(_) => 1.0,
            None if levels.window() < levels.threshold() / 2 => 2.0,
            None => 1.2,
        };
        Some(gain * levels.window() as f64 / round_trip.max(1e-6))
    }

    fn restart(&mut self, idle: Span, timeouts: u64) {
        self.window.on_idle(idle, timeouts, self.after_idle);
        if timeouts > 0 && self.after_idle == crate::config::AfterIdle::Paced {
            self.paced_restart = Some(self.flow.next);
        }
    }
}
