//! The two messages that make an association, shaped as those of Noise IKpsk2.
//!
//! ```text
//! Hello                                     Welcome
//!   0  header, index: the terminal's own      0  header, index: the terminal's
//!      counter field: suite, 0, 0, 0             counter field: suite, then the hub's index
//!   8  ephemeral, 32 bytes                    8  ephemeral, 32 bytes
//!  40  static, 48 bytes (null suite: 0)      40  limits, 24 bytes
//!  88  timestamp, 8 bytes                    64  tag, 16 bytes
//!  96  limits, 24 bytes
//! 120  length of the name, 1 byte; name
//!  ..  tag, 16 bytes
//! ```
//!
//! In the null suite the ephemerals are random numbers; they bind a Welcome to its Hello and
//! both to the tags of the data that follows.

use crate::channel::{derive_key, tag_fits, write_tag};
use crate::wire::{HEADER_LEN, Header, INDEX_MASK, Kind, TAG_LEN};
use crate::{Limits, OpenError};

/// Longest name of a terminal, bytes.
pub const MAX_NAME: usize = 64;

const SUITE_NULL: u8 = 0;
const LIMITS_LEN: usize = 24;
const EPHEMERAL_AT: usize = HEADER_LEN;
const STATIC_AT: usize = EPHEMERAL_AT + 32;
const TIMESTAMP_AT: usize = STATIC_AT + 48;
const HELLO_LIMITS_AT: usize = TIMESTAMP_AT + 8;
const NAME_AT: usize = HELLO_LIMITS_AT + LIMITS_LEN;
/// The shortest Hello: an empty name.
const HELLO_MIN: usize = NAME_AT + 1 + TAG_LEN;
const WELCOME_LIMITS_AT: usize = EPHEMERAL_AT + 32;
const WELCOME_LEN: usize = WELCOME_LIMITS_AT + LIMITS_LEN + TAG_LEN;

/// Bytes that any handshake message fits into.
pub(crate) const MAX_HANDSHAKE: usize = HELLO_MIN + MAX_NAME;

/// The key of the tag of a Hello, which nothing precedes.
pub(crate) const HELLO_KEY: u64 = 0x6265_6e74_7069_7065;

/// A terminal's first message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    pub(crate) index: u32,
    pub(crate) ephemeral: [u8; 32],
    pub(crate) timestamp: u64,
    pub(crate) limits: Limits,
    pub(crate) name: String,
}

impl Hello {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let name = self.name.as_bytes();
        let name = &name[..name.len().min(MAX_NAME)];
        let mut out = vec![0; HELLO_MIN + name.len()];
        let counter = u32::from_be_bytes([SUITE_NULL, 0, 0, 0]);
        Header { kind: Kind::Hello, index: self.index, counter }.encode(&mut out);
        out[EPHEMERAL_AT..STATIC_AT].copy_from_slice(&self.ephemeral);
        out[TIMESTAMP_AT..HELLO_LIMITS_AT].copy_from_slice(&self.timestamp.to_be_bytes());
        self.limits.encode(&mut out[HELLO_LIMITS_AT..NAME_AT]);
        out[NAME_AT] = name.len() as u8;
        out[NAME_AT + 1..NAME_AT + 1 + name.len()].copy_from_slice(name);
        write_tag(HELLO_KEY, &mut out);
        out
    }

    pub(crate) fn decode(header: Header, datagram: &[u8]) -> Result<Self, OpenError> {
        if datagram.len() < HELLO_MIN {
            return Err(OpenError::Truncated { found: datagram.len(), expected: HELLO_MIN });
        }
        if !tag_fits(HELLO_KEY, datagram) {
            return Err(OpenError::Tag);
        }
        check_suite(header)?;
        let name_len = usize::from(datagram[NAME_AT]);
        if name_len > MAX_NAME || datagram.len() != HELLO_MIN + name_len {
            return Err(OpenError::Malformed("length of the name"));
        }
        let name = core::str::from_utf8(&datagram[NAME_AT + 1..NAME_AT + 1 + name_len])
            .map_err(|_| OpenError::Malformed("name is not UTF-8"))?;
        Ok(Self {
            index: header.index,
            ephemeral: array(&datagram[EPHEMERAL_AT..]),
            timestamp: u64::from_be_bytes(array(&datagram[TIMESTAMP_AT..])),
            limits: Limits::decode(&datagram[HELLO_LIMITS_AT..]),
            name: name.into(),
        })
    }
}

/// The hub's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Welcome {
    /// The terminal's index, from its Hello.
    pub(crate) terminal_index: u32,
    pub(crate) hub_index: u32,
    pub(crate) ephemeral: [u8; 32],
    pub(crate) limits: Limits,
}

impl Welcome {
    /// The message, bound to the Hello that carried `terminal_ephemeral`.
    pub(crate) fn encode(&self, terminal_ephemeral: &[u8; 32]) -> Vec<u8> {
        let mut out = vec![0; WELCOME_LEN];
        let counter = u32::from(SUITE_NULL) << 24 | self.hub_index & INDEX_MASK;
        Header { kind: Kind::Welcome, index: self.terminal_index, counter }.encode(&mut out);
        out[EPHEMERAL_AT..WELCOME_LIMITS_AT].copy_from_slice(&self.ephemeral);
        self.limits.encode(&mut out[WELCOME_LIMITS_AT..WELCOME_LEN - TAG_LEN]);
        write_tag(derive_key(b'w', terminal_ephemeral, &self.ephemeral), &mut out);
        out
    }

    pub(crate) fn decode(
        header: Header,
        datagram: &[u8],
        terminal_ephemeral: &[u8; 32],
    ) -> Result<Self, OpenError> {
        if datagram.len() < WELCOME_LEN {
            return Err(OpenError::Truncated { found: datagram.len(), expected: WELCOME_LEN });
        }
        if datagram.len() > WELCOME_LEN {
            return Err(OpenError::Malformed("length of the welcome"));
        }
        let ephemeral = array(&datagram[EPHEMERAL_AT..]);
        if !tag_fits(derive_key(b'w', terminal_ephemeral, &ephemeral), datagram) {
            return Err(OpenError::Tag);
        }
        check_suite(header)?;
        Ok(Self {
            terminal_index: header.index,
            hub_index: header.counter & INDEX_MASK,
            ephemeral,
            limits: Limits::decode(&datagram[WELCOME_LIMITS_AT..]),
        })
    }
}

fn check_suite(header: Header) -> Result<(), OpenError> {
    match (header.counter >> 24) as u8 {
        SUITE_NULL => Ok(()),
        found => Err(OpenError::Suite { found }),
    }
}

impl Limits {
    fn encode(self, out: &mut [u8]) {
        let words =
            [self.max_datagram, self.streams, self.minimum_credit, self.shared_credit, 0, 0];
        for (word, room) in words.into_iter().zip(out.chunks_exact_mut(4)) {
            room.copy_from_slice(&word.to_be_bytes());
        }
        out[16..24].copy_from_slice(&self.receive_rate_bps.to_be_bytes());
    }

    fn decode(bytes: &[u8]) -> Self {
        let word = |at: usize| u32::from_be_bytes(array(&bytes[at..]));
        Self {
            max_datagram: word(0),
            streams: word(4),
            minimum_credit: word(8),
            shared_credit: word(12),
            receive_rate_bps: u64::from_be_bytes(array(&bytes[16..])),
        }
    }
}

/// The first `N` bytes of `bytes`, which has them.
fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[..N]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> Limits {
        Limits {
            max_datagram: 1472,
            streams: 4096,
            minimum_credit: 16_384,
            shared_credit: 8 << 20,
            receive_rate_bps: 50_000_000,
        }
    }

    fn hello() -> Hello {
        Hello {
            index: 0x00ab_cdef,
            ephemeral: [7; 32],
            timestamp: 0x0102_0304_0506_0708,
            limits: limits(),
            name: "boat".into(),
        }
    }

    /// ASC-1.1, ASC-1.3, ASC-2.5
    #[test]
    fn a_hello_has_the_layout_of_the_specification() {
        let bytes = hello().encode();
        assert_eq!(bytes.len(), 8 + 32 + 48 + 8 + 24 + 1 + 4 + 16);
        assert_eq!(bytes[..8], [0x11, 0xab, 0xcd, 0xef, 0, 0, 0, 0]);
        assert_eq!(bytes[8..40], [7; 32]);
        assert_eq!(bytes[40..88], [0; 48]);
        assert_eq!(bytes[88..96], [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(bytes[96..100], [0, 0, 0x05, 0xc0]);
        assert_eq!(bytes[112..120], 50_000_000u64.to_be_bytes());
        assert_eq!(&bytes[120..125], b"\x04boat");
        let header = Header::decode(&bytes).expect("header");
        assert_eq!(Hello::decode(header, &bytes), Ok(hello()));
    }

    /// ASC-2.2, ASC-2.3, ASC-5.1
    #[test]
    fn a_welcome_is_smaller_than_any_hello_and_bound_to_it() {
        let welcome = Welcome {
            terminal_index: 0x00ab_cdef,
            hub_index: 0x0012_3456,
            ephemeral: [9; 32],
            limits: limits(),
        };
        let bytes = welcome.encode(&[7; 32]);
        assert_eq!(bytes.len(), 80);
        assert_eq!(bytes[..8], [0x12, 0xab, 0xcd, 0xef, 0, 0x12, 0x34, 0x56]);
        assert!(bytes.len() < Hello { name: String::new(), ..hello() }.encode().len());
        let header = Header::decode(&bytes).expect("header");
        assert_eq!(Welcome::decode(header, &bytes, &[7; 32]), Ok(welcome));
        assert_eq!(Welcome::decode(header, &bytes, &[8; 32]), Err(OpenError::Tag));
    }

    /// ASC-5.1
    #[test]
    fn every_damaged_byte_is_noticed() {
        let whole = hello().encode();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x20;
            let result = Header::decode(&bytes).and_then(|header| Hello::decode(header, &bytes));
            assert!(result.is_err(), "byte {at}");
            assert!(
                Header::decode(&whole[..at])
                    .and_then(|header| Hello::decode(header, &whole[..at]))
                    .is_err()
            );
        }
    }
}
