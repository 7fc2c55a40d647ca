//! Admission of Hellos, so that a flood of them cannot exhaust the hub's processor.

use crate::cookie::{COOKIE_LEN, CookieSecrets, MacKeys};
use crate::entropy::{Entropy, draw};
use crate::response_limit::ResponseLimiter;
use crate::source_limits::SourceLimiter;
use std::net::SocketAddr;
use units::{BitRate, Instant, Span};

/// Interval of processed Hellos without a cookie, from all senders together.
const STRANGERS: RateLimit = RateLimit { interval: Span::from_millis(20), burst: 64 };
/// Rate of processed Hellos with a cookie from one address (in IPv6 from one network of 64 bits),
/// in each of its two slots.
const SOURCE: RateLimit = RateLimit { interval: Span::from_millis(200), burst: 8 };
/// Rate of processed Hellos with a cookie from all addresses.
const SOURCES: RateLimit = RateLimit { interval: Span::from_millis(2), burst: 128 };
/// Slots of the limiter for sources with a valid cookie.
const PLACES: usize = 4096;
/// Rate of Cookies to one address, in each of its two slots. A cookie is valid for two minutes.
const COOKIES: RateLimit = RateLimit { interval: Span::from_secs(10), burst: 1 };

/// A rate limit with a burst.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateLimit {
    /// Interval of events at the sustained rate.
    pub(crate) interval: Span,
    /// Number of events in a burst.
    pub(crate) burst: u64,
}

/// State of a rate limiter: the theoretical arrival time of the next event (GCRA, ITU-T I.371).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gcra(Instant);

impl Gcra {
    /// Returns the state with this [`time`](Self::time).
    pub(crate) fn until(time: Instant) -> Self {
        Self(time)
    }

    /// Returns the theoretical arrival time of the next event.
    pub(crate) fn time(self) -> Instant {
        self.0
    }

    /// Takes an event if the limit permits it; returns whether it does.
    pub(crate) fn take(&mut self, now: Instant, rate: RateLimit) -> bool {
        let taken = self.has_left(now, rate);
        if taken {
            self.0 = self.0.max(now) + rate.interval;
        }
        taken
    }

    /// Returns true if the limit permits an event.
    pub(crate) fn has_left(self, now: Instant, rate: RateLimit) -> bool {
        self.0 <= now + rate.interval * (rate.burst - 1)
    }
}

/// Decision about a Hello.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AdmissionDecision {
    /// Process it.
    Accept,
    /// Respond with this Cookie.
    SendCookie(Vec<u8>),
    /// Drop it: the limit of Cookies to the sender or of all Cookies is reached.
    Suppress,
    /// Drop it: the limit of the sender or of all senders is reached.
    Drop,
}

/// State of the limits for all senders of Hellos; its size is fixed.
#[derive(Debug)]
pub(crate) struct Admission {
    jar: CookieSecrets,
    unvalidated: Gcra,
    sources: Gcra,
    cookies: ResponseLimiter,
    places: SourceLimiter,
}

impl Admission {
    /// Creates the state with the limit `rate` for all Cookies.
    pub(crate) fn new(rate: BitRate, entropy: &mut dyn Entropy) -> Self {
        let jar = CookieSecrets::new(Instant::ZERO, entropy);
        let places = SourceLimiter::new(entropy, PLACES);
        Self {
            jar,
            unvalidated: Gcra::default(),
            sources: Gcra::default(),
            cookies: ResponseLimiter::new(rate, COOKIES, places.seed()),
            places,
        }
    }

    /// Decides about a Hello from `from` with a valid mac1. `known` means that the address belongs
    /// to a verified terminal.
    pub(crate) fn decide(
        &mut self,
        now: Instant,
        (from, known): (SocketAddr, bool),
        hello: &[u8],
        macs: &MacKeys,
        entropy: &mut dyn Entropy,
    ) -> AdmissionDecision {
        // Senders with a cookie must not use up the limit for others.
        let fits = self.jar.fits(now, from, hello, entropy);
        if fits && self.places.take(now, from.ip(), SOURCE) && self.sources.take(now, SOURCES) {
            return AdmissionDecision::Accept;
        }
        if self.unvalidated.take(now, STRANGERS) {
            return AdmissionDecision::Accept;
        }
        // The sender has a cookie, and its limit or that of all senders is reached: another cookie
        // would not help.
        if fits {
            return AdmissionDecision::Drop;
        }
        if !self.cookies.take(now, from, COOKIE_LEN, known) {
            return AdmissionDecision::Suppress;
        }
        let cookie = self.jar.cookie(now, from, entropy);
        AdmissionDecision::SendCookie(macs.seal(hello, &cookie, draw(entropy)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limiter_permits_a_burst_and_then_its_rate() {
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
    fn a_valid_cookie_whose_slots_are_full_competes_as_an_unvalidated_source() {
        let mut entropy = units::RngStream::new(1, 0, "hub");
        let macs = MacKeys::new(&crate::PrivateKey::generate(&mut entropy).public());
        let mut admission = Admission::new(BitRate::from_mbps(1), &mut entropy);
        let from = "192.0.2.1:4500".parse().expect("address");
        let now = Instant::ZERO + Span::from_secs(1);
        let cookie = admission.jar.cookie(now, from, &mut entropy);
        let mut hello = vec![0; crate::noise::HELLO_LEN];
        crate::cookie::write_second(&cookie, &mut hello);
        let mut decide = |at| admission.decide(at, (from, false), &hello, &macs, &mut entropy);
        let taken = (0..500).filter(|_| decide(now) == AdmissionDecision::Accept).count();
        assert_eq!(taken, 16 + 64, "its share, and what nobody else has asked for");
        assert_eq!(decide(now), AdmissionDecision::Drop, "not another cookie");
        let later = (1..=1000)
            .filter(|ms| decide(now + Span::from_millis(*ms)) == AdmissionDecision::Accept);
        assert!((55..=60).contains(&later.count()), "10 and 50 a second");
    }
}
