//! Traffic shaping by a token bucket (ITU-R S.1711 Annex 3, section 3.3.2, figure 35).
//!
//! Tokens accumulate at the configured rate up to the bucket's size; a packet consumes one per
//! octet. Packets without tokens are queued, and dropped at the queue limit. The limit is the sum
//! of bucket and queue: if both are equal there is no queue, and the stream is policed.
//!
//! With a clock of finite resolution, tokens accumulate at clock ticks, at most one bucket per
//! tick: a kernel with 100 ticks per second and a bucket of 125 kbytes sends at most 100 Mbit/s.

use super::acks::supersedes;
use super::{Element, Output, Toward};
use crate::network::Packet;
use satlink::Frame;
use std::collections::VecDeque;
use units::{BitRate, Instant, Span};

/// A token bucket and its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    /// Token rate in bit/s.
    pub rate: BitRate,
    /// Bucket size in octets; at least the largest packet, which is never sent otherwise.
    pub bucket: u64,
    /// Sum of bucket and queue in octets.
    pub limit: u64,
}

/// Shapes packets of one direction; the other direction is not delayed.
#[derive(Debug)]
pub struct Shaper {
    config: TokenBucket,
    toward: Toward,
    filters: bool,
    /// Clock resolution; `None`: continuous.
    step: Option<Span>,
    queue: VecDeque<Packet>,
    waiting: u64,
    /// When a bucket of unlimited size would be full: the tokens of the time until then are
    /// missing.
    full_at: Instant,
    counts: Shaped,
}

/// Counters of a [`Shaper`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shaped {
    /// Packets forwarded.
    pub passed: u64,
    /// Packets dropped at a full queue.
    pub dropped: u64,
    /// Acknowledgements made redundant by a later one.
    pub filtered: u64,
    /// Maximum octets queued.
    pub max_queued: u64,
}

impl Shaper {
    /// Shapes packets to the side `toward`. The bucket is full initially.
    ///
    /// # Panics
    /// If the limit is below the bucket size.
    pub fn new(config: TokenBucket, toward: Toward) -> Self {
        assert!(config.limit >= config.bucket, "a limit that counts the bucket");
        Self {
            config,
            toward,
            filters: false,
            step: None,
            queue: VecDeque::new(),
            waiting: 0,
            full_at: Instant::ZERO,
            counts: Shaped::default(),
        }
    }

    /// Returns the shaper with acknowledgement filtering: of the queued acknowledgements of a
    /// connection only the latest is kept (RFC 3135, section 3.1.4; RFC 3449). Its rate has to be
    /// that of the return link, because in a queue behind it nothing is filtered.
    #[must_use]
    pub fn filtering_acks(self) -> Self {
        Self { filters: true, ..self }
    }

    /// Returns the shaper with a clock resolution of `step`, as of a kernel.
    ///
    /// # Panics
    /// If `step` is zero.
    #[must_use]
    pub fn stepping(self, step: Span) -> Self {
        assert!(!step.is_zero(), "a clock resolution above zero");
        Self { step: Some(step), ..self }
    }

    /// Its counters.
    pub fn counts(&self) -> Shaped {
        self.counts
    }

    /// When the first queued packet may be sent.
    fn next(&self) -> Option<Instant> {
        let first = self.queue.front()?.len() as u64;
        // When the missing tokens are at most what the bucket still lacks without this packet.
        let spare = self.config.rate.time_for(self.config.bucket.saturating_sub(first));
        let at = self.full_at.as_nanos().saturating_sub(spare.as_nanos());
        let step = self.step.map_or(1, Span::as_nanos);
        Some(Instant::from_nanos(at.next_multiple_of(step)))
    }

    /// The reading of the clock.
    fn clock(&self, now: Instant) -> Instant {
        let step = self.step.map_or(1, Span::as_nanos);
        Instant::from_nanos(now.as_nanos() / step * step)
    }

    fn send(&mut self, now: Instant, out: &mut Output) {
        while self.next().is_some_and(|at| at <= now) {
            let Some(packet) = self.queue.pop_front() else { return };
            let bytes = packet.len() as u64;
            self.waiting -= bytes;
            self.full_at = self.full_at.max(self.clock(now)) + self.config.rate.time_for(bytes);
            self.counts.passed += 1;
            out.push_back((self.toward, packet));
        }
    }

    /// Puts `packet` in the place of the first one that it makes redundant, and drops all of those.
    fn filter(&mut self, packet: Packet) -> Option<Packet> {
        let Some(first) = self.queue.iter().position(|old| supersedes(&packet, old)) else {
            return Some(packet);
        };
        let before = self.queue.len();
        let mut index = 0;
        self.queue.retain(|old| {
            index += 1;
            index <= first + 1 || !supersedes(&packet, old)
        });
        self.counts.filtered += 1 + (before - self.queue.len()) as u64;
        self.queue[first] = packet;
        self.waiting = self.queue.iter().map(|packet| packet.len() as u64).sum();
        None
    }
}

impl Element for Shaper {
    fn pass(&mut self, now: Instant, toward: Toward, packet: Packet, out: &mut Output) {
        if toward != self.toward {
            out.push_back((toward, packet));
            return;
        }
        let packet = if self.filters { self.filter(packet) } else { Some(packet) };
        if let Some(packet) = packet {
            let bytes = packet.len() as u64;
            self.queue.push_back(packet);
            self.waiting += bytes;
        }
        self.send(now, out);
        if self.waiting > self.config.limit - self.config.bucket
            && let Some(packet) = self.queue.pop_back()
        {
            self.waiting -= packet.len() as u64;
            self.counts.dropped += 1;
        }
        self.counts.max_queued = self.counts.max_queued.max(self.waiting);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.next()
    }

    fn handle_timeout(&mut self, now: Instant, out: &mut Output) {
        self.send(now, out);
    }
}

#[cfg(test)]
mod tests;
