//! Looking after connections: what the kernel repeats for them, who has vanished, how they end.

use super::Single;
use super::pair::{Pair, Phase};
use crate::engine::limits::slots::IDLE;
use crate::logging::CONNECTIONS;
use units::{Instant, Span};

/// How often it is looked who has vanished, and what the kernel repeats.
pub(super) const SWEEP: Span = Span::from_millis(100);
/// Connections that are looked at each time, about: with thousands of them each has its turn in a
/// few seconds, for asking the kernel takes time that their bytes need.
const LOOKS: usize = 200;

impl Single {
    /// Charges what the kernel has repeated, and ends connections whose other end has vanished.
    pub(super) fn sweep(&mut self, now: Instant) {
        self.sweep_at = now + SWEEP;
        self.sweeps = self.sweeps.wrapping_add(1);
        crate::logging::report_omissions();
        let longest = self.limits.vanished;
        let (mut gone, mut idlers) = (Vec::new(), Vec::new());
        let (sweeps, all) = (self.sweeps, self.pairs.len());
        for (index, pair) in self.pairs.iter_mut().filter(|(place, _)| is_due(*place, sweeps, all))
        {
            let (segments, repeated) = pair.repeated();
            self.report.segments_repeated += segments;
            self.report.bytes_repeated += repeated;
            if let Some(bucket) = &mut self.bucket {
                bucket.take(now, repeated);
            }
            if pair.phase == Phase::Open && pair.has_vanished(now, longest) {
                gone.push(index);
            } else if pair.phase == Phase::Open
                && let (Some(idle), Some((_, since))) =
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
            tracing::info!(client = %self.pairs[index].addresses.0, "the other end has vanished");
            self.counters.vanished += 1;
            self.pairs[index].cause = "an end has vanished";
            self.remove(index).reset();
        }
    }

    /// Takes the connection out of the table; its sockets close in good order if it is dropped.
    pub(super) fn remove(&mut self, index: usize) -> Pair {
        self.set_due(index, None);
        self.accept_again = None;
        let pair = self.pairs.remove(index);
        self.slots.table.release(index);
        if self.log_ends {
            self.log_end(&pair);
        }
        pair
    }

    /// The same words as for connections of a pair of gateways.
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

/// Whether the connection at `place`, one of `all`, is looked at in this sweep.
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
