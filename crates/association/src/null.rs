//! The null suite: the framing of the others, with checksums instead of encryption.
//!
//! The ephemerals are random numbers; they bind a Welcome to its Hello, and both to the tags of the
//! following data.

use crate::channel::{Key, KeyPair};
use crate::checksum::{HELLO_KEY, derive_key, tag_fits, write_tag};
use crate::entropy::{Entropy, draw};
use crate::error::OpenError;
use crate::handshake::{
    EPHEMERAL_AT, From, HELLO_PAYLOAD, HELLO_PAYLOAD_AT, HelloPayload, MAX_NAME, ReceivedHello,
    STATIC_AT, SUITE_NULL, WELCOME_LEN, WELCOME_PAYLOAD_AT, WelcomePayload, array, check_suite,
    word,
};
use crate::wire::{Header, Kind, TAG_LEN};

const NAME_AT: usize = HELLO_PAYLOAD_AT + HELLO_PAYLOAD;
/// Minimum size of a Hello, with an empty name.
pub(crate) const HELLO_MIN: usize = NAME_AT + 1 + TAG_LEN;

/// A Hello that was sent.
#[derive(Debug)]
pub(crate) struct SentHello {
    ephemeral: [u8; 32],
}

impl SentHello {
    pub(crate) fn new(
        index: u32,
        payload: HelloPayload,
        name: &str,
        entropy: &mut dyn Entropy,
    ) -> (Self, Vec<u8>) {
        let ephemeral = draw(entropy);
        let name = name.as_bytes();
        let name = &name[..name.len().min(MAX_NAME)];
        let mut out = vec![0; HELLO_MIN + name.len()];
        let counter = payload.word(SUITE_NULL);
        Header { kind: Kind::Hello, index, counter }.encode(&mut out);
        out[EPHEMERAL_AT..STATIC_AT].copy_from_slice(&ephemeral);
        out[HELLO_PAYLOAD_AT..NAME_AT].copy_from_slice(&payload.encode());
        out[NAME_AT] = name.len() as u8;
        out[NAME_AT + 1..NAME_AT + 1 + name.len()].copy_from_slice(name);
        write_tag(HELLO_KEY, &mut out);
        (Self { ephemeral }, out)
    }

    pub(crate) fn answered(
        &self,
        header: Header,
        datagram: &[u8],
    ) -> Result<(WelcomePayload, KeyPair), OpenError> {
        let hub = array(&datagram[EPHEMERAL_AT..]);
        if !tag_fits(derive_key(b'w', &self.ephemeral, &hub), datagram) {
            return Err(OpenError::Tag);
        }
        check_suite(header, SUITE_NULL)?;
        let payload = WelcomePayload::decode(&array(&datagram[WELCOME_PAYLOAD_AT..]));
        let keys = keys(&self.ephemeral, &hub);
        Ok((payload, KeyPair { send: keys.0, receive: keys.1 }))
    }
}

/// Decodes a Hello.
pub(crate) fn hear(header: Header, datagram: &[u8]) -> Result<ReceivedHello, OpenError> {
    check_suite(header, SUITE_NULL)?;
    if datagram.len() < HELLO_MIN {
        return Err(OpenError::Truncated { found: datagram.len(), expected: HELLO_MIN });
    }
    if !tag_fits(HELLO_KEY, datagram) {
        return Err(OpenError::Tag);
    }
    let name_len = usize::from(datagram[NAME_AT]);
    if name_len > MAX_NAME || datagram.len() != HELLO_MIN + name_len {
        return Err(OpenError::Malformed("length of the name"));
    }
    let name = core::str::from_utf8(&datagram[NAME_AT + 1..NAME_AT + 1 + name_len])
        .map_err(|_| OpenError::Malformed("name is not UTF-8"))?;
    Ok(ReceivedHello {
        index: header.index,
        payload: HelloPayload::decode(header, &array(&datagram[HELLO_PAYLOAD_AT..])),
        from: From::Name { name: name.into(), ephemeral: array(&datagram[EPHEMERAL_AT..]) },
        registers: None,
    })
}

/// Returns the Welcome to the Hello of `index` with `ephemeral`, and the agreed keys.
pub(crate) fn answer(
    index: u32,
    ephemeral: &[u8; 32],
    payload: &WelcomePayload,
    entropy: &mut dyn Entropy,
) -> (Vec<u8>, KeyPair) {
    let own = draw(entropy);
    let mut out = vec![0; WELCOME_LEN];
    Header { kind: Kind::Welcome, index, counter: word(SUITE_NULL) }.encode(&mut out);
    out[EPHEMERAL_AT..WELCOME_PAYLOAD_AT].copy_from_slice(&own);
    out[WELCOME_PAYLOAD_AT..WELCOME_LEN - TAG_LEN].copy_from_slice(&payload.encode());
    write_tag(derive_key(b'w', ephemeral, &own), &mut out);
    let (up, down) = keys(ephemeral, &own);
    (out, KeyPair { send: down, receive: up })
}

/// Keys of the terminal's and of the hub's direction.
fn keys(terminal: &[u8; 32], hub: &[u8; 32]) -> (Key, Key) {
    (Key::Null(derive_key(b'u', terminal, hub)), Key::Null(derive_key(b'd', terminal, hub)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handshake::tests::limits;
    use units::RngStream;

    fn hello(name: &str) -> (SentHello, Vec<u8>) {
        let payload =
            HelloPayload { timestamp: 0x0102, continues: 3, is_beside: false, limits: limits() };
        SentHello::new(0x00ab_cdef, payload, name, &mut RngStream::new(1, 0, "null"))
    }

    fn heard(bytes: &[u8]) -> Result<ReceivedHello, OpenError> {
        Header::decode(bytes).and_then(|header| hear(header, bytes))
    }

    /// ASC-1.1, ASC-1.3, ASC-2.5
    #[test]
    fn a_hello_has_the_layout_of_the_specification() {
        let (asked, bytes) = hello("boat");
        assert_eq!(bytes.len(), 8 + 32 + 48 + 40 + 1 + 4 + 16);
        assert_eq!(bytes[..8], [0x11, 0xab, 0xcd, 0xef, 0, 1, 0, 0]);
        assert_eq!(bytes[8..40], asked.ephemeral);
        assert_eq!(bytes[40..88], [0; 48]);
        assert_eq!(bytes[88..96], [0, 0, 0, 0, 0, 0, 1, 2]);
        assert_eq!(&bytes[128..133], b"\x04boat");
        let heard = heard(&bytes).expect("understood");
        assert_eq!((heard.index, heard.payload.continues), (0x00ab_cdef, 3));
        assert!(matches!(heard.from, From::Name { name, .. } if name == "boat"));
    }

    /// ASC-2.2, ASC-2.3, ASC-5.1
    #[test]
    fn a_welcome_is_smaller_than_any_hello_and_bound_to_it() {
        let (asked, hello) = hello("");
        let payload =
            WelcomePayload { hub_index: 0x12_3456, association: 1, latest: 2, limits: limits() };
        let mut entropy = RngStream::new(2, 0, "null");
        let (bytes, _) = answer(0x00ab_cdef, &asked.ephemeral, &payload, &mut entropy);
        assert_eq!(bytes.len(), 100);
        assert!(bytes.len() < hello.len());
        assert_eq!(bytes[..8], [0x12, 0xab, 0xcd, 0xef, 0, 0, 0, 0]);
        let header = Header::decode(&bytes).expect("header");
        assert_eq!(asked.answered(header, &bytes).expect("it is the answer").0, payload);
        let other = SentHello { ephemeral: [8; 32] };
        assert_eq!(other.answered(header, &bytes).map(|_| ()), Err(OpenError::Tag));
    }

    /// ASC-5.1
    #[test]
    fn every_damaged_octet_is_detected() {
        let whole = hello("boat").1;
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x20;
            assert!(heard(&bytes).is_err(), "byte {at}");
            assert!(heard(&whole[..at]).is_err(), "{at} bytes");
        }
    }
}
