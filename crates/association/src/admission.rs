//! Which Hellos a hub works for, so that a flood of them cannot keep it busy.

use crate::cookie::{COOKIE_LEN, CookieSecrets, MacKeys};
use crate::entropy::{Entropy, draw};
use crate::response_limit::ResponseLimiter;
use crate::source_limits::SourceLimiter;
use std::net::SocketAddr;
use units::{BitRate, Instant, Span};

/// Hellos without a cookie that are worked for: one in this time, to all senders together.
const STRANGERS: RateLimit = RateLimit { interval: Span::from_millis(20), burst: 64 };
/// Hellos with a cookie from one address (of IPv6 from one network of 64 bits), in each of its two
/// places.
const SOURCE: RateLimit = RateLimit { interval: Span::from_millis(200), burst: 8 };
/// Hellos with a cookie from all addresses.
const SOURCES: RateLimit = RateLimit { interval: Span::from_millis(2), burst: 128 };
/// Slots of the limiter for sources with a valid cookie.
const PLACES: usize = 4096;
/// Cookies that are sent to one address, in each of its two places. One is good for two minutes.
const COOKIES: RateLimit = RateLimit { interval: Span::from_secs(10), burst: 1 };

/// How often something may be done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateLimit {
    /// One in this time, for ever.
    pub(crate) interval: Span,
    /// So many at once after a quiet time.
    pub(crate) burst: u64,
}

/// How often something was done: the time when the next one would be due, had they come evenly.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gcra(Instant);

impl Gcra {
    /// One of which [`time`](Self::time) was `time`.
    pub(crate) fn until(time: Instant) -> Self {
        Self(time)
    }

    /// When the next one would be due.
    pub(crate) fn time(self) -> Instant {
        self.0
    }

    /// Whether it may be done once more; if so, it is taken to be done.
    pub(crate) fn take(&mut self, now: Instant, rate: RateLimit) -> bool {
        let taken = self.has_left(now, rate);
        if taken {
            self.0 = self.0.max(now) + rate.interval;
        }
        taken
    }

    /// Whether it may be done once more.
    pub(crate) fn has_left(self, now: Instant, rate: RateLimit) -> bool {
        self.0 <= now + rate.interval * (rate.burst - 1)
    }
}

/// What is to be done with a Hello.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Work for it.
    Take,
    /// Answer by this Cookie.
    Ask(Vec<u8>),
    /// Nothing: a Cookie would be more than its sender gets, or than Cookies may take.
    Withhold,
    /// Nothing: its sender has had his share, or everybody has.
    Drop,
}

/// The state that all senders of Hellos share; its size is fixed.
#[derive(Debug)]
pub(crate) struct Admission {
    jar: CookieSecrets,
    strangers: Gcra,
    sources: Gcra,
    cookies: ResponseLimiter,
    places: SourceLimiter,
}

impl Admission {
    /// With `rate` for all Cookies.
    pub(crate) fn new(rate: BitRate, entropy: &mut dyn Entropy) -> Self {
        let jar = CookieSecrets::new(Instant::ZERO, entropy);
        let places = SourceLimiter::new(entropy, PLACES);
        Self {
            jar,
            strangers: Gcra::default(),
            sources: Gcra::default(),
            cookies: ResponseLimiter::new(rate, COOKIES, places.seed()),
            places,
        }
    }

    /// Judges a Hello from `from` whose first MAC fits. `known`: a terminal was heard from there.
    pub(crate) fn judge(
        &mut self,
        now: Instant,
        (from, known): (SocketAddr, bool),
        hello: &[u8],
        macs: &MacKeys,
        entropy: &mut dyn Entropy,
    ) -> Verdict {
        // A cookie is looked at first, so that who has one does not use up what is for strangers.
        let fits = self.jar.fits(now, from, hello, entropy);
        if fits && self.places.take(now, from.ip(), SOURCE) && self.sources.take(now, SOURCES) {
            return Verdict::Take;
        }
        if self.strangers.take(now, STRANGERS) {
            return Verdict::Take;
        }
        // Who has a cookie has had its share, or others have: another cookie is of no use.
        if fits {
            return Verdict::Drop;
        }
        if !self.cookies.take(now, from, COOKIE_LEN, known) {
            return Verdict::Withhold;
        }
        let cookie = self.jar.cookie(now, from, entropy);
        Verdict::Ask(macs.seal(hello, &cookie, draw(entropy)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_lets_a_burst_through_and_then_its_rate() {
        let rate = RateLimit { interval: Span::from_millis(10), burst: 5 };
        let mut bucket = Gcra::default();
        let start = Instant::ZERO + Span::from_secs(1);
        let taken = (0..100).filter(|_| bucket.take(start, rate)).count();
        assert_eq!(taken, 5);
        let taken =
            (0..1000).filter(|ms| bucket.take(start + Span::from_millis(*ms), rate)).count();
        assert_eq!(taken, 99);
    }

    #[test]
    fn a_good_cookie_from_places_that_are_full_has_a_strangers_chance() {
        let mut entropy = units::RngStream::new(1, 0, "hub");
        let macs = MacKeys::new(&crate::PrivateKey::generate(&mut entropy).public());
        let mut admission = Admission::new(BitRate::from_mbps(1), &mut entropy);
        let from = "192.0.2.1:4500".parse().expect("address");
        let now = Instant::ZERO + Span::from_secs(1);
        let cookie = admission.jar.cookie(now, from, &mut entropy);
        let mut hello = vec![0; crate::noise::HELLO_LEN];
        crate::cookie::write_second(&cookie, &mut hello);
        let mut judge = |at| admission.judge(at, (from, false), &hello, &macs, &mut entropy);
        let taken = (0..500).filter(|_| judge(now) == Verdict::Take).count();
        assert_eq!(taken, 16 + 64, "its share, and what nobody else has asked for");
        assert_eq!(judge(now), Verdict::Drop, "not another cookie");
        let later = (1..=1000).filter(|ms| judge(now + Span::from_millis(*ms)) == Verdict::Take);
        assert!((55..=60).contains(&later.count()), "10 and 50 a second");
    }
}
