//! Sets of senders in memory of fixed size: recent ones, and verified ones. A sender is the hash of
//! its address.

use crate::source_limits::hash;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use units::{Instant, Span};

/// Minimum time for which a sender is stored, longer than the interval between two Hellos; the
/// maximum is twice this time.
const MEMORY: Span = Span::from_secs(6);
/// Bits per such time.
const BITS: u64 = 1 << 23;
/// Bits per sender. At 50,000 new senders per second the probability of a false positive is 1/400.
const HASHES: u64 = 3;

/// Rotating Bloom filter of recent senders: it has false positives, but no false negatives.
#[derive(Debug, Default)]
pub(crate) struct RecentSenders {
    /// Bits of the current and of the last period; empty if it had no sender.
    bits: [Vec<u64>; 2],
    since: Instant,
}

impl RecentSenders {
    pub(crate) fn has(&mut self, now: Instant, sender: u64) -> bool {
        self.turn(now);
        let has = |bits: &Vec<u64>| {
            !bits.is_empty() && places(sender).all(|(word, bit)| bits[word] & bit != 0)
        };
        self.bits.iter().any(has)
    }

    pub(crate) fn put(&mut self, now: Instant, sender: u64) {
        self.turn(now);
        if self.bits[0].is_empty() {
            self.bits[0] = vec![0; (BITS / 64) as usize];
        }
        places(sender).for_each(|(word, bit)| self.bits[0][word] |= bit);
    }

    fn turn(&mut self, now: Instant) {
        let past = now.since(self.since);
        if past < MEMORY {
            return;
        }
        let [this, last] = &mut self.bits;
        *last = if past < MEMORY * 2 { std::mem::take(this) } else { Vec::new() };
        *this = Vec::new();
        self.since = now;
    }
}

/// Positions of the bits of a sender.
fn places(sender: u64) -> impl Iterator<Item = (usize, u64)> {
    let (first, step) = (sender, (sender >> 32) | 1);
    (0..HASHES).map(move |number| {
        let bit = first.wrapping_add(number.wrapping_mul(step)) % BITS;
        ((bit / 64) as usize, 1 << (bit % 64))
    })
}

/// Slots for verified senders.
const SLOTS: usize = 4096;

/// Senders that have authenticated at some time. Each has two slots; a new sender whose slots are
/// both used replaces one. Clones share the slots, and may be used by several threads.
#[derive(Clone, Debug)]
pub(crate) struct VerifiedSenders {
    slots: Arc<[AtomicU64]>,
    /// Key of the hashes.
    seed: u64,
}

impl VerifiedSenders {
    pub(crate) fn new(seed: u64) -> Self {
        Self { slots: (0..SLOTS).map(|_| AtomicU64::new(0)).collect(), seed }
    }

    pub(crate) fn has(&self, address: IpAddr) -> bool {
        self.has_sender(hash(address, self.seed))
    }

    pub(crate) fn put(&self, address: IpAddr) {
        self.put_sender(hash(address, self.seed));
    }

    fn has_sender(&self, sender: u64) -> bool {
        Self::of(sender).into_iter().any(|place| self.slots[place].load(Relaxed) == sender)
    }

    fn put_sender(&self, sender: u64) {
        if !self.has_sender(sender) {
            let [first, second] = Self::of(sender).map(|place| &self.slots[place]);
            let free = first.load(Relaxed) != 0 && second.load(Relaxed) == 0;
            if free { second } else { first }.store(sender, Relaxed);
        }
    }

    fn of(sender: u64) -> [usize; 2] {
        [sender, sender >> 32].map(|part| (part % SLOTS as u64) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::RngStream;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Span::from_millis(millis)
    }

    #[test]
    fn senders_are_stored_for_six_to_twelve_seconds() {
        let mut lately = RecentSenders::default();
        for heard in [0, 17_999, 60_000, 77_999, 100_000] {
            assert!(!lately.has(at(heard), 7), "not before {heard}");
            lately.put(at(heard), 7);
            assert!(lately.has(at(heard + 5_999), 7), "{heard}");
            assert!(!lately.has(at(heard + 12_000), 7), "{heard}");
            assert!(!lately.has(at(heard + 5_999), 8));
        }
    }

    #[test]
    fn false_positives_are_rare_in_a_flood() {
        let mut rng = RngStream::new(1, 0, "senders");
        let mut lately = RecentSenders::default();
        let mut wrong = 0;
        for number in 0..600_000 {
            let (now, sender) = (at(number / 50), rng.next_u64());
            wrong += u32::from(lately.has(now, sender));
            lately.put(now, sender);
        }
        assert!(wrong > 0, "the memory has a bound");
        assert!(wrong < 600_000 / 400, "{wrong}");
    }

    #[test]
    fn verified_senders_are_kept_among_some_hundreds() {
        let mut rng = RngStream::new(1, 0, "senders");
        let acquainted = VerifiedSenders::new(1);
        let senders: Vec<u64> = (0..500).map(|_| rng.next_u64()).collect();
        senders.iter().for_each(|&sender| acquainted.put_sender(sender));
        let known = senders.iter().filter(|&&sender| acquainted.has_sender(sender)).count();
        assert!(known >= 490, "{known}");
        assert!(!(0..10_000).any(|_| acquainted.has_sender(rng.next_u64())));
    }
}
