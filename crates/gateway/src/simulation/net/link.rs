//! The satellite link in memory, one direction.

use std::net::SocketAddr;
use units::{BitRate, Instant, RngStream, Span};

/// Returns the length of the IP and UDP headers of a datagram in the address family of `address`.
pub(in crate::simulation) fn headers(address: SocketAddr) -> usize {
    if address.is_ipv6() { 48 } else { 28 }
}

/// One direction of a link.
#[derive(Clone, Debug)]
pub(in crate::simulation) struct Link {
    pub(in crate::simulation) rate: BitRate,
    pub(in crate::simulation) delay: Span,
    /// Maximum queuing delay; further datagrams are dropped.
    pub(in crate::simulation) queue: Span,
    /// Loss per 1,000 datagrams.
    pub(in crate::simulation) loss: u64,
    pub(in crate::simulation) duplicate: u64,
    pub(in crate::simulation) corrupt: u64,
    pub(in crate::simulation) reorder: u64,
    /// Octets of headers of each datagram.
    pub(in crate::simulation) headers: usize,
    /// Largest IP packet; larger ones are dropped without a message.
    pub(in crate::simulation) mtu: usize,
    /// End of the current outage.
    pub(in crate::simulation) dark_until: Instant,
    /// Times at which datagrams were lost or corrupted.
    lost: Vec<Instant>,
    busy_until: Instant,
}

impl Link {
    /// Creates a link without impairments.
    pub(in crate::simulation) fn ideal(rate: BitRate, delay: Span) -> Self {
        Self {
            rate,
            delay,
            queue: Span::from_millis(400),
            loss: 0,
            duplicate: 0,
            corrupt: 0,
            reorder: 0,
            headers: headers(SocketAddr::from(([0; 4], 0))),
            mtu: usize::MAX,
            dark_until: Instant::ZERO,
            lost: Vec::new(),
            busy_until: Instant::ZERO,
        }
    }

    /// Ends the impairments.
    pub(in crate::simulation) fn end_faults(&mut self) {
        (self.loss, self.duplicate, self.corrupt, self.reorder) = (0, 0, 0, 0);
        self.dark_until = Instant::ZERO;
    }

    /// Returns the number of datagrams that were lost or corrupted since that time.
    pub(in crate::simulation) fn lost_since(&self, since: Instant) -> usize {
        self.lost.iter().rev().take_while(|at| **at >= since).count()
    }

    /// Returns the arrival times of the copies of a datagram sent at `now`; corruption changes
    /// `bytes`.
    pub(in crate::simulation) fn carry(
        &mut self,
        now: Instant,
        rng: &mut RngStream,
        bytes: &mut [u8],
    ) -> Vec<Instant> {
        if bytes.len() + self.headers > self.mtu {
            self.lost.push(now);
            return Vec::new();
        }
        let start = self.busy_until.max(now);
        if start.since(now) > self.queue {
            self.lost.push(now);
            return Vec::new();
        }
        self.busy_until = start + self.rate.time_for((bytes.len() + self.headers) as u64);
        let mut strikes = |parts: u64| rng.below(1000) < parts;
        if now < self.dark_until || strikes(self.loss) {
            self.lost.push(now);
            return Vec::new();
        }
        let (again, broken, late) =
            (strikes(self.duplicate), strikes(self.corrupt), strikes(self.reorder));
        if broken && !bytes.is_empty() {
            self.lost.push(now);
            let place = rng.below(bytes.len() as u64) as usize;
            bytes[place] ^= 1 << rng.below(8);
        }
        let detour = if late { Span::from_millis(1 + rng.below(80)) } else { Span::ZERO };
        let arrival = self.busy_until + self.delay + detour;
        let copies = if again { 2 } else { 1 };
        (0..copies).map(|copy| arrival + Span::from_millis(7) * copy).collect()
    }
}
