//! Shaping by a token bucket (ITU-R S.1711 Annex 3, section 3.3.2, figure 35).
//!
//! Tokens come at a rate and are kept up to the bucket's size; a packet takes as many as it has
//! bytes. What finds too few waits, and what finds too many waiting is lost. The limit counts
//! the bucket and the queue shared_weight: where both are equal nothing waits, and the stream is
//! policed.
//!
//! Where the clock moves in steps, tokens come in steps too, and no more than a bucket in each:
//! a kernel with 100 steps a second and a bucket of 125 kbytes sends 100 Mbit/s at most.

use super::acks::supersedes;
use super::{Element, Leaving, Way};
use crate::network::Packet;
use satlink::Frame;
use std::collections::VecDeque;
use units::{BitRate, Instant, Span};

/// A token bucket and its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    /// Bits per second of tokens.
    pub rate: BitRate,
    /// Bytes of tokens that are kept; at least that of the largest packet, or it never goes.
    pub bucket: u64,
    /// The bucket's bytes and the queue's, together.
    pub limit: u64,
}

/// Shapes what goes one way; the other way is open.
#[derive(Debug)]
pub struct Shaper {
    config: TokenBucket,
    way: Way,
    filters: bool,
    /// The clock's step; none: it moves evenly.
    step: Option<Span>,
    queue: VecDeque<Packet>,
    waiting: u64,
    /// When the bucket would be full, if it were as large as can be: it lacks what comes from
    /// now until then.
    full_at: Instant,
    counts: Shaped,
}

/// What a [`Shaper`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shaped {
    /// Packets that went on.
    pub passed: u64,
    /// Packets that found no room.
    pub dropped: u64,
    /// Acknowledgements that a later one made needless.
    pub filtered: u64,
    /// The most bytes that waited.
    pub most_waiting: u64,
}

impl Shaper {
    /// Shapes what goes `way`. The bucket is full at first.
    ///
    /// # Panics
    /// When the limit is below the bucket.
    pub fn new(config: TokenBucket, way: Way) -> Self {
        assert!(config.limit >= config.bucket, "a limit that counts the bucket");
        Self {
            config,
            way,
            filters: false,
            step: None,
            queue: VecDeque::new(),
            waiting: 0,
            full_at: Instant::ZERO,
            counts: Shaped::default(),
        }
    }

    /// The same, and of the acknowledgements of a connection that wait only the latest is kept
    /// (RFC 3135, section 3.1.4; RFC 3449). For the return channel, whose rate it has to have: in
    /// a queue behind it nothing is filtered.
    #[must_use]
    pub fn filtering_acks(self) -> Self {
        Self { filters: true, ..self }
    }

    /// The same with a clock that moves every `step`, as a kernel's does.
    ///
    /// # Panics
    /// When the step is zero.
    #[must_use]
    pub fn stepping(self, step: Span) -> Self {
        assert!(!step.is_zero(), "a step takes time");
        Self { step: Some(step), ..self }
    }

    /// What it did so far.
    pub fn counts(&self) -> Shaped {
        self.counts
    }

    /// When the first of the queue may go.
    fn next(&self) -> Option<Instant> {
        let first = self.queue.front()?.len() as u64;
        // It may go when the bucket lacks no more than what it would still hold.
        let spare = self.config.rate.time_for(self.config.bucket.saturating_sub(first));
        let at = self.full_at.as_nanos().saturating_sub(spare.as_nanos());
        let step = self.step.map_or(1, Span::as_nanos);
        Some(Instant::from_nanos(at.next_multiple_of(step)))
    }

    /// What the clock shows.
    fn clock(&self, now: Instant) -> Instant {
        let step = self.step.map_or(1, Span::as_nanos);
        Instant::from_nanos(now.as_nanos() / step * step)
    }

    fn send(&mut self, now: Instant, out: &mut Leaving) {
        while self.next().is_some_and(|at| at <= now) {
            let Some(packet) = self.queue.pop_front() else { return };
            let bytes = packet.len() as u64;
            self.waiting -= bytes;
            self.full_at = self.full_at.max(self.clock(now)) + self.config.rate.time_for(bytes);
            self.counts.passed += 1;
            out.push_back((self.way, packet));
        }
    }

    /// Takes `packet` in the place of the first that it makes needless, and drops all of those.
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
    fn pass(&mut self, now: Instant, way: Way, packet: Packet, out: &mut Leaving) {
        if way != self.way {
            out.push_back((way, packet));
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
        self.counts.most_waiting = self.counts.most_waiting.max(self.waiting);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.next()
    }

    fn handle_timeout(&mut self, now: Instant, out: &mut Leaving) {
        self.send(now, out);
    }
}

#[cfg(test)]
mod tests;
