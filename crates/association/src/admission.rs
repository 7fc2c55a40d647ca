//! Which Hellos a hub works for, so that a flood of them cannot keep it busy.

use crate::cookie::{Jar, MacKeys};
use crate::entropy::{Entropy, draw};
use std::net::{IpAddr, SocketAddr};
use units::{Instant, Span};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Hellos without a cookie that are worked for: one in this time, to all senders together.
const STRANGERS: Rate = Rate { interval: Span::from_millis(20), burst: 64 };
/// Hellos with a cookie from one address (of IPv6 from one network of 64 bits).
const SOURCE: Rate = Rate { interval: Span::from_millis(100), burst: 16 };
/// Hellos with a cookie from all addresses.
const SOURCES: Rate = Rate { interval: Span::from_millis(2), burst: 128 };
/// Cookies that are sent, to all.
const COOKIES: Rate = Rate { interval: Span::from_micros(100), burst: 64 };
/// Addresses are told apart by so many places; those that share one share its rate.
const PLACES: usize = 4096;

/// How often something may be done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    /// One in this time, for ever.
    pub(crate) interval: Span,
    /// So many at once after a quiet time.
    pub(crate) burst: u64,
}

/// How often something was done: the time when the next one would be due, had they come evenly.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bucket(Instant);

impl Bucket {
    /// Whether it may be done once more; if so, it is taken to be done.
    pub(crate) fn take(&mut self, now: Instant, rate: Rate) -> bool {
        if self.0 > now + rate.interval * (rate.burst - 1) {
            return false;
        }
        self.0 = self.0.max(now) + rate.interval;
        true
    }
}

/// What is to be done with a Hello.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Work for it.
    Take,
    /// Answer by this Cookie.
    Ask(Vec<u8>),
    /// Nothing: its sender has had his share, or everybody has.
    Drop,
}

/// The state that all senders of Hellos share; its size is fixed.
#[derive(Debug)]
pub(crate) struct Admission {
    jar: Jar,
    strangers: Bucket,
    sources: Bucket,
    cookies: Bucket,
    places: Box<[Bucket]>,
    seed: u64,
}

impl Admission {
    pub(crate) fn new(entropy: &mut dyn Entropy) -> Self {
        Self {
            jar: Jar::new(Instant::ZERO, entropy),
            strangers: Bucket::default(),
            sources: Bucket::default(),
            cookies: Bucket::default(),
            places: vec![Bucket::default(); PLACES].into(),
            seed: u64::from_be_bytes(draw(entropy)),
        }
    }

    /// Judges a Hello from `from` whose first MAC fits.
    pub(crate) fn judge(
        &mut self,
        now: Instant,
        from: SocketAddr,
        hello: &[u8],
        macs: &MacKeys,
        entropy: &mut dyn Entropy,
    ) -> Verdict {
        // A cookie is looked at first, so that who has one does not use up what is for strangers.
        if self.jar.fits(now, from, hello, entropy) {
            let place = self.place(from.ip());
            let admitted = self.places[place].take(now, SOURCE) && self.sources.take(now, SOURCES);
            return if admitted { Verdict::Take } else { Verdict::Drop };
        }
        if self.strangers.take(now, STRANGERS) {
            return Verdict::Take;
        }
        if !self.cookies.take(now, COOKIES) {
            return Verdict::Drop;
        }
        let cookie = self.jar.cookie(now, from, entropy);
        Verdict::Ask(macs.seal(hello, &cookie, draw(entropy)))
    }

    fn place(&self, ip: IpAddr) -> usize {
        let hash = match ip.to_canonical() {
            IpAddr::V4(ip) => xxh3_64_with_seed(&ip.octets(), self.seed),
            IpAddr::V6(ip) => xxh3_64_with_seed(&ip.octets()[..8], self.seed),
        };
        (hash % PLACES as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_lets_a_burst_through_and_then_its_rate() {
        let rate = Rate { interval: Span::from_millis(10), burst: 5 };
        let mut bucket = Bucket::default();
        let start = Instant::ZERO + Span::from_secs(1);
        let taken = (0..100).filter(|_| bucket.take(start, rate)).count();
        assert_eq!(taken, 5);
        let taken =
            (0..1000).filter(|ms| bucket.take(start + Span::from_millis(*ms), rate)).count();
        assert_eq!(taken, 99);
    }
}
