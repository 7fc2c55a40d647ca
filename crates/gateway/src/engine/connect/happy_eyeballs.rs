//! Which of a server's addresses is tried when (RFC 8305), without I/O.
//!
//! ```text
//!   IPv4 answered first: wait 50 ms for IPv6 ─▶ try the best address ─▶ 250 ms later, or when it
//!   has failed, the next one, families in turn ─▶ the first that is connected wins
//! ```
//!
//! At most [`MAX_CONCURRENT`] attempts run at a time; when all of them have been given their time
//! the oldest is abandoned for the next address.

use std::net::SocketAddr;
use units::{Instant, Span};

/// Addresses of one name that are tried.
pub(crate) const MAX_ADDRESSES: usize = 8;
/// Attempts under way at a time, which are as many descriptors.
pub(crate) const MAX_CONCURRENT: usize = 3;
/// Resolution Delay: how long IPv4 waits for IPv6 to be resolved (RFC 8305, section 3).
const RESOLUTION_DELAY: Span = Span::from_millis(50);
/// Connection Attempt Delay (RFC 8305, section 5).
const ATTEMPT_DELAY: Span = Span::from_millis(250);

/// The attempts to reach one server.
#[derive(Debug)]
pub(crate) struct HappyEyeballs {
    /// Addresses that were not tried yet, best first.
    untried: Vec<SocketAddr>,
    /// All addresses so far.
    known: Vec<SocketAddr>,
    /// Whether no more addresses are expected.
    resolved: bool,
    /// Until when the first attempt waits for addresses of the preferred family.
    wait_until: Option<Instant>,
    /// Attempts under way, oldest first, and when each began.
    running: Vec<(SocketAddr, Instant)>,
    /// Whether the address tried last was an IPv6 one.
    last_was_ipv6: Option<bool>,
    /// When the next attempt begins while others run.
    next_at: Instant,
    /// How long an attempt runs, at least, before it makes room for another one.
    attempt_time: Span,
}

impl HappyEyeballs {
    /// `patience` is how long the server may take to answer in all.
    pub(crate) fn new(patience: Span) -> Self {
        let attempt_time = patience.mul_ratio(MAX_CONCURRENT as u64, MAX_ADDRESSES as u64);
        Self {
            untried: Vec::new(),
            known: Vec::new(),
            resolved: false,
            wait_until: None,
            running: Vec::new(),
            last_was_ipv6: None,
            next_at: Instant::ZERO,
            attempt_time,
        }
    }

    /// Takes addresses that were found; `sort` puts those not tried yet into the order of
    /// preference. `complete`: no others will follow.
    pub(crate) fn on_addresses(
        &mut self,
        now: Instant,
        addresses: impl IntoIterator<Item = SocketAddr>,
        complete: bool,
        sort: impl Fn(&mut [SocketAddr]),
    ) {
        for address in addresses {
            // No more of a family are taken than could be tried if it was the only one.
            let same = self.known.iter().filter(|known| known.is_ipv4() == address.is_ipv4());
            if same.count() < MAX_ADDRESSES && !self.known.contains(&address) {
                self.known.push(address);
                self.untried.push(address);
            }
        }
        sort(&mut self.untried);
        self.resolved |= complete;
        let waits = !self.resolved && self.known.iter().all(SocketAddr::is_ipv4);
        self.wait_until = match (waits && !self.known.is_empty(), self.wait_until) {
            (false, _) => None,
            (true, until) => until.or(Some(now + RESOLUTION_DELAY)),
        };
    }

    /// The attempt to reach `address` has failed: the next one need not wait.
    pub(crate) fn on_failed(&mut self, now: Instant, address: SocketAddr) {
        self.running.retain(|(other, _)| *other != address);
        self.next_at = now;
    }

    /// The address to try now, whose attempt runs from here on.
    pub(crate) fn poll_attempt(&mut self, now: Instant) -> Option<SocketAddr> {
        if self.running.len() >= MAX_CONCURRENT || self.attempt_at().is_none_or(|at| now < at) {
            return None;
        }
        // Families take turns, beginning with that of the best address.
        let of_other = |address: &SocketAddr| Some(address.is_ipv6()) != self.last_was_ipv6;
        let next = self.untried.iter().position(of_other).unwrap_or(0);
        let address = self.untried.remove(next);
        self.last_was_ipv6 = Some(address.is_ipv6());
        self.running.push((address, now));
        self.next_at = now + ATTEMPT_DELAY;
        if self.known.len() - self.untried.len() >= MAX_ADDRESSES {
            self.untried.clear();
        }
        Some(address)
    }

    /// The attempt that is to end now in favour of another address.
    pub(crate) fn poll_abandoned(&mut self, now: Instant) -> Option<SocketAddr> {
        if self.abandon_at().is_none_or(|at| now < at) {
            return None;
        }
        let (address, _) = self.running.remove(0);
        self.next_at = now;
        Some(address)
    }

    /// When to poll again.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        if self.running.len() >= MAX_CONCURRENT { self.abandon_at() } else { self.attempt_at() }
    }

    /// Whether no attempt runs and none will.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.resolved && self.untried.is_empty() && self.running.is_empty()
    }

    /// Whether no address was tried yet.
    pub(crate) fn is_waiting(&self) -> bool {
        self.last_was_ipv6.is_none()
    }

    fn attempt_at(&self) -> Option<Instant> {
        if self.untried.is_empty() {
            return None;
        }
        Some(match (self.wait_until, self.running.is_empty()) {
            (Some(until), true) if self.is_waiting() => until,
            (_, true) => Instant::ZERO,
            (_, false) => self.next_at,
        })
    }

    fn abandon_at(&self) -> Option<Instant> {
        let full = self.running.len() >= MAX_CONCURRENT && !self.untried.is_empty();
        self.running.first().filter(|_| full).map(|(_, since)| *since + self.attempt_time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Span = Span::from_secs(20);

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::from_millis(1_000_000 + ms)
    }

    fn v4(last: u8) -> SocketAddr {
        ([192, 0, 2, last], 443).into()
    }

    fn v6(last: u16) -> SocketAddr {
        ([0x2001, 0xdb8, 0, 0, 0, 0, 0, last], 443).into()
    }

    /// IPv6 first, as in RFC 6724 where both have routes; the lists are in order otherwise.
    fn sort(list: &mut [SocketAddr]) {
        list.sort_by_key(SocketAddr::is_ipv4);
    }

    fn with(addresses: &[SocketAddr]) -> HappyEyeballs {
        let mut race = HappyEyeballs::new(PATIENCE);
        race.on_addresses(at(0), addresses.iter().copied(), true, sort);
        race
    }

    #[test]
    fn families_alternate_every_250_ms() {
        let mut race = with(&[v4(1), v4(2), v6(1), v6(2)]);
        assert_eq!(race.poll_attempt(at(0)), Some(v6(1)));
        assert_eq!((race.poll_attempt(at(249)), race.poll_timeout()), (None, Some(at(250))));
        assert_eq!(race.poll_attempt(at(250)), Some(v4(1)));
        assert_eq!(race.poll_attempt(at(500)), Some(v6(2)));
        // The fourth waits until the first has had its time: 20 s × 3 / 8.
        assert_eq!((race.poll_attempt(at(750)), race.poll_timeout()), (None, Some(at(7_500))));
        assert_eq!(race.poll_abandoned(at(7_499)), None);
        assert_eq!(race.poll_abandoned(at(7_500)), Some(v6(1)));
        assert_eq!(race.poll_attempt(at(7_500)), Some(v4(2)));
        // Nothing more is tried: the last ones have the rest of the time.
        assert_eq!((race.poll_timeout(), race.poll_abandoned(at(99_999))), (None, None));
        assert!(!race.is_exhausted());
    }

    #[test]
    fn a_failure_brings_the_next_address_at_once() {
        let mut race = with(&[v6(1), v4(1)]);
        assert_eq!(race.poll_attempt(at(0)), Some(v6(1)));
        race.on_failed(at(30), v6(1));
        assert_eq!(race.poll_attempt(at(30)), Some(v4(1)));
        race.on_failed(at(60), v4(1));
        assert!(race.is_exhausted());
        assert_eq!((race.poll_attempt(at(60)), race.poll_timeout()), (None, None));
    }

    #[test]
    fn ipv4_waits_50_ms_for_ipv6_to_be_resolved() {
        let mut race = HappyEyeballs::new(PATIENCE);
        assert_eq!((race.poll_attempt(at(0)), race.poll_timeout()), (None, None));
        race.on_addresses(at(10), [v4(1)], false, sort);
        assert_eq!((race.poll_attempt(at(59)), race.poll_timeout()), (None, Some(at(60))));
        assert_eq!(race.poll_attempt(at(60)), Some(v4(1)));
        // IPv6 arrives later and is next.
        race.on_addresses(at(100), [v4(1), v6(1)], true, sort);
        assert_eq!(race.poll_attempt(at(100)), None);
        assert_eq!(race.poll_attempt(at(310)), Some(v6(1)));
    }

    #[test]
    fn ipv4_is_tried_immediately_without_ipv6() {
        let mut race = HappyEyeballs::new(PATIENCE);
        race.on_addresses(at(10), [v4(1)], false, sort);
        race.on_addresses(at(20), [v4(1)], true, sort);
        assert_eq!(race.poll_attempt(at(20)), Some(v4(1)));
    }

    #[test]
    fn ipv6_does_not_wait_for_ipv4() {
        let mut race = HappyEyeballs::new(PATIENCE);
        race.on_addresses(at(10), [v6(1)], false, sort);
        assert_eq!(race.poll_attempt(at(10)), Some(v6(1)));
        race.on_failed(at(20), v6(1));
        // Further addresses may follow, so it has not failed finally.
        assert!(!race.is_exhausted());
        race.on_addresses(at(30), [v6(1)], true, sort);
        assert!(race.is_exhausted());
    }

    #[test]
    fn a_long_list_is_truncated_by_family() {
        let all: Vec<SocketAddr> = (0..100).map(v6).chain((0..10).map(v4)).collect();
        let mut race = with(&all);
        let mut tried = Vec::new();
        while let Some(address) = race.poll_attempt(at(0)) {
            tried.push(address);
            race.on_failed(at(0), address);
        }
        assert_eq!(tried.len(), MAX_ADDRESSES);
        assert!(race.is_exhausted());
    }
}
