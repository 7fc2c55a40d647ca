//! Rate limits per source address, in a table of fixed size.

use crate::admission::{Gcra, RateLimit};
use crate::entropy::{Entropy, draw};
use std::net::IpAddr;
use units::Instant;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Limiters by source address (in IPv6 by network of 64 bits). A source has two slots with half of
/// its rate in each, so that another source with one of these slots leaves it the other half. The
/// seed hides from sources which slots they have.
#[derive(Debug)]
pub(crate) struct SourceLimiter {
    /// Limiters as integers: memory of zeros is not allocated until it is used.
    buckets: Box<[u64]>,
    seed: u64,
}

impl SourceLimiter {
    /// A table with so many slots.
    pub(crate) fn new(entropy: &mut dyn Entropy, places: usize) -> Self {
        Self::seeded(u64::from_be_bytes(draw(entropy)), places)
    }

    /// A table with this seed.
    pub(crate) fn seeded(seed: u64, places: usize) -> Self {
        Self { buckets: vec![0; places].into(), seed }
    }

    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// Takes one event of `ip` if its limit, `half` of its rate per slot, permits it.
    pub(crate) fn take(&mut self, now: Instant, ip: IpAddr, half: RateLimit) -> bool {
        self.take_hashed(now, hash(ip, self.seed), half)
    }

    /// As [`take`](Self::take), for an address with this [`hash`].
    pub(crate) fn take_hashed(&mut self, now: Instant, hash: u64, half: RateLimit) -> bool {
        self.of(hash).into_iter().any(|place| {
            let mut bucket = Gcra::until(Instant::from_nanos(self.buckets[place]));
            let taken = bucket.take(now, half);
            self.buckets[place] = bucket.time().as_nanos();
            taken
        })
    }

    /// Whether [`take_hashed`](Self::take_hashed) would succeed.
    pub(crate) fn has_left(&self, now: Instant, hash: u64, half: RateLimit) -> bool {
        let bucket = |place: usize| Gcra::until(Instant::from_nanos(self.buckets[place]));
        self.of(hash).into_iter().any(|place| bucket(place).has_left(now, half))
    }

    fn of(&self, hash: u64) -> [usize; 2] {
        let place = |part: u64| (part % self.buckets.len() as u64) as usize;
        [place(hash), place(hash >> 32)]
    }
}

/// Hash of an address (in IPv6 of its network of 64 bits) that cannot be computed without `seed`.
pub(crate) fn hash(ip: IpAddr, seed: u64) -> u64 {
    match ip.to_canonical() {
        IpAddr::V4(ip) => xxh3_64_with_seed(&ip.octets(), seed),
        IpAddr::V6(ip) => xxh3_64_with_seed(&ip.octets()[..8], seed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use units::{RngStream, Span};

    #[test]
    fn a_source_that_shares_a_slot_with_a_flood_has_another() {
        let mut places = SourceLimiter::new(&mut RngStream::new(1, 0, "places"), 4096);
        let half = RateLimit { interval: Span::from_millis(200), burst: 8 };
        let ip = |number: u32| IpAddr::from(Ipv4Addr::from_bits(number));
        let of = |places: &SourceLimiter, ip| places.of(hash(ip, places.seed()));
        let [first, second] = of(&places, ip(1));
        let flooder = (2..).map(ip).find(|&ip| {
            let its = of(&places, ip);
            its.contains(&first) && !its.contains(&second)
        });
        let flooder = flooder.expect("there is one");
        let now = Instant::ZERO + Span::from_secs(1);
        let taken = |places: &mut SourceLimiter, ip| {
            (0..100).filter(|_| places.take(now, ip, half)).count()
        };
        assert_eq!(taken(&mut places, flooder), 16, "its share");
        assert_eq!(taken(&mut places, ip(1)), 8, "half of its share");
        let v6 = |text: &str| text.parse::<IpAddr>().expect("address");
        assert_eq!(taken(&mut places, v6("2001:db8:7::1")), 16);
        assert_eq!(taken(&mut places, v6("2001:db8:7::2")), 0, "the same network");
    }
}
