//! How often something was done for each sender, in a table of fixed size.

use crate::admission::{Bucket, Rate};
use crate::entropy::{Entropy, draw};
use std::net::IpAddr;
use units::Instant;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Senders, told apart by their addresses (in IPv6 by their networks of 64 bits). Each has two
/// places, and half of its share in either: others that happen to have, and fill, one of them
/// leave it the other half. Which places an address has nobody outside can know.
#[derive(Debug)]
pub(crate) struct Places {
    /// Buckets, as plain numbers: memory that is all zeros costs nothing until it is used.
    buckets: Box<[u64]>,
    seed: u64,
}

impl Places {
    /// A table with so many places.
    pub(crate) fn new(entropy: &mut dyn Entropy, places: usize) -> Self {
        Self::seeded(u64::from_be_bytes(draw(entropy)), places)
    }

    /// A table in which addresses have the places that `seed` gives them.
    pub(crate) fn seeded(seed: u64, places: usize) -> Self {
        Self { buckets: vec![0; places].into(), seed }
    }

    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// Whether it may be done once more for `ip`, at `half` of its rate in either of its places;
    /// if so, it is taken to be done.
    pub(crate) fn take(&mut self, now: Instant, ip: IpAddr, half: Rate) -> bool {
        self.take_hashed(now, hash(ip, self.seed), half)
    }

    /// The same for an address of which the [`hash`] under this table's seed is known.
    pub(crate) fn take_hashed(&mut self, now: Instant, hash: u64, half: Rate) -> bool {
        self.of(hash).into_iter().any(|place| {
            let mut bucket = Bucket::until(Instant::from_nanos(self.buckets[place]));
            let taken = bucket.take(now, half);
            self.buckets[place] = bucket.time().as_nanos();
            taken
        })
    }

    /// Whether [`take_hashed`](Self::take_hashed) would find something.
    pub(crate) fn has_left(&self, now: Instant, hash: u64, half: Rate) -> bool {
        let bucket = |place: usize| Bucket::until(Instant::from_nanos(self.buckets[place]));
        self.of(hash).into_iter().any(|place| bucket(place).has_left(now, half))
    }

    fn of(&self, hash: u64) -> [usize; 2] {
        let place = |part: u64| (part % self.buckets.len() as u64) as usize;
        [place(hash), place(hash >> 32)]
    }
}

/// A number for an address (in IPv6 for its network of 64 bits) that nobody can know who does not
/// know `seed`.
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
    fn who_shares_a_place_with_a_flood_has_another() {
        let mut places = Places::new(&mut RngStream::new(1, 0, "places"), 4096);
        let half = Rate { interval: Span::from_millis(200), burst: 8 };
        let ip = |number: u32| IpAddr::from(Ipv4Addr::from_bits(number));
        let of = |places: &Places, ip| places.of(hash(ip, places.seed()));
        let [first, second] = of(&places, ip(1));
        let flooder = (2..).map(ip).find(|&ip| {
            let its = of(&places, ip);
            its.contains(&first) && !its.contains(&second)
        });
        let flooder = flooder.expect("there is one");
        let now = Instant::ZERO + Span::from_secs(1);
        let taken =
            |places: &mut Places, ip| (0..100).filter(|_| places.take(now, ip, half)).count();
        assert_eq!(taken(&mut places, flooder), 16, "its share");
        assert_eq!(taken(&mut places, ip(1)), 8, "half of its share");
        let v6 = |text: &str| text.parse::<IpAddr>().expect("address");
        assert_eq!(taken(&mut places, v6("2001:db8:7::1")), 16);
        assert_eq!(taken(&mut places, v6("2001:db8:7::2")), 0, "the same network");
    }
}
