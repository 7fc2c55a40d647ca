//! Rate limit of the responses of a hub to unvalidated sources (RFC 9000 section 8.1).
//!
//! Sources may be forged and more numerous than the link has capacity for responses. Therefore all
//! responses of a kind together have a rate limit, and
//!
//! * each address has a limit;
//! * the last part of the burst is reserved for addresses of verified terminals, and most of the
//!   rest for sources that retry after a suppressed response, as terminals do and forged sources
//!   do not;
//! * if there are too many of these, they are served in rotation.

use crate::admission::{Gcra, RateLimit};
use crate::recent_senders::RecentSenders;
use crate::source_limits::{SourceLimiter, hash};
use std::net::{IpAddr, SocketAddr};
use units::{BitRate, Instant, Span};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Burst of responses to addresses of verified terminals: the responses of this time at the limit,
/// since a busy hub receives what has arrived in several milliseconds at once, and at least so many.
/// Sources that retry have half of it, all others a quarter.
const BURST_TIME: Span = Span::from_millis(100);
const MIN_BURST: u64 = 32;
/// Time of one part of the rotation: a waiting terminal sends a Hello in it.
const TURN: Span = Span::from_secs(5);
/// Maximum number of parts of the rotation.
const MAX_PARTS: u64 = 1 << 12;
/// Slots for source addresses; few in fuzzing, which creates thousands of hubs per second.
const SLOTS: usize = if cfg!(fuzzing) { 1 << 10 } else { 1 << 16 };

/// Rate limit of the responses of one kind.
#[derive(Debug)]
pub(crate) struct ResponseLimiter {
    rate: BitRate,
    /// Limit of one address in each of its two slots.
    each: RateLimit,
    bucket: Gcra,
    places: SourceLimiter,
    unanswered: RecentSenders,
    turns: RetryRotation,
}

impl ResponseLimiter {
    /// A limit of `rate` for all IP packets, and of twice `each` per address. `seed` must be
    /// secret.
    pub(crate) fn new(rate: BitRate, each: RateLimit, seed: u64) -> Self {
        Self {
            rate,
            each,
            bucket: Gcra::default(),
            places: SourceLimiter::seeded(seed, SLOTS),
            unanswered: RecentSenders::default(),
            turns: RetryRotation::default(),
        }
    }

    /// Takes a response of `len` octets of UDP to `to` if the limits permit it. `known`: it is the
    /// address of a verified terminal.
    pub(crate) fn take(&mut self, now: Instant, to: SocketAddr, len: usize, known: bool) -> bool {
        let sender = hash(to.ip(), self.places.seed());
        if !self.places.has_left(now, sender, self.each) {
            return false;
        }
        let interval = self.rate.time_for(len as u64 + headers(to.ip()));
        let again = !known
            && self.unanswered.has(now, sender)
            && self.turns.is_on(now, sender, TURN.as_nanos() / interval.as_nanos().max(1));
        let whole = (BURST_TIME.as_nanos() / interval.as_nanos().max(1)).max(MIN_BURST);
        let burst = match (known, again) {
            (true, _) => whole,
            (false, true) => whole / 2,
            (false, false) => whole / 4,
        };
        if !self.bucket.take(now, RateLimit { interval, burst }) {
            self.unanswered.put(now, sender);
            self.turns.too_many |= again;
            return false;
        }
        self.turns.taken += u64::from(again);
        self.places.take_hashed(now, sender, self.each)
    }
}

/// Octets of the headers of UDP and IP.
fn headers(ip: IpAddr) -> u64 {
    if ip.to_canonical().is_ipv4() { 28 } else { 48 }
}

/// Rotation of the sources that retry. They are divided at random, for each turn differently, into
/// so many parts that one part can be answered. Sources that exceed the burst only, and together
/// use less than half of a turn's responses, are not too many.
#[derive(Debug)]
struct RetryRotation {
    number: u64,
    until: Instant,
    parts: u64,
    taken: u64,
    too_many: bool,
}

impl Default for RetryRotation {
    fn default() -> Self {
        Self { number: 0, until: Instant::ZERO, parts: 1, taken: 0, too_many: false }
    }
}

impl RetryRotation {
    /// Whether it is the turn of `sender`; `room` is the number of responses per turn.
    fn is_on(&mut self, now: Instant, sender: u64, room: u64) -> bool {
        if now >= self.until {
            self.parts = if now >= self.until + TURN * 2 {
                1
            } else if self.too_many && self.taken >= room / 2 {
                (self.parts * 2).min(MAX_PARTS)
            } else if self.taken < room / 4 {
                (self.parts / 2).max(1)
            } else {
                self.parts
            };
            (self.taken, self.too_many) = (0, false);
            self.number += 1;
            self.until = now + TURN;
        }
        xxh3_64_with_seed(&sender.to_be_bytes(), self.number).is_multiple_of(self.parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::RngStream;

    /// ASC-7.7
    #[test]
    fn sources_that_a_busy_hub_receives_in_bulk_are_served_at_the_rate() {
        const SOURCES: u32 = 1_000;
        let each = RateLimit { interval: Span::from_secs(10), burst: 1 };
        let mut limiter = ResponseLimiter::new(BitRate::from_mbps(1), each, 7);
        let mut random = RngStream::new(1, 0, "sources");
        let mut waiting: Vec<u32> = (0..SOURCES).collect();
        let start = Instant::ZERO + Span::from_secs(1);
        for turn in 0..3 {
            // The hub receives what has arrived in 200 ms at once.
            let at = |source| (random.next_u64() % 20 * 200, source);
            let mut order: Vec<(u64, u32)> = waiting.iter().copied().map(at).collect();
            order.sort_unstable();
            for (millis, source) in order {
                let now = start + TURN * turn + Span::from_millis(millis);
                let to = (std::net::Ipv4Addr::from_bits(0x0a00_0000 + source), 4500).into();
                if limiter.take(now, to, 52, false) {
                    waiting.retain(|&other| other != source);
                }
            }
        }
        assert_eq!(waiting.len(), 0, "without a response after 15 s");
    }
}
