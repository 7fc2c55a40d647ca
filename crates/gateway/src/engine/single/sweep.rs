//! Periodic checks of connections: retransmissions of the kernel, unresponsive peers, and idle
//! ones.

use super::Single;
use super::pair::Pair;
use crate::engine::limits::slots::IDLE;
use crate::logging::CONNECTIONS;
use units::{Instant, Span};

/// Interval between checks.
pub(super) const SWEEP: Span = Span::from_millis(100);
/// Approximate number of connections that are checked each time. Of thousands each is checked every
/// few seconds, which bounds the time spent in system calls.
const LOOKS: usize = 200;

impl Single {
    /// Charges retransmissions to the bucket, and ends idle and unresponsive connections.
    pub(super) fn sweep(&mut self, now: Instant) {
        self.sweep_at = now + SWEEP;
        self.sweeps = self.sweeps.wrapping_add(1);
        crate::logging::report_omissions();
        let longest = self.limits.tcp_user_timeout;
        let (mut gone, mut idlers) = (Vec::new(), Vec::new());
        let (sweeps, all) = (self.sweeps, self.pairs.len());
        for (index, pair) in self.pairs.iter_mut().filter(|(place, _)| is_due(*place, sweeps, all))
        {
            let (segments, repeated) = pair.take_retransmitted();
            self.report.segments_retransmitted += segments;
            self.report.bytes_retransmitted += repeated;
            if let Some(bucket) = &mut self.bucket {
                bucket.take(now, repeated);
            }
            if !pair.is_open() {
                continue;
            }
            if pair.has_vanished(now, longest) {
                gone.push(index);
            } else if let (Some(idle), Some((_, since))) =
                (self.limits.idle, self.slots.table.get(index))
                && now.since(since) >= idle
            {
                idlers.push(index);
            }
        }
        for index in idlers {
            self.counters.idle += 1;
            self.pairs[index].cause = IDLE;
            self.remove(index).reset();
        }
        for index in gone {
            tracing::info!(client = %self.pairs[index].addresses.0, "connection reset: peer unresponsive");
            self.counters.vanished += 1;
            self.pairs[index].cause = "peer unresponsive";
            self.remove(index).reset();
        }
    }

    /// Removes the connection. Its sockets close in good order if it is dropped.
    pub(super) fn remove(&mut self, index: usize) -> Pair {
        self.set_due(index, None);
        self.end_accept_pause();
        let pair = self.pairs.remove(index);
        self.slots.table.release(index);
        if self.log_ends {
            self.log_end(&pair);
        }
        pair
    }

    /// Logs the end of a connection as a gateway of a pair does.
    fn log_end(&self, pair: &Pair) {
        let seconds = self.now.since(pair.since).as_secs_f64();
        tracing::info!(
            target: CONNECTIONS,
            client = %pair.addresses.0,
            destination = %pair.addresses.1,
            cause = pair.cause,
            from_sockets = pair.moved.read,
            to_sockets = pair.moved.written,
            seconds = (seconds * 1000.0).round() / 1000.0,
            "connection"
        );
    }
}

/// Whether the connection at `place`, one of `all`, is checked in this sweep.
fn is_due(place: usize, sweeps: usize, all: usize) -> bool {
    let parts = all.div_ceil(LOOKS).max(1);
    place % parts == sweeps % parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_are_looked_at_each_time_and_each_of_many_in_its_turn() {
        assert!((0..10).all(|sweep| (0..LOOKS).all(|place| is_due(place, sweep, LOOKS))));
        let mut looks = vec![0; 5_000];
        for sweep in 0..25 {
            let due = (0..5_000).filter(|&place| is_due(place, sweep, 5_000));
            let before: usize = looks.iter().sum();
            due.for_each(|place| looks[place] += 1);
            assert!(looks.iter().sum::<usize>() - before <= LOOKS);
        }
        assert!(looks.iter().all(|&count| count == 1), "each once in 2.5 seconds");
    }
}
