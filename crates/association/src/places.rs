//! How often something was done for each sender, in a table of fixed size.

use crate::admission::{Bucket, Rate};
use crate::entropy::{Entropy, draw};
use std::net::IpAddr;
use units::Instant;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Places in the table.
const PLACES: usize = 4096;

/// Senders, told apart by their addresses (in IPv6 by their networks of 64 bits). Each has two
/// places, and half of its share in either: others that happen to have, and fill, one of them
/// leave it the other half. Which places an address has nobody outside can know.
#[derive(Debug)]
pub(crate) struct Places {
    buckets: Box<[Bucket]>,
    seed: u64,
}

impl Places {
    pub(crate) fn new(entropy: &mut dyn Entropy) -> Self {
        let seed = u64::from_be_bytes(draw(entropy));
        Self { buckets: vec![Bucket::default(); PLACES].into(), seed }
    }

    /// Whether it may be done once more for `ip`, at `half` of its rate in either of its places;
    /// if so, it is taken to be done.
    pub(crate) fn take(&mut self, now: Instant, ip: IpAddr, half: Rate) -> bool {
        self.of(ip).into_iter().any(|place| self.buckets[place].take(now, half))
    }

    fn of(&self, ip: IpAddr) -> [usize; 2] {
        let hash = match ip.to_canonical() {
            IpAddr::V4(ip) => xxh3_64_with_seed(&ip.octets(), self.seed),
            IpAddr::V6(ip) => xxh3_64_with_seed(&ip.octets()[..8], self.seed),
        };
        let place = |part: u64| (part % PLACES as u64) as usize;
        [place(hash), place(hash >> 32)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use units::{RngStream, Span};

    #[test]
    fn who_shares_a_place_with_a_flood_has_another() {
        let mut places = Places::new(&mut RngStream::new(1, 0, "places"));
        let half = Rate { interval: Span::from_millis(200), burst: 8 };
        let ip = |number: u32| IpAddr::from(Ipv4Addr::from_bits(number));
        let [first, second] = places.of(ip(1));
        let flooder = (2..).map(ip).find(|&ip| {
            let its = places.of(ip);
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
