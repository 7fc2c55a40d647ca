//! What a bridge holds for its TLS connection: the engine sends no more than TCP takes.
//!
//! ```text
//!   engine ──in flight──▶ UDP socket of the bridge ──queued──▶ TCP
//! ```
//!
//! The session's scheduler decides on the order of data; a queue behind it is first in, first out. So
//! the limit is the time that the engine needs to continue, and not a burst of a path.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use units::Span;

/// Minimum limit in octets: three packets. A TCP connection begins with ten.
const MIN: usize = 4 << 10;
/// Maximum limit in octets.
const MAX: usize = 256 << 10;
/// Minimum time in which TCP sends as much as the limit: twice the interval at which an engine looks
/// for room ([`RETRY`]).
const MIN_TIME: Span = Span::from_millis(4);
/// Part of the round trip in which TCP sends as much as the limit.
const PART: u64 = 16;
/// Interval at which an engine looks for room.
pub(crate) const RETRY: Span = Span::from_millis(2);

/// Octets between an engine and TCP, which both sides count.
#[derive(Debug)]
pub(crate) struct Backlog {
    /// Sent by the engine, and not received by the bridge.
    in_flight: AtomicUsize,
    /// Held by the bridge.
    queued: AtomicUsize,
    limit: AtomicUsize,
}

impl Default for Backlog {
    fn default() -> Self {
        Self {
            in_flight: AtomicUsize::new(0),
            queued: AtomicUsize::new(0),
            limit: AtomicUsize::new(MIN),
        }
    }
}

impl Backlog {
    /// Whether the engine may send datagrams.
    pub(crate) fn has_room(&self) -> bool {
        self.in_flight.load(Relaxed) + self.queued.load(Relaxed) < self.limit.load(Relaxed)
    }

    /// Counts octets that the engine is about to send.
    pub(crate) fn sent(&self, octets: usize) {
        self.in_flight.fetch_add(octets, Relaxed);
    }

    /// Counts octets that the bridge has received.
    pub(super) fn received(&self, octets: usize) {
        let without = |count: usize| Some(count.saturating_sub(octets));
        // The closure always returns a value.
        let _ = self.in_flight.fetch_update(Relaxed, Relaxed, without);
    }

    /// The bridge has received all there is: what is missing was dropped by the kernel.
    pub(super) fn received_all(&self) {
        self.in_flight.store(0, Relaxed);
    }

    /// Sets the octets that the bridge holds.
    pub(super) fn set_queued(&self, octets: usize) {
        self.queued.store(octets, Relaxed);
    }

    /// Sets the limit for a TCP connection with a congestion window of `window` octets; returns it.
    pub(super) fn set_window(&self, window: u64, round_trip: Span) -> usize {
        let limit = limit(window, round_trip);
        self.limit.store(limit, Relaxed);
        limit
    }
}

/// Returns what a window sends in the time of the limit.
fn limit(window: u64, round_trip: Span) -> usize {
    let round_trip = round_trip.as_nanos().max(1);
    let time = MIN_TIME.as_nanos().max(round_trip / PART);
    let octets = u128::from(window) * u128::from(time) / u128::from(round_trip);
    usize::try_from(octets).unwrap_or(MAX).clamp(MIN, MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_follows_the_window_of_tcp() {
        // Ten segments at the start; 10 and 100 Mbit/s at 600 ms; 100 Mbit/s at 1 ms.
        let at = |window, millis| limit(window, Span::from_millis(millis));
        assert_eq!(at(14_000, 600), MIN);
        assert_eq!(at(750_000, 600), 750_000 / 16);
        assert_eq!(at(7_500_000, 600), MAX);
        assert_eq!(at(12_500, 1), 50_000);
        assert_eq!(limit(u64::MAX, Span::ZERO), MAX);
    }

    /// TLS-3.3
    #[test]
    fn room_returns_when_the_bridge_has_passed_datagrams_on() {
        let backlog = Backlog::default();
        assert!(backlog.has_room());
        backlog.sent(MIN);
        assert!(!backlog.has_room());
        backlog.received(MIN);
        backlog.set_queued(MIN);
        assert!(!backlog.has_room());
        backlog.set_queued(0);
        assert!(backlog.has_room());
        // What the kernel has dropped does not block for ever.
        backlog.sent(10 * MIN);
        backlog.received_all();
        assert!(backlog.has_room());
        backlog.received(MIN);
        assert!(backlog.has_room());
    }
}
