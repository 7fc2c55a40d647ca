//! Invalid data from a peer with a valid key.
//!
//! The session is valid, so that packets are delivered and acknowledged. They contain frames of
//! every kind with values that are too large, inconsistent or unknown, modified pieces of received
//! frames, and random octets. One datagram in eight is corrupted as a whole, which affects the
//! session's control messages as well.

use units::{Instant, RngStream, Span};
use xstp::Seq24;
use xstp::session::{NewPacket, UpperLayer};

/// The last frames of the peer, which are repeated with modifications.
const HEARD: usize = 64;

/// Generates invalid payloads and accepts what the peer sends.
#[derive(Debug)]
pub(super) struct Wild {
    random: RngStream,
    heard: Vec<Vec<u8>>,
    /// Number of payloads that may be sent now, which limits the rate.
    pub(super) to_send: u64,
    pub(super) sent: u64,
    pub(super) delivered: u64,
    next_stream: u64,
}

impl Wild {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            random: RngStream::new(seed, 0, "wild"),
            heard: Vec::new(),
            to_send: 0,
            sent: 0,
            delivered: 0,
            next_stream: 0,
        }
    }

    /// Corrupts some datagrams.
    pub(super) fn spoil(&mut self, payload: &mut [u8]) {
        if payload.is_empty() || !self.random.chance(0.125) {
            return;
        }
        match self.random.below(3) {
            0 => self.noise(payload),
            1 => {
                let at = self.at(payload.len());
                payload[at] ^= 1 << self.random.below(8);
            }
            _ => {
                let at = self.at(payload.len().min(12));
                payload[at] = self.random.next_u64() as u8;
            }
        }
    }

    fn at(&mut self, len: usize) -> usize {
        self.random.below(len as u64) as usize
    }

    fn noise(&mut self, room: &mut [u8]) {
        for octet in room {
            *octet = self.random.next_u64() as u8;
        }
    }

    /// Appends an integer of 7 bits per octet, small or very large.
    fn number(&mut self, out: &mut Vec<u8>) {
        let mut value = self.random.next_u64() >> self.random.below(64);
        while value >= 0x80 {
            out.push(value as u8 | 0x80);
            value >>= 7;
        }
        out.push(value as u8);
    }

    /// Appends a frame of a random kind with mostly consistent content.
    fn frame(&mut self, out: &mut Vec<u8>) {
        let begun = out.len();
        match self.random.below(8) {
            // A stream that opens, to an address, a name, or invalid octets.
            0..3 => {
                out.push(0x80 | 0x20 | 0x04 | (self.random.next_u64() as u8 & 0x0a));
                self.next_stream += self.random.below(3);
                let mut stream = self.next_stream;
                while stream >= 0x80 {
                    out.push(stream as u8 | 0x80);
                    stream >>= 7;
                }
                out.push(stream as u8);
                let kind = self.random.below(6) as u8;
                out.extend([kind, 10, 3, 0, 2, 0x1b, 0x58]);
                out.push(self.random.below(64) as u8);
            }
            // Data, at any offset.
            3 => {
                out.push(0x80 | 0x20 | (self.random.next_u64() as u8 & 0x5b));
                self.number(out);
                out.extend(self.random.next_u64().to_be_bytes());
                self.number(out);
            }
            // Accept, reset, credit, shared credit, datagram, piece.
            4..7 => {
                out.push(self.random.next_u64() as u8 & 0x67);
                for _ in 0..4 {
                    self.number(out);
                }
            }
            _ => {
                let heard = self.heard.len().max(1);
                let which = self.at(heard);
                out.extend(self.heard.get(which).into_iter().flatten());
            }
        }
        let len = self.at(40);
        let mut tail = vec![0; len];
        self.noise(&mut tail);
        out.extend(tail);
        if out.len() > begun && self.random.chance(0.3) {
            let at = begun + self.at(out.len() - begun);
            out[at] = self.random.next_u64() as u8;
        }
    }
}

impl UpperLayer for Wild {
    fn has_new_data(&self) -> bool {
        self.to_send > 0
    }

    fn fill_new(&mut self, _: Seq24, room: &mut [u8]) -> Option<NewPacket> {
        self.to_send = self.to_send.checked_sub(1)?;
        self.sent += 1;
        let mut payload = Vec::new();
        while payload.len() < room.len() && !self.random.chance(0.2) {
            self.frame(&mut payload);
        }
        let len = payload.len().clamp(1, room.len());
        payload.resize(len, 0);
        room[..len].copy_from_slice(&payload);
        Some(NewPacket { len, handle: 0 })
    }

    fn fill_retransmission(&mut self, _: Seq24, _: u64, room: &mut [u8]) -> usize {
        let len = self.at(room.len().max(1));
        self.noise(&mut room[..len]);
        len
    }

    fn on_acknowledged(&mut self, _: Seq24, _: u64) {}

    fn deliver(&mut self, _: Seq24, payload: &[u8]) {
        self.delivered += 1;
        if self.heard.len() < HEARD {
            self.heard.push(payload.to_vec());
        } else {
            let which = self.at(HEARD);
            self.heard[which] = payload.to_vec();
        }
    }

    fn fill_note(&mut self, room: &mut [u8]) -> usize {
        let len = self.at(room.len() + 1);
        self.noise(&mut room[..len]);
        len
    }
}

/// The rate of an attack: payloads of a fixed interval.
#[derive(Debug)]
pub(super) struct Pace {
    next: Instant,
    every: Span,
}

impl Pace {
    pub(super) fn new(now: Instant, every: Span) -> Self {
        Self { next: now, every }
    }

    /// Returns how many payloads are due by `now`, with a bound.
    pub(super) fn due(&mut self, now: Instant) -> u64 {
        let mut due = 0;
        while self.next <= now && due < 32 {
            self.next += self.every;
            due += 1;
        }
        self.next = self.next.max(now);
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_payloads_fit_and_differ() {
        let mut wild = Wild::new(1);
        wild.to_send = 500;
        let mut seen = std::collections::BTreeSet::new();
        let mut room = [0; 1200];
        while let Some(filled) = wild.fill_new(Seq24::ZERO, &mut room) {
            assert!((1..=room.len()).contains(&filled.len));
            seen.insert(room[..filled.len].to_vec());
            wild.deliver(Seq24::ZERO, &room[..filled.len]);
        }
        assert_eq!((wild.sent, wild.has_new_data(), wild.heard.len()), (500, false, HEARD));
        assert!(seen.len() > 400);
    }
}
