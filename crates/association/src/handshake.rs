//! The two messages of the handshake, in all suites.
//!
//! ```text
//! Hello                                     Welcome
//!   0  header, index: the terminal's own      0  header, index: the terminal's
//!      counter field: suite,                     counter field: suite, 0, 0, 0
//!      capabilities, flags, 0
//!   8  ephemeral, 32 bytes                    8  ephemeral, 32 bytes
//!  40  static, sealed, 48 bytes              40  payload, sealed, 44 bytes
//!  88  payload, sealed, 40 bytes             84  tag, 16 bytes
//! 128  tag, 16 bytes
//! 144  first MAC, 16 bytes
//! 160  second MAC, 16 bytes
//! ```
//!
//! In the null suite nothing is encrypted, the static is zero, and the payload of a Hello is
//! followed by the terminal's name and one tag.

use crate::capabilities::Capabilities;
use crate::channel::KeyPair;
use crate::config::Limits;
use crate::entropy::Entropy;
use crate::error::OpenError;
use crate::keys::{Keys, PublicKey, Security};
use crate::noise;
use crate::null;
use crate::wire::{HEADER_LEN, Header, INDEX_MASK, TAG_LEN};

/// Maximum length of a terminal's name in octets.
pub const MAX_NAME: usize = 64;

pub(crate) const SUITE_NULL: u8 = 0;
pub(crate) const SUITE_NOISE: u8 = 1;

const LIMITS_LEN: usize = 24;
/// Octets of a Hello's payload.
pub(crate) const HELLO_PAYLOAD: usize = 16 + LIMITS_LEN;
/// Octets of a Welcome's payload.
pub(crate) const WELCOME_PAYLOAD: usize = 20 + LIMITS_LEN;

pub(crate) const EPHEMERAL_AT: usize = HEADER_LEN;
pub(crate) const STATIC_AT: usize = EPHEMERAL_AT + 32;
/// Offset of a Hello's payload.
pub(crate) const HELLO_PAYLOAD_AT: usize = STATIC_AT + 48;
/// Offset of a Welcome's payload.
pub(crate) const WELCOME_PAYLOAD_AT: usize = EPHEMERAL_AT + 32;
/// Octets of a Welcome in all suites.
pub(crate) const WELCOME_LEN: usize = WELCOME_PAYLOAD_AT + WELCOME_PAYLOAD + TAG_LEN;

/// Content of a Hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HelloPayload {
    /// Nanoseconds since 1970, later than in all earlier Hellos.
    pub(crate) timestamp: u64,
    /// Association that continues under new keys; 0 for a new one.
    pub(crate) continues: u64,
    /// Whether earlier associations of the terminal remain (ASC-2.11).
    pub(crate) is_beside: bool,
    pub(crate) limits: Limits,
}

impl HelloPayload {
    pub(crate) fn encode(&self) -> [u8; HELLO_PAYLOAD] {
        let mut out = [0; HELLO_PAYLOAD];
        out[..8].copy_from_slice(&self.timestamp.to_be_bytes());
        out[8..16].copy_from_slice(&self.continues.to_be_bytes());
        self.limits.encode(&mut out[16..]);
        out
    }

    /// Returns the counter field of the Hello in `suite`.
    pub(crate) fn word(&self, suite: u8) -> u32 {
        let flags = if self.is_beside { BESIDE } else { 0 };
        word(suite) | u32::from(self.limits.capabilities.octet()) << 16 | flags
    }

    /// Decodes the payload of a Hello with `header`, which has the capabilities and flags.
    pub(crate) fn decode(header: Header, bytes: &[u8; HELLO_PAYLOAD]) -> Self {
        let capabilities = Capabilities::from_octet((header.counter >> 16) as u8);
        Self {
            timestamp: u64::from_be_bytes(array(&bytes[..])),
            continues: u64::from_be_bytes(array(&bytes[8..])),
            is_beside: header.counter & BESIDE != 0,
            limits: Limits::decode(&bytes[16..], capabilities),
        }
    }
}

/// Payload of a Hello that registers `key`: the timestamp and the key.
pub(crate) fn registration(timestamp: u64, key: &PublicKey) -> [u8; HELLO_PAYLOAD] {
    let mut out = [0; HELLO_PAYLOAD];
    out[..8].copy_from_slice(&timestamp.to_be_bytes());
    out[8..].copy_from_slice(key.bytes());
    out
}

/// Response to a registration, in the place of the association of a Welcome.
pub(crate) const REGISTRATION_RECEIVED: u64 = 1;
/// The key cannot be registered.
pub(crate) const REGISTRATION_REFUSED: u64 = 2;

/// Content of a Welcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WelcomePayload {
    /// Index under which the hub receives; 0 without an association, because the Hello was not the
    /// latest.
    pub(crate) hub_index: u32,
    /// Identifier of the association, unique at the hub; 0 without one.
    pub(crate) association: u64,
    /// Latest timestamp that was accepted from this terminal.
    pub(crate) latest: u64,
    pub(crate) limits: Limits,
}

impl WelcomePayload {
    pub(crate) fn encode(&self) -> [u8; WELCOME_PAYLOAD] {
        let mut out = [0; WELCOME_PAYLOAD];
        out[..4].copy_from_slice(&self.hub_index.to_be_bytes());
        out[0] = self.limits.capabilities.octet();
        out[4..12].copy_from_slice(&self.association.to_be_bytes());
        out[12..20].copy_from_slice(&self.latest.to_be_bytes());
        self.limits.encode(&mut out[20..]);
        out
    }

    pub(crate) fn decode(bytes: &[u8; WELCOME_PAYLOAD]) -> Self {
        Self {
            hub_index: u32::from_be_bytes(array(&bytes[..])) & INDEX_MASK,
            association: u64::from_be_bytes(array(&bytes[4..])),
            latest: u64::from_be_bytes(array(&bytes[12..])),
            limits: Limits::decode(&bytes[20..], Capabilities::from_octet(bytes[0])),
        }
    }
}

/// A Hello that was sent, with the state for decoding the response.
#[derive(Debug)]
pub(crate) enum SentHello {
    Null(null::SentHello),
    Noise(Box<noise::SentHello>),
}

impl SentHello {
    /// Creates a Hello from `index` that registers `key`; returns it with its octets. Without keys
    /// there is nothing to register.
    pub(crate) fn registering(
        keys: &Keys,
        index: u32,
        timestamp: u64,
        key: &PublicKey,
        entropy: &mut dyn Entropy,
    ) -> (Self, Vec<u8>) {
        let word = word(SUITE_NOISE) | REGISTERS;
        let parts = (word, Capabilities::NONE, registration(timestamp, key));
        let (asked, bytes) = noise::SentHello::new(keys, index, parts, entropy);
        (Self::Noise(Box::new(asked)), bytes)
    }

    /// Creates a Hello from `index` to the hub; returns it with its octets.
    pub(crate) fn new(
        security: &Security,
        index: u32,
        payload: HelloPayload,
        name: &str,
        entropy: &mut dyn Entropy,
    ) -> (Self, Vec<u8>) {
        match security {
            Security::None => {
                let (asked, bytes) = null::SentHello::new(index, payload, name, entropy);
                (Self::Null(asked), bytes)
            }
            Security::Noise(keys) => {
                let word = payload.word(SUITE_NOISE);
                let parts = (word, payload.limits.capabilities, payload.encode());
                let (asked, bytes) = noise::SentHello::new(keys, index, parts, entropy);
                (Self::Noise(Box::new(asked)), bytes)
            }
        }
    }

    /// Processes a Welcome. An invalid one changes nothing.
    pub(crate) fn answered(
        &mut self,
        header: Header,
        datagram: &[u8],
    ) -> Result<(WelcomePayload, KeyPair), OpenError> {
        check_len(datagram, WELCOME_LEN, "length of the welcome")?;
        match self {
            Self::Null(asked) => asked.answered(header, datagram),
            Self::Noise(asked) => asked.answered(header, datagram),
        }
    }
}

/// A Hello that was decoded, with the state for the response.
#[derive(Debug)]
pub(crate) struct ReceivedHello {
    /// Index under which the terminal receives.
    pub(crate) index: u32,
    pub(crate) payload: HelloPayload,
    pub(crate) from: From,
    /// The key that it registers; the payload then has no other content than the timestamp.
    pub(crate) registers: Option<PublicKey>,
}

/// Sender of a Hello.
#[derive(Debug)]
pub(crate) enum From {
    /// Any terminal with this name.
    Name { name: String, ephemeral: [u8; 32] },
    /// The owner of this key.
    Key { key: PublicKey, answer: Box<noise::Answer> },
}

/// Returns the counter field of a handshake message.
pub(crate) fn word(suite: u8) -> u32 {
    u32::from(suite) << 24
}

/// Flag of a Hello that registers a key, in the counter field.
pub(crate) const REGISTERS: u32 = 1 << 8;

/// Flag of a Hello for an association beside earlier ones.
pub(crate) const BESIDE: u32 = 2 << 8;

pub(crate) fn check_suite(header: Header, expected: u8) -> Result<(), OpenError> {
    match (header.counter >> 24) as u8 {
        found if found == expected => Ok(()),
        found => Err(OpenError::Suite { found, expected }),
    }
}

pub(crate) fn check_len(
    datagram: &[u8],
    expected: usize,
    what: &'static str,
) -> Result<(), OpenError> {
    if datagram.len() < expected {
        return Err(OpenError::Truncated { found: datagram.len(), expected });
    }
    if datagram.len() > expected {
        return Err(OpenError::Malformed(what));
    }
    Ok(())
}

impl Limits {
    fn encode(self, out: &mut [u8]) {
        let words = [self.max_datagram, self.streams, self.minimum_credit, self.shared_credit];
        for (word, room) in words.into_iter().zip(out.chunks_exact_mut(4)) {
            room.copy_from_slice(&word.to_be_bytes());
        }
        out[16..24].copy_from_slice(&self.receive_rate_bps.to_be_bytes());
    }

    fn decode(bytes: &[u8], capabilities: Capabilities) -> Self {
        let word = |at: usize| u32::from_be_bytes(array(&bytes[at..]));
        Self {
            max_datagram: word(0),
            streams: word(4),
            minimum_credit: word(8),
            shared_credit: word(12),
            receive_rate_bps: u64::from_be_bytes(array(&bytes[16..])),
            capabilities,
        }
    }
}

/// Returns the first `N` octets of `bytes`, which has at least as many.
pub(crate) fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[..N]);
    out
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn limits() -> Limits {
        Limits {
            max_datagram: 1472,
            streams: 4096,
            minimum_credit: 16_384,
            shared_credit: 8 << 20,
            receive_rate_bps: 50_000_000,
            capabilities: Capabilities::ORDERLY_END,
        }
    }

    /// ASC-2.6, ASC-2.10
    #[test]
    fn payloads_have_the_layout_of_the_specification() {
        let (timestamp, continues, is_beside) = (0x0102, 0x0a0b, false);
        let hello = HelloPayload { timestamp, continues, is_beside, limits: limits() };
        let bytes = hello.encode();
        assert_eq!(bytes[..16], [0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 10, 11]);
        assert_eq!(bytes[16..20], [0, 0, 0x05, 0xc0]);
        assert_eq!(bytes[32..40], 50_000_000u64.to_be_bytes());
        let counter = hello.word(SUITE_NOISE);
        assert_eq!(counter, 0x0101_0000);
        let beside = HelloPayload { is_beside: true, ..hello };
        assert_eq!(beside.word(SUITE_NOISE), 0x0101_0200);
        let header = Header { kind: crate::wire::Kind::Hello, index: 9, counter };
        assert_eq!(HelloPayload::decode(header, &bytes), hello);
        let old = Header { counter: word(SUITE_NOISE), ..header };
        let capabilities = HelloPayload::decode(old, &bytes).limits.capabilities;
        assert_eq!(capabilities, Capabilities::NONE);

        let welcome =
            WelcomePayload { hub_index: 0x12_3456, association: 7, latest: 8, limits: limits() };
        let bytes = welcome.encode();
        assert_eq!(bytes[..12], [1, 0x12, 0x34, 0x56, 0, 0, 0, 0, 0, 0, 0, 7]);
        assert_eq!(bytes[12..20], 8u64.to_be_bytes());
        assert_eq!(WelcomePayload::decode(&bytes), welcome);
    }
}
