//! What answers to those who have proved nothing may take of a hub's link, and who gets one.
//!
//! Who asks may claim any address, and there may be more of them than the link has room for
//! answers. So all answers together have a share of the link, and of that share
//!
//! * each address has a little;
//! * the last part is for addresses from which a terminal has been heard, and most of the rest for
//!   those that ask again after they were not answered: terminals do, and a flood that makes its
//!   addresses up does not;
//! * where even those are too many they take turns.

use crate::admission::{Bucket, Rate};
use crate::lately::Lately;
use crate::places::{Places, hash};
use std::net::{IpAddr, SocketAddr};
use units::{BitRate, Instant, Span};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Answers that may go at once after a quiet time, to addresses from which a terminal was heard.
const BURST: u64 = 32;
/// To those that ask again.
const BURST_AGAIN: u64 = 16;
/// To all others.
const BURST_NEW: u64 = 8;
/// How long whose turn it is stays so: a terminal that waits says a Hello in it.
const TURN: Span = Span::from_secs(5);
/// Parts in which those who ask again take turns, at most.
const PARTS: u64 = 1 << 12;
/// Senders are told apart by so many places: few where hubs are made thousands of times a second.
const PLACES: usize = if cfg!(fuzzing) { 1 << 10 } else { 1 << 16 };

/// What answers of one kind may take.
#[derive(Debug)]
pub(crate) struct Share {
    rate: BitRate,
    /// What one address has in each of its two places.
    each: Rate,
    bucket: Bucket,
    places: Places,
    unanswered: Lately,
    turns: Turns,
}

impl Share {
    /// `rate` for all, of IP packets, and twice `each` for every address; nobody outside may know
    /// `seed`.
    pub(crate) fn new(rate: BitRate, each: Rate, seed: u64) -> Self {
        Self {
            rate,
            each,
            bucket: Bucket::default(),
            places: Places::seeded(seed, PLACES),
            unanswered: Lately::default(),
            turns: Turns::default(),
        }
    }

    /// Whether an answer of `len` bytes of UDP may go to `to`; if so, it is taken to be sent.
    /// `known`: a terminal was heard from there.
    pub(crate) fn take(&mut self, now: Instant, to: SocketAddr, len: usize, known: bool) -> bool {
        let sender = hash(to.ip(), self.places.seed());
        if !self.places.has_left(now, sender, self.each) {
            return false;
        }
        let interval = self.rate.time_for(len as u64 + headers(to.ip()));
        let again = !known
            && self.unanswered.has(now, sender)
            && self.turns.is_on(now, sender, TURN.as_nanos() / interval.as_nanos().max(1));
        let burst = match (known, again) {
            (true, _) => BURST,
            (false, true) => BURST_AGAIN,
            (false, false) => BURST_NEW,
        };
        if !self.bucket.take(now, Rate { interval, burst }) {
            self.unanswered.put(now, sender);
            self.turns.too_many |= again;
            return false;
        }
        self.turns.taken += u64::from(again);
        self.places.take_hashed(now, sender, self.each)
    }
}

/// Bytes of the headers of UDP and IP.
fn headers(ip: IpAddr) -> u64 {
    if ip.to_canonical().is_ipv4() { 28 } else { 48 }
}

/// Whose turn it is among those who ask again. They are divided in parts by chance, anew for each
/// turn, in so many that one part can be answered.
#[derive(Debug)]
struct Turns {
    number: u64,
    until: Instant,
    parts: u64,
    taken: u64,
    too_many: bool,
}

impl Default for Turns {
    fn default() -> Self {
        Self { number: 0, until: Instant::ZERO, parts: 1, taken: 0, too_many: false }
    }
}

impl Turns {
    /// Whether it is the turn of `sender`, where `room` answers can be given in one.
    fn is_on(&mut self, now: Instant, sender: u64, room: u64) -> bool {
        if now >= self.until {
            self.parts = if now >= self.until + TURN * 2 {
                1
            } else if self.too_many {
                (self.parts * 2).min(PARTS)
            } else if self.taken < room / 4 {
                (self.parts / 2).max(1)
            } else {
                self.parts
            };
            (self.taken, self.too_many) = (0, false);
            self.number += 1;
            self.until = now + TURN;
        }
        xxh3_64_with_seed(&sender.to_be_bytes(), self.number).is_multiple_of(self.parts)
    }
}
