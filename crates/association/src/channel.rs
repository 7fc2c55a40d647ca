//! Encryption and decryption under one pair of keys.

use crate::capabilities::Capabilities;
use crate::checksum;
use crate::error::OpenError;
use crate::replay::ReplayWindow;
use crate::wire::{HEADER_LEN, Header, Kind, OVERHEAD, TAG_LEN};
use core::fmt;
use ring::aead::{AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use units::Instant;

/// Limit of counters, far below their wrap-around; keys are renewed long before.
pub(crate) const LAST_COUNTER: u64 = 1 << 48;

/// The key of one direction.
pub(crate) enum Key {
    /// Key of the null suite's checksum.
    Null(u64),
    /// Key of ChaCha20-Poly1305.
    ChaCha(Box<LessSafeKey>),
    /// Key of AES-256-GCM.
    Aes(Box<LessSafeKey>),
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null(_) => f.write_str("Null"),
            Self::ChaCha(_) => f.write_str("ChaCha"),
            Self::Aes(_) => f.write_str("Aes"),
        }
    }
}

impl Key {
    /// The key of the cipher that sides use which both have `capabilities`.
    pub(crate) fn sealed(bytes: &[u8; 32], capabilities: Capabilities) -> Self {
        if capabilities.contains(Capabilities::AES_256_GCM) {
            let key = UnboundKey::new(&AES_256_GCM, bytes).expect("32 bytes are its key");
            return Self::Aes(Box::new(LessSafeKey::new(key)));
        }
        Self::ChaCha(Box::new(aead_key(bytes)))
    }

    /// As in Noise: 32 zero bits, then the counter; its low byte is first with ChaCha20-Poly1305 and
    /// last with AES-256-GCM.
    fn nonce(&self, counter: u64) -> Nonce {
        let counter = match self {
            Self::Aes(_) => counter.to_be_bytes(),
            Self::ChaCha(_) | Self::Null(_) => counter.to_le_bytes(),
        };
        let mut bytes = [0; 12];
        bytes[4..].copy_from_slice(&counter);
        Nonce::assume_unique_for_key(bytes)
    }

    /// Encrypts everything between header and tag in place, and writes the tag.
    fn seal(&self, counter: u64, datagram: &mut [u8]) {
        match self {
            // The complete counter is part of the key, as it is part of the nonce below.
            Self::Null(key) => checksum::write_tag(key ^ counter.rotate_left(32), datagram),
            Self::ChaCha(key) | Self::Aes(key) => {
                let (header, rest) = datagram.split_at_mut(HEADER_LEN);
                let (body, room) = rest.split_at_mut(rest.len() - TAG_LEN);
                let tag = key
                    .seal_in_place_separate_tag(self.nonce(counter), Aad::from(header), body)
                    .expect("a datagram is shorter than what the cipher takes");
                room.copy_from_slice(tag.as_ref());
            }
        }
    }

    /// Verifies the tag; if it is valid, decrypts everything between header and tag in place.
    fn open(&self, counter: u64, datagram: &mut [u8]) -> bool {
        match self {
            Self::Null(key) => checksum::tag_fits(key ^ counter.rotate_left(32), datagram),
            Self::ChaCha(key) | Self::Aes(key) => {
                let (header, rest) = datagram.split_at_mut(HEADER_LEN);
                key.open_in_place(self.nonce(counter), Aad::from(header), rest).is_ok()
            }
        }
    }
}

pub(crate) fn aead_key(bytes: &[u8; 32]) -> LessSafeKey {
    let key = UnboundKey::new(&CHACHA20_POLY1305, bytes).expect("32 bytes are this cipher's key");
    LessSafeKey::new(key)
}

/// The keys of both directions.
#[derive(Debug)]
pub(crate) struct KeyPair {
    pub(crate) send: Key,
    pub(crate) receive: Key,
}

/// Position of a datagram in the order in which the peer has sealed them, across key renewals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SendOrder {
    /// Number of the keys in the order of their creation.
    keys: u64,
    counter: u64,
}

/// A pair of keys with its counters and its replay window.
#[derive(Debug)]
pub(crate) struct Channel {
    remote_index: u32,
    keys: KeyPair,
    next_counter: u64,
    window: ReplayWindow,
    made: Instant,
    /// Number of these keys among those of this side.
    number: u64,
}

/// A payload that is authentic and not a replay.
pub(crate) struct Opened<'d> {
    pub(crate) payload: &'d mut [u8],
    /// Whether it is the latest so far, which determines the peer's current address.
    pub(crate) newest: bool,
    pub(crate) order: SendOrder,
}

impl Channel {
    pub(crate) fn new(remote_index: u32, keys: KeyPair, made: Instant) -> Self {
        Self { remote_index, keys, next_counter: 0, window: ReplayWindow::new(), made, number: 0 }
    }

    /// Creates the channel with this number: later keys have a higher one.
    pub(crate) fn numbered(self, number: u64) -> Self {
        Self { number, ..self }
    }

    pub(crate) fn remote_index(&self) -> u32 {
        self.remote_index
    }

    /// Returns when the keys were agreed on.
    pub(crate) fn made(&self) -> Instant {
        self.made
    }

    /// Returns the larger number of datagrams that one of the two keys has sealed.
    pub(crate) fn used(&self) -> u64 {
        self.next_counter.max(self.window.next())
    }

    /// Returns true if a recently sent datagram has this low half of its counter.
    pub(crate) fn sent_lately(&self, counter: u32) -> bool {
        let last = self.next_counter as u32;
        self.next_counter > 0 && last.wrapping_sub(1).wrapping_sub(counter) < 1 << 16
    }

    /// Writes header and tag around the payload at [`HEADER_LEN`] of `datagram`, and encrypts it;
    /// false if the limit of counters is reached.
    pub(crate) fn seal(&mut self, kind: Kind, datagram: &mut [u8]) -> bool {
        assert!(datagram.len() >= OVERHEAD, "no room for header and tag");
        let counter = self.next_counter;
        if counter >= LAST_COUNTER {
            return false;
        }
        self.next_counter += 1;
        // Only the low half is transmitted; the receiver reconstructs the rest.
        let header = Header { kind, index: self.remote_index, counter: counter as u32 };
        header.encode(datagram);
        self.keys.send.seal(counter, datagram);
        true
    }

    /// Decrypts `datagram`, whose header was decoded as `header`, and returns its payload.
    pub(crate) fn open<'d>(
        &mut self,
        header: Header,
        datagram: &'d mut [u8],
    ) -> Result<Opened<'d>, OpenError> {
        debug_assert!(datagram.len() >= OVERHEAD);
        let counter = self.window.reconstruct(header.counter);
        if !self.window.is_new(counter) {
            return Err(OpenError::Replayed { counter });
        }
        if counter >= LAST_COUNTER || !self.keys.receive.open(counter, datagram) {
            return Err(OpenError::Tag);
        }
        let newest = self.window.accept(counter);
        let end = datagram.len() - TAG_LEN;
        let order = SendOrder { keys: self.number, counter };
        Ok(Opened { payload: &mut datagram[HEADER_LEN..end], newest, order })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (Channel, Channel) {
        pair_with(Capabilities::ALL)
    }

    fn pair_with(capabilities: Capabilities) -> (Channel, Channel) {
        let keys = |send: [u8; 32], receive: [u8; 32]| KeyPair {
            send: Key::sealed(&send, capabilities),
            receive: Key::sealed(&receive, capabilities),
        };
        let (up, down) = ([1; 32], [2; 32]);
        let now = Instant::ZERO;
        (Channel::new(5, keys(up, down), now), Channel::new(6, keys(down, up), now))
    }

    /// ASC-3.1, ASC-6.6: the result of ring equals that of another implementation of
    /// ChaCha20-Poly1305 (OpenSSL) for counter 1.
    #[test]
    fn a_sealed_datagram_is_that_of_the_cipher() {
        let (mut one, _) = pair();
        let mut datagram = [0u8; OVERHEAD + 2];
        assert!(one.seal(Kind::Data, &mut datagram));
        datagram[HEADER_LEN..HEADER_LEN + 2].copy_from_slice(b"ab");
        assert!(one.seal(Kind::Data, &mut datagram));
        assert_eq!(datagram[..8], [0x13, 0, 0, 5, 0, 0, 0, 1]);
        assert_eq!(datagram[8..], VECTOR);
    }

    /// ASC-6.6: as above, by OpenSSL's AES-256-GCM.
    #[test]
    fn where_both_sides_have_it_the_cipher_is_aes() {
        let (mut one, mut other) = pair_with(Capabilities::AES_256_GCM);
        let mut datagram = [0u8; OVERHEAD + 2];
        assert!(one.seal(Kind::Data, &mut datagram));
        datagram[HEADER_LEN..HEADER_LEN + 2].copy_from_slice(b"ab");
        assert!(one.seal(Kind::Data, &mut datagram));
        assert_eq!(datagram[8..], AES_VECTOR);
        let header = Header::decode(&datagram).expect("header");
        let opened = other.open(header, &mut datagram).expect("opened");
        assert_eq!(opened.payload, b"ab");
    }

    const AES_VECTOR: [u8; 18] =
        [218, 184, 97, 237, 88, 67, 5, 195, 119, 36, 27, 229, 8, 104, 34, 112, 65, 82];

    const VECTOR: [u8; 18] =
        [44, 88, 155, 181, 65, 72, 53, 159, 0, 101, 122, 248, 24, 76, 38, 158, 251, 214];

    /// ASC-3.4
    #[test]
    fn counters_end_without_wrapping() {
        let (mut one, mut other) = pair();
        one.next_counter = LAST_COUNTER - 1;
        // The receiver accepts it: it is within half of the range of 32 bits.
        other.window.accept(LAST_COUNTER - 9);
        let mut datagram = [0u8; OVERHEAD];
        assert!(one.seal(Kind::Data, &mut datagram));
        let header = Header::decode(&datagram).expect("header");
        assert!(other.open(header, &mut datagram).is_ok());
        assert!(!one.seal(Kind::Data, &mut datagram));
        assert_eq!(one.used(), LAST_COUNTER);
        assert_eq!(other.used(), LAST_COUNTER);
    }

    /// ASC-1.4: all kinds share one counter, and the kind is authenticated.
    #[test]
    fn a_kind_cannot_be_exchanged_for_another() {
        let (mut one, mut other) = pair();
        let mut datagram = [7u8; OVERHEAD + 4];
        assert!(one.seal(Kind::Probe, &mut datagram));
        let mut changed = datagram;
        changed[0] = 0x13;
        let header = Header::decode(&changed).expect("header");
        assert_eq!(other.open(header, &mut changed).map(|_| ()), Err(OpenError::Tag));
        let header = Header::decode(&datagram).expect("header");
        assert_eq!(header.kind, Kind::Probe);
        assert!(other.open(header, &mut datagram).is_ok());
        assert_eq!(
            other.open(header, &mut datagram).map(|_| ()),
            Err(OpenError::Replayed { counter: 0 })
        );
    }
}
